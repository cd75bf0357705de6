//! Stored tables are ordinary Parquet files: whoever opens one without this program sees what `show`
//! and exports show. And what happens when such a file is damaged, gone, sent or collected.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::json::ArrayWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::harness::{Outcome, Project, files_below};

/// Methods, the same with a column more, some of those, and two answers to each of these.
const WORKFLOW: &str = "galeras: 1
name: once
steps:
  methods: { op: read, with: { path: methods.jsonl } }
  marked: { op: sql, from: methods, with: { query: \"SELECT *, length(code) AS n FROM input\" } }
  long: { op: validate, from: marked, with: { rules: [ { name: long, check: n % 3 > 0 } ] } }
  asked:
    op: prompt
    from: long
    with: { treatments: { a: \"Complete {{ code }}\", b: \"Finish {{ id }}\" } }
  table:
    op: sql
    from: long
    with: { query: \"SELECT count(*) AS rows, sum(n) AS n FROM input\" }
  nothing: { op: sql, from: long, with: { query: \"SELECT * FROM input WHERE n < 0\" } }
outputs:
  long: { from: long, path: long.parquet }
  table: { from: table, path: table.csv }
";

fn project() -> (Project, Outcome) {
    let project = Project::new(WORKFLOW);
    let lines: Vec<String> = (0..3_000)
        .map(|n| {
            let body = format!("return {}", n * 7919 % 100_003).repeat(3 + n % 5);
            format!("{{\"id\":\"{n:05}\",\"code\":\"def f{n}(): {body}\"}}\n")
        })
        .collect();
    project.write("methods.jsonl", lines.concat());
    let outcome = project.run_ok(&[]);
    (project, outcome)
}

fn manifest(project: &Project, outcome: &Outcome, step: &str) -> Value {
    let key = outcome.step(step)["key"].as_str().unwrap().to_owned();
    let manifest = project.read(&format!("cache/actions/{}/{key}.json", &key[..2]));
    serde_json::from_str(&manifest).unwrap()
}

/// The stored file of a step's main port, within the store `cache`.
fn blob(project: &Project, outcome: &Outcome, step: &str) -> PathBuf {
    let manifest = manifest(project, outcome, step);
    let digest = manifest["ports"][0]["blob"].as_str().unwrap().to_owned();
    project.path(&format!("cache/blobs/{}/{digest}.parquet", &digest[..2]))
}

fn bytes(folder: &Path) -> u64 {
    files_below(folder).iter().map(|file| fs::metadata(file).unwrap().len()).sum()
}

/// The columns and the rows of a file, read without this program.
fn read(file: &Path) -> (Vec<String>, Vec<Value>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
    let columns = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    let mut writer = ArrayWriter::new(Vec::new());
    writer.write_batches(&batches.iter().collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    let text = writer.into_inner();
    let rows = if text.is_empty() { Vec::new() } else { serde_json::from_slice(&text).unwrap() };
    (columns, rows)
}

/// The rows without hidden columns, and without what is null: one writer leaves it out.
fn shown(mut rows: Vec<Value>) -> Vec<Value> {
    for row in &mut rows {
        let row = row.as_object_mut().unwrap();
        row.retain(|column, value| !column.starts_with("__") && !value.is_null());
    }
    rows
}

#[test]
fn every_stored_file_is_the_table_that_show_shows() {
    let (project, outcome) = project();
    let (mut seen, mut files) = (BTreeSet::new(), BTreeSet::new());
    for step in ["methods", "marked", "long", "asked", "table", "nothing"] {
        for port in manifest(&project, &outcome, step)["ports"].as_array().unwrap() {
            let name = match port["port"].as_str().unwrap() {
                "out" => step.to_string(),
                port => format!("{step}.{port}"),
            };
            let path = project.run(&["path", "w.yaml", &name]).exits(0).stdout;
            let path = PathBuf::from(path.trim());
            assert_eq!(path.file_stem().unwrap(), port["blob"].as_str().unwrap(), "{name}");
            let (mut columns, rows) = read(&path);
            let mut expected = project.rows(&name);
            if name.ends_with(".rejects") {
                // The name of the step is not part of a result: another name is no other result.
                for row in &mut expected {
                    row.as_object_mut().unwrap().remove("step");
                }
            }
            assert_eq!(shown(rows), shown(expected), "{name}");
            columns.retain(|column| !column.starts_with("__"));
            let described = port["columns"].as_array().unwrap().iter();
            let described: Vec<&str> = described.map(|c| c["name"].as_str().unwrap()).collect();
            assert_eq!(columns, described, "{name}");
            seen.insert(name);
            files.insert(path);
        }
    }
    assert!(seen.contains("long.rejects") && seen.len() >= 8, "{seen:?}");
    // All other files are parts of steps, whole tables as well.
    for file in files_below(&project.path("cache/blobs")) {
        let (columns, _) = read(&file);
        assert!(columns.iter().all(|name| !name.contains(':')), "{columns:?}");
    }
    assert_eq!(read(&project.path("long.parquet")), read(&blob(&project, &outcome, "long")));
    assert!(!project.path("cache/whole").exists());
}

#[test]
fn a_result_of_an_older_format_is_computed_again() {
    let (project, before) = project();
    let key = before.step("long")["key"].as_str().unwrap().to_owned();
    let file = format!("cache/actions/{}/{key}.json", &key[..2]);
    let mut old = manifest(&project, &before, "long");
    old["format"] = 3.into();
    project.write(&file, crate::forged_stores::sealed(&old));
    let after = project.run_ok(&[]);
    assert_eq!(after.status("long"), "ran");
    assert_eq!(after.digests(), before.digests());
    project.write(&file, crate::forged_stores::sealed(&old));
    project.run(&["cache", "gc"]).exits(0).prints(&[": 1 result"]);
    // Damage of a table does not reach the steps that read it.
    let (project, before) = self::project();
    let base = blob(&project, &before, "methods");
    let mut content = fs::read(&base).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&base, &content).unwrap();
    let after = project.run_ok(&[]);
    assert_eq!(after.digests(), before.digests());
    assert_eq!(after.status("long"), "ran");
    project.verifies("cache");
    project.run_ok(&[]).all_hit();

    fs::remove_file(blob(&project, &after, "methods")).unwrap();
    project.run(&["cache", "verify"]).exits(4).prints(&["missing"]);
    project.run(&["cache", "verify", "--repair"]);
    assert_eq!(project.run_ok(&[]).digests(), before.digests());
    project.verifies("cache");
    // A table of two results stays when one of them goes.
    let (project, before) = self::project();
    // The query gives the same rows under another key, so that the first result of it is of no use.
    project.change("(code) AS n FROM input", "(code) AS n FROM input WHERE true");
    assert_eq!(project.run_ok(&[]).digests(), before.digests());
    project.edit("methods.jsonl", "def f7()", "def g7()");
    project.run_ok(&[]);
    project.edit("methods.jsonl", "def g7()", "def f7()");
    project.run_ok(&[]);
    project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
    project.verifies("cache");
    project.run_ok(&[]).all_hit_as(&before);
}

#[test]
fn what_is_sent_is_what_is_stored() {
    let (project, before) = project();
    project.run(&["push", "w.yaml", "--remote", "remote"]).exits(0);
    let sent = bytes(&project.path("remote/blobs"));
    fs::remove_dir_all(project.path("cache")).unwrap();
    project.run_ok(&["--remote", "remote", "--out", "other"]).all_hit_as(&before);
    project.run(&["pull", "w.yaml", "--remote", "remote"]).exits(0);
    assert_eq!(bytes(&project.path("cache/blobs")), sent);
    project.verifies("cache");
    project.run_ok(&["--out", "other"]).all_hit();

    project.run(&["bundle", "w.yaml", "-o", "b.zip"]).exits(0);
    let zip = File::open(project.path("b.zip")).unwrap();
    zip::ZipArchive::new(zip).unwrap().extract(project.path("unpacked")).unwrap();
    let mut tables = files_below(&project.path("unpacked"));
    tables.retain(|file| file.extension().is_some_and(|e| e == "parquet"));
    let seen = tables.iter().filter(|table| read(table).0 == ["id", "code", "n"]);
    assert!(seen.count() >= 2, "{tables:?}");
    project.run(&["verify", "b.zip"]).exits(0);
    let fresh = ["--cache", "fresh", "--remote", "b.zip", "--out", "again"];
    project.run_ok(&fresh).all_hit_as(&before);
}
