//! Outputs replace files of their own workflow, and nothing else without `--overwrite`.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Outcome, Project, Running, marked, says};

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
      command: touch ran; tail -n +1 data.jsonl
      files: [data.jsonl]
      output: {{ id: utf8!, x: int64 }}
  some:
    op: sql
    from: data
    with: {{ query: 'SELECT id, x FROM input WHERE x > {least}' }}
outputs:
  o: {{ from: some, path: {path} }}
"
    )
}

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n{\"id\":\"c\",\"x\":3}\n";

fn project(path: &str) -> Project {
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
    assert_eq!(outcome.diagnostics(), [format!("{CODE} {file}:15:26")], "{outcome}");
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
        let project = project(&path).ran();
        let before = fs::read(project.path(&path)).unwrap();
        fs::remove_file(project.path("ran")).unwrap();
        let words =
            ["the output `o` would replace", &path, "the workflow `mine` (`w.yaml`)", "`some`"];
        for more in [&[][..], &["--select", "some"], &["--keep-going"]] {
            refused(&project, "other.yaml", more, &words);
        }
        let planned = project.run(&["plan", "other.yaml", "--format", "json"]).exits(2);
        assert_eq!(planned.diagnostics(), [format!("{CODE} other.yaml:15:26")], "{planned}");
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
    let project = project("out/o.csv").ran();
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
        let project = project(path).with(path, content);
        let words = [path, "which no workflow is known to have written"];
        refused(&project, "w.yaml", &[], &words);
        assert!(!project.path("ran").exists());
        assert_eq!(project.read(path), content);
        assert!(written(&project.run_ok(&["--overwrite"])));
        project.run_ok(&[]);
    }
    // A file that was changed is not replaced.
    for path in ["o.csv", "o.jsonl", "o.parquet"] {
        let project = project(path).ran();
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
        let project = project(path).ran();
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
}

#[test]
fn without_the_store_or_the_file_what_is_right_is_recognised() {
    let project = project("o.csv").ran();
    fs::remove_dir_all(project.path("cache")).unwrap();
    let words = ["which no workflow is known to have written"];
    refused(&project, "w.yaml", &[], &words);
    // As soon as the result is there, the file is seen to be the right one.
    project.run_ok(&["--out", "elsewhere"]);
    assert!(!written(&project.run_ok(&[])));
    // And from then on it is known.
    project.write("w.yaml", workflow("mine", "1", "o.csv"));
    assert!(written(&project.run_ok(&[])));
    // A Parquet file says itself whose it is.
    let project = self::project("o.parquet").ran();
    fs::remove_dir_all(project.path("cache")).unwrap();
    project.write("w.yaml", workflow("mine", "1", "o.parquet"));
    assert!(written(&project.run_ok(&[])));
    // A killed run leaves no file that the next one does not know: its record came first, and a
    // record without a file is no harm.
    let project = self::project("o.csv").ran();
    fs::remove_file(project.path("o.csv")).unwrap();
    assert!(written(&project.run_ok(&[])));
    let told = project.run(&["origin", "o.csv", "--format", "json"]).exits(0).json_lines();
    assert_eq!(told[0]["origins"].as_array().map(Vec::len), Some(1), "{told:?}");
    let of = |value: &Value| value["origins"][0]["origin"]["workflow"].clone();
    assert_eq!(of(&told[0]), "mine");
}

#[test]
fn a_file_that_comes_while_the_workflow_runs_stays() {
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
}

#[test]
fn what_is_not_a_plain_file_is_not_replaced() {
    let project = project("o.csv");
    let file = project.path("o.csv");
    symlink("nowhere", &file).unwrap();
    refused(&project, "w.yaml", &[], &["`o.csv`", "a link that leads to nothing"]);
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    refused(&project, "w.yaml", &[], &["`o.csv`", "not a regular file"]);
    // A link to what this workflow wrote is as good as the file, and is replaced by one.
    let project = self::project("o.csv").ran();
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
    let project = project("o.csv");
    let more = "  p: { from: data, path: p.csv }\n  q: { from: data, path: q.csv }\n";
    project.write("w.yaml", workflow("mine", "0", "o.csv") + more);
    project.write("o.csv", "");
    project.write("q.csv", "");
    let found = project.run_json(&[]).exits(2).diagnostics();
    assert_eq!(found, [format!("{CODE} w.yaml:15:26"), format!("{CODE} w.yaml:17:26")]);
    assert!(project.stored_nothing() && !project.path("p.csv").exists());
    // The message for people.
    let name = "\"\\e[31mr\\u202eed\\nalert\"";
    let project = self::project("o.csv").with("w.yaml", workflow(name, "0", "o.csv")).ran();
    let outcome = project.run(&["run", "other.yaml"]).exits(2);
    assert_eq!(outcome.stdout, "");
    let (text, place) = marked(&workflow("theirs", "1", "«o.csv"));
    assert_eq!(text, project.read("other.yaml"));
    let place = format!("other.yaml:{place}");
    let words = ["overwritten-file", &place, "[31mr\\u{202e}ed\\u{a}alert", "--overwrite"];
    says(&outcome.stderr, &words);
    assert!(!outcome.stderr.contains('\u{1b}') && !outcome.stderr.contains('\u{202e}'));
}

#[test]
fn two_runs_of_one_workflow_do_not_stand_in_each_others_way() {
    let project = project("o.csv");
    project.change("touch ran;", "sleep 0.3;");
    let runs = [(); 3].map(|()| project.start(&["--cache", "cache"])).map(Running::finish);
    assert!(runs.map(|outcome| written(&outcome.exits(0))).contains(&true));
    assert!(finished.contains(&true));
}
