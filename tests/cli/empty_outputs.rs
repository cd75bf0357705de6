//! Outputs without rows, and windows without a commit: a warning names the step where the last row
//! went.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, flat, has, says, text};
use crate::repository::{Mining, NEW_YEAR, Repository, at, def};

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.csv, key: [id] } }
  valid: { op: validate, from: data, with: { rules: [ { name: large, check: x > LEAST } ] } }
  few: { op: sample, from: valid, with: { n: 1, seed: 1 } }
  joined:
    op: sql
    from: { few: few, data: data }
    with: { query: 'SELECT data.id, data.x FROM few JOIN data ON few.id = data.id', key: [id] }
outputs:
  a: { from: few, path: out/a.csv }
  b: { from: joined, path: out/b.parquet }
  c: { from: data, path: out/c.csv }
  d: { from: valid.rejects, path: out/d.csv }
";

fn project(least: &str) -> Project {
    let project = Project::new(&WORKFLOW.replace("LEAST", least));
    project.with("data.csv", "id,x\na,1\nb,2\nc,3\n")
}

fn no_rows(step: &str, outputs: &[&str], read: u64, rejected: Value) -> Value {
    json!({
        "event": "no_rows", "step": step, "port": "out", "outputs": outputs, "read": read,
        "rejected": rejected,
    })
}

/// The events about lost rows, without their words.
fn lost(outcome: &Outcome) -> Vec<Value> {
    let mut events = outcome.events("no_rows");
    for event in &mut events {
        event.as_object_mut().unwrap().remove("message");
    }
    events
}

#[test]
fn the_step_where_the_last_row_went_or_a_source_without_rows_is_named() {
    let project = project("5");
    let rejected = json!({"port": "valid.rejects", "rows": 3});
    let wanted = no_rows("valid", &["a", "b"], 3, rejected);
    for _ in 0..2 {
        let outcome = project.run_ok(&[]);
        assert_eq!(lost(&outcome), std::slice::from_ref(&wanted), "{outcome}");
        // At the end: after the outputs, before the last line.
        let events = outcome.json_lines();
        let kinds: Vec<&str> = events.iter().map(|event| text(event, "event")).collect();
        assert_eq!(kinds[kinds.len() - 3..], ["output", "no_rows", "finished"], "{outcome}");
    }
    let words = "warning: no rows in the output `a` and 1 other: step `valid` read 3 rows and gave \
                 none; `valid.rejects` has 3 rows, with the reasons";
    says(&flat(&project.run(&["run", "w.yaml"]).exits(0).stderr), &[words]);
    // Only what was asked for counts.
    assert_eq!(lost(&project.run_ok(&["--select", "data"])), Vec::<Value>::new());
    assert_eq!(lost(&project.run_ok(&["--select", "few"]))[0]["outputs"], json!(["a"]));
    let project = self::project("0").with("data.csv", "id,x\n");
    project.change("x > 0", "id > 'a'");
    let told = flat(&project.run(&["run", "w.yaml"]).exits(0).stderr);
    says(&told, &["no rows in the output `a` and 2 others: step `data` made none"]);
    assert_eq!(told.matches("warning:").count(), 1, "{told}");
}

#[test]
fn a_file_is_replaced_by_an_empty_table_only_if_the_user_wants_it() {
    let project = project("0").ran();
    let before = ["out/a.csv", "out/b.parquet"].map(|file| fs::read(project.path(file)).unwrap());
    let now = || ["out/a.csv", "out/b.parquet"].map(|file| fs::read(project.path(file)).unwrap());
    project.change("x > 0", "x > 5");
    let outcome = project.run_json(&[]).exits(1);
    let words = "out/a.csv` by a table without rows\nhelp: find the step that lost the rows, or \
                 replace the file with --allow-empty";
    says(&outcome.warnings()[0], &["output a: it would replace `", words]);
    assert_eq!((outcome.warnings().len(), now()), (2, before.clone()), "{outcome}");
    // Rows are named where they were lost, and the rejected ones are written.
    assert_eq!(lost(&outcome)[0]["step"], "valid");
    assert_eq!(project.read("out/d.csv").lines().count(), 4);
    project.run_json(&["--overwrite"]).exits(1);
    assert_eq!(now(), before);
    project.run_ok(&["--allow-empty"]);
    assert_eq!(project.read("out/a.csv"), "id,x\n");
    // It is empty already; and no rejected row is good news.
    project.run_ok(&[]);
    project.rerun("x > 5", "x > 0");
    assert_eq!(project.read("out/d.csv").lines().count(), 1);
}

#[test]
fn that_nothing_was_rejected_is_no_loss_and_a_step_that_loses_rejects_is_named() {
    let project = project("0");
    project.change("out/d.csv }", "out/d.csv }\n  e: { from: why, path: out/e.csv }");
    let why = "  why:\n    op: sql\n    from: valid.rejects\n    with: { query: 'SELECT rule, \
               count(*) AS n FROM input GROUP BY rule', key: [rule] }\n";
    let outcome = project.rerun("outputs:\n", &format!("{why}outputs:\n"));
    assert_eq!(outcome.step("why")["rows"], 0);
    assert_eq!(lost(&outcome), Vec::<Value>::new(), "{outcome}");
    let project = self::project("2");
    project.change("from: valid.rejects,", "from: none,");
    let none = "  none:\n    op: sql\n    from: { gone: valid.rejects, kept: valid }\n    with: { \
                query: 'SELECT gone.id FROM gone JOIN kept ON gone.id = kept.id', key: [id] }\n";
    project.change("outputs:\n", &format!("{none}outputs:\n"));
    assert_eq!(lost(&project.run_ok(&[])), [no_rows("none", &["d"], 3, Value::Null)]);
}

#[test]
fn a_matrix_is_walked_cell_by_cell() {
    let project = project("5");
    project.change("from: data, with", "from: data, matrix: { least: [0, 9] }, with");
    project.change("check: x > 5", "check: 'x > ${{ matrix.least }}'");
    let text = project.read("w.yaml");
    let (steps, _) = text.split_once("outputs:").unwrap();
    let outputs = "outputs:
  all: { from: 'few[*]', path: all.csv }
  nine: { from: 'few[least=9]', path: nine.csv }
";
    project.write("w.yaml", format!("{steps}{outputs}"));
    let lost = lost(&project.run_ok(&[]));
    assert_eq!(lost.len(), 1, "{lost:?}");
    has(&lost[0], "step outputs", json!(["valid[least=9]", ["nine"]]));
}

#[test]
fn a_window_without_a_commit_is_told() {
    let mining = Mining::new();
    mining.repo.commit(at(NEW_YEAR - 9_000_000).write("m.py", def("f", 1)));
    for _ in 0..2 {
        let outcome = mining.project.run_ok(&[]);
        assert_eq!(lost(&outcome), [no_rows("mined", &[], 1, Value::Null)], "{outcome}");
        let words = ["step `mined` read 1 row and gave none", "no commit from 2022-01-01", "2023"];
        says(text(&outcome.events("no_rows")[0], "message"), &words);
    }
    // Of several repositories, those without one are named.
    let other = Repository::bare(mining.project.path("other"));
    other.commit(at(NEW_YEAR).write("m.py", def("f", 2)));
    mining.project.change("[./r]", "[./r, ./other]");
    for _ in 0..2 {
        let outcome = mining.project.run_ok(&[]);
        assert_eq!(lost(&outcome), Vec::<Value>::new(), "{outcome}");
        let warnings = outcome.events("warning");
        let [told] = warnings.as_slice() else { panic!("{outcome}") };
        assert_eq!(told["step"], "mined");
        let words = "no rows from the repo `r`: no commit from 2022";
        assert!(text(told, "message").starts_with(words), "{told}");
    }
    mining.repo.commit(at(NEW_YEAR).write("m.py", def("f", 2)));
    let outcome = mining.project.run_ok(&["--force", "repos"]);
    assert_eq!(lost(&outcome), Vec::<Value>::new(), "{outcome}");
    assert_eq!(outcome.events("warning"), Vec::<Value>::new(), "{outcome}");
}
