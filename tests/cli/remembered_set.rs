//! `--set` is remembered: verbs that look at results go by the last run of the file, and commands
//! that are suggested repeat it. Paths in it start in the current folder, and keep their meaning.

use crate::harness::{Outcome, Project, Running, files_below};

const WORKFLOW: &str = "galeras: 1
params:
  n: { type: int, default: 2 }
  data: { type: path, default: data.csv }
  label: { type: string, default: plain }
steps:
  rows: { op: read, with: { path: '${{ params.data }}', key: [id] } }
  some: { op: sample, from: rows, with: { n: '${{ params.n }}', seed: 1 } }
  labelled:
    op: sql
    from: some
    with: { query: 'SELECT id, ${{ params.label }} AS label FROM input', key: [id] }
";

fn csv(name: &str, rows: usize) -> String {
    (0..rows).fold("id\n".to_string(), |text, row| format!("{text}{name}{row}\n"))
}

fn project() -> Project {
    Project::new(WORKFLOW).with("data.csv", csv("a", 9)).with("sub/other.csv", csv("b", 9))
}

pub fn run_in(project: &Project, folder: &str, args: &[&str]) -> Outcome {
    let mut command = project.command_as_typed(args);
    command.current_dir(project.path(folder));
    Running::start(command).finish()
}

const NOTE: &str = "as in the last run; --set NAME=VALUE or --defaults for others";

/// How many rows are shown, and what is reported about it.
fn shown(project: &Project, more: &[&str]) -> (usize, String) {
    let args = [&["show", "w.yaml", "some", "--format", "json"], more].concat();
    let shown = project.run(&args).exits(0);
    (shown.json_lines().len(), shown.stderr)
}

#[test]
fn looking_goes_by_the_last_run() {
    let project = project().ran();
    assert_eq!(shown(&project, &[]), (2, String::new()), "nothing was set");
    project.run_ok(&["--set", "n=3"]);
    let said = format!("with --set n=3 {NOTE}\n");
    assert_eq!(shown(&project, &[]), (3, said.clone()));
    // Given settings count, and so do the defaults if they are asked for.
    assert_eq!(shown(&project, &["--set", "n=2"]), (2, String::new()));
    assert_eq!(shown(&project, &["--defaults"]), (2, String::new()));
    project.cli("show w.yaml some --defaults --set n=2").exits(2).reports(&["cannot be used with"]);

    let sql = ["sql", "w.yaml", "SELECT count(*) AS n FROM some", "--format", "json"];
    let asked = project.run(&sql).exits(0);
    assert_eq!((asked.json_lines()[0]["n"].as_u64(), &asked.stderr), (Some(3), &said));
    let explained = project.cli("explain w.yaml some --format json").exits(0);
    assert_eq!(explained.json_lines()[0]["state"], "hit", "{explained}");
    assert_eq!(explained.stderr, said);
    let traced = project.run(&["trace", "w.yaml", "a"]);
    assert!(traced.stderr.starts_with(&said), "{traced}");

    // `plan`, `graph` and `run` use only what they are given.
    let planned = project.run(&["plan", "w.yaml", "--format", "json"]).exits(0);
    assert!(planned.stderr.is_empty() && planned.stdout.contains("\"rows\":2"), "{planned}");
    assert_eq!(project.run_ok(&[]).step("some")["rows"], 2);
    assert_eq!(shown(&project, &[]), (2, String::new()), "now the last run set nothing");
}

#[test]
fn every_workflow_has_its_own_last_run() {
    let project = project().with("copy.yaml", WORKFLOW);
    project.run_ok(&["--set", "n=3"]);
    project.run(&["run", "copy.yaml", "--set", "n=4"]).exits(0);
    assert_eq!(shown(&project, &[]).0, 3);
    assert_eq!(project.json(&["show", "copy.yaml", "some"]).len(), 4);
    // A link to a file is that file.
    std::os::unix::fs::symlink("copy.yaml", project.path("link.yaml")).unwrap();
    assert_eq!(project.json(&["show", "link.yaml", "some"]).len(), 4);
    // Another store knows of no run.
    let other = project.run(&["show", "w.yaml", "some", "--cache", "other"]).exits(1);
    assert!(!other.stderr.contains("last run"), "{other}");
    // A run that failed or selected is remembered, and one that was refused is not.
    let project = self::project();
    project.run_ok(&["--set", "n=3", "--select", "some"]);
    assert_eq!(shown(&project, &[]).0, 3);
    project.run_json(&["--set", "n=x"]).exits(2);
    assert_eq!(shown(&project, &[]).0, 3);
    // Other verbs leave no trace.
    project.run(&["plan", "w.yaml", "--set", "n=5"]).exits(0);
    assert_eq!(shown(&project, &[]).0, 3);
    // A param that the workflow no longer has is reported to come from the last run.
    project.change("  n: { type: int, default: 2 }\n", "");
    project.change("'${{ params.n }}'", "2");
    project.run(&["show", "w.yaml", "some"]).exits(2).reports(&[NOTE, "no param `n`"]);
    project.run(&["show", "w.yaml", "rows", "--defaults"]).exits(0);
}

#[test]
fn paths_keep_their_meaning_in_another_folder() {
    let project = project();
    let cache = project.path("cache").display().to_string();
    let set = ["--set", "data=other.csv", "--set", "n=4"];
    let file = ["../w.yaml", "--cache", &cache];
    let ran = run_in(&project, "sub", &[&["run"], &file[..], &set].concat()).exits(0);
    assert!(ran.stdout.is_empty(), "{ran}");
    assert_eq!(shown(&project, &[]), (4, format!("with --set data=other.csv --set n=4 {NOTE}\n")));
    assert!(project.cells("some", "id").iter().all(|id| id.starts_with('b')));
    // The suggested command works from this folder.
    project.change("seed: 1", "seed: 2");
    let missing = project.run(&["show", "w.yaml", "some"]).exits(1);
    let command = missing.stderr.lines().last().unwrap().trim();
    let data = project.path("sub/other.csv").canonicalize().unwrap();
    let expected =
        format!("galeras run w.yaml --set data={} --set n=4 --select some", data.display());
    assert_eq!(command, expected, "{missing}");
    project.sh(&command.replacen("galeras", "\"$GALERAS\"", 1)).exits(0);
    assert_eq!(shown(&project, &[]).0, 4);
    // The same from where it was first run.
    let below = run_in(&project, "sub", &["show", "../w.yaml", "some", "--cache", &cache]).exits(0);
    assert!(below.stdout.contains("b"), "{below}");
    // An empty path stays empty.
    let text = WORKFLOW.replace("default: data.csv", "default: '', choices: ['', data.csv]");
    let project = Project::new(&text.replace("path: '${{ params.data }}'", "path: 'data.csv'"));
    project.write("data.csv", csv("a", 9));
    project.run_ok(&["--set", "data="]);
}

#[test]
fn suggested_commands_can_be_pasted() {
    let project = project();
    for label in ["O'Hara; touch hit", "a b", "$(touch hit)", "", "x\ty", "-n", "a\nb", "*"] {
        let set = format!("label={label}");
        let missing = project.run(&["show", "w.yaml", "labelled", "--set", &set]).exits(1);
        let command = missing.stderr.lines().last().unwrap().trim();
        assert!(command.starts_with("galeras run w.yaml --set "), "{missing}");
        let pasted = command.replacen("galeras", "\"$GALERAS\"", 1);
        project.sh(&format!("exec bash -c {}", quoted(&pasted))).exits(0);
        let rows = project.cli("show w.yaml labelled --format json").exits(0);
        assert_eq!(rows.json_lines()[0]["label"], label, "{rows}");
        assert_eq!(rows.stderr.lines().count(), 1, "{rows}");
        assert!(!project.path("hit").exists(), "{label:?}");
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn nothing_that_was_set_steers_a_terminal_and_the_whole_command_is_told() {
    let project = project();
    let long = "x".repeat(500);
    project.run_ok(&["--set", &format!("label=\u{1b}[2J\u{202e}{long}")]);
    let shown = project.run(&["show", "w.yaml", "labelled"]).exits(0);
    assert!(!shown.stderr.contains(['\u{1b}', '\u{202e}']), "{shown}");
    assert!(shown.stderr.contains(r"\x1b[2J\u202e"), "{shown}");
    assert!(shown.stderr.len() < 250 && shown.stderr.contains("…"), "{shown}");
    // The question for consent has the whole command.
    let project = self::project();
    project.append("  ran: { op: exec, with: { command: 'true', output: { id: utf8! } } }\n");
    let args = ["run", "w.yaml", "--set", "label=it's", "--cache", "my store", "--select", "ran"];
    let refused = Running::start(project.command_as_typed(&args)).finish().exits(2);
    let command = refused.stderr.lines().last().unwrap().trim();
    let set = r"--set 'label=it'\''s' --cache 'my store'";
    assert_eq!(command, format!("galeras run w.yaml {set} --select ran --allow exec"));
    project.sh(&command.replacen("galeras", "\"$GALERAS\"", 1)).exits(0);
    // A damaged record is not believed.
    let project = Project::new(WORKFLOW).with("data.csv", csv("a", 9)).ran();
    project.run_ok(&["--set", "n=3"]);
    let record = files_below(&project.path("cache/runs")).pop().unwrap();
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains("n=3"), "{text}");
    std::fs::write(&record, text.replace("n=3", "n=4")).unwrap();
    assert_eq!(self::shown(&project, &[]), (2, String::new()));
}
