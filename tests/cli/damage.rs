//! A store with damaged or missing files: found, reported, computed again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Outcome, Project, files_below, text};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: echo ran >> log; printf '{\"id\":\"a\",\"x\":1}\\n{\"id\":\"b\",\"x\":2}\\n'
      output: { id: utf8!, x: int64! }
  valid: { op: validate, from: table, with: { rules: [ { name: big, check: x > 1 } ] } }
";

fn project() -> (Project, Outcome) {
    let project = Project::new(WORKFLOW);
    let outcome = project.run_ok(&[]);
    (project, outcome)
}

/// The file of the manifest of a step, and its key.
fn manifest(outcome: &Outcome, step: &str) -> (String, String) {
    let key = text(&outcome.step(step), "key").to_owned();
    (format!("cache/actions/{}/{key}.json", &key[..2]), key)
}

fn blob(project: &Project, outcome: &Outcome, step: &str) -> PathBuf {
    let text = project.read(&manifest(outcome, step).0);
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let digest = manifest["ports"][0]["blob"].as_str().unwrap();
    project.path(&format!("cache/blobs/{}/{digest}.parquet", &digest[..2]))
}

fn folder_instead(file: &Path) {
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
}

#[track_caller]
fn repair(project: &Project) {
    project.run(&["cache", "verify", "--repair"]).exits(0);
    project.verifies("cache");
}

#[track_caller]
fn finds(project: &Project, kind: &str, object: &str) {
    let found = project.run(&["cache", "verify", "--format", "json"]).exits(4);
    let mut findings = found.events("finding").into_iter().map(|event| event["finding"].clone());
    let wanted = |f: Value| f["kind"] == kind && text(&f, "object").contains(object);
    assert!(findings.any(wanted), "{kind} {object}: {found}");
    project.run(&["cache", "verify"]).exits(4).prints(&[object]);
}

#[test]
fn a_damaged_file_is_found_and_repaired_and_ends_in_no_wrong_result() {
    let (project, before) = project();
    let blob = blob(&project, &before, "table");
    flip(&blob, 70, 4);
    finds(&project, "damaged_blob", name(&blob));
    repair(&project);
    // Results computed from the file may be wrong: the time of the damage is unknown.
    assert!(files_below(&project.path("cache/actions")).is_empty());
    let after = project.run_ok(&[]).went("table=ran valid=ran");
    assert_eq!(after.digests(), before.digests());
    project.verifies("cache");
    assert!(blob.exists());
    let (project, before) = self::project();
    let blob = self::blob(&project, &before, "table");
    // All of the data is lost, the size is right.
    fs::write(&blob, vec![7_u8; fs::read(&blob).unwrap().len()]).unwrap();
    // Missing or damaged is a miss with a warning, never an error.
    let first = project.rerun("x > 1", "x > 0");
    assert_eq!(first.step("valid")["rows"], 2);
    assert!(!first.events("warning").is_empty(), "{first}");
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

fn flip(path: &Path, at: usize, bit: u32) {
    let mut bytes = fs::read(path).unwrap();
    let at = at % bytes.len();
    bytes[at] ^= 1 << bit;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_bit_is_never_a_hit_and_nothing_is_computed_from_it() {
    let (project, before) = project();
    let blob = blob(&project, &before, "table");
    for (at, bit) in [(4, 0), (60, 3), (131, 7), (400, 5), (99_991, 1)] {
        flip(&blob, at, bit);
        let planned = project.run(&["plan", "w.yaml", "--format", "json"]).exits(0);
        assert_eq!(planned.json_lines()[0]["steps"][0]["reason"], "BLOB_MISSING", "{planned}");
        let after = project.run_ok(&[]);
        assert_eq!(after.digests(), before.digests(), "{at}");
        assert_eq!(after.statuses(), "table=ran valid=ran");
        assert!(after.events("warning").len() >= 2, "the file, and what came of it: {after}");
        project.verifies("cache");
        project.run_ok(&[]).all_hit();
    }
    let (project, _) = self::project();
    project.change("x > 1", "x > 0");
    let truth = project.run_ok(&["--cache", "truth"]);
    for at in [10, 80, 200, 500] {
        project.write("w.yaml", WORKFLOW);
        fs::remove_dir_all(project.path("cache")).unwrap();
        let before = project.run_ok(&[]);
        flip(&self::blob(&project, &before, "table"), at, 2);
        assert_eq!(project.rerun("x > 1", "x > 0").digests(), truth.digests(), "{at}");
        // The way back: what was there before is the truth as well.
        project.write("w.yaml", WORKFLOW);
        assert_eq!(project.run_ok(&[]).digests(), before.digests(), "{at}");
    }
}

#[test]
fn a_folder_instead_of_a_file_is_repaired_and_a_damaged_manifest_is_a_miss() {
    for step in ["table", "valid"] {
        let (project, before) = project();
        let blob = blob(&project, &before, step);
        folder_instead(&blob);
        fs::write(blob.join("inside"), "x").unwrap();
        assert_eq!(project.run_ok(&[]).digests(), before.digests());
        project.verifies("cache");

        folder_instead(&blob);
        finds(&project, "damaged_blob", name(&blob));
        repair(&project);
        assert_eq!(project.run_ok(&[]).digests(), before.digests());
    }
    let (project, before) = project();
    folder_instead(&project.path(&manifest(&before, "table").0));
    assert_eq!(project.run_ok(&[]).digests(), before.digests());
    project.verifies("cache");
    for text in ["", "{", "null", "{\"format\": 2}", "\u{0}\u{0}\u{0}"] {
        let (project, before) = self::project();
        let (manifest, key) = manifest(&before, "table");
        project.write(&manifest, text);
        finds(&project, "damaged_manifest", &key);
        let after = project.run_ok(&[]).went("table=ran valid=hit");
        assert_eq!(after.digests(), before.digests());
        project.verifies("cache");
    }
    let (project, before) = self::project();
    let (manifest, key) = manifest(&before, "table");
    let text = project.read(&manifest);
    assert!(text.contains("echo ran"), "the pre-image is in it");
    project.write(&manifest, text.replacen("echo ran", "echo RAN", 1));
    finds(&project, "damaged_manifest", &key);
}

#[test]
fn a_damaged_outcome_is_not_believed_and_an_untouched_file_is_hashed_once() {
    let failing = WORKFLOW.replace("x > 1 } ] } }", "x > 1 } ] }, assert: [ { expr: x < 2 } ] }");
    let project = Project::new(&failing);
    let before = project.run_json(&[]).exits(3);
    let outcomes = files_below(&project.path("cache/checks"));
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    let sound = fs::read(&outcomes[0]).unwrap();
    for at in 0..20 {
        fs::write(&outcomes[0], &sound).unwrap();
        flip(&outcomes[0], at * 7, (at % 8) as u32);
        let after = project.run_json(&[]).exits(3);
        assert_eq!(after.step("valid")["detail"], before.step("valid")["detail"], "{at}");
    }
    flip(&outcomes[0], 9, 1);
    finds(&project, "damaged_outcome", "checks/");
    repair(&project);
    let (project, before) = self::project();
    let log = project.read("cache/verified.log");
    assert!(log.lines().count() >= 2, "{log}");
    project.run_ok(&[]).all_hit();
    assert_eq!(project.read("cache/verified.log"), log);
    // Without the record, or with noise in it, all is hashed again.
    for noise in ["", "noise\n\u{0}\n"] {
        project.write("cache/verified.log", noise);
        project.run_ok(&[]).all_hit();
        let log = project.read("cache/verified.log");
        // The table and the three of the validation: hashes, and compared rows.
        assert_eq!(log.lines().filter(|line| line.len() > 90).count(), 8, "{log}");
    }
    flip(&blob(&project, &before, "valid"), 33, 3);
    assert_eq!(project.run_ok(&[]).statuses(), "table=hit valid=ran");
}

#[test]
fn a_flipped_bit_in_a_manifest_is_a_miss() {
    let (project, before) = project();
    let manifest = project.path(&manifest(&before, "valid").0);
    let sound = fs::read(&manifest).unwrap();
    for at in (0..sound.len()).step_by(sound.len() / 12) {
        fs::write(&manifest, &sound).unwrap();
        flip(&manifest, at, (at % 8) as u32);
        let after = project.run_ok(&[]).went("table=hit valid=ran");
        assert_eq!(after.digests(), before.digests());
    }
    project.verifies("cache");
}

#[test]
fn a_truncated_or_missing_file_is_computed_again_with_a_warning() {
    for length in [0, 10] {
        let (project, before) = project();
        let blob = blob(&project, &before, "table");
        fs::OpenOptions::new().write(true).open(&blob).unwrap().set_len(length).unwrap();
        finds(&project, "wrong_size", name(&blob));
        let after = project.run_ok(&[]).went("table=ran valid=ran");
        assert_eq!(after.step("table")["reason"], "BLOB_MISSING");
        assert_eq!(after.digests(), before.digests());
        assert!(!after.events("warning").is_empty(), "{after}");
        project.run_ok(&[]).all_hit();
        project.verifies("cache");
        assert_eq!(project.read("log"), "ran\nran\n");
    }
    let (project, before) = project();
    let blob = blob(&project, &before, "valid");
    fs::remove_file(&blob).unwrap();
    finds(&project, "missing_blob", name(&blob));
    let planned = project.run(&["plan", "w.yaml", "--format", "json"]).exits(0);
    assert_eq!(planned.json_lines()[0]["steps"][1]["reason"], "BLOB_MISSING", "{planned}");
    let shown = project.run(&["run", "w.yaml"]).exits(0);
    shown.reports(&["one stored file is missing; computing again"]);
    assert_eq!(project.read("log"), "ran\n");
    project.run_ok(&[]).all_hit_as(&before);
    project.verifies("cache");
}

#[test]
fn damaged_run_records_and_parts_do_no_harm() {
    let (project, before) = project();
    let records = files_below(&project.path("cache/runs"));
    let parts = files_below(&project.path("cache/memo"));
    assert!(!records.is_empty() && !parts.is_empty());
    for file in records.iter().chain(&parts) {
        fs::write(file, "{").unwrap();
    }
    project.run_ok(&[]).all_hit();
    project.run(&["plan", "w.yaml"]).exits(0);
    project.run(&["cache", "ls"]).exits(0);
    let after = project.rerun("x > 1", "x > 0").went("table=hit valid=ran");
    assert_eq!(after.digests()[0], before.digests()[0]);
}

#[test]
fn strange_files_in_the_store_do_no_harm() {
    let (project, _) = project();
    for file in ["cache/blobs/README", "cache/blobs/00/x.parquet", "cache/.DS_Store"] {
        project.write(file, "hello");
    }
    project.run_ok(&[]).all_hit();
    project.run(&["cache", "ls"]).exits(0);
    project.run(&["cache", "gc", "--keep-runs", "5"]).exits(0);
}
