//! Tables that leave columns to the files of their inputs: what is stored, what comes back, and what
//! happens when a file that others refer to is damaged, gone, sent or collected.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::Value;

use crate::harness::{Outcome, Project, files_below};

/// Methods, the same with a column more, some of those, and two answers to each of these.
const WORKFLOW: &str = "galeras: 1
name: once
steps:
  methods:
    op: read
    with: { path: methods.jsonl }
  marked:
    op: sql
    from: methods
    with: { query: \"SELECT *, length(code) AS n FROM input\" }
  long:
    op: validate
    from: marked
    with: { rules: [ { name: long, check: n % 3 > 0 } ] }
  asked:
    op: prompt
    from: long
    with: { treatments: { a: \"Complete {{ code }}\", b: \"Finish {{ id }}\" } }
  table:
    op: sql
    from: long
    with: { query: \"SELECT count(*) AS rows, sum(n) AS n FROM input\" }
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

fn columns(file: &Path) -> Vec<String> {
    let file = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    schema.root_schema().get_fields().iter().map(|field| field.name().to_string()).collect()
}

#[test]
fn a_value_is_stored_once_and_whoever_looks_from_outside_gets_all_columns() {
    let (project, outcome) = project();
    let methods = fs::metadata(blob(&project, &outcome, "methods")).unwrap().len();
    for (step, of) in [("marked", "methods"), ("long", "methods"), ("asked", "methods")] {
        let manifest = manifest(&project, &outcome, step);
        assert_eq!(manifest["format"], 3);
        let layers = manifest["ports"][0]["layers"].as_array().unwrap();
        let base = blob(&project, &outcome, of);
        let name = base.file_stem().unwrap().to_str().unwrap();
        assert!(layers.iter().any(|layer| layer["blob"] == name), "{step}: {layers:?}");
    }
    for step in ["marked", "long"] {
        let size = fs::metadata(blob(&project, &outcome, step)).unwrap().len();
        assert!(size * 2 < methods, "{step}: {size} of {methods}");
    }
    let path = project.run(&["path", "w.yaml", "long"]).exits(0).stdout;
    let path = PathBuf::from(path.trim());
    assert_eq!(columns(&path), ["id", "code", "n"]);
    assert_eq!(columns(&project.path("long.parquet")), ["id", "code", "n"]);
    let again = project.run(&["path", "w.yaml", "long"]).exits(0).stdout;
    assert_eq!(Path::new(again.trim()), path);
    // A copy that someone changed is no copy.
    fs::write(&path, b"PAR1 not any more").unwrap();
    let again = project.run(&["path", "w.yaml", "long"]).exits(0).stdout;
    assert_eq!(columns(Path::new(again.trim())), ["id", "code", "n"]);
    project.verifies("cache");
    let shown = project.run(&["show", "w.yaml", "long", "--where", "id = '02999'"]).exits(0);
    assert!(shown.stdout.contains("def f2999"), "{shown}");
    project.run_ok(&[]).all_hit();
}

#[test]
fn damage_of_a_file_that_others_refer_to_is_no_result_of_theirs() {
    let (project, before) = project();
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
    let found = project.run(&["cache", "verify"]).exits(4);
    assert!(found.stdout.contains("missing"), "{found}");
    project.run(&["cache", "verify", "--repair"]);
    let again = project.run_ok(&[]);
    assert_eq!(again.digests(), before.digests());
    project.verifies("cache");
}

#[test]
fn a_file_that_others_refer_to_stays_when_its_own_result_goes() {
    let (project, before) = project();
    // The query gives the same rows under another key, so that the first result of it is of no use.
    project.change("AS n FROM input\" }\n  long", "AS n FROM input WHERE true\" }\n  long");
    let after = project.run_ok(&[]);
    assert_eq!(after.digests(), before.digests());
    project.edit("methods.jsonl", "def f7()", "def g7()");
    project.run_ok(&[]);
    project.edit("methods.jsonl", "def g7()", "def f7()");
    project.run_ok(&[]);
    project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
    project.verifies("cache");
    let last = project.run_ok(&[]);
    last.all_hit();
    assert_eq!(last.digests(), before.digests());
}

#[test]
fn what_is_sent_has_the_files_that_it_refers_to() {
    let (project, before) = project();
    project.run(&["push", "w.yaml", "--remote", "remote"]).exits(0);
    let sent = bytes(&project.path("remote/blobs"));
    fs::remove_dir_all(project.path("cache")).unwrap();
    // Nothing is pulled but what the outputs need, and what that refers to.
    let from = project.run_json(&["--remote", "remote", "--out", "other"]).exits(0);
    assert_eq!(from.digests(), before.digests());
    from.all_hit();
    project.run(&["pull", "w.yaml", "--remote", "remote"]).exits(0);
    assert_eq!(bytes(&project.path("cache/blobs")), sent);
    project.verifies("cache");
    project.run_ok(&["--out", "other"]).all_hit();

    // A bundle is read by others as well: its tables are whole.
    project.run(&["bundle", "w.yaml", "-o", "b.zip"]).exits(0);
    let zip = File::open(project.path("b.zip")).unwrap();
    zip::ZipArchive::new(zip).unwrap().extract(project.path("unpacked")).unwrap();
    let tables = files_below(&project.path("unpacked"));
    let mut seen = 0;
    for table in tables.iter().filter(|file| file.extension().is_some_and(|e| e == "parquet")) {
        let columns = columns(table);
        assert!(columns.iter().all(|name| !name.contains(':')), "{columns:?}");
        seen += usize::from(columns == ["id", "code", "n"]);
    }
    assert!(seen >= 2, "{tables:?}");
    project.run(&["verify", "b.zip"]).exits(0);
    let fresh =
        project.run_json(&["--cache", "fresh", "--remote", "b.zip", "--out", "again"]).exits(0);
    assert_eq!(fresh.digests(), before.digests());
    fresh.all_hit();
}
