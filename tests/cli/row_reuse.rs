//! Row-precise reuse: a rerun costs the rows that changed.

use crate::harness::{Project, says, text};
use crate::row_streams::counts;

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  features: { op: ast, from: data, with: { features: [nloc, n_words] } }
  valid: { op: validate, from: features, with: { rules: [ { name: long, check: nloc > 2 } ] } }
  testbed: { op: cut, from: valid, with: { seed: 1 } }
";

fn row(i: usize, extra: usize) -> String {
    let body = format!("def f{i}(a):\\n    b = a + {}\\n    return b\\n", i + extra);
    format!("{{\"id\":\"{i:05}\",\"code\":\"{body}\",\"note\":\"n{}\"}}\n", i % 7)
}

fn data(rows: usize, changed: impl Fn(usize) -> bool) -> String {
    (0..rows).map(|i| row(i, if changed(i) { 1_000_000 } else { 0 })).collect()
}

#[test]
fn one_per_cent_of_changed_rows_costs_one_per_cent() {
    let project = Project::new(WORKFLOW).with("data.jsonl", data(2_000, |_| false));
    let first = project.run_ok(&[]);
    assert_eq!(first.step("features")["computed_rows"], 2_000);
    project.write("data.jsonl", data(2_000, |i| i % 100 == 3));
    let second = project.run_ok(&[]);
    for step in ["features", "valid", "testbed"] {
        let computed = if step == "valid" { 0 } else { 20 };
        assert_eq!(counts(&second, step), (computed, 2_000 - computed), "{step}: {second}");
    }
    // A store that has never seen anything gives the same.
    assert_eq!(project.run_ok(&["--cache", "fresh"]).digests(), second.digests());
    project.verifies("cache");
    // Back to the first version: everything is stored.
    project.write("data.jsonl", data(2_000, |_| false));
    project.run_ok(&[]).all_hit_as(&first);
}

#[test]
fn added_removed_and_reordered_rows_cost_what_is_new() {
    let project = Project::new(WORKFLOW).with("data.jsonl", data(300, |_| false)).ran();
    let mut rows: Vec<String> = (10..310).map(|i| row(i, 0)).collect();
    rows.reverse();
    project.write("data.jsonl", rows.concat());
    let outcome = project.run_ok(&[]);
    assert_eq!(counts(&outcome, "features"), (10, 290));
    assert_eq!(outcome.step("features")["rows"], 300);
    assert_eq!(project.run_ok(&["--cache", "fresh"]).digests(), outcome.digests());
    // The order alone changes no digest.
    let project = Project::new(WORKFLOW);
    project.write("data.jsonl", data(50, |_| false));
    let first = project.run_ok(&[]);
    project.write("data.jsonl", (0..50).rev().map(|i| row(i, 0)).collect::<String>());
    let second = project.run_ok(&[]);
    assert_eq!(second.digests(), first.digests());
    assert_eq!(second.statuses(), "data=ran features=hit valid=hit testbed=hit");
    // Columns that an operator does not read do not cost.
    let project = Project::new(WORKFLOW).with("data.jsonl", data(100, |_| false)).ran();
    project.write("data.jsonl", data(100, |_| false).replace("\"note\":\"n", "\"note\":\"m"));
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.step("data")["reason"], "FILE_CHANGED");
    for step in ["features", "valid", "testbed"] {
        assert_eq!(outcome.step(step)["computed_rows"], 0, "{step}: {outcome}");
    }
    // The new notes went through.
    assert!(project.rows("testbed").iter().all(|r| r["note"].as_str().unwrap().starts_with('m')));
}

#[test]
fn equal_rows_are_computed_once_and_all_are_kept() {
    let project = Project::new(WORKFLOW);
    let code = "def f(a):\\n    b = a\\n    return b\\n";
    let same = |i: usize| format!("{{\"id\":\"{i}\",\"code\":\"{code}\",\"note\":\"\"}}\n");
    project.write("data.jsonl", (0..40).map(same).collect::<String>());
    assert_eq!(project.run_ok(&[]).step("testbed")["rows"], 40);
    assert_eq!(project.rows("features").len(), 40);
    // Another seed reuses no row.
    let project = Project::new(WORKFLOW).with("data.jsonl", data(100, |_| false)).ran();
    assert_eq!(counts(&project.rerun("seed: 1", "seed: 2"), "testbed"), (100, 0));
    // Null and empty texts differ.
    let project = Project::new(WORKFLOW);
    let rows = "{\"id\":\"a\",\"code\":null,\"note\":\"\"}\n{\"id\":\"b\",\"code\":\"\",\"note\":\"\"}\n{\"id\":\"c\",\"code\":\"def f():\\n    x = 1\\n    return x\\n\",\"note\":\"\"}\n";
    project.write("data.jsonl", rows);
    project.run_ok(&[]);
    let reject = project.only("features.rejects");
    assert_eq!(reject["id"], "a");
    says(text(&reject, "reason"), &["null"]);
    assert_eq!(project.rows("features").len(), 2);
}
