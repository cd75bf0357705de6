//! `cache ls`, `cache gc`, `cache verify`: looking after the store.

use crate::harness::{Project, Running, files_below, wait_for};

const WORKFLOW: &str = "galeras: 1
name: kept
steps:
  table:
    op: exec
    with:
      command: seq 1 50 | sed 's/.*/{\"id\":\"&\",\"x\":&}/'
      output: { id: utf8!, x: int64! }
  valid:
    op: validate
    from: table
    with: { rules: [ { name: big, check: x > 1 } ] }
";

fn blobs(project: &Project) -> usize {
    files_below(&project.path("cache/blobs")).len()
}

#[test]
fn results_are_listed() {
    let project = Project::new(WORKFLOW);
    let empty = project.run(&["cache", "ls"]).exits(0);
    assert!(empty.stdout.contains("0 results"), "{empty}");
    project.run_ok(&[]);
    let shown = project.run(&["cache", "ls"]).exits(0);
    for word in ["kept/table", "kept/valid", "50 rows", "49 rows", "2 results"] {
        assert!(shown.stdout.contains(word), "{word}\n{shown}");
    }
    let told = project.run(&["cache", "ls", "--format", "json"]).exits(0).json_lines();
    assert_eq!(told.len(), 2);
    let valid = told.iter().find(|m| m["step"] == "valid").unwrap();
    assert_eq!((&valid["rows"], &valid["op"]), (&49.into(), &"validate".into()));
}

#[test]
fn looking_at_a_store_that_does_not_exist_makes_none() {
    let project = Project::new(WORKFLOW);
    project.run(&["cache", "ls", "--cache", "typo"]);
    project.run(&["cache", "verify", "--cache", "typo"]);
    project.run(&["cache", "gc", "--keep-runs", "1", "--cache", "typo"]);
    project.run(&["show", "w.yaml", "table", "--cache", "typo"]).exits(1);
    project.run(&["plan", "w.yaml", "--cache", "typo"]).exits(0);
    assert!(!project.path("typo").exists());
}

#[test]
fn what_no_recent_run_needs_is_removed() {
    let project = Project::new(WORKFLOW);
    let first = project.run_ok(&[]);
    project.edit("w.yaml", "x > 1", "x > 25");
    let second = project.run_ok(&[]);
    let before = blobs(&project);
    let dry = project.run(&["cache", "gc", "--keep-runs", "1", "--dry-run"]).exits(0);
    assert!(
        dry.stdout.contains("would remove 1 results")
            || dry.stdout.contains("would remove 1 result"),
        "{dry}"
    );
    assert_eq!(blobs(&project), before);
    project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
    assert!(blobs(&project) < before);
    project.verifies("cache");
    project.run_ok(&[]).all_hit();
    project.edit("w.yaml", "x > 25", "x > 1");
    let third = project.run_ok(&[]);
    assert_eq!(third.statuses(), "table=hit valid=ran");
    assert_eq!(third.digests(), first.digests());
    assert_ne!(third.digests(), second.digests());
}

#[test]
fn a_store_is_emptied_to_a_size() {
    let project = Project::new(WORKFLOW);
    project.run_ok(&[]);
    let removed = project.run(&["cache", "gc", "--max-bytes", "0", "--format", "json"]).exits(0);
    assert_eq!(removed.json_lines()[0]["event"], "gc");
    assert_eq!(blobs(&project), 0);
    project.verifies("cache");
    let again = project.run_ok(&[]);
    assert_eq!(again.statuses(), "table=ran valid=ran");
    project.run(&["cache", "gc", "--older-than", "30"]).exits(0);
    project.run_ok(&[]).all_hit();
}

#[test]
fn without_a_policy_nothing_that_is_needed_is_removed() {
    let project = Project::new(WORKFLOW);
    project.run_ok(&[]);
    project.run(&["cache", "gc"]);
    project.run_ok(&[]).all_hit();
}

#[test]
fn a_store_in_use_is_not_emptied() {
    let project =
        Project::new(&WORKFLOW.replace("command: seq", "command: touch started; sleep 3; seq"));
    let running = Running::start(project.command(&["run", "w.yaml", "--format", "json"]));
    wait_for("the step", || project.path("started").exists());
    let gc = project.run(&["cache", "gc", "--max-bytes", "0"]);
    let outcome = running.finish().exits(0);
    assert_eq!(outcome.statuses(), "table=ran valid=ran");
    if gc.code != Some(0) {
        assert!(gc.exits(4).stderr.contains("run"), "says why");
    }
    project.verifies("cache");
}

#[test]
fn a_sound_store_is_said_to_be_so() {
    let project = Project::new(WORKFLOW);
    project.run_ok(&[]);
    let shown = project.run(&["cache", "verify"]).exits(0);
    assert!(shown.stdout.contains("found 0 problems"), "{shown}");
    assert!(shown.stderr.is_empty(), "{shown}");
}
