//! `exec`: full disks, truncated output, and the processes of a command when a run ends.

use std::fs::File;
use std::path::Path;

use serde_json::json;

use crate::exec_command::{batch, write};
use crate::harness::{Outcome, Project, Running, says, wait_for};

fn workflow(format: &str, command: &str) -> String {
    let command = command.lines().map(|line| format!("        {line}\n")).collect::<String>();
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
      format: {format}
      output: {{ id: utf8!, x: int64! }}
      command: |
{command}"
    )
}

/// The same, without a sandbox.
fn unsandboxed(command: &str) -> String {
    workflow("jsonl", command).replace("    with:\n", "    with:\n      sandbox: none\n")
}

/// Runs the workflow with files of at most 4096 bytes, as on a disk that is about to be full.
fn run_cramped(project: &Project) -> Outcome {
    let script = "ulimit -f 8; exec \"$GALERAS\" run w.yaml --format json --keep-going --allow exec,unsandboxed";
    project.sh(script)
}

#[track_caller]
fn fails(outcome: &Outcome, step: &str, words: &[&str]) {
    assert!(matches!(outcome.code, Some(1 | 4)), "{outcome}");
    assert_eq!(outcome.status(step), "failed", "{outcome}");
    says(&outcome.detail(step), words);
}

#[track_caller]
fn refused(format: &str, command: &str, words: &[&str]) {
    let project = Project::new(&workflow(format, command));
    fails(&project.run_program().exits(1), "table", words);
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
}

#[test]
fn what_does_not_fit_on_the_disk_is_not_cut() {
    // 7 kB: less than a writer holds back until it is dropped, more than there is room for.
    let steps = "  small:
    op: exec
    with:
      command: i=10; while [ $i -lt 70 ]; do echo \"{\\\"id\\\":\\\"$i\\\"}\"; i=$((i+1)); done
      output: { id: utf8! }
  wide: { op: sql, from: small, with: { query: \"SELECT id, repeat('x', 100) AS s FROM input\" } }
  counted:
    op: exec
    from: wide
    with:
      command: echo \"{\\\"id\\\":\\\"lines\\\",\\\"x\\\":$(wc -l)}\"
      output: { id: utf8!, x: int64! }
";
    let project = Project::steps(steps);
    let outcome = run_cramped(&project);
    assert_eq!(outcome.status("wide"), "ran", "{outcome}");
    fails(&outcome, "counted", &["cannot write `input`", "File too large", "TMPDIR"]);
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    project.run_ok(&[]);
    assert_eq!(project.rows("counted"), [json!({"id": "lines", "x": 60})]);
    project.verifies("cache");
    // The command does not care, and each of its lines has 64 bytes: 64 whole ones would fit.
    let command = "i=1000
while [ $i -lt 1200 ]; do printf '{\"id\":\"%d\",\"x\":%45d}\\n' $i 7; i=$((i+1)); done
true";
    let project = Project::new(&workflow("jsonl", command));
    let outcome = run_cramped(&project);
    fails(&outcome, "table", &["cannot keep what the command `i=1000…` prints", "File too large"]);
    project.run_ok(&[]);
    assert_eq!(project.rows("table").len(), 200);
}

#[test]
fn a_signal_and_a_last_line_that_breaks_off_are_told() {
    refused("jsonl", "kill -s PIPE $$", &["SIGPIPE", "`kill -s PIPE $$`"]);
    refused("jsonl", "echo '{\"id\":\"a\",\"x\":1}'; kill -s PIPE $$", &["SIGPIPE"]);
    let in_a_shell = "sh -c 'kill -s PIPE $$'; exit $?";
    refused("jsonl", in_a_shell, &["141", "SIGPIPE", "`sh -c"]);
    refused("jsonl", "sh -c 'kill -s KILL $$'; exit $?", &["137", "SIGKILL"]);
    let row = r#"{"id":"a","x":1}"#;
    for end in [1, 6, 10, row.len() - 1] {
        let command = format!("printf '%s\\n%s' '{row}' '{}'", &row[..end]);
        let words = ["`printf", "line 2 of its standard output", "broke off"];
        refused("jsonl", &command, &words);
    }
    // In the middle it is a line that is not JSON.
    let command = format!("printf '%s\\n%s\\n' '{{\"id\":' '{row}'");
    refused("jsonl", &command, &["line 1 of its standard output", "EOF"]);
    refused("jsonl", &format!("printf '{row}\\n{{\"id\":\"\\377\"'"), &["line 2", "not UTF-8"]);
    let command = format!("printf '\\376{row}\\n{row}\\n'");
    refused("jsonl", &command, &["line 1", "byte 1", "not UTF-8"]);
}

#[test]
fn a_command_may_stop_reading_and_a_file_without_its_end_is_no_table() {
    let steps = "  table:
    op: exec
    with:
      command: seq 1 100000 | sed 's/.*/{\"id\":\"&\"}/'
      output: { id: utf8! }
  first: { op: exec, from: table, with: { command: head -n 1, output: { id: utf8! } } }
  none:
    op: exec
    from: table
    with:
      command: echo '{\"id\":\"x\"}'
      output: { id: utf8! }
";
    let project = Project::steps(steps).ran();
    assert_eq!(project.rows("first"), [json!({"id": "1"})]);
    assert_eq!(project.rows("none"), [json!({"id": "x"})]);
    // Eight bytes are the mark of the end of a stream: without it, all batches are there.
    for (format, batches, cuts) in
        [("arrow", 2, &[1_u64, 4, 8, 12, 300][..]), ("parquet", 1, &[1, 4, 8, 100])]
    {
        let declared = "    with:\n      files: [data]\n";
        let project = Project::new(&workflow(format, "cat data").replace("    with:\n", declared));
        for cut in cuts {
            let file = File::create(project.path("data")).unwrap();
            write(format, &file, &vec![batch(&["a", "b", "c"], &[1, 2, 3]); batches]);
            file.set_len(file.metadata().unwrap().len() - cut).unwrap();
            let failed = project.run_json(&["--force", "table"]).exits(1);
            fails(&failed, "table", &["`cat data`", "broke off"]);
        }
    }
}

/// True if a process has ended. It may stay as a zombie.
pub fn is_gone(pid: &str) -> bool {
    match std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|s| s.trim().starts_with('Z')),
        Err(_) => true,
    }
}

/// A command that writes the ids of its processes, one of them in another process group, one a
/// daemon.
const TREE: &str = "echo $$ > shell.pid
sleep 600 & echo $! > child.pid
(setsid sh -c 'echo $$ > daemon.pid; exec sleep 600' &)
until test -s daemon.pid; do sleep 0.02; done
timeout 600 sh -c 'echo $$ > group.pid; touch started; sleep 600'";
const PIDS: [&str; 4] = ["shell.pid", "child.pid", "daemon.pid", "group.pid"];

/// Ways to leave a process running behind a command.
const LEFT: [&str; 4] = [
    "sleep 600 >/dev/null 2>&1 & echo $! > child.pid",
    "setsid sh -c 'echo $$ > child.pid; exec sleep 600' >/dev/null 2>&1 &",
    "timeout 600 sh -c 'echo $$ > child.pid; exec sleep 600' >/dev/null 2>&1 &",
    "(setsid sh -c 'sleep 600 & echo $! > child.pid' >/dev/null 2>&1 &)",
];

/// A run, begun with these words of a shell, whose command has started.
fn started(project: &Project, begin: &str) -> Running {
    let run = format!("{begin} \"$GALERAS\" run w.yaml --format json --allow exec,unsandboxed");
    let running = Running::start(project.shell(&run));
    wait_for("the command", || project.path("started").exists());
    running
}

fn ended_by(signals: &[&str]) -> (Project, Outcome) {
    let project = Project::new(&unsandboxed(TREE));
    // Tests may run under `nohup`, whose ignored SIGHUP the program would respect.
    let running = started(&project, "exec env --default-signal=HUP");
    for signal in signals {
        running.signal(signal);
    }
    let outcome = running.finish();
    for pid in PIDS {
        let pid = project.read(pid);
        wait_for("the end of the command", || is_gone(&pid));
    }
    (project, outcome)
}

#[test]
fn a_command_ends_with_the_terminal_and_nohup_outlives_it() {
    for signal in ["HUP", "TERM", "INT"] {
        let (project, outcome) = ended_by(&[signal]);
        assert_eq!(outcome.exits(130).finished()["status"], "interrupted", "{signal}");
        assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    }
    let command =
        "touch started; until test -e go; do sleep 0.02; done; echo '{\"id\":\"a\",\"x\":1}'";
    let project = Project::new(&unsandboxed(command));
    let running = started(&project, "trap '' HUP; exec");
    running.signal("HUP");
    project.write("go", "");
    assert_eq!(running.finish().exits(0).finished()["status"], "ok");
}

#[test]
fn a_killed_run_leaves_no_process_and_its_files_go_with_the_next_run() {
    let (project, outcome) = ended_by(&["KILL"]);
    assert_eq!(outcome.code, None, "{outcome}");
    assert_eq!(project.left_behind().len(), 1, "{:?}", project.left_behind());
    project.write(".galeras-Dead00.part", "half of an output");
    let steps = "steps: { table: { op: read, with: { path: data.jsonl } } }";
    let outputs = "outputs: { out: { from: table, path: out.csv } }";
    project.write("w.yaml", format!("galeras: 1\n{steps}\n{outputs}\n"));
    project.write("data.jsonl", "{\"id\":\"a\"}\n");
    project.run_program().exits(0);
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    assert!(!project.path(".galeras-Dead00.part").exists());
    assert_eq!(project.read("out.csv"), "id\na\n");
}

#[test]
fn a_running_run_keeps_its_files_while_another_sweeps() {
    let wait = "touch started; until test -e go; do sleep 0.02; done; cat \"$GALERAS_INPUT_INPUT\"";
    let project = Project::steps(&format!(
        "  table: {{ op: exec, with: {{ command: 'echo \"{{\\\"id\\\":\\\"a\\\"}}\"', output: {{ id: utf8! }} }} }}
  slow: {{ op: exec, from: table, with: {{ sandbox: none, command: {wait}, output: {{ id: utf8! }} }} }}
"
    ));
    let running = started(&project, "exec");
    project.write("other.yaml", workflow("jsonl", "true"));
    project.run(&["run", "other.yaml", "--cache", "other"]).exits(0);
    assert_eq!(project.left_behind().len(), 1, "{:?}", project.left_behind());
    project.write("go", "");
    running.finish().exits(0);
    assert_eq!(project.rows("slow"), [json!({"id": "a"})]);
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
}

#[test]
fn what_a_command_left_running_ends_with_it_and_a_signal_to_its_group_harms_no_one_else() {
    for left in LEFT {
        for end in ["echo '{\"id\":\"a\",\"x\":1}'", "exit 1"] {
            let wait = "until test -s child.pid; do sleep 0.02; done";
            let command = format!("{left}\n{wait}\n{end}");
            let project = Project::new(&unsandboxed(&command));
            let outcome = project.run_program();
            assert_eq!(outcome.code, Some(i32::from(end == "exit 1")), "{outcome}");
            let pid = project.read("child.pid");
            wait_for("the end of the child", || is_gone(&pid));
        }
    }
    let command = "trap '' TERM
kill -s TERM 0
echo '{\"id\":\"a\",\"x\":1}'";
    assert_eq!(Project::new(&workflow("jsonl", command)).ran().rows("table").len(), 1);
    refused("jsonl", "kill -s KILL 0", &["SIGKILL"]);
}
