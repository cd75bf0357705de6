//! Outputs without rows, steps that reject all rows, and windows without a commit: an error or a
//! warning names the step where the last row went.

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
        let outcome = project.run_json(&[]).exits(3);
        assert_eq!(lost(&outcome), std::slice::from_ref(&wanted), "{outcome}");
        // At the end: after the outputs, before the last line.
        let events = outcome.json_lines();
        let kinds: Vec<&str> = events.iter().map(|event| text(event, "event")).collect();
        assert_eq!(kinds[kinds.len() - 3..], ["output", "no_rows", "finished"], "{outcome}");
    }
    let words = "error: no rows in the output `a` and 1 other: step `valid` read 3 rows and gave \
                 none; `valid.rejects` has 3 rows, with the reasons; an output with `rows: { min: 0 \
                 }` may be empty, and with --allow-empty all may";
    says(&flat(&project.run(&["run", "w.yaml"]).exits(3).stderr), &[words]);
    assert!(!project.path("out/a.csv").exists());
    // Only what was asked for counts.
    assert_eq!(lost(&project.run_ok(&["--select", "data"])), Vec::<Value>::new());
    let few = project.run_json(&["--select", "few"]).exits(3);
    assert_eq!(lost(&few)[0]["outputs"], json!(["a"]));
    let project = self::project("0").with("data.csv", "id,x\n");
    project.change("x > 0", "id > 'a'");
    let told = flat(&project.run(&["run", "w.yaml"]).exits(3).stderr);
    says(&told, &["no rows in the output `a` and 2 others: step `data` made none"]);
    assert_eq!(told.matches("no rows").count(), 1, "{told}");
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
    let outcome = project.run_json(&[]).exits(3);
    assert_eq!(lost(&outcome), [no_rows("none", &["d"], 3, Value::Null)]);
}

#[test]
fn the_rows_of_an_output_are_bounded_and_a_file_of_an_earlier_run_stays() {
    let project = project("0").ran();
    let earlier = project.read("out/a.csv");
    let rejected = || json!({"port": "valid.rejects", "rows": 3});
    project.change("x > 0", "x > 5");
    let outcome = project.run_json(&[]).exits(3);
    assert_eq!(lost(&outcome), [no_rows("valid", &["a", "b"], 3, rejected())]);
    assert_eq!(project.read("out/a.csv"), earlier);
    // The rejected rows are written.
    assert_eq!(project.read("out/d.csv").lines().count(), 4);
    project.run_json(&["--overwrite"]).exits(3);
    assert_eq!(project.read("out/a.csv"), earlier);
    project.run_ok(&["--allow-empty"]);
    assert_eq!(project.read("out/a.csv"), "id,x\n");
    project.change("x > 5", "x > 0");
    assert_eq!(project.run_ok(&[]).step("few")["rows"], 1);
    project.change("x > 0", "x > 5");
    project.change("out/a.csv }", "out/a.csv, rows: { min: 0 } }");
    project.change("out/b.parquet }", "out/b.parquet, rows: { min: 0, max: 1 } }");
    // Empty outputs are allowed; the step that rejects everything is still named.
    let outcome = project.run_ok(&[]);
    assert_eq!(lost(&outcome), [no_rows("valid", &[], 3, rejected())]);
    assert_ne!(project.read("out/a.csv"), earlier);
    for (bounds, told) in [("min: 4", "min 4, max any: 3 rows"), ("max: 2", "max 2: 3 rows")] {
        project.change("out/c.csv }", &format!("out/c.csv, rows: {{ {bounds} }} }}"));
        let outcome = project.run_json(&[]).exits(3);
        let failed = &outcome.events("assertion")[0];
        has(failed, "step severity", json!(["data", "error"]));
        says(text(failed, "message"), &["output `c`", told]);
        project.change(&format!("out/c.csv, rows: {{ {bounds} }} }}"), "out/c.csv }");
    }
}

#[test]
fn a_row_that_is_computed_from_no_rows_is_no_result() {
    let project = project("0");
    let more = "  mean: { op: describe, from: few, with: { columns: [x] } }
  means: { op: sql, from: mean, with: { query: 'SELECT n, mean FROM input' } }
  rejected: { op: describe, from: valid.rejects, with: { columns: [x] } }
  counted: { op: sql, from: few, with: { query: 'SELECT count(*) AS n FROM input' } }
outputs:
  mean: { from: mean, path: out/mean.csv }
  means: { from: means, path: out/means.csv }
  rejected: { from: rejected, path: out/rejected.csv }
  counted: { from: counted, path: out/counted.csv }
";
    project.change("outputs:\n", more);
    // A count of rejected rows may be 0.
    assert_eq!(lost(&project.run_ok(&[])), Vec::<Value>::new());
    let files = ["out/mean.csv", "out/means.csv"];
    let earlier = files.map(|file| project.read(file));
    project.change("x > 0", "x > 5");
    let outcome = project.run_json(&[]).exits(3);
    let rejected = json!({"port": "valid.rejects", "rows": 3});
    assert_eq!(lost(&outcome), [no_rows("valid", &["mean", "means", "a", "b"], 3, rejected)]);
    let words = "no rows to compute the output `mean` and 3 others: step `valid` read 3 rows";
    says(text(&outcome.events("no_rows")[0], "message"), &[words]);
    assert_eq!(files.map(|file| project.read(file)), earlier);
    assert!(project.read("out/rejected.csv").contains("\nx,3,2.0,"), "{outcome}");
    assert_eq!(project.read("out/counted.csv"), "n\n0\n");
    project.run_ok(&["--allow-empty"]);
    assert_eq!(project.read("out/means.csv"), "n,mean\n0,\n");
}

#[test]
fn a_failure_for_lack_of_rows_names_the_step_that_lost_them() {
    let steps = "  m: { op: methods, with: { dir: src } }
  features: { op: ast, from: m }
  sizes: { op: figure, from: features, with: { kind: histogram, x: nloc } }
";
    let project = Project::steps(steps);
    std::fs::create_dir(project.path("src")).unwrap();
    let cause = "an input is empty: step `m` made no rows; there are no methods: the folder `src` \
                 has no files";
    // Also when the step that made none is stored.
    for _ in 0..2 {
        let failed = project.run_json(&[]).exits(1);
        says(&failed.detail("sizes"), &["there is nothing to draw", cause]);
    }
}

#[test]
fn that_all_repositories_are_rejected_is_told_without_an_output() {
    let project =
        Project::new("galeras: 1\nsteps:\n  repos: { op: query, with: { repos: [./empty] } }\n");
    Repository::bare(project.path("empty"));
    for _ in 0..2 {
        let outcome = project.run_ok(&[]);
        let rejected = json!({"port": "repos.rejects", "rows": 1});
        assert_eq!(lost(&outcome), [no_rows("repos", &[], 0, rejected)], "{outcome}");
        let words = "step `repos` made no rows; `repos.rejects` has 1 row, with the reason";
        assert_eq!(text(&outcome.events("no_rows")[0], "message"), words);
    }
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
    let lost = lost(&project.run_json(&[]).exits(3));
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
