//! `outputs`: files by suffix, written when their content is another.

use std::fs::File;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::harness::{Outcome, Project};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, x: int64, f: float64, b: bool, s: utf8, l: 'list<int64>', t: 'timestamp' }
  valid:
    op: validate
    from: table
    with: { rules: [ { name: known, check: x IS NOT NULL } ] }
outputs:
  p: { from: table, path: out/table.parquet }
  j: { from: table, path: out/table.jsonl }
  r: { from: valid.rejects, path: out/rejects.jsonl }
  v: { from: valid, path: out/valid.csv }
  a: { from: table, path: out/table.json }
";

fn project() -> Project {
    // Lists and times are left out of the CSV, which has no form for them.
    let rows = "{\"id\":\"b\",\"x\":2,\"f\":0.1,\"b\":true,\"s\":\"a \\\"q\\\", b\\nc é\"}
{\"id\":\"a\",\"x\":null,\"f\":1e300,\"b\":null,\"s\":null}
";
    Project::new(&WORKFLOW.replace(", l: 'list<int64>', t: 'timestamp'", ""))
        .with("data.jsonl", rows)
}

fn written(outcome: &Outcome) -> Vec<(String, bool)> {
    let of =
        |e: &Value| (e["output"].as_str().unwrap().to_owned(), e["written"].as_bool().unwrap());
    let mut all: Vec<_> = outcome.events("output").iter().map(of).collect();
    all.sort();
    all
}

#[test]
fn files_have_the_rows_in_the_order_of_the_key() {
    let project = project();
    let outcome = project.run_ok(&[]);
    assert_eq!(written(&outcome).iter().filter(|w| w.1).count(), 5);
    let file = File::open(project.path("out/table.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    let names: Vec<String> =
        batches[0].schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["id", "x", "f", "b", "s"]);
    assert_eq!(batches[0].column(0).as_string::<i32>().value(0), "a");
    assert_eq!(batches[0].column(1).as_primitive::<Int64Type>().value(1), 2);

    let lines: Vec<Value> =
        project.read("out/table.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[0]["id"], "a");
    assert_eq!(lines[0]["f"], 1e300);
    assert!(lines[0]["x"].is_null() && lines[0]["s"].is_null());
    assert_eq!(lines[1]["s"], "a \"q\", b\nc é");
    assert_eq!(lines[1]["f"], 0.1);

    let array: Vec<Value> = serde_json::from_str(&project.read("out/table.json")).unwrap();
    assert_eq!(array, lines);
    assert_eq!(project.read("out/table.json").lines().count(), 4, "a row per line");

    let csv = project.read("out/valid.csv");
    assert_eq!(csv, "id,x,f,b,s\nb,2,0.1,true,\"a \"\"q\"\", b\nc é\"\n");

    let reject: Value = serde_json::from_str(&project.read("out/rejects.jsonl")).unwrap();
    assert_eq!(reject["id"], "a");
    assert_eq!((&reject["step"], &reject["rule"]), (&"valid".into(), &"known".into()));
    assert!(reject["reason"].as_str().unwrap().contains("x IS NOT NULL"), "{reject}");
}

#[test]
fn files_that_are_right_are_left_alone_and_others_written() {
    let project = project().ran();
    let names = ["out/table.parquet", "out/table.jsonl", "out/rejects.jsonl", "out/valid.csv"];
    let times = || names.map(|n| project.path(n).metadata().unwrap().modified().unwrap());
    let before = times();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let outcome = project.run_ok(&[]);
    assert!(written(&outcome).iter().all(|w| !w.1), "{outcome}");
    assert_eq!(times(), before);
    // Another rule, the same rows.
    project.rerun("x IS NOT NULL", "x > 1");
    let after = times();
    assert_eq!((after[0], after[1], after[3]), (before[0], before[1], before[3]));
    assert_ne!(after[2], before[2], "the reasons are others");
    // Files that were removed are written again and changed ones on demand.
    let project = self::project().ran();
    let right = project.read("out/valid.csv");
    project.write("out/valid.csv", right.replace('2', "3"));
    std::fs::remove_file(project.path("out/table.jsonl")).unwrap();
    project.run_json(&[]).exits(2);
    assert!(!project.path("out/table.jsonl").exists());
    let outcome = project.run_ok(&["--overwrite"]);
    outcome.all_hit();
    assert_eq!(project.read("out/valid.csv"), right);
    assert!(project.path("out/table.jsonl").exists());
    assert_eq!(written(&outcome).iter().filter(|w| w.1).count(), 2);
    // Changed rows change their files.
    let project = self::project().ran();
    project.edit("data.jsonl", "\"x\":2", "\"x\":5");
    let outcome = project.run_ok(&[]);
    let found = written(&outcome);
    assert_eq!(found, ["a", "j", "p", "r", "v"].map(|output| (output.to_string(), output != "r")));
    assert!(project.read("out/valid.csv").contains("b,5,"));
}

#[test]
fn places_come_from_out_and_params_and_are_of_one_output() {
    let project = project();
    project.run_ok(&["--out", "elsewhere/deep"]);
    assert!(project.path("elsewhere/deep/out/valid.csv").exists());
    assert!(!project.path("out").exists());
    project.run_ok(&["--select", "table"]);
    assert!(project.path("out/table.jsonl").exists() && !project.path("out/valid.csv").exists());
    let project = self::project();
    project.change("steps:\n", "params:\n  name: { type: string, default: valid }\nsteps:\n");
    project.change("out/valid.csv", "'out/${{ params.name }}.csv'");
    project.run_ok(&["--set", "name=other"]);
    assert!(project.path("out/other.csv").exists());
    let outcome = project.run_json(&["--set", "name=../../x"]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    assert!(outcome.diagnostics()[0].starts_with("bad-path "), "{outcome}");
    let project = self::project();
    project.change("out/table.jsonl", "out/rejects.jsonl");
    project.refuses(&[], "bad-path w.yaml:16:35", &[]);
    let project = self::project();
    project.change("out/table.jsonl", "out/./rejects.jsonl");
    project.run_json(&[]).exits(2);
}

#[test]
fn lists_and_times_go_through_every_format_but_csv_and_files_can_be_read_again() {
    let text = WORKFLOW.replace("  v: { from: valid, path: out/valid.csv }\n", "");
    let row = "{\"id\":\"a\",\"x\":1,\"l\":[1,null,3],\"t\":\"2024-02-29T12:00:00.5Z\"}\n";
    let project = Project::new(&text).with("data.jsonl", row).ran();
    let row: Value = serde_json::from_str(&project.read("out/table.jsonl")).unwrap();
    assert_eq!(row["l"], serde_json::json!([1, null, 3]));
    assert!(row["t"].as_str().unwrap().starts_with("2024-02-29T12:00:00.5"), "{row}");
    assert_eq!(project.rows("table")[0], row);
    let project = self::project();
    let first = project.run_ok(&[]);
    project.write(
        "again.yaml",
        "galeras: 1\nsteps:\n  p: { op: read, with: { path: out/table.parquet } }\n  j: { op: read, with: { path: out/table.jsonl } }\n",
    );
    let again = project.run(&["run", "again.yaml", "--format", "json"]).exits(0);
    assert_eq!(again.step("p")["digest"], first.step("table")["digest"]);
    assert_eq!(again.step("j")["rows"], 2);
}
