//! The workflows that evaluate summaries, commit messages, tests and fixes, from a repository to
//! effects, against a server on the loopback address.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{hides, text};
use crate::model_comparisons::{average, effects_are_right, mean, paired, same_rounded};
use crate::paper::{Numbers, Shipped, file, method, table};
use crate::repository::{Repository, at, day};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest, MODEL};

const METHODS: usize = 14;
const TEXT_SCORES: [&str; 4] = ["bleu", "chrf", "rouge_l", "similarity"];

/// The fix: one branch more in front of the last line of a method.
const FIX: &str = "    if len([0]) > 1:\n        return None\n";

fn name(n: usize) -> String {
    format!("compute_part_{n}_of_it")
}

fn buggy(n: usize) -> String {
    longer(&method(&name(n), 5_000 + n as u64, None, n), n)
}

fn longer(code: &str, n: usize) -> String {
    let list = vec![n.to_string(); n % 3 + 1].join(", ");
    let line = |step| format!("    step_{step} = [{list}]\n");
    before_the_end(code, &(0..n % 5).map(line).collect::<String>())
}

fn before_the_end(code: &str, lines: &str) -> String {
    let last = code.rfind("    return ").unwrap();
    format!("{}{lines}{}", &code[..last], &code[last..])
}

fn fixed(code: &str) -> String {
    before_the_end(code, FIX)
}

/// The docstring of a method, or the message of a change to it.
fn said_of(n: usize) -> String {
    let words = Numbers::new(900_000 + n as u64).words(3 + n % 4);
    format!("Return what part {n} gives when nothing comes to it, or {words}")
}

fn commits(
    study: &Shipped,
    code: impl Fn(usize) -> String,
    first: &str,
    message: impl Fn(usize) -> String,
) {
    let repo = Repository::bare(study.project.path("a"));
    for done in 0..=METHODS {
        let version = |n: usize| if n < done { fixed(&code(n)) } else { code(n) };
        let methods: Vec<String> = (0..METHODS).map(version).collect();
        let message = if done == 0 { first.to_owned() } else { message(done) };
        repo.commit(at(day(1 + done as i64)).message(&message).write("m.py", file(&methods)));
    }
}

pub fn documented(study: &Shipped) {
    let code = |n: usize| {
        let doc = format!("{}.", said_of(n));
        longer(&method(&name(n), 5_000 + n as u64, Some(&doc), n), n)
    };
    commits(study, code, &said_of(METHODS), said_of);
}

/// A repository with methods and tests of each, whose names end in these ways.
fn methods_and_tests(study: &Shipped, ends: &[&str]) {
    let repo = Repository::bare(study.project.path("a"));
    let test = |n: usize, of: usize| {
        let mut words = Numbers::new(8_000 + (1_000 * of + n) as u64);
        let [a, b, c] = [words.word(), words.word(), words.word()];
        format!(
            "def test_{0}{1}():\n    {a} = make_{b}([{n}, {c}])\n    {c} = {0}({a}, {b}={n})\n    \
             assert {c}[0] == {n}, {a}\n",
            name(n),
            ends[of]
        )
    };
    let methods: Vec<String> = (0..METHODS).map(buggy).collect();
    let tests = (0..METHODS).flat_map(|n| (0..ends.len()).map(move |of| (n, of)));
    let tests: Vec<String> = tests.map(|(n, of)| test(n, of)).collect();
    let commit = at(day(2)).message("Add the library and its tests");
    repo.commit(commit.write("lib.py", file(&methods)).write("tests/test_lib.py", file(&tests)));
}

fn hash(text: &str) -> usize {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    (text.bytes().fold(0xcbf2_9ce4_8422_2325, mix) >> 20) as usize
}

/// The last block of code of a conversation.
pub fn block(said: &str) -> &str {
    let (_, rest) = said.rsplit_once("```python\n").unwrap();
    rest.split("```").next().unwrap()
}

/// A model with its own opinion: some answers are right, some are not, depending on the question.
pub fn answer(asked: &ChatRequest) -> String {
    let said = asked.said().join("\n");
    let (block, hash) = (block(&said), hash(&said));
    let fence = |code: &str| format!("Here it is:\n```python\n{code}\n```\n");
    if said.contains("has a bug") {
        let last = block.contains("    return ") && !block.contains(FIX);
        return fence(&if last && hash % 3 > 0 { fixed(block) } else { block.to_owned() });
    }
    if said.contains("unit test") {
        let name = said.split("def ").nth(1).unwrap().split('(').next().unwrap();
        return fence(&match hash % 3 {
            0 => format!("def test_it():\n    assert {name}({hash}, None)[0] == 1"),
            1 => format!("def test_it():\n    with raises(ValueError):\n        other({hash})"),
            _ => format!("def test_it():\n    {name}({hash}, None)"),
        });
    }
    if said.contains("alone") {
        let words: Vec<&str> =
            block.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let word = |n: usize| words[(hash + 5 * n) % words.len()];
        let known = ["", "Return what", "Return what part gives when nothing comes"][hash % 3];
        let rest: Vec<&str> = (0..3 + hash % 5).map(word).collect();
        return format!("{known} {}", rest.join(" "));
    }
    let lines = hash % 4;
    let more: String = (0..lines).map(|n| format!("    value_{n} = {}\n", hash % 7)).collect();
    fence(&format!("{}\n{more}    return {}", block.trim_end(), hash % 5))
}

/// A study of the shipped workflow `file` against a server that gives these answers.
pub fn study(
    file: &'static str,
    answer: impl Fn(&ChatRequest) -> String + Send + 'static,
) -> (Shipped, ChatApi) {
    let api = ChatApi::start();
    api.script(move |asked| {
        Some(ChatFault::Message(json!({"role": "assistant", "content": answer(asked)})))
    });
    let mut study = Shipped::new(file, "./a");
    study.set("n", "20");
    (study, api)
}

/// From data to effects: the files agree with the rows.
#[track_caller]
fn evaluates(study: &mut Shipped, api: &ChatApi, folder: &str, outcomes: &[&str]) -> Vec<Value> {
    study.set("base_url", &api.url());
    study.set("model", MODEL);
    let outcome = study.run(&[]).exits(0);
    let testbed = study.rows("evaluation/testbed");
    assert!((10..=20).contains(&testbed.len()), "{}", testbed.len());
    let scores = study.rows(&format!("evaluation/scores[model={MODEL}]"));
    paired(&scores, testbed.len());
    let read = |name: &str| study.project.read(&format!("{folder}/{name}"));
    assert_eq!(read("unanswered.jsonl"), "");
    // The third treatment has two turns.
    assert_eq!(api.count(), 4 * testbed.len());
    assert_eq!(table(&read("spent.csv"))[0]["answers"], api.count().to_string());

    let baselines = study.rows("evaluation/baseline_scores");
    let of = |name: &str| -> Vec<&Value> {
        baselines.iter().filter(|row| row["baseline"] == name).collect()
    };
    let told = table(&read("table.csv"));
    assert_eq!(told.len(), 3 * outcomes.len());
    let names: BTreeSet<&str> = told.iter().map(|line| line["score"].as_str()).collect();
    assert_eq!(names, outcomes.iter().copied().collect());
    for line in &told {
        let (score, treatment) = (line["score"].as_str(), line["treatment"].as_str());
        let what = format!("{score} under {treatment}");
        same_rounded(&line["mean"], mean(&scores, treatment, score), &what);
        same_rounded(&line["echo"], average(of("echo"), score), &what);
        same_rounded(&line["reference"], average(of("reference"), score), &what);
        let number = |column: &str| line[column].parse::<f64>().unwrap();
        assert!(number("ci_low") <= number("mean") && number("mean") <= number("ci_high"));
        assert_eq!(line["n"], testbed.len().to_string());
        // The upper bound is one.
        assert!(score == "codebleu" || number("reference") == 1.0, "{what}: {line:?}");
    }
    let effects = read("effects.csv");
    effects_are_right(&effects, &scores, outcomes.len());
    for estimator in ["paired", "ols", "lin"] {
        let mut lines = table(&effects);
        lines.retain(|line| line["status"] == "ok" && line["estimator"] == estimator);
        let number = lines.len();
        assert!(number >= outcomes.len(), "{number} by {estimator}: {effects}");
    }
    assert!(table(&read("refutations.csv")).len() >= 3 * outcomes.len());

    study.run(&[]).exits(0).all_hit_as(&outcome);
    assert_eq!(api.count(), 4 * testbed.len());
    scores
}

#[test]
fn summaries_and_commit_messages_are_asked_for_without_what_is_wanted() {
    let (mut study, api) = study("summarize.yaml", answer);
    documented(&study);
    let scores = evaluates(&mut study, &api, "summarize", &TEXT_SCORES);
    for row in &scores {
        let docstring = text(row, "reference");
        assert!(docstring.starts_with("Return what part "), "{row}");
        assert!(!text(row, "prompt").contains(docstring), "{row}");
        assert!(text(row, "prompt").contains(text(row, "code_no_docstring")), "{row}");
        // The answer is a text, as it came.
        assert_eq!(row["prediction"], row["raw_response"]);
    }
    // Only what leads to this testbed has run.
    let ran = study.run(&[]).exits(0).statuses();
    hides(&ran, &["/fixes/", "/unit_tests/", "random_cut", "commit_gen"]);
    let (mut study, api) = self::study("commits.yaml", answer);
    documented(&study);
    let scores = evaluates(&mut study, &api, "commits", &TEXT_SCORES);
    for row in &scores {
        let (prompt, message) = (text(row, "prompt"), text(row, "reference"));
        assert!(message.starts_with("Return what part "), "{row}");
        assert!(!prompt.contains(message), "{row}");
        for version in ["code_before", "code"] {
            assert!(prompt.contains(text(row, version)), "{version}: {row}");
        }
    }
}

#[test]
fn tests_are_scored_by_what_they_call_and_assert_too() {
    let (mut study, api) = study("testgen.yaml", answer);
    methods_and_tests(&study, &[""]);
    let outcomes =
        ["bleu", "codebleu", "similarity", "chrf", "rouge_l", "parses", "calls_it", "asserts"];
    let scores = evaluates(&mut study, &api, "testgen", &outcomes);
    let mut seen = BTreeSet::new();
    for row in &scores {
        let prediction = text(row, "prediction");
        let found = ["calls_it", "asserts"].map(|score| row[score].as_f64().unwrap() == 1.0);
        let calls = prediction.contains(&format!("{}(", text(row, "callee")));
        let asserts = prediction.contains("assert ") || prediction.contains("raises(");
        assert_eq!(found, [calls, asserts], "{row}");
        seen.insert(found);
        assert!(!text(row, "prompt").contains(text(row, "reference")), "{row}");
    }
    assert_eq!(seen.len(), 3, "all kinds of answers: {seen:?}");
}

#[test]
fn tests_of_one_method_are_one_cluster() {
    let (mut study, api) = study("testgen.yaml", answer);
    methods_and_tests(&study, &["", "_again"]);
    study.set("base_url", &api.url());
    study.set("model", MODEL);
    study.run(&[]).exits(0);
    let testbed = study.rows("evaluation/testbed");
    let methods: BTreeSet<&str> = testbed.iter().map(|row| text(row, "method_id")).collect();
    assert!(methods.len() < testbed.len(), "{} tests of {}", testbed.len(), methods.len());
    let effects = table(&study.project.read("testgen/effects.csv"));
    let estimated: Vec<_> = effects.iter().filter(|line| line["status"] == "ok").collect();
    assert!(!estimated.is_empty(), "{effects:?}");
    for line in estimated {
        assert_eq!(line["n_clusters"], methods.len().to_string(), "{line:?}");
    }
}

#[test]
fn fixes_are_measured_before_they_are_made_and_compared_with_the_bug() {
    let (mut study, api) = study("bugfix.yaml", answer);
    let message = |n| format!("Fix what part {n} gives for nothing");
    commits(&study, buggy, "Add the first module of it", message);
    let outcomes = ["bleu", "codebleu", "similarity", "chrf", "parses", "exact_match", "nearer"];
    let scores = evaluates(&mut study, &api, "bugfix", &outcomes);
    let mut mended = BTreeSet::new();
    for row in &scores {
        let (before, after) = (text(row, "buggy"), text(row, "reference"));
        assert_eq!(fixed(before), after);
        // for, if and or; the fix has one branch and two lines more.
        assert_eq!(row["complexity"], 4, "{row}");
        assert_eq!(row["nloc"], before.lines().count(), "{row}");
        assert!(!text(row, "prompt").contains(FIX), "{row}");
        let right = row["exact_match"] == 1;
        assert_eq!(right, text(row, "prediction").trim() == after.trim(), "{row}");
        assert_eq!(row["nearer"].as_f64() == Some(1.0), right, "{row}");
        mended.insert(right);
    }
    assert_eq!(mended.len(), 2, "some are mended");
    // An echo is near, and no fix.
    let mut echo = study.rows("evaluation/baseline_scores");
    echo.retain(|row| row["baseline"] == "echo");
    for row in &echo {
        assert!(row["similarity"].as_f64().unwrap() > 0.7, "{row}");
        assert_eq!((row["exact_match"].as_f64(), row["nearer"].as_f64()), (Some(0.0), Some(0.0)));
    }
}
