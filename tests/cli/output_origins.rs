//! The origin of output files: in their metadata, in the store, and as `origin` reports it.

use std::collections::BTreeMap;
use std::fs::{self, File};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::harness::{Outcome, Project};

const WORKFLOW: &str = "galeras: 1
name: first
steps:
  data:
    op: read
    with: { path: data.csv, key: [id] }
  some:
    op: sample
    from: data
    matrix: { seed: [1, 2] }
    with: { n: 2, seed: '${{ matrix.seed }}' }
  big:
    op: validate
    from: data
    with: { rules: [ { name: big, check: x > 1 } ] }
outputs:
  p: { from: data, path: out/data.parquet }
  u: { from: 'some[*]', path: out/some.parquet }
  r: { from: big.rejects, path: out/rejects.parquet }
  c: { from: data, path: out/data.csv }
  j: { from: 'some[*]', path: out/some.json }
";

fn project() -> Project {
    Project::new(WORKFLOW).with("data.csv", "id,x\na,1\nb,2\nc,3\n")
}

/// The key-value metadata of a Parquet file that begins with `galeras.`.
fn metadata(project: &Project, name: &str) -> BTreeMap<String, String> {
    let file = File::open(project.path(name)).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let pairs = builder.metadata().file_metadata().key_value_metadata().unwrap().clone();
    let ours = pairs.into_iter().filter(|pair| pair.key.starts_with("galeras."));
    ours.map(|pair| (pair.key, pair.value.unwrap())).collect()
}

fn rows(project: &Project, name: &str) -> usize {
    let file = File::open(project.path(name)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    reader.map(|batch| batch.unwrap().num_rows()).sum()
}

/// The answer of `origin` about one file.
#[track_caller]
fn origin(project: &Project, name: &str, exit: i32) -> Value {
    let outcome = project.run(&["origin", name, "--format", "json"]).exits(exit);
    outcome.json_lines().pop().unwrap_or_else(|| panic!("{outcome}"))
}

fn digest_of(outcome: &Outcome, step: &str) -> Value {
    outcome.step(step)["digest"].clone()
}

#[test]
fn a_parquet_file_says_where_it_comes_from() {
    let project = project();
    let outcome = project.run_ok(&[]);
    let table = digest_of(&outcome, "data");
    let told = metadata(&project, "out/data.parquet");
    let wanted = [
        ("galeras.file", "w.yaml"),
        ("galeras.port", "out"),
        ("galeras.step", "data"),
        ("galeras.table_digest", table.as_str().unwrap()),
        ("galeras.version", env!("CARGO_PKG_VERSION")),
        ("galeras.workflow", "first"),
    ];
    let told: Vec<(&str, &str)> = told.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(told, wanted);
    let united = metadata(&project, "out/some.parquet");
    assert_eq!(united["galeras.step"], "some[*]");
    assert_eq!(united["galeras.table_digest"].len(), 64);
    let rejects = metadata(&project, "out/rejects.parquet");
    assert_eq!((&*rejects["galeras.step"], &*rejects["galeras.port"]), ("big", "rejects"));
    let counts =
        ["data", "some", "rejects"].map(|name| rows(&project, &format!("out/{name}.parquet")));
    assert_eq!(counts, [3, 4, 1]);
    // Neither the folder nor the user is reported.
    for name in ["data.parquet", "some.parquet", "rejects.parquet"] {
        let bytes = fs::read(project.path("out").join(name)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let place = project.root().display().to_string();
        assert!(!text.contains(&place) && !text.contains("galeras-test-"), "{name}");
    }
}

#[test]
fn equal_tables_of_one_workflow_have_equal_bytes() {
    let project = project().ran();
    project.run_ok(&["--cache", "other", "--out", "again", "--jobs", "1"]);
    for name in ["data.parquet", "some.parquet", "rejects.parquet", "data.csv", "some.json"] {
        let read = |folder: &str| fs::read(project.path(folder).join(name)).unwrap();
        assert_eq!(read("out"), read("again/out"), "{name}");
    }
    // Another workflow has the same rows to tell of, and another name.
    project.write("second.yaml", WORKFLOW.replace("name: first", "name: second"));
    project.run(&["run", "second.yaml", "--out", "more", "--format", "json"]).exits(0);
    let read = |folder: &str, name: &str| fs::read(project.path(folder).join(name)).unwrap();
    assert_eq!(read("out", "data.csv"), read("more/out", "data.csv"));
    assert_ne!(read("out", "data.parquet"), read("more/out", "data.parquet"));
    let told = metadata(&project, "more/out/data.parquet");
    assert_eq!((&*told["galeras.workflow"], &*told["galeras.file"]), ("second", "second.yaml"));
    let digest = |folder: &str| metadata(&project, folder)["galeras.table_digest"].clone();
    assert_eq!(digest("out/data.parquet"), digest("more/out/data.parquet"));
}

#[test]
fn a_step_that_is_renamed_is_named_anew() {
    let project = project().ran();
    let text = WORKFLOW.replace("data:\n", "rows:\n").replace("from: data", "from: rows");
    project.write("w.yaml", text);
    let outcome = project.run_ok(&[]);
    outcome.all_hit();
    assert_eq!(metadata(&project, "out/data.parquet")["galeras.step"], "rows");
    let written = |e: &Value| e["written"].as_bool().unwrap().then(|| e["output"].clone());
    let written: Vec<Value> = outcome.events("output").iter().filter_map(written).collect();
    assert_eq!(written, ["p"], "{outcome}");
}

#[test]
fn origin_knows_every_format_wherever_the_file_is() {
    let project = project();
    let outcome = project.run_ok(&[]);
    let run = outcome.events("started")[0]["run"].clone();
    for (name, step) in [("data.csv", "data"), ("data.parquet", "data"), ("some.json", "some[*]")] {
        let moved = format!("elsewhere/{name}");
        project.write(&moved, fs::read(project.path("out").join(name)).unwrap());
        for file in [format!("out/{name}"), moved] {
            let told = origin(&project, &file, 0);
            assert_eq!(told["state"], "written", "{told}");
            let [told] = told["origins"].as_array().unwrap().as_slice() else { panic!("{told}") };
            assert_eq!(told["origin"]["step"], step, "{told}");
            assert_eq!((&told["origin"]["workflow"], &told["run"]), (&json!("first"), &run));
            assert_eq!(told["path"], format!("out/{name}"));
        }
    }
    let table = digest_of(&outcome, "data");
    assert_eq!(origin(&project, "out/data.csv", 0)["origins"][0]["origin"]["table"], table);
    let words = ["out/data.csv\n", "workflow  first (w.yaml)", "step      some[*], port out"];
    project.run(&["origin", "out/data.csv", "out/some.json"]).exits(0).prints(&words);
}

#[test]
fn origin_says_what_is_not_known() {
    let project = project().ran();
    project.edit("out/data.csv", "c,3", "c,4");
    assert_eq!(origin(&project, "out/data.csv", 1)["state"], "changed");
    assert_eq!(origin(&project, "w.yaml", 1)["state"], "unknown");
    assert_eq!(origin(&project, "none.csv", 1)["state"], "missing");
    assert_eq!(origin(&project, "out", 1)["state"], "not_a_file");
    project.write("\u{1b}[31m.csv", "x");
    let words = ["\\u{1b}[31m.csv: no workflow", "out/data.csv was changed since it was written"];
    project.run(&["origin", "\u{1b}[31m.csv", "out/data.csv"]).exits(1).prints(&words);
    project.run(&["origin"]).exits(2);
}

#[test]
fn a_parquet_file_is_known_without_the_store() {
    let project = project().ran();
    fs::remove_dir_all(project.path("cache")).unwrap();
    let told = origin(&project, "out/data.parquet", 0);
    assert_eq!(told["origins"][0]["origin"]["workflow"], "first", "{told}");
    assert!(told["origins"][0].get("run").is_none());
    let told = project.run(&["origin", "out/some.parquet", "out/rejects.parquet"]).exits(0);
    assert_eq!(told.stdout.matches("what the file says of itself").count(), 2, "{told}");
    assert_eq!(origin(&project, "out/data.csv", 1)["state"], "unknown");
    // The metadata must be true of the rows.
    let mut bytes = fs::read(project.path("out/data.parquet")).unwrap();
    let other = metadata(&project, "out/some.parquet")["galeras.table_digest"].clone();
    let own = metadata(&project, "out/data.parquet")["galeras.table_digest"].clone();
    let at = bytes.windows(64).position(|w| w == own.as_bytes()).unwrap();
    bytes[at..at + 64].copy_from_slice(other.as_bytes());
    project.write("out/data.parquet", bytes);
    assert_eq!(origin(&project, "out/data.parquet", 1)["state"], "changed");
    project.write("out/data.parquet", "PAR1 and noise PAR1");
    assert_eq!(origin(&project, "out/data.parquet", 1)["state"], "unknown");
}

#[test]
fn damaged_records_are_found_and_told() {
    let project = project().ran();
    let records = crate::harness::files_below(&project.path("cache/outputs"));
    assert_eq!(records.len(), 5);
    for record in &records {
        let text = fs::read_to_string(record).unwrap();
        assert!(!text.contains("galeras-test-"), "no absolute path: {text}");
        fs::write(record, text.replace("first", "thief")).unwrap();
    }
    assert_eq!(origin(&project, "out/data.csv", 1)["state"], "unknown");
    let found = project.run(&["cache", "verify", "--format", "json"]);
    let kinds: Vec<Value> =
        found.events("finding").iter().map(|f| f["finding"]["kind"].clone()).collect();
    assert_eq!(kinds, vec!["damaged_origin"; 5], "{found}");
    project.run(&["cache", "verify", "--repair"]);
    project.verifies("cache");
    // Correct files are recognised again.
    project.run_ok(&["--overwrite"]).all_hit();
    assert_eq!(origin(&project, "out/data.csv", 0)["state"], "written");
}

#[test]
fn cleaning_keeps_what_is_known_of_files_that_are_there() {
    let project = project();
    for value in ["3", "4", "5"] {
        project.write("data.csv", format!("id,x\na,1\nb,2\nc,{value}\n"));
        project.run_ok(&[]);
    }
    let records = || crate::harness::files_below(&project.path("cache/outputs")).len();
    let before = records();
    project.run(&["cache", "gc", "--older-than", "0"]).exits(0);
    assert!(records() < before, "{before}");
    for name in ["data.csv", "data.parquet", "some.json", "some.parquet", "rejects.parquet"] {
        assert_eq!(origin(&project, &format!("out/{name}"), 0)["state"], "written", "{name}");
    }
}
