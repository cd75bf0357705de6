//! `dedup`: the same result everywhere, and a rerun that costs what changed.

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, lines};
use crate::paper::Numbers;

const WORKFLOW: &str = "galeras: 1
name: reuse
steps:
  data: { op: read, with: { path: data.jsonl } }
  features: { op: ast, from: data, with: { features: [nloc] } }
  unique: { op: dedup, from: features, with: { column: code, threshold: 0.8, order_by: [day] } }
  testbed: { op: cut, from: unique, with: { seed: 1 } }
";

/// Methods, of which every other is like one of those before; 60 words each of 2,000.
fn methods(count: usize) -> Vec<Value> {
    let mut numbers = Numbers::new(7);
    let mut made: Vec<Vec<usize>> = Vec::with_capacity(count);
    for i in 0..count {
        let mut words: Vec<usize> = if i % 2 == 0 {
            (0..60).map(|_| numbers.below(2_000)).collect()
        } else {
            made[numbers.below(i)].clone()
        };
        for _ in 0..numbers.below(10) {
            let at = numbers.below(words.len());
            words[at] = numbers.below(2_000);
        }
        made.push(words);
    }
    let row = |(i, words): (usize, &Vec<usize>)| {
        let line = |pair: &[usize]| format!("    name_{} = value_{}\n", pair[0], pair[1]);
        let body: String = words.chunks(2).map(line).collect();
        let id = format!("{:06}", (i * 7_919) % 100_003);
        json!({"id": id, "day": i % 9, "code": format!("def f(a):\n{body}    return a\n")})
    };
    made.iter().enumerate().map(row).collect()
}

fn project(rows: usize) -> Project {
    Project::new(WORKFLOW).with("data.jsonl", lines(&methods(rows)))
}

/// The digests of the four ports of the step `unique`.
#[track_caller]
pub fn digests_of_unique(outcome: &Outcome) -> Vec<(String, String)> {
    let of = |(step, port, digest)| (step == "unique").then_some((port, digest));
    let found: Vec<_> = outcome.digests().into_iter().filter_map(of).collect();
    assert_eq!(found.len(), 4, "{outcome}");
    found
}

/// The digests are the same on any number of threads, in little memory and in much, and with
/// the rows in another order.
#[track_caller]
fn is_the_same_everywhere(project: &Project) {
    let lines = project.read("data.jsonl");
    let first = project.run_ok(&["--jobs", "2", "--cache", "first"]);
    let ports = first.step("unique")["ports"].as_array().unwrap().clone();
    let clusters = ports.iter().find(|p| p["port"] == "clusters").unwrap();
    assert!(clusters["rows"].as_u64().unwrap() > 1_000, "{first}");
    let again = |jobs: &str, memory: &str| {
        let cache = format!("cache-{jobs}-{memory}");
        let again = project.run_ok(&["--jobs", jobs, "--memory", memory, "--cache", &cache]);
        assert_eq!(digests_of_unique(&again), digests_of_unique(&first), "{jobs} jobs, {memory}");
    };
    ["1", "4"].iter().for_each(|jobs| again(jobs, "1GiB"));
    let reversed: Vec<&str> = lines.lines().rev().collect();
    project.write("data.jsonl", reversed.join("\n") + "\n");
    ["1", "2", "4"].iter().for_each(|jobs| again(jobs, "1MiB"));
    assert_eq!(project.left_behind(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn threads_memory_and_the_order_of_rows_change_nothing() {
    is_the_same_everywhere(&project(2_500));
}

#[test]
fn the_same_holds_for_minhash_and_for_bpe() {
    let project = project(2_500);
    project.change("order_by: [day]", "method: minhash");
    is_the_same_everywhere(&project);
    let project = self::project(2_500);
    project.change("order_by: [day]", "tokens: bpe, keep: last");
    project.change("from: features", "from: { input: features, tokenizer: bpe }");
    let bpe = "  bpe: { op: tokenizer, from: data, with: { column: code, vocab_size: 400 } }\n";
    project.change("  unique:", &format!("{bpe}  unique:"));
    is_the_same_everywhere(&project);
}

#[test]
fn another_threshold_reruns_dedup_and_what_follows_and_nothing_before() {
    let project = project(400);
    let first = project.run_ok(&["--jobs", "1", "--memory", "64MiB"]);
    // Memory and threads are no reason to run again.
    project.run_ok(&["--jobs", "2", "--memory", "2GB"]).all_hit();
    let second = project.rerun("threshold: 0.8", "threshold: 0.95");
    assert_eq!(second.statuses(), "data=hit features=hit unique=ran testbed=ran");
    let unique = second.step("unique");
    assert_eq!(unique["reason"], "ARG_CHANGED", "{second}");
    assert!(unique["rows"].as_u64() > first.step("unique")["rows"].as_u64(), "{second}");
    // The rows that were kept before are cut already.
    assert_eq!(second.step("testbed")["reused_rows"], first.step("testbed")["rows"], "{second}");
    project.run(&["explain", "w.yaml", "unique"]).exits(0).prints(&["threshold"]);
    project.rerun("threshold: 0.95", "threshold: 0.8").all_hit();
}

#[test]
fn a_row_that_is_added_runs_dedup_again_with_the_result_of_a_new_store() {
    let project = project(400).ran();
    let line = project.read("data.jsonl").lines().next().unwrap().to_owned();
    let added = line.replacen("{\"id\":\"", "{\"id\":\"x", 1);
    project.write("data.jsonl", project.read("data.jsonl") + &added + "\n");
    let second = project.run_ok(&[]);
    // Its twin is kept.
    assert_eq!(second.statuses(), "data=ran features=ran unique=ran testbed=hit");
    assert_eq!(second.step("features")["computed_rows"], 0);
    let fresh = project.run_ok(&["--cache", "fresh"]);
    assert_eq!(digests_of_unique(&fresh), digests_of_unique(&second));
    assert!(project.texts("unique.rejects", "id").iter().any(|id| id.starts_with('x')));
}
