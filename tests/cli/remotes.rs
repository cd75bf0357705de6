//! `push`, `pull` and `--remote`: results of other people are as good as computed, and a remote is
//! never believed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use galeras_test_servers::listen;
use galeras_test_servers::static_files::{Manners, Request, StaticFiles};
use serde_json::Value;

use crate::harness::{Outcome, Project, Running, files_below, flat, says, text};

const WORKFLOW: &str = "galeras: 1
params:
  most: { type: int, default: 900 }
steps:
  table:
    op: read
    with: { path: data.csv, key: [id] }
    assert: [ { not_null: [x] }, { unique: [id] }, { rows: { min: 10 } } ]
  scaled:
    op: sql
    from: table
    with: { query: 'SELECT id, x, x * 2 AS y FROM input', key: [id] }
    assert: [ { expr: 'y >= x' } ]
  kept:
    op: validate
    from: scaled
    with: { rules: [ { name: small, check: 'x < ${{ params.most }}' } ] }
outputs:
  kept: { from: kept, path: kept.csv }
";

fn data() -> String {
    let rows = (0..2000).map(|i| format!("row{i:05},{i}\n"));
    std::iter::once("id,x\n".to_string()).chain(rows).collect()
}

pub fn project() -> Project {
    Project::new(WORKFLOW).with("data.csv", data())
}

/// A project that has computed everything and sent it, and the folder that it was sent to.
pub fn pushed() -> (Project, PathBuf, Vec<Value>) {
    let project = project();
    let done = project.run_ok(&[]);
    let remote = project.path("remote");
    project.run(&["push", "w.yaml", "--remote", "remote"]).exits(0).prints(&["3 results"]);
    (project, remote, steps(&done))
}

pub fn steps(done: &Outcome) -> Vec<Value> {
    done.finished()["steps"].as_array().unwrap().clone()
}

pub fn digests(steps: &[Value]) -> BTreeMap<String, String> {
    steps.iter().map(|step| (text(step, "step").into(), step["digest"].to_string())).collect()
}

/// The status of each step: `ran`, `hit`, `hit (remote)`.
pub fn statuses(steps: &[Value]) -> Vec<String> {
    let word = |step: &Value| {
        let remote = if step["remote"] == true { " (remote)" } else { "" };
        format!("{}{remote}", text(step, "status"))
    };
    steps.iter().map(word).collect()
}

pub fn fetched(done: &Outcome) -> Value {
    done.events("fetched").remove(0)
}

/// The steps were all taken from the remote or the store (`status`), with the results of `expected`.
#[track_caller]
fn became(done: &Outcome, status: &str, expected: &[Value]) {
    let steps = steps(done);
    assert_eq!(statuses(&steps), [status; 3], "{done}");
    assert_eq!(digests(&steps), digests(expected));
}

#[track_caller]
fn is_all_hits_of_the_remote(other: &Project, remote: &str, expected: &[Value]) -> Outcome {
    let done = other.run_ok(&["--remote", remote]);
    became(&done, "hit (remote)", expected);
    assert_eq!(done.warnings(), [""; 0], "{done}");
    done
}

#[test]
fn a_stranger_with_an_empty_store_gets_all_hits_and_moves_what_the_outputs_need() {
    let (project, remote, expected) = pushed();
    let other = self::project();
    let done = is_all_hits_of_the_remote(&other, remote.to_str().unwrap(), &expected);
    assert_eq!(other.read("kept.csv"), project.read("kept.csv"));
    // The table of the output, and none of those before it: their data tests were answered.
    assert_eq!(fetched(&done)["files"], 1);
    assert_eq!(fetched(&done)["bytes"], project.json(&["path", "w.yaml", "kept"])[0]["bytes"]);
    other.verifies("cache");
    // Nothing is fetched twice.
    let again = other.run_ok(&["--remote", remote.to_str().unwrap()]);
    assert_eq!(fetched(&again)["files"], 0, "{again}");
    // A report is written from a remote.
    let other = self::project();
    other.write("w.yaml", format!("{WORKFLOW}report: {{ path: page.html }}\n"));
    is_all_hits_of_the_remote(&other, remote.to_str().unwrap(), &expected);
    assert!(other.path("page.html").is_file());
    // People see where a hit comes from.
    let other = self::project();
    let remote = remote.to_str().unwrap();
    let plan = other.run(&["plan", "w.yaml", "--remote", remote]).exits(0);
    plan.prints(&["in the remote", "3 of 3"]);
    assert!(other.stored_nothing(), "a plan stores nothing");
    let done = other.run(&["run", "w.yaml", "--remote", remote]).exits(0);
    done.reports(&["hit (remote)", "fetched 1 table ("]);
}

#[test]
fn any_web_server_is_a_remote() {
    let (_project, remote, expected) = pushed();
    for manners in [Manners::Good, Manners::WithoutRanges] {
        let server = StaticFiles::start(&remote, manners);
        let other = self::project();
        is_all_hits_of_the_remote(&other, &server.url, &expected);
        let requests = server.requests();
        let (got, looks): (Vec<_>, Vec<_>) = requests.iter().partition(|r| r.method == "GET");
        assert!(got.iter().all(|r| r.bytes > 0), "{requests:?}");
        let is_blob = |r: &&Request| r.path.starts_with("/blobs/");
        assert_eq!(got.into_iter().filter(is_blob).count(), 1, "{requests:?}");
        // The sizes of the tables are compared with the manifests, and nothing is fetched for it.
        assert!(looks.iter().all(|r| r.method == "HEAD" && is_blob(r)), "{requests:?}");
        assert_eq!(looks.len(), 5, "{requests:?}");
        let told = other.run(&["push", "w.yaml", "--remote", &server.url]);
        assert_ne!(told.code, Some(0), "a web server cannot be written to: {told}");
    }
}

#[test]
fn what_was_pulled_needs_no_remote_any_more() {
    let (_project, remote, expected) = pushed();
    let other = self::project();
    let remote = remote.to_str().unwrap();
    let pull = |more: &[&str]| {
        other.json(&[&["pull", "w.yaml", "--remote", remote], more].concat()).pop().unwrap()
    };
    let dry = pull(&["--dry-run"]);
    assert_eq!((&dry["results"], &dry["files"]), (&3.into(), &5.into()), "{dry}");
    assert!(other.stored_nothing());
    let told = pull(&[]);
    assert_eq!((&told["files"], &told["bytes"]), (&dry["files"], &dry["bytes"]));
    became(&other.run_ok(&[]), "hit", &expected);
    other.verifies("cache");
    assert_eq!(pull(&[])["results"], 0);
    // Nothing is sent twice.
    let (project, remote, _) = pushed();
    let before = files_below(&remote);
    let told = project.json(&["push", "w.yaml", "--remote", "remote"]).pop().unwrap();
    assert_eq!((&told["files"], &told["bytes"]), (&0.into(), &0.into()), "{told}");
    assert_eq!(files_below(&remote), before);
    // Steps that are not computed are reported, not sent.
    let project = self::project();
    project.run_ok(&["--select", "scaled"]);
    let told = project.run(&["push", "w.yaml", "--remote", "remote"]).exits(1);
    told.reports(&["1 of 3 steps", "galeras run w.yaml"]);
    let remote = project.path("remote");
    let pulled = self::project().run(&["pull", "w.yaml", "--remote", remote.to_str().unwrap()]);
    pulled.exits(0).reports(&["neither store has the results of kept"]);
    project.run(&["push", "w.yaml"]).exits(2).reports(&["--remote"]);
}

#[test]
fn an_edited_step_is_computed_from_tables_of_the_remote() {
    let (project, remote, _) = pushed();
    let other = self::project();
    let set = ["--set", "most=100"];
    let remote = remote.to_str().unwrap();
    let done = other.run_ok(&[&["--remote", remote], &set[..]].concat());
    assert_eq!(statuses(&steps(&done)), ["hit (remote)", "hit (remote)", "ran"], "{done}");
    assert_eq!(fetched(&done)["files"], 1, "the input of what ran: {done}");
    assert_eq!(digests(&steps(&done)), digests(&steps(&project.run_ok(&set))));
    other.verifies("cache");
    // Without the outcomes of tests, the tables are tested.
    let (_project, remote, expected) = pushed();
    fs::remove_dir_all(remote.join("checks")).unwrap();
    let other = self::project();
    let done = is_all_hits_of_the_remote(&other, remote.to_str().unwrap(), &expected);
    assert_eq!(fetched(&done)["files"], 3, "{done}");
}

#[test]
fn a_remote_that_is_down_is_a_warning() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refusing = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let (_project, remote, expected) = pushed();
    let overloaded = StaticFiles::start(&remote, Manners::Overloaded).url;
    let mute = StaticFiles::start(&remote, Manners::Mute).url;
    for url in [refusing, overloaded, mute] {
        let other = self::project();
        let done = other.run_ok(&["--remote", &url]);
        became(&done, "ran", &expected);
        let told = done.warnings();
        assert_eq!(told.len(), 1, "{done}");
        assert!(told[0].starts_with("the remote cannot be reached"), "{done}");
        // What is here already is not asked for; of an empty store everything is.
        other.run(&["pull", "w.yaml", "--remote", &url]).exits(0);
        let pull = self::project().run(&["pull", "w.yaml", "--remote", &url]).exits(4);
        pull.reports(&["the remote cannot be reached"]);
    }
}

/// Consent to ask one server is not consent to ask another.
#[test]
fn a_remote_does_not_lead_to_other_servers() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let there = format!("http://{}/x", other.local_addr().unwrap());
    let remote = listen(move |_, mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let answer =
            format!("HTTP/1.1 302 Found\r\nlocation: {there}\r\ncontent-length: 0\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes());
    });
    let project = project();
    let outcome = project.run(&["run", "w.yaml", "--remote", &remote]).exits(0);
    says(&flat(&outcome.stderr), &["redirects to http://127.0.0.1:", "which is not followed"]);
    assert!(other.accept().is_err(), "nobody was asked");
}

#[test]
fn a_connection_that_breaks_is_a_warning() {
    let (_project, remote, expected) = pushed();
    let server = StaticFiles::start(&remote, Manners::Cuts);
    let other = self::project();
    let done = other.run_ok(&["--remote", &server.url]);
    assert_eq!(digests(&steps(&done)), digests(&expected));
    assert!(!done.warnings().is_empty(), "{done}");
    other.verifies("cache");
}

/// Damage of one file of the remote, by turns: a flipped bit, a cut, other content, nothing.
fn damaged(file: &Path, seed: usize) -> Vec<u8> {
    let mut content = fs::read(file).unwrap();
    let at = seed.wrapping_mul(2_654_435_761) % content.len();
    match seed % 4 {
        0 => content[at] ^= 1 << (seed % 8),
        1 => content.truncate(at),
        2 => content = b"{}".to_vec(),
        _ => content.extend_from_slice(b"more"),
    }
    content
}

#[test]
fn a_lying_remote_never_changes_a_result() {
    let (_project, remote, expected) = pushed();
    let files: Vec<PathBuf> = files_below(&remote)
        .into_iter()
        .filter(|file| ["actions", "blobs"].iter().any(|part| file.starts_with(remote.join(part))))
        .collect();
    assert!(files.len() >= 7, "{files:?}");
    let rounds = if std::env::var_os("GALERAS_THOROUGH").is_some() { 200 } else { 40 };
    let mut noticed = 0;
    for seed in 0..rounds {
        let file = &files[seed % files.len()];
        let whole = fs::read(file).unwrap();
        fs::write(file, damaged(file, seed / files.len() + seed)).unwrap();
        let other = self::project();
        let done = other.run_ok(&["--remote", remote.to_str().unwrap(), "--set", "most=900"]);
        assert_eq!(digests(&steps(&done)), digests(&expected), "{seed}: {done}");
        let used = file.starts_with(remote.join("actions"))
            || statuses(&steps(&done)).iter().any(|status| status == "ran");
        if used {
            noticed += 1;
            assert!(!done.warnings().is_empty(), "{seed}, {}: {done}", file.display());
        }
        other.verifies("cache");
        let pull = other.run(&["pull", "w.yaml", "--remote", remote.to_str().unwrap()]);
        assert!(matches!(pull.code, Some(0 | 1)), "{pull}");
        other.verifies("cache");
        fs::write(file, whole).unwrap();
    }
    assert!(noticed > rounds / 3, "{noticed}");
    // A table of another result is not taken for this one.
    // Every blob has the content of another: the names lie, and each is a sound table.
    let blobs = files_below(&remote.join("blobs"));
    let contents: Vec<Vec<u8>> = blobs.iter().map(|blob| fs::read(blob).unwrap()).collect();
    for (at, blob) in blobs.iter().enumerate() {
        fs::write(blob, &contents[(at + 1) % contents.len()]).unwrap();
    }
    let other = self::project();
    // A web server knows nothing of what it serves.
    let server = StaticFiles::start(&remote, Manners::Good);
    let done = other.run_ok(&["--remote", &server.url]);
    assert_eq!(digests(&steps(&done)), digests(&expected), "{done}");
    assert!(!done.warnings().is_empty());
    other.verifies("cache");
}

#[test]
fn whoever_is_killed_goes_on_from_there() {
    let (_project, remote, expected) = pushed();
    let other = self::project();
    let remote = remote.to_str().unwrap();
    for wait in [0, 5, 10, 20, 40, 80, 160] {
        let mut pull = other.command(&["pull", "w.yaml", "--remote", remote]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        pull.kill().unwrap();
        pull.wait().unwrap();
        if other.path("cache").exists() {
            other.verifies("cache");
        }
    }
    Running::start(other.command(&["pull", "w.yaml", "--remote", remote])).finish().exits(0);
    became(&other.run_ok(&[]), "hit", &expected);
    // Addresses with secrets are refused and not quoted.
    let project = project();
    for url in ["https://me:hunter2@host/x", "https://host/x?token=hunter2", "ftp://host/x"] {
        let told = project.run(&["run", "w.yaml", "--remote", url]);
        assert_ne!(told.code, Some(0), "{told}");
        assert!(!format!("{told}").replace(url, "").contains("hunter2"), "{told}");
    }
}

fn project_with(remote: &str) -> Project {
    Project::new(&WORKFLOW.replacen('\n', &format!("\nremote: {remote}\n"), 1))
        .with("data.csv", data())
}

/// As after a fresh checkout: neither results nor outputs.
fn forget(project: &Project) {
    fs::remove_dir_all(project.path("cache")).unwrap();
    let _ = fs::remove_file(project.path("kept.csv"));
}

#[test]
fn a_workflow_names_its_remote() {
    let project = project_with("shared/store");
    let expected = steps(&project.run_ok(&[]));
    project.run(&["push", "w.yaml"]).exits(0);
    forget(&project);
    project.run(&["plan", "w.yaml"]).exits(0).prints(&["in the remote"]);
    became(&project.run_ok(&[]), "hit (remote)", &expected);
    // Its folder is beside the file that names it, wherever it is called from.
    forget(&project);
    project.run(&["pull", "../project/w.yaml"]).exits(0).prints(&["3 results"]);
    forget(&project);
    became(&project.run_ok(&["--remote", ""]), "ran", &expected);
}

#[test]
fn a_place_that_is_not_a_store_gets_nothing_and_a_file_that_is_read_stays() {
    let (project, ..) = pushed();
    for (place, words) in [
        ("host:/store", "SSH and Git"),
        ("git@host:owner/store.git", "SSH and Git"),
        ("~/store", "write $HOME"),
        ("data.csv", "it is not a folder"),
    ] {
        for verb in ["push", "pull"] {
            let told = project.run(&[verb, "w.yaml", "--remote", place]).exits(4);
            says(&flat(&told.stderr), &[words, "a store is a folder"]);
        }
    }
    assert!(!project.path("host:").exists() && !project.path("~").exists());
    let pull = project.run(&["pull", "w.yaml", "--remote", "nowhere"]).exits(2);
    pull.reports(&["there is no store nowhere", "galeras push"]);
    let plan = project.cli("plan w.yaml --cache new --out new --remote nowhere").exits(0);
    plan.reports(&["warning: there is no store nowhere, and nothing comes from it"]);
    let show = project.run(&["show", "w.yaml", "kept", "-o", "data.csv"]).exits(2);
    show.reports(&["the workflow reads data.csv", "name another file"]);
    assert_eq!(project.read("data.csv"), data());
    let listed = project.run(&["cache", "ls", "--cache", "nowhere"]).exits(0);
    listed.reports(&["warning: nowhere has no results"]);
}

#[test]
fn a_remote_outside_of_the_workflow_needs_consent() {
    let (_shared, remote, _) = pushed();
    let other = project_with(remote.to_str().unwrap());
    other.run(&["run", "w.yaml"]).exits(2).reports(&["`remote` reads", "--allow"]);
    let plan = other.run(&["plan", "w.yaml"]).exits(0).prints(&["`remote` reads"]);
    assert!(!plan.stdout.contains("in the remote"), "it was looked at: {plan}");
    for verb in ["push", "pull"] {
        other.run(&[verb, "w.yaml"]).exits(2).reports(&["--allow"]);
    }
    let allow = format!("read:{}", remote.display());
    let done = other.run_ok(&["--allow", &allow]);
    assert_eq!(statuses(&steps(&done)), ["hit (remote)"; 3], "{done}");
    other.run(&["push", "w.yaml", "--allow", &allow]).exits(2).reports(&["writ"]);
    // Public servers without TLS are asked about as all others are.
    project_with("http://192.0.2.1/store").run(&["run", "w.yaml"]).exits(2).reports(&["host:"]);
    // A bucket is asked with the user's keys.
    for bucket in ["s3://study", "gs://study", "s3://localhost"] {
        let other = project_with(&format!("{bucket}/store"));
        let flag = format!("--allow host:{bucket}");
        other.run(&["run", "w.yaml"]).exits(2).reports(&["with your keys", &flag]);
        let plan = other.run(&["plan", "w.yaml"]).exits(0).prints(&["`remote` connects", &flag]);
        assert!(!plan.stderr.contains("remote cannot be reached"), "it was asked: {plan}");
    }
    for wrong in ["''", "'s3://'", "'https://'"] {
        project_with(wrong).run(&["check", "w.yaml"]).exits(2).reports(&["w.yaml:2:9"]);
    }
}
