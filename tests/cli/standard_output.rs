//! Every verb reports that it could not print; none minds a reader who has had enough. Files
//! that are written by name are whole or as they were.

use crate::harness::{Outcome, Project, files_below};

const WORKFLOW: &str = "galeras: 1
steps:
  table: { op: read, with: { path: data.jsonl } }
  valid: { op: validate, from: table, with: { rules: [ { name: small, check: size < 9000 } ] } }
outputs:
  valid: { from: valid, path: valid.csv, show: true }
";

/// The verbs that print, in the project below.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "--help", "--version", "run --help", "run w.yaml", "run w.yaml --format json",
    "run w.yaml --format json --force table", "plan w.yaml", "plan w.yaml --format json",
    "check w.yaml", "check --explain unknown-key", "explain w.yaml valid",
    "explain w.yaml valid --format json", "graph w.yaml", "show w.yaml table",
    "show w.yaml table --rows 10000", "show w.yaml table --format json",
    "show w.yaml table --format csv", "show w.yaml table --format json -o /dev/stdout",
    "sql w.yaml 'SELECT id FROM valid'", "sql w.yaml 'SELECT id FROM valid' --format csv",
    "trace w.yaml r00001", "trace w.yaml r00001 --format json", "ops", "ops read",
    "ops --format json", "schema", "schema raw_data", "cache ls", "cache ls --format json",
    "cache verify", "cache verify --format json", "cache gc --dry-run --keep-runs 1",
    "cache gc --dry-run --keep-runs 1 --format json", "completions bash", "init new",
];

fn project() -> Project {
    let rows = (0..10_000).map(|i| format!("{{\"id\":\"r{i:05}\",\"size\":{i}}}\n"));
    Project::new(WORKFLOW).with("data.jsonl", rows.collect::<String>()).ran()
}

#[test]
fn every_verb_says_that_it_could_not_print() {
    let project = project();
    for verb in VERBS {
        let outcome = project.sh(&format!("exec \"$GALERAS\" {verb} >/dev/full")).exits(4);
        let outcome = outcome.reports(&["No space left"]);
        let errors = outcome.stderr.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 1, "{verb}: {outcome}");
        std::fs::remove_dir_all(project.path("new")).ok();
        // None minds a reader who has had enough.
        let script = format!("{{ \"$GALERAS\" {verb}; echo $? >status; }} | head -c 1");
        let outcome = project.sh(&script).exits(0);
        assert_eq!(project.read("status"), "0\n", "{verb}: {outcome}");
        assert!(!outcome.stderr.contains("error:"), "{verb}: {outcome}");
        std::fs::remove_dir_all(project.path("new")).ok();
    }
}

#[test]
fn what_went_wrong_first_decides_the_exit() {
    let project = project().with("bad.yaml", "galeras: 1\nstep: {}\n");
    let outcome = project.sh("exec \"$GALERAS\" check bad.yaml --format json >/dev/full");
    outcome.exits(2).reports(&["No space left"]);
    project.change("size < 9000", "no_such_column < 9000");
    project.sh("exec \"$GALERAS\" run w.yaml --format json >/dev/full").exits(2);
}

/// Files may have 4096 bytes, as on a disk that is about to be full.
fn cramped(project: &Project, verb: &str) -> Outcome {
    project.sh(&format!("ulimit -f 8; exec \"$GALERAS\" {verb}"))
}

#[test]
fn a_named_file_is_whole_or_as_it_was() {
    let project = project();
    for (format, name) in [("json", "a.json"), ("csv", "a.csv"), ("parquet", "a.parquet")] {
        project.write(name, "old");
        let show = format!("show w.yaml table --format {format} -o {name}");
        cramped(&project, &show).exits(4).reports(&[name, "File too large"]);
        assert_eq!(project.read(name), "old");
        project.sh(&format!("exec \"$GALERAS\" {show}")).exits(0);
        assert!(std::fs::metadata(project.path(name)).unwrap().len() > 4096);
    }
    let hidden = |path: &std::path::PathBuf| path.display().to_string().contains("/.galeras-");
    assert!(!files_below(&project.root()).iter().any(hidden));
    // A link stays a link, and a device a device.
    project.write("elsewhere/rows.csv", "old");
    std::os::unix::fs::symlink("elsewhere/rows.csv", project.path("rows.csv")).unwrap();
    let show = "show w.yaml table --rows 1 --format csv";
    project.run(&[&show.split(' ').collect::<Vec<_>>()[..], &["-o", "rows.csv"]].concat()).exits(0);
    assert!(project.path("rows.csv").is_symlink());
    assert_eq!(project.read("elsewhere/rows.csv"), "id,size\nr00000,0\n");
    let printed = project.sh(&format!("\"$GALERAS\" {show} -o /dev/stdout | cat")).exits(0);
    assert_eq!(printed.stdout, "id,size\nr00000,0\n");
    // A workflow to start from is whole or absent.
    let project = Project::empty();
    let script = "ulimit -f 1; exec \"$GALERAS\" init new";
    project.sh(script).exits(4).reports(&["workflow.yaml"]);
    assert!(files_below(&project.root()).is_empty());
    project.run(&["init", "new"]).exits(0);
    project.run(&["check", "new/workflow.yaml"]).exits(0);
    project.run(&["init", "new"]).exits(2);
}
