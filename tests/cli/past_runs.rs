//! `path`, `runs` and `diff`: where results are, what was run, and what changed in between.

use std::fs::File;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::harness::{Project, says, text};

const WORKFLOW: &str = "galeras: 1
params:
  factor: { type: int, default: 2 }
steps:
  table: { op: read, with: { path: data.csv, key: [id] } }
  scaled:
    op: sql
    from: table
    with:
      query: 'SELECT id, x * ${{ params.factor }} AS y, note FROM input'
      key: [id]
  kept: { op: validate, from: scaled, with: { rules: [ { name: small, check: y < 10 } ] } }
";

const DATA: &str = "id,x,note\na,1,one\nb,2,two\nc,3,three\nd,4,four\ne,5,five\n";

fn project() -> Project {
    Project::new(WORKFLOW).with("data.csv", DATA)
}

fn runs(project: &Project) -> Vec<Value> {
    project.json(&["runs", "w.yaml"])
}

fn diff(project: &Project, more: &[&str]) -> Vec<Value> {
    project.json(&[&["diff", "w.yaml", "last~1", "last"], more].concat())
}

/// The steps with their verdicts.
fn verdicts(told: &[Value]) -> Vec<String> {
    let steps = told[0]["steps"].as_array().unwrap().iter();
    steps.map(|step| format!("{} {}", text(step, "step"), text(step, "verdict"))).collect()
}

fn table<'a>(told: &'a [Value], step: &str, port: &str) -> &'a Value {
    let found =
        told.iter().find(|t| t["event"] == "table" && t["step"] == step && t["port"] == port);
    found.unwrap_or_else(|| panic!("{step}.{port}: {told:?}"))
}

#[test]
fn a_path_is_that_of_the_stored_file() {
    let project = project();
    let told = project.run(&["path", "w.yaml", "kept"]).exits(1);
    assert!(told.stdout.is_empty() && told.stderr.contains("not computed yet"), "{told}");
    project.run_ok(&[]);
    let told = project.run(&["path", "w.yaml", "kept.rejects"]).exits(0);
    let path = told.stdout.strip_suffix('\n').unwrap();
    assert!(std::path::Path::new(path).is_absolute(), "{told}");
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 1);
    let told = &project.json(&["path", "w.yaml", "kept.rejects"])[0];
    assert_eq!((&told["rows"], told["path"].as_str()), (&json!(1), Some(path)));
    project.sh("ls -l \"$($GALERAS path w.yaml kept)\"").exits(0);
    // As the workflow stands now, and no older result.
    let told = project.run(&["path", "w.yaml", "kept", "--set", "factor=3"]).exits(1);
    assert!(told.stdout.is_empty() && told.stderr.contains("factor=3"), "{told}");
    // A store in a folder with an odd name.
    let cache = "odd \u{202e} näme";
    project.run_ok(&["--cache", cache]);
    let script = format!("cat \"$(\"$GALERAS\" path w.yaml kept --cache '{cache}')\" | head -c 4");
    let told = project.sh(&script).exits(0);
    assert_eq!(told.stdout, "PAR1", "{told}");
}

#[test]
fn runs_are_listed_with_params_outcome_and_digests() {
    let project = project();
    let none = project.run(&["runs", "w.yaml"]).exits(0);
    assert!(none.stdout.is_empty() && none.stderr.contains("no run of w.yaml"), "{none}");
    assert!(!project.path("cache").exists());
    project.run_ok(&[]);
    project.run_ok(&["--set", "factor=3"]);
    project.run_ok(&[]);
    let all = runs(&project);
    assert_eq!(all.len(), 3);
    assert_eq!(all[0]["params"], json!({"factor": 2}), "newest first");
    assert_eq!(all[1]["params"], json!({"factor": 3}));
    assert_eq!(all[0]["results"], all[2]["results"], "the same results, the same digest");
    assert_ne!(all[0]["results"], all[1]["results"]);
    assert_eq!((&all[0]["status"], &all[0]["steps"][0]["status"]), (&json!("ok"), &json!("hit")));
    let listed = project.run(&["runs", "w.yaml"]).exits(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 4, "{listed}");
    says(lines[1], &["3 hit", "factor=2"]);
    says(lines[2], &["2 ran", "factor=3"]);
    assert!(lines[1].starts_with(all[0]["run"].as_str().unwrap()), "{listed}");
    let listed = project.run(&["runs", "w.yaml", "--rows", "1"]).exits(0).stdout;
    assert!(listed.contains("… 2 more (use --rows)"), "{listed}");
    project.run(&["runs", "v.yaml"]).exits(2);
}

#[test]
fn runs_of_other_workflows_are_not_among_them() {
    let project = project().with("sub/w.yaml", WORKFLOW).with("sub/data.csv", DATA).ran();
    project.run(&["run", "sub/w.yaml"]).exits(0);
    project.run(&["run", "./w.yaml"]).exits(0);
    assert_eq!(runs(&project).len(), 2);
    assert_eq!(project.json(&["runs", "sub/w.yaml"]).len(), 1);
    assert_eq!(project.json(&["runs", "sub/../w.yaml"]).len(), 2);
    // A copy of the same name has no history.
    project.write("copy/w.yaml", WORKFLOW.replace("default: 2", "default: 3"));
    project.write("copy/data.csv", DATA);
    let copy = project.run(&["run", "copy/w.yaml", "--format", "json"]).exits(0);
    assert_eq!(copy.step("scaled")["reason"], "NEW");
    let project = self::project();
    project.change("check: y < 10 }", "check: y < 10, on_fail: fail }");
    project.run(&["run", "w.yaml"]).exits(1);
    assert_eq!(runs(&project)[0]["status"], "failed");
    says(&project.run(&["runs", "w.yaml"]).exits(0).stdout, &["failed", "1 failed"]);
}

#[test]
fn a_difference_is_told_by_step_column_and_row() {
    let project = project().ran();
    project.write("data.csv", "id,x,note\na,1,one\nb,2,TWO\nc,3,three\nd,9,four\nf,6,six\n");
    project.run_ok(&[]);
    let told = diff(&project, &[]);
    assert_eq!(verdicts(&told), ["table differs", "scaled differs", "kept differs"]);
    let scaled = table(&told, "scaled", "out");
    assert_eq!(["added", "removed", "changed", "same"].map(|n| scaled[n].clone()), [1, 1, 2, 2]);
    assert_eq!(scaled["columns"]["changed"], json!({"y": 1, "note": 1}));
    let b = json!({"key": {"id": "b"}, "old": {"note": "two"}, "new": {"note": "TWO"}});
    let d = json!({"key": {"id": "d"}, "old": {"y": 8}, "new": {"y": 18}});
    assert_eq!(scaled["examples"], json!([b, d]));
    assert_eq!(table(&told, "kept", "rejects")["rows"], json!({"old": 1, "new": 2}));
    let shown = project.run(&["diff", "w.yaml", "last~1", "last"]).exits(0);
    assert!(shown.stderr.is_empty(), "{shown}");
    let shown = shown.prints(&["3 differ: table, scaled, kept", "FILE_CHANGED", "id=b"]);
    let words =
        ["1 added, 1 removed, 2 changed, 2 the same", "- \"two\"", "+ \"TWO\"", "- 8", "+ 18"];
    shown.prints(&words);
    let one = diff(&project, &["--rows", "1", "--select", "scaled"]);
    assert_eq!(one.len(), 2);
    assert_eq!(table(&one, "scaled", "out")["examples"].as_array().unwrap().len(), 1);
    let shown = project.run(&["diff", "w.yaml", "last~1", "last", "--rows", "1"]).exits(0);
    assert!(shown.stdout.contains("1 more changed rows (use --rows)"), "{shown}");
    // A run is like itself.
    project.run(&["diff", "w.yaml", "last", "last"]).exits(0).prints(&["all 3 are the same"]);
    assert_eq!(project.json(&["diff", "w.yaml", "last", "last"]).len(), 1);
}

#[test]
fn params_columns_and_steps_that_differ_are_named() {
    let project = project().ran();
    let columns = "note || ''!'' AS remark, CAST(id AS varchar) AS id2 FROM input";
    project.change("note FROM input", columns);
    project.change("  kept:", "  counted:\n    op: sql\n    from: scaled\n    with: { query: 'SELECT count(*) AS n FROM input' }\n  kept:");
    project.run_ok(&["--set", "factor=3"]);
    let told = diff(&project, &[]);
    assert_eq!(told[0]["params"], json!([{"name": "factor", "old": 2, "new": 3}]));
    says(&verdicts(&told).join(", "), &["table same", "counted added"]);
    let scaled = table(&told, "scaled", "out");
    assert_eq!(scaled["columns"]["removed"], json!(["note"]));
    assert_eq!(scaled["columns"]["added"], json!(["remark", "id2"]));
    assert_eq!((&scaled["changed"], &scaled["columns"]["changed"]), (&json!(5), &json!({"y": 5})));
    let words = ["factor: 2 → 3", "1 only in the new run: counted", "ARG_CHANGED", "removed: note"];
    project.cli("diff w.yaml last~1 last").exits(0).prints(&words);
    // Rows that cannot be matched are reported.
    let project = self::project().ran();
    project.rerun("note FROM input'\n      key: [id]", "note FROM input'\n      key: [note]");
    let told = diff(&project, &["--select", "scaled"]);
    let why = "the key was id and is note: rows cannot be matched";
    assert_eq!(table(&told, "scaled", "out")["not_compared"], why);
    project.cli("diff w.yaml last~1 last").exits(0).prints(&["not compared: the key was id"]);
    // So is the lack of a table.
    let project = self::project().ran();
    project.run_ok(&["--set", "factor=3"]);
    project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
    let why = "of the first run, the table is no longer in the store";
    assert_eq!(table(&diff(&project, &[]), "scaled", "out")["not_compared"], why);
}

#[test]
fn runs_are_named_by_the_beginning_of_their_ids() {
    let project = project();
    project.cli("diff w.yaml last~1 last").exits(1).reports(&["no run of w.yaml is recorded"]);
    project.run_ok(&[]);
    project.cli("diff w.yaml last~1 last").exits(2).reports(&["only one run is recorded"]);
    project.run_ok(&["--set", "factor=3"]);
    let runs = runs(&project);
    let (new, old) = (text(&runs[0], "run"), text(&runs[1], "run"));
    let (time, digits) = new.rsplit_once('-').unwrap();
    for name in [new, time, digits, "last", "last~0"] {
        assert_eq!(project.json(&["diff", "w.yaml", old, name])[0]["new"]["run"], new, "{name}");
    }
    project.run(&["diff", "w.yaml", "2", "last"]).exits(2).reports(&["2 runs begin with `2`"]);
    for wrong in ["yesterday", "last-1", "", "last~x"] {
        project.run(&["diff", "w.yaml", wrong, "last"]).exits(2).reports(&["`last~1`"]);
    }
    let told = project.run(&["diff", "w.yaml", "last~1", "last", "--select", "scald"]).exits(2);
    assert!(told.stderr.contains("did you mean `scaled`?"), "{told}");
    // Matrix cells are compared one by one.
    let project = self::project();
    project.change("from: scaled,", "from: scaled, matrix: { most: [4, 8] },");
    project.rerun("check: y < 10", "check: 'y <= ${{ matrix.most }}'");
    project.rerun("most: [4, 8]", "most: [4, 6]");
    let told = diff(&project, &["--select", "kept[*]"]);
    let wanted = ["kept[most=4] same", "kept[most=6] added", "kept[most=8] removed"];
    assert_eq!(verdicts(&told), wanted);
}
