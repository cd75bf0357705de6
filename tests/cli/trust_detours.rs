//! Ways to do unasked what needs consent: addresses and paths that mean one thing to who is asked and
//! another to the machine, and detours over links and redirects. None leads anywhere.

use std::os::unix::fs::symlink;

use crate::harness::{Outcome, Project, Running, says, text};
use crate::repository::{Repository, at, day};
use crate::trust::flags;
use galeras_test_servers::http_git::{GitFault, HttpGit};

const TABLE: &str = "galeras: 1
steps:
  rows: { op: read, with: { path: rows.csv, key: [id] } }
";

const MINED: &str = "galeras: 1
steps:
  repos: { op: read, with: { path: repos.csv, key: [repo] } }
  mined: { op: mine, from: repos, with: { since: '2022-01-01', until: '2023-01-01' } }
";

/// The program as someone types it who has agreed to nothing.
fn typed(project: &Project, args: &[&str]) -> Outcome {
    let mut command = project.command_as_typed(args);
    // A run of ssh leaves a trace.
    command.env("GIT_SSH_COMMAND", "touch ssh-ran; false");
    Running::start(command).finish()
}

fn run(project: &Project, more: &[&str]) -> Outcome {
    typed(project, &[&["run", "w.yaml", "--format", "json"], more].concat())
}

/// The permission that the only diagnostic asks for.
#[track_caller]
fn asks(outcome: &Outcome, flag: &str) {
    assert_eq!(flags(outcome), [flag]);
}

/// To some parsers the host ends at `#`, to others it begins behind `@`.
const TWO_HOSTS: [&str; 5] = [
    "ssh://localhost#@evil.example/x",
    "ssh://localhost?@evil.example/x",
    "ssh://localhost\\@evil.example/x",
    "git://localhost#@evil.example/x",
    "localhost#@evil.example:x",
];

#[test]
fn an_address_with_two_hosts_is_asked_of_none() {
    for address in TWO_HOSTS {
        let query = format!("{{ op: query, with: {{ repos: ['{address}'] }} }}");
        let project = Project::steps(&format!("  q: {query}\n"));
        let outcome = run(&project, &[]).exits(2);
        assert_eq!(outcome.events("diagnostic")[0]["code"], "bad-repository", "{outcome}");
        assert!(!project.path("ssh-ran").exists(), "{address}");
        // An address in a table needs consent as well.
        let project = Project::new(MINED);
        let head = "1".repeat(40);
        project.write("repos.csv", format!("repo,clone_url,head_sha\nr,{address},{head}\n"));
        run(&project, &["--allow", "host:ssh://evil.example"]).exits(0);
        assert!(!project.path("ssh-ran").exists(), "{address}");
        says(text(&project.only("mined.rejects"), "reason"), &["cannot be used as a repository"]);
    }
}

/// ssh uses the user's keys, also on this machine.
#[test]
fn ssh_to_this_machine_is_asked() {
    for address in ["ssh://localhost/x", "git@127.0.0.1:x", "ssh://[::1]:22/x"] {
        let query = format!("{{ op: query, with: {{ repos: ['{address}'] }} }}");
        let project = Project::steps(&format!("  q: {query}\n"));
        let outcome = run(&project, &[]).exits(2);
        assert!(flags(&outcome)[0].contains("host:ssh://"), "{outcome}");
        assert!(!project.path("ssh-ran").exists(), "{address}");
    }
}

#[test]
fn a_git_server_does_not_send_us_into_a_private_network() {
    let project = Project::new(MINED);
    let repository = Repository::bare(project.path("served/r"));
    let head = repository.commit(at(day(3)).write("a.py", "def f():\n    return 1\n"));
    let server = HttpGit::start(&project.path("served"));
    let row = |url: &str| format!("repo,clone_url,head_sha\nr,{url},{head}\n");
    project.write("repos.csv", row(&server.url("r")));
    server.fail("info/refs", 9, GitFault::Redirect("http://10.255.255.1:9".into()));
    run(&project, &[]).exits(0);
    let reject = project.only("mined.rejects");
    let words = "redirects to http://10.255.255.1:9, which was not agreed to";
    says(text(&reject, "reason"), &[words, "--allow host:http://10.255.255.1:9"]);
    assert_eq!(server.take_seen().len(), 1, "it was asked once");
    // The next run asks again.
    server.heal();
    let outcome = run(&project, &[]).exits(0);
    assert_eq!(project.rows("mined").len(), 1, "{outcome}");
}

#[test]
fn a_report_behind_a_link_is_an_output_like_others() {
    let project = Project::new(&format!("{TABLE}report: {{ path: link/x.html }}\n"));
    project.write("rows.csv", "id\n1\n");
    std::fs::create_dir(project.path("../elsewhere")).unwrap();
    symlink("../elsewhere", project.path("link")).unwrap();
    let there = project.path("../elsewhere").canonicalize().unwrap().join("x.html");
    let flag = format!("write:{}", there.display());
    asks(&run(&project, &[]).exits(2), &flag);
    assert!(project.stored_nothing());
    // A selection has no report.
    run(&project, &["--select", "rows"]).exits(0);
    typed(&project, &["report", "w.yaml"]).exits(2).reports(&[&format!("--allow {flag}")]);
    assert!(!there.exists());
    typed(&project, &["report", "w.yaml", "--allow", &flag]).exits(0);
    std::fs::remove_file(&there).unwrap();
    // A named file is consent.
    typed(&project, &["report", "w.yaml", "-o", "link/x.html"]).exits(0);
    std::fs::remove_file(&there).unwrap();
    run(&project, &["--allow", &flag]).exits(0);
    assert!(there.exists());
}

#[test]
fn a_setting_is_a_path_only_as_a_whole() {
    let project = Project::new(
        "galeras: 1
params: { sep: { type: string, default: x }, file: { type: string, default: rows.csv } }
steps:
  rows: { op: read, with: { path: \"${{ params.sep }}OUTSIDE\", format: csv, key: [id] } }
",
    );
    project.write("../outside.csv", "id\n1\n");
    let outside = project.path("../outside.csv").canonicalize().unwrap().display().to_string();
    project.change("OUTSIDE", outside.trim_start_matches('/'));
    asks(&run(&project, &["--set", "sep=/"]).exits(2), &format!("read:{outside}"));
    assert!(project.stored_nothing());
    // A path that is the whole value is read.
    let whole = format!("\"${{{{ params.sep }}}}{}\"", outside.trim_start_matches('/'));
    project.change(&whole, "\"${{ params.file }}\"");
    run(&project, &["--set", &format!("file={outside}")]).exits(0);
}

#[test]
fn a_remote_is_judged_as_the_folder_that_is_opened() {
    for spelling in ["file://localhostPLACE", "file://PLACE", "file://TOP/x/%2e%2e/other"] {
        let project = Project::empty().with("rows.csv", "id\n1\n");
        std::fs::create_dir(project.path("../other")).unwrap();
        let place = project.path("../other").canonicalize().unwrap();
        let top = place.parent().unwrap().display().to_string();
        let url = spelling.replace("PLACE", &place.display().to_string()).replace("TOP", &top);
        project.write("w.yaml", format!("{TABLE}remote: '{url}'\n"));
        asks(&run(&project, &[]).exits(2), &format!("read:{}", place.display()));
    }
    let project = Project::new(&format!("{TABLE}remote: 'file://elsewhere.example/x'\n"));
    project.write("rows.csv", "id\n1\n");
    let outcome = run(&project, &[]).exits(2);
    assert_eq!(outcome.events("diagnostic")[0]["code"], "wrong-value", "{outcome}");
    // A million braces, one in the other, would end the program where it makes a pattern of them.
    let nested = format!("{}a{}", "{".repeat(1_000_000), "}".repeat(1_000_000));
    let with = format!("{{ dir: ., include: ['{nested}'] }}");
    let project = Project::steps(&format!("  m: {{ op: methods, with: {with} }}\n"));
    for verb in ["check", "run"] {
        let outcome = typed(&project, &[verb, "w.yaml", "--format", "json"]).exits(2);
        assert_eq!(outcome.events("diagnostic")[0]["code"], "bad-pattern", "{outcome}");
    }
}
