//! Stores that cannot be written, or not enough.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Project, files_below};

/// A small separate file system; gone when dropped.
struct Mount(PathBuf);

impl Mount {
    /// `None` where mounting is not allowed.
    fn new(project: &Project, name: &str, options: &str) -> Option<Self> {
        let path = project.path(name);
        std::fs::create_dir_all(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "galeras-test"])
            .arg(&path)
            .output()
            .is_ok_and(|o| o.status.success());
        if !mounted {
            eprintln!("skipped: a tmpfs cannot be mounted here");
            return None;
        }
        Some(Self(path))
    }

    fn remount(&self, options: &str) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(done.success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: seq 1 100 | sed 's/.*/{\"id\":\"&\",\"x\":&}/'
      output: { id: utf8!, x: int64! }
    assert:
      - { expr: x > 0 }
  valid: { op: validate, from: table, with: { rules: [ { name: big, check: x > 10 } ] } }
outputs:
  valid: { from: valid, path: valid.csv }
";

/// A project whose table does not compress: about 5 MB.
fn large() -> Project {
    let project = Project::new(WORKFLOW);
    project.change("seq 1 100 | sed 's/.*/{\"id\":\"&\",\"x\":&}/'", "cat data.jsonl");
    project.change("x: int64! }", "x: int64!, s: utf8! }");
    let mut state = 1_u64;
    // A generator of Marsaglia's kind; any will do.
    let mut word = |_: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}")
    };
    let row = |i: u32| {
        let text: String = (0..16).map(&mut word).collect();
        format!("{{\"id\":\"{i}\",\"x\":{i},\"s\":\"{text}\"}}\n")
    };
    project.with("data.jsonl", (1..=20_000).map(row).collect::<String>())
}

#[test]
fn a_read_only_store_serves_hits_and_refuses_new_results() {
    let project = Project::new(WORKFLOW);
    let Some(mount) = Mount::new(&project, "store", "size=20m") else { return };
    let before = project.run_ok(&["--cache", "store"]);
    mount.remount("ro");
    let after = project.run_ok(&["--cache", "store"]).all_hit_as(&before);
    assert!(after.events("warning").is_empty(), "{after}");
    project.run(&["show", "w.yaml", "valid", "--cache", "store"]).exits(0).prints(&["100"]);
    project.run(&["plan", "w.yaml", "--cache", "store"]).exits(0);
    project.run(&["cache", "ls", "--cache", "store"]).exits(0);
    project.verifies("store");
    // Outputs are outside of the store.
    std::fs::remove_file(project.path("valid.csv")).unwrap();
    project.run_ok(&["--cache", "store"]).all_hit();
    assert!(project.path("valid.csv").exists());
    // It refuses new results.
    project.change("x > 10", "x > 20");
    let outcome = project.run_json(&["--cache", "store"]).exits(4);
    assert_eq!(outcome.finished()["status"], "cache_failed");
    let shown = project.run(&["run", "w.yaml", "--cache", "store"]).exits(4);
    assert!(shown.stderr.to_lowercase().contains("read-only"), "{shown}");
    assert!(shown.stderr.contains("--cache"), "says what to do\n{shown}");
    mount.remount("rw");
    assert_eq!(project.run_ok(&["--cache", "store"]).statuses(), "table=hit valid=ran");
    // An empty one is reported.
    let project = Project::new(WORKFLOW);
    let Some(mount) = Mount::new(&project, "store", "size=20m") else { return };
    mount.remount("ro");
    let shown = project.run(&["run", "w.yaml", "--cache", "store/sub"]).exits(4);
    assert!(shown.stderr.to_lowercase().contains("read-only"), "{shown}");
    project.run(&["plan", "w.yaml", "--cache", "store"]).exits(0);
}

#[test]
fn a_full_disk_is_told_and_nothing_is_broken() {
    let project = large();
    let Some(_mount) = Mount::new(&project, "store", "size=1m") else { return };
    let outcome = project.run_json(&["--cache", "store"]).exits(4);
    assert_eq!(outcome.finished()["status"], "cache_failed", "{outcome}");
    let shown = project.run(&["run", "w.yaml", "--cache", "store"]).exits(4);
    let said = shown.stderr.to_lowercase();
    assert!(said.contains("no space left") || said.contains("full"), "{shown}");
    assert!(files_below(&project.path("store/tmp")).is_empty(), "temporary files are removed");
    assert!(!project.path("valid.csv").exists());
    project.verifies("store");
    // Elsewhere it works.
    assert_eq!(project.run_ok(&["--cache", "other"]).statuses(), "table=ran valid=ran");
    project.verifies("other");
    // So is one under the outputs.
    let project = large();
    let Some(_mount) = Mount::new(&project, "out", "size=1m") else { return };
    project.run(&["run", "w.yaml", "--out", "out"]).exits(4).reports(&["valid", "No space left"]);
    assert!(files_below(&project.path("out")).is_empty(), "no half of a file stays");
    let found = project.run_json(&["--out", "elsewhere"]).exits(0).statuses();
    assert_eq!(found, "table=hit valid=hit");
    // So is one for temporary files.
    let project = large();
    let Some(mount) = Mount::new(&project, "tmp", "size=1m") else { return };
    let variables = [("TMPDIR", mount.0.to_str().unwrap())];
    let outcome = project.run_with(&["run", "w.yaml", "--format", "json"], &variables);
    assert!(matches!(outcome.code, Some(1 | 4)), "{outcome}");
    assert!(outcome.stdout.to_lowercase().contains("no space left"), "{outcome}");
    assert!(files_below(&mount.0).is_empty());
}

#[test]
fn a_store_that_is_a_file_or_behind_an_unknown_kind_of_address_is_told() {
    let project = Project::new(WORKFLOW).with("store", "not a folder");
    for (place, word) in [("store", "store"), ("gopher://host/path", "gopher")] {
        project.run(&["run", "w.yaml", "--cache", place]).exits(4).reports(&[word]);
    }
    // The environment may name one.
    let elsewhere = project.path("elsewhere").display().to_string();
    project.run_with(&["run", "w.yaml"], &[("GALERAS_CACHE", &elsewhere)]).exits(0);
    assert!(project.path("elsewhere/actions").is_dir() && !project.path("cache").exists());
}
