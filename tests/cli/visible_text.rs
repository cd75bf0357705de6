//! The output on a terminal: whatever files, columns, cells, params, repositories, programs, models
//! and servers contain, no screen is cleared, retitled, recoloured, rung or read backwards.

use galeras_test_servers::chat_api::{ChatApi, ChatFault, error};
use serde_json::Value;

use crate::generate_openai;
use crate::harness::{Project, Running};
use crate::hostile_names::{harmless, quoted};
use crate::repository::{Repository, at, day};

/// Colours, a title, a bell, a return, a backspace, DEL, a C1 control and what turns text around.
const HOSTILE: &str = "\u{1b}[31m\u{1b}]0;t\u{7}\r\u{8}\u{7f}\u{9b}2J\u{202e}\u{2066}";

/// The same for the name of a workflow.
const FILE: &str = "d\u{1b}]0;t\r\u{7}\u{9b}2J\u{202e}";

/// For names of data and repositories, in which control characters are refused.
const TURNED: &str = "r\u{202e}\u{2066}";

/// A project whose every name is hostile, and its workflow file.
fn project() -> (Project, String) {
    let workflow = "galeras: 1
name: NAME
description: NAME
params:
  who: { type: string, default: NAME }
steps:
  data: { op: read, with: { path: FILE, key: [id] } }
  valid:
    op: validate
    from: data
    with: { rules: [ { name: big, check: n > 1 } ] }
    assert:
      - { expr: COLUMN = 'x', severity: warn }
  cells: { op: sql, matrix: { m: [NAME, b] }, from: data, with: { query: SELECT * FROM input } }
  repos: { op: query, with: { repos: [REPO] } }
outputs:
  valid: { from: valid, path: OUTPUT, show: true }
";
    let workflow = workflow
        .replace("FILE", &quoted(&format!("{TURNED}.jsonl")))
        .replace("COLUMN = 'x'", &quoted(&format!("\"c{HOSTILE}\" = 'x'")))
        .replace("NAME", &quoted(&format!("n{HOSTILE}")))
        .replace("REPO", &quoted(&format!("./{TURNED}")))
        .replace("OUTPUT", &quoted("out/v\u{202e}.csv"));
    let project = Project::empty();
    let file = format!("w{FILE}.yaml");
    project.write(&file, workflow);
    let row = |id: &str, n: u32| {
        let mut row = serde_json::Map::new();
        row.insert("id".into(), format!("{id}{HOSTILE}").into());
        row.insert("n".into(), n.into());
        for name in ["path", "repo", "reason", &format!("c{HOSTILE}")] {
            row.insert(name.into(), format!("v{HOSTILE}\nx\ty").into());
        }
        format!("{}\n", Value::Object(row))
    };
    project.write(&format!("{TURNED}.jsonl"), format!("{}{}", row("a", 1), row("b", 2)));
    let repository = Repository::with_work_tree(project.path(TURNED));
    repository.commit(at(day(1)).write("a.py", "def f():\n    return 1\n"));
    (project, file)
}

#[test]
fn no_verb_lets_a_control_character_out() {
    let (project, file) = project();
    let say = |args: &[&str], code: i32| {
        let args: Vec<&str> = args.iter().map(|a| if *a == "W" { &file } else { *a }).collect();
        let outcome = project.run(&args);
        harmless(&args.join(" "), &outcome);
        outcome.exits(code)
    };
    say(&["check", "W"], 0);
    say(&["plan", "W"], 0);
    let run = say(&["run", "W"], 0);
    assert!(run.stderr.contains("warning:") && run.stdout.contains("\\u{202e}"), "{run}");
    say(&["run", "W"], 0);
    say(&["plan", "W"], 0);
    for format in ["mermaid", "dot", "svg"] {
        say(&["graph", "W", "--format", format], 0);
    }
    let cell = format!("cells[m=n{HOSTILE}]");
    for step in ["data", "valid", "repos", &cell] {
        say(&["explain", "W", step], 0);
        let shown = say(&["show", "W", step], 0);
        assert!(shown.stdout.contains("\\u{") || step == "repos", "{step}: {shown}");
    }
    say(&["show", "W", "valid.rejects"], 0).prints(&["\\u{1b}[31m"]);
    let traced = say(&["trace", "W", "b"], 0);
    assert!(!traced.stdout.contains("\nx"), "a value stays on its line: {traced}");
    traced.prints(&["path v\\u{1b}[31m\\u{1b}]0;t\\u{7}\\r"]);
    say(&["sql", "W", "SELECT * FROM data"], 0);
    say(&["cache", "ls"], 0);
    say(&["cache", "verify"], 0);
    say(&["lock", "W"], 0);
    say(&["run", "W", "--frozen"], 0);
}

#[test]
fn no_mistake_lets_a_control_character_out() {
    let (project, file) = project();
    project.run(&["run", &file]).exits(0);
    let name = format!("x{HOSTILE}");
    let condition = format!("\"{name}\" > 1");
    let literal = format!("n = '{name}'");
    let query = format!("SELECT \"{name}\" FROM data");
    let table = format!("SELECT * FROM \"{name}\"");
    let setting = format!("who{HOSTILE}=1");
    let (store, missing) = (format!("gs://{HOSTILE}"), format!("m{FILE}.yaml"));
    let folder = format!("/proc/nothing{HOSTILE}");
    let mistakes: &[&[&str]] = &[
        &["show", "W", &name],
        &["show", "W", "data", "--columns", &name],
        &["show", "W", "data", "--where", &condition],
        &["show", "W", "data", "--where", &literal],
        &["sql", "W", &query],
        &["sql", "W", &table],
        &["sql", "W", &name],
        &["explain", "W", &name],
        &["trace", "W", &name],
        &["plan", "W", "--set", &setting],
        &["plan", "W", "--set", &name],
        &["run", "W", "--select", &name],
        &["run", "W", "--cache", &folder],
        &["run", "W", "--jobs", &name],
        &["run", "W", "--cache", &store],
        &["check", &missing],
        &["check", "--explain", &name],
        &["ops", &name],
        &["schema", &name],
        &["cache", "ls", "--cache", &store],
        &["cache", &name],
        &["init", &folder],
        &[&name],
    ];
    for args in mistakes {
        let args: Vec<&str> = args.iter().map(|a| if *a == "W" { &file } else { *a }).collect();
        let outcome = project.run(&args);
        harmless(&args.join(" "), &outcome);
        assert!(outcome.code.is_some_and(|code| code != 0), "{args:?}: {outcome}");
        assert!(!outcome.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_mistake_in_a_hostile_file_is_shown_without_its_codes() {
    for (at, workflow) in [
        format!("galeras: 1\nsteps: # {HOSTILE}\n  a: {{ op: nothing }} # {HOSTILE}\n"),
        format!("galeras: 1\nsteps:\n  a: {{ op: {} }}\n", quoted(HOSTILE)),
        format!("galeras: 1\nsteps:\n  {}: {{ op: read }}\n", quoted(HOSTILE)),
        format!("galeras: 1\nsteps:\n  a: {{ op: read, {}: 1 }}\n", quoted(HOSTILE)),
        format!("galeras: 1\nsteps:\n  a: {{ uses: {} }}\n", quoted(&format!("{FILE}.yaml"))),
        "galeras: 1\nsteps:\n  a: { op: read, with: { path: «» } }\n".replace("«»", &quoted(FILE)),
        format!(
            "galeras: 1\nsteps:\n  a: {{ op: read, with: {{ path: d.csv, key: [{}] }} }}\n",
            quoted(HOSTILE)
        ),
        format!(
            "galeras: 1\nsteps: {{ a: {{ op: query, with: {{ repos: [{}] }} }} }}\n",
            quoted(&format!("./{HOSTILE}"))
        ),
        format!("galeras: {HOSTILE}\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let project = Project::empty();
        let file = format!("w{FILE}.yaml");
        project.write(&file, &workflow);
        project.write("d.csv", format!("id,c{}\n1,2\n", HOSTILE.replace('\r', "")));
        let outcome = project.run(&["check", &file]);
        harmless(&format!("{at}: {workflow:?}"), &outcome);
        assert_eq!(outcome.code, Some(2), "{workflow}: {outcome}");
        let told = project.run(&["check", &file, "--format", "json"]).exits(2);
        harmless(&workflow, &told);
        assert!(!told.events("diagnostic").is_empty(), "{workflow}: {told}");
    }
}

#[test]
fn the_events_of_a_run_are_json_without_raw_codes() {
    let (project, file) = project();
    for _ in 0..2 {
        let outcome = project.run(&["run", &file, "--format", "json"]).exits(0);
        harmless("run --format json", &outcome);
        let cell = format!("cells[m=n{HOSTILE}]");
        assert!(outcome.finished()["steps"].as_array().unwrap().iter().any(|s| s["step"] == cell));
    }
    for args in [&["plan", &file][..], &["explain", &file, "data"], &["trace", &file, "b"]] {
        let outcome = project.run(&[args, &["--format", "json"]].concat()).exits(0);
        harmless(args[0], &outcome);
        assert_eq!(outcome.json_lines().len(), 1, "{outcome}");
    }
    // Data for programs is as it is.
    let rows = project.run(&["show", &file, "data", "--format", "json"]).exits(0).json_lines();
    assert_eq!(rows[0]["path"], format!("v{HOSTILE}\nx\ty"));
    let csv = project.run(&["show", &file, "data", "--columns", "path", "--format", "csv"]);
    assert_eq!(csv.exits(0).stdout.lines().nth(1).unwrap(), format!("\"v{HOSTILE}"));
    assert!(project.read("out/v\u{202e}.csv").contains(HOSTILE));
}

#[test]
fn what_programs_and_servers_say_is_made_visible() {
    let project = Project::new(&format!(
        "galeras: 1\nsteps:\n  a:\n    op: exec\n    with:\n      command: \"printf 'boom {}' >&2; exit 3\"\n      output: {{ id: utf8! }}\n",
        "\\033[31m\\033]0;t\\007\\r\\b\\177\\302\\2332J\\342\\200\\256".replace('\\', "\\\\")
    ));
    let outcome = project.run(&["run", "w.yaml"]).exits(1).reports(&["boom \\u{1b}[31m"]);
    harmless("exec", &outcome);
    project.change("' >&2; exit 3", "'");
    harmless("exec", &project.run(&["run", "w.yaml"]).exits(1));

    let api = ChatApi::start();
    let project = generate_openai::project(&api, 2, "tries: 1");
    for (status, log) in [(400, false), (500, false), (401, true), (500, true)] {
        api.script(move |_| Some(ChatFault::Raw(status, vec![], error(HOSTILE, HOSTILE))));
        let mut command = project.command(&["run", "w.yaml", "--force", "answers"]);
        if log {
            command.env("GALERAS_LOG", "galeras=trace");
        }
        let outcome = Running::start(command).finish();
        harmless(&format!("status {status}"), &outcome);
        assert!(outcome.stderr.contains("]0;t"), "{status}: {outcome}");
    }
    let answer = serde_json::json!({"role": "assistant", "content": HOSTILE});
    api.script(move |_| Some(ChatFault::Message(answer.clone())));
    harmless("answers", &project.run(&["run", "w.yaml", "--force", "answers"]).exits(0));
    for port in ["answers", "answers.rejects"] {
        harmless(port, &project.run(&["show", "w.yaml", port]).exits(0));
    }
}
