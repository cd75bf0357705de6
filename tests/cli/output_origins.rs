//! The origin of output files: in their metadata, in the store, and as `origin` reports it. Outputs
//! replace files of their own workflow, and nothing else without `--overwrite`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::harness::{Outcome, Project, Running, files_below, marked, says};

const WORKFLOW: &str = "galeras: 1
name: first
steps:
  data: { op: read, with: { path: data.csv, key: [id] } }
  some:
    op: sample
    from: data
    matrix: { seed: [1, 2] }
    with: { n: 2, seed: '${{ matrix.seed }}' }
  big: { op: validate, from: data, with: { rules: [ { name: big, check: x > 1 } ] } }
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
    let table = digest_of(&project.run_ok(&[]), "data");
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
    // A step that is renamed is named anew.
    let project = self::project().ran();
    let text = WORKFLOW.replace("  data:", "  rows:").replace("from: data", "from: rows");
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
    // A Parquet file is known without the store.
    let project = self::project().ran();
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
    let records = files_below(&project.path("cache/outputs"));
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
    // Cleaning keeps the records of files that are there.
    let project = self::project();
    for value in ["3", "4", "5"] {
        project.write("data.csv", format!("id,x\na,1\nb,2\nc,{value}\n"));
        project.run_ok(&[]);
    }
    let records = || files_below(&project.path("cache/outputs")).len();
    let before = records();
    project.run(&["cache", "gc", "--older-than", "0"]).exits(0);
    assert!(records() < before, "{before}");
    for name in ["data.csv", "data.parquet", "some.json", "some.parquet", "rejects.parquet"] {
        assert_eq!(origin(&project, &format!("out/{name}"), 0)["state"], "written", "{name}");
    }
}

const CODE: &str = "overwritten-file";

/// A workflow of this name that writes the rows of `data.csv` for which `x` is more than `least`.
fn workflow(name: &str, least: &str, path: &str) -> String {
    format!(
        "galeras: 1
name: {name}
steps:
  data:
    op: exec
    with:
      sandbox: none
      command: touch ran; tail -n +1 data.jsonl
      files: [data.jsonl]
      output: {{ id: utf8!, x: int64 }}
  some: {{ op: sql, from: data, with: {{ query: 'SELECT id, x FROM input WHERE x > {least}' }} }}
outputs:
  o: {{ from: some, path: {path} }}
"
    )
}

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n{\"id\":\"c\",\"x\":3}\n";

fn rivals(path: &str) -> Project {
    let project = Project::new(&workflow("mine", "0", path)).with("data.jsonl", DATA);
    project.with("other.yaml", workflow("theirs", "1", path))
}

fn run(project: &Project, file: &str, more: &[&str]) -> Outcome {
    project.run(&[&["run", file, "--format", "json"], more].concat())
}

/// The run of a file is refused with these words.
#[track_caller]
fn refused(project: &Project, file: &str, more: &[&str], words: &[&str]) {
    let outcome = run(project, file, more).exits(2);
    assert_eq!(outcome.diagnostics(), [format!("{CODE} {file}:13:26")], "{outcome}");
    assert_eq!(outcome.finished()["status"], "invalid", "{outcome}");
    let found = &outcome.events("diagnostic")[0];
    says(found["message"].as_str().unwrap(), words);
    assert!(found["help"].as_str().unwrap().contains("--overwrite"), "{found}");
}

#[track_caller]
fn written(outcome: &Outcome) -> bool {
    let events = outcome.events("output");
    let [event] = events.as_slice() else { panic!("{outcome}") };
    event["written"].as_bool().unwrap()
}

#[test]
fn the_file_of_another_workflow_is_not_replaced() {
    for suffix in ["csv", "parquet", "jsonl", "json"] {
        let path = format!("out/o.{suffix}");
        let project = rivals(&path).ran();
        let before = fs::read(project.path(&path)).unwrap();
        fs::remove_file(project.path("ran")).unwrap();
        let words =
            ["the output `o` would replace", &path, "the workflow `mine` (`w.yaml`)", "`some`"];
        for more in [&[][..], &["--select", "some"], &["--keep-going"]] {
            refused(&project, "other.yaml", more, &words);
        }
        let planned = project.run(&["plan", "other.yaml", "--format", "json"]).exits(2);
        assert_eq!(planned.diagnostics(), [format!("{CODE} other.yaml:13:26")], "{planned}");
        assert_eq!(planned.events("plan").len(), 1, "the plan is told, too: {planned}");
        assert!(!project.path("ran").exists(), "nothing runs");
        assert_eq!(fs::read(project.path(&path)).unwrap(), before);
        // Outputs that are not written conflict with nothing, nor do files in another folder.
        run(&project, "other.yaml", &["--select", "data"]).exits(0);
        run(&project, "other.yaml", &["--out", "theirs"]).exits(0);
        project.run(&["plan", "other.yaml", "--out", "theirs"]).exits(0);
        project.run(&["plan", "other.yaml", "--overwrite"]).exits(0);

        assert!(written(&run(&project, "other.yaml", &["--overwrite"]).exits(0)));
        assert_ne!(fs::read(project.path(&path)).unwrap(), before);
        // Now it is theirs.
        run(&project, "other.yaml", &[]).exits(0).all_hit();
        refused(&project, "w.yaml", &[], &["the workflow `theirs` (`other.yaml`)"]);
    }
}

#[test]
fn a_workflow_is_known_by_its_name_and_that_of_its_file() {
    let project = rivals("out/o.csv").ran();
    // Copied and edited, it is another one; so is one of another name.
    project.write("copy.yaml", workflow("mine", "1", "out/o.csv"));
    refused(&project, "copy.yaml", &[], &["`mine` (`w.yaml`)"]);
    project.write("w.yaml", workflow("renamed", "1", "out/o.csv"));
    refused(&project, "w.yaml", &[], &["`mine` (`w.yaml`)"]);
    project.write("w.yaml", workflow("mine", "1", "out/o.csv"));
    assert!(written(&project.run_ok(&[])));
    // The folder of the file does not matter.
    project.write("deep/w.yaml", workflow("mine", "2", "out/o.csv"));
    project.write("deep/data.jsonl", DATA);
    assert!(written(&run(&project, "deep/w.yaml", &[]).exits(0)));
}

#[test]
fn a_file_of_unknown_origin_or_that_was_changed_is_not_replaced() {
    for (path, content) in [("o.csv", "mine\n"), ("o.parquet", "PAR1 mine PAR1"), ("o.json", "")] {
        let project = rivals(path).with(path, content);
        let words = [path, "which no workflow is known to have written"];
        refused(&project, "w.yaml", &[], &words);
        assert!(!project.path("ran").exists());
        assert_eq!(project.read(path), content);
        assert!(written(&project.run_ok(&["--overwrite"])));
        project.run_ok(&[]);
    }
    // A file that was changed is not replaced.
    for path in ["o.csv", "o.jsonl", "o.parquet"] {
        let project = rivals(path).ran();
        let mut changed = fs::read(project.path(path)).unwrap();
        let at = changed.iter().position(|byte| *byte == b'b').unwrap();
        changed[at] = b'z';
        project.write(path, &changed);
        let words = [path, "was changed since this workflow wrote it"];
        refused(&project, "w.yaml", &[], &words);
        let words = ["`mine` (`w.yaml`) wrote, and which was changed since"];
        refused(&project, "other.yaml", &[], &words);
        assert_eq!(fs::read(project.path(path)).unwrap(), changed);
        let outcome = project.run_ok(&["--overwrite"]);
        outcome.all_hit();
        assert!(written(&outcome) && !written(&project.run_ok(&[])));
    }
}

#[test]
fn what_is_right_is_left_alone_whoever_wrote_it() {
    for path in ["o.csv", "o.parquet"] {
        let project = rivals(path).ran();
        // The other workflow comes to the same table; whether it does is known only when it ran.
        project.write("other.yaml", workflow("theirs", "0", path));
        run(&project, "other.yaml", &["--out", "elsewhere"]).exits(0);
        let before = fs::read(project.path(path)).unwrap();
        let outcome = run(&project, "other.yaml", &[]).exits(0);
        outcome.all_hit();
        assert!(!written(&outcome));
        assert_eq!(fs::read(project.path(path)).unwrap(), before);
        project.run(&["plan", "other.yaml"]).exits(0);
        // It stays theirs who wrote it.
        project.write("other.yaml", workflow("theirs", "1", path));
        refused(&project, "other.yaml", &[], &["the workflow `mine` (`w.yaml`)"]);
    }
    // Without the store or the file, the right content is recognised.
    let project = rivals("o.csv").ran();
    fs::remove_dir_all(project.path("cache")).unwrap();
    refused(&project, "w.yaml", &[], &["which no workflow is known to have written"]);
    // As soon as the result is there, the file is seen to be the right one.
    project.run_ok(&["--out", "elsewhere"]);
    assert!(!written(&project.run_ok(&[])));
    // And from then on it is known.
    project.write("w.yaml", workflow("mine", "1", "o.csv"));
    assert!(written(&project.run_ok(&[])));
    // A Parquet file says itself whose it is.
    let project = rivals("o.parquet").ran();
    fs::remove_dir_all(project.path("cache")).unwrap();
    project.write("w.yaml", workflow("mine", "1", "o.parquet"));
    assert!(written(&project.run_ok(&[])));
    // A killed run leaves no file that the next one does not know: its record came first, and a
    // record without a file is no harm.
    let project = rivals("o.csv").ran();
    fs::remove_file(project.path("o.csv")).unwrap();
    assert!(written(&project.run_ok(&[])));
    let told = project.run(&["origin", "o.csv", "--format", "json"]).exits(0).json_lines();
    assert_eq!(told[0]["origins"].as_array().map(Vec::len), Some(1), "{told:?}");
    let of = |value: &Value| value["origins"][0]["origin"]["workflow"].clone();
    assert_eq!(of(&told[0]), "mine");
}

#[test]
fn a_file_that_comes_while_the_workflow_runs_stays_and_so_does_what_is_no_plain_file() {
    let text = workflow("mine", "0", "out/o.csv");
    let text = text.replace("touch ran;", "mkdir out; echo mine > $PLACE/o.csv;");
    let project = Project::new(&text).with("data.jsonl", DATA);
    let place = project.path("out").display().to_string();
    project.change("$PLACE", &place);
    project.change("mkdir out", &format!("mkdir {place}"));
    let outcome = project.run_json(&[]).exits(1);
    assert_eq!(project.read("out/o.csv"), "mine\n");
    assert_eq!(outcome.statuses(), "data=ran some=ran", "the results are stored");
    let words = ["output o: it would replace `out/o.csv`", "no workflow is known", "--overwrite"];
    says(&outcome.warnings()[0], &words);
    assert_eq!(outcome.finished()["status"], "failed");
    project.run_ok(&["--overwrite"]).all_hit();
    assert_eq!(project.read("out/o.csv").lines().count(), 4);
    // Only a plain file is replaced.
    let project = rivals("o.csv");
    let file = project.path("o.csv");
    symlink("nowhere", &file).unwrap();
    refused(&project, "w.yaml", &[], &["`o.csv`", "a link that leads to nothing"]);
    fs::remove_file(&file).unwrap();
    project.sh("mkfifo o.csv").exits(0);
    refused(&project, "w.yaml", &[], &["`o.csv`", "not a regular file"]);
    // A link to what this workflow wrote is as good as the file, and is replaced by one.
    let project = rivals("o.csv").ran();
    let file = project.path("o.csv");
    fs::rename(&file, project.path("moved.csv")).unwrap();
    symlink("moved.csv", &file).unwrap();
    assert!(!written(&project.run_ok(&[])));
    project.write("w.yaml", workflow("mine", "1", "o.csv"));
    assert!(written(&project.run_ok(&[])));
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
    assert_eq!(project.read("moved.csv").lines().count(), 4);
}

#[test]
fn every_output_in_the_way_is_told_at_once() {
    let project = rivals("o.csv");
    let more = "  p: { from: data, path: p.csv }\n  q: { from: data, path: q.csv }\n";
    project.write("w.yaml", workflow("mine", "0", "o.csv") + more);
    project.write("o.csv", "");
    project.write("q.csv", "");
    let found = project.run_json(&[]).exits(2).diagnostics();
    assert_eq!(found, [format!("{CODE} w.yaml:13:26"), format!("{CODE} w.yaml:15:26")]);
    assert!(project.stored_nothing() && !project.path("p.csv").exists());
    // The message for people.
    let name = "\"\\e[31mr\\u202eed\\nalert\"";
    let project = rivals("o.csv").with("w.yaml", workflow(name, "0", "o.csv")).ran();
    let outcome = project.run(&["run", "other.yaml"]).exits(2);
    assert_eq!(outcome.stdout, "");
    let (text, place) = marked(&workflow("theirs", "1", "«o.csv"));
    assert_eq!(text, project.read("other.yaml"));
    let place = format!("other.yaml:{place}");
    let words = ["overwritten-file", &place, "[31mr\\u{202e}ed\\u{a}alert", "--overwrite"];
    says(&outcome.stderr, &words);
    assert!(!outcome.stderr.contains('\u{1b}') && !outcome.stderr.contains('\u{202e}'));
    // Two runs of one workflow do not stand in the way of each other.
    let project = rivals("o.csv");
    project.change("touch ran;", "sleep 0.3;");
    let runs = [(); 3].map(|()| project.start(&["--cache", "cache"])).map(Running::finish);
    assert!(runs.map(|outcome| written(&outcome.exits(0))).contains(&true));
}
