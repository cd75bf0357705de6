//! Stores and remotes in buckets of S3, on `s3s-fs`: the same results as in a folder, nothing sent twice,
//! no listing needed, and leases instead of locks.
//! `bucket_faults` has servers that refuse or are not there.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use galeras_test_servers::chat_api::ChatApi;
use galeras_test_servers::s3_api::{S3Api, S3Request};
use serde_json::json;
use tempfile::TempDir;

use crate::generate_openai;
use crate::harness::{Outcome, Project, Running, files_below, has};
use crate::paper::Numbers;
use crate::remotes::{digests, fetched, project, statuses, steps};

pub const STORE: &str = "s3://lab/p";

pub struct Lab {
    pub api: S3Api,
    folder: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("galeras-s3-").tempdir().unwrap();
        let api = S3Api::start(folder.path());
        api.bucket("lab");
        Self { api, folder }
    }

    /// Where the objects of the store are files.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("lab/p")
    }

    pub fn start(&self, project: &Project, args: &[&str]) -> Running {
        let mut command = project.command(args);
        command.envs(self.api.env());
        Running::start(command)
    }

    #[track_caller]
    pub fn run(&self, project: &Project, args: &[&str]) -> Outcome {
        self.start(project, args).finish()
    }

    /// `run w.yaml --format json` with more arguments, which has to succeed.
    #[track_caller]
    pub fn run_ok(&self, project: &Project, more: &[&str]) -> Outcome {
        self.run(project, &[&["run", "w.yaml", "--format", "json"], more].concat()).exits(0)
    }

    /// Runs with the remote, which has all results.
    #[track_caller]
    fn all_fetched(&self, project: &Project, more: &[&str]) -> Outcome {
        let done = self.run_ok(project, &[&["--remote", STORE], more].concat());
        assert_eq!(statuses(&steps(&done)), ["hit (remote)"; 3], "{done}");
        done
    }

    #[track_caller]
    pub fn push(&self, project: &Project) -> Outcome {
        self.run(project, &["push", "w.yaml", "--remote", STORE, "--format", "json"])
    }

    #[track_caller]
    pub fn verifies(&self) {
        let args = ["cache", "verify", "--cache", STORE, "--format", "json"];
        let found = self.run(&Project::empty(), &args).exits(0);
        assert_eq!(found.json_lines().last().unwrap()["findings"], 0, "{found}");
    }

    #[track_caller]
    fn tables_written_once(&self) {
        once_each(self.api.puts("p/blobs/"), 5);
    }
}

pub fn computed() -> (Project, Outcome) {
    let project = project();
    let done = project.run_ok(&[]);
    (project, done)
}

#[track_caller]
fn once_each(mut names: Vec<String>, count: usize) {
    names.sort();
    let all = names.clone();
    names.dedup();
    assert_eq!((names.len(), &names), (count, &all));
}

#[test]
fn a_bucket_is_a_store_like_a_folder() {
    let (here, expected) = computed();
    let (lab, there) = (Lab::new(), project());
    let done = lab.run_ok(&there, &["--cache", STORE]);
    assert_eq!(statuses(&steps(&done)), ["ran"; 3], "{done}");
    assert_eq!(done.digests(), expected.digests());
    assert_eq!(there.read("kept.csv"), here.read("kept.csv"));
    assert!(!there.path("cache").exists());
    lab.verifies();
    lab.api.take();
    lab.run_ok(&there, &["--cache", STORE]).all_hit();
    assert_eq!((lab.api.puts("p/blobs/").len(), lab.api.puts("p/actions/").len()), (0, 0));
    let rows = ["show", "w.yaml", "kept", "--cache", STORE, "--format", "json"];
    assert_eq!(lab.run(&there, &rows).exits(0).json_lines().len(), 900);
    lab.run(&there, &["cache", "ls", "--cache", STORE]).exits(0).prints(&["3 results in 6 files"]);
    let path = lab.run(&there, &["path", "w.yaml", "kept", "--cache", STORE]).exits(0);
    assert!(path.stdout.starts_with("s3://lab/p/blobs/"), "{path}");
    // An edit computes what it changes, from tables in the bucket.
    let done = lab.run_ok(&there, &["--cache", STORE, "--set", "most=100"]);
    assert_eq!(statuses(&steps(&done)), ["hit", "hit", "ran"], "{done}");
}

#[test]
fn no_listing_is_needed_to_find_a_result() {
    let (lab, project) = (Lab::new(), project());
    lab.api.behave(|manners| manners.unlisted = true);
    assert_eq!(statuses(&steps(&lab.run_ok(&project, &["--cache", STORE]))), ["ran"; 3]);
    fs::remove_file(project.path("kept.csv")).unwrap();
    let again = lab.run_ok(&project, &["--cache", STORE]);
    again.all_hit();
    assert_eq!(again.warnings(), [""; 0], "{again}");
    let (other, _) = computed();
    lab.push(&other).exits(0);
    lab.all_fetched(&self::project(), &[]);
    // A request for metadata looks like one for the object.
    let ls = ["cache", "ls", "--cache", STORE];
    lab.run(&project, &ls).exits(4).reports(&["cannot list s3://lab/p/"]);
}

#[test]
fn a_stranger_gets_all_hits_and_asks_no_model() {
    let (chat, lab) = (ChatApi::start(), Lab::new());
    let workflow = format!(
        "{}outputs:\n  answers: {{ from: answers, path: answers.jsonl }}\n",
        generate_openai::workflow(&chat, "")
    );
    let project = || Project::new(&workflow).with("data.jsonl", generate_openai::data(0..20));
    let owner = project();
    let expected = owner.run_ok(&[]);
    assert_eq!(chat.take().len(), 20);
    assert_eq!(lab.push(&owner).exits(0).json_lines().pop().unwrap()["results"], 3);
    lab.api.take();

    let stranger = project();
    let done = lab.all_fetched(&stranger, &[]);
    assert_eq!((done.digests(), chat.take().len()), (expected.digests(), 0));
    assert_eq!(stranger.read("answers.jsonl"), owner.read("answers.jsonl"));
    let path = owner.run(&["path", "w.yaml", "answers", "--format", "json"]).exits(0);
    let needed = path.json_lines()[0]["bytes"].as_u64().unwrap();
    assert_eq!((&fetched(&done)["files"], &fetched(&done)["bytes"]), (&1.into(), &needed.into()));
    let requests = lab.api.requests();
    let of_table =
        |r: &S3Request, method: &str| r.method == method && r.key.starts_with("p/blobs/");
    let tables = |method: &str| -> u64 {
        requests.iter().filter(|r| of_table(r, method)).map(|request| request.went).sum()
    };
    assert_eq!((tables("GET"), tables("HEAD")), (needed, 0));
    // Of tables that no one needs the sizes are compared.
    assert!(requests.iter().all(|r| r.method == "GET" || of_table(r, "HEAD")), "{requests:?}");
}

#[test]
fn pushed_is_pulled_and_nothing_is_sent_twice() {
    let ((project, expected), lab) = (computed(), Lab::new());
    let dry = ["push", "w.yaml", "--remote", STORE, "--dry-run", "--format", "json"];
    let dry = lab.run(&project, &dry).exits(0).json_lines().pop().unwrap();
    assert!(lab.api.puts("").is_empty() && dry["files"] == 5, "{dry}");
    let told = lab.push(&project).exits(0).json_lines().pop().unwrap();
    has(&told, "files bytes", json!([5, dry["bytes"]]));
    lab.tables_written_once();
    once_each(lab.api.puts("p/actions/"), 3);
    lab.verifies();
    lab.api.take();
    let told = lab.push(&project).exits(0).json_lines().pop().unwrap();
    has(&told, "files bytes", json!([0, 0]));
    // But for the leases.
    assert!(lab.api.puts("").iter().all(|key| key.starts_with("p/locks/")));
    assert!(files_below(&lab.files().join("locks")).is_empty(), "leases are given back");

    let other = self::project();
    let pull = ["pull", "w.yaml", "--remote", STORE];
    assert!(lab.run(&other, &pull).exits(0).stdout.contains("3 results"));
    other.verifies("cache");
    other.run_ok(&[]).all_hit_as(&expected);
    lab.run(&project, &["verify", "w.yaml", "--cache", STORE]).exits(0).prints(&["equal"]);
}

#[test]
fn whoever_is_killed_while_pushing_goes_on_and_of_two_none_overwrites_the_other() {
    let ((project, expected), lab) = (computed(), Lab::new());
    lab.api.behave(|manners| manners.put_delay = Duration::from_millis(100));
    for wait in (50..850).step_by(100) {
        let push = lab.start(&project, &["push", "w.yaml", "--remote", STORE]);
        std::thread::sleep(Duration::from_millis(wait));
        push.signal("KILL");
        push.finish();
        lab.verifies();
    }
    lab.api.behave(|manners| manners.put_delay = Duration::ZERO);
    lab.push(&project).exits(0);
    lab.tables_written_once();
    lab.verifies();
    let done = lab.all_fetched(&self::project(), &[]);
    assert_eq!(digests(&steps(&done)), digests(&steps(&expected)));
    let ((one, _), (two, _), lab) = (computed(), computed(), Lab::new());
    lab.api.behave(|manners| manners.put_delay = Duration::from_millis(50));
    let start = |project: &Project| {
        let key = project.ssh_key("key");
        lab.start(project, &["push", "w.yaml", "--remote", STORE, "--sign", &key])
    };
    for push in [start(&one), start(&two)] {
        push.finish().exits(0).prints(&["3 results"]);
    }
    lab.tables_written_once();
    lab.verifies();
    // Both signatures of each result are there: they were added to one another.
    for signer in [&one, &two] {
        let public = signer.read("key.pub");
        let other = self::project().with("signers", format!("who@example.org {public}"));
        lab.all_fetched(&other, &["--allowed-signers", "signers"]);
    }
}

/// A workflow whose only step runs this and gives a row.
fn echoes(first: &str) -> String {
    format!(
        "galeras: 1\nsteps:\n  a:\n    op: exec\n    with:\n      sandbox: none\n      command: |\n        \
         {first}; echo '{{\"id\":\"a\"}}'\n      output: {{ id: utf8! }}\n"
    )
}

#[test]
fn two_runs_compute_a_step_once_and_the_lease_of_a_killed_one_is_taken_over() {
    let lab = Lab::new();
    let count = lab.folder.path().join("count");
    let workflow = echoes(&format!("echo x >> {}; sleep 2", count.display()));
    let projects = [Project::new(&workflow), Project::new(&workflow)];
    let args = ["run", "w.yaml", "--cache", STORE, "--format", "json"];
    let runs = projects.each_ref().map(|project| lab.start(project, &args));
    let done = runs.map(|run| run.finish().exits(0));
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\n", "{}\n{}", done[0], done[1]);
    let said: Vec<String> = done.iter().flat_map(Outcome::warnings).collect();
    assert_eq!(said, ["waiting for another run of the same step"]);
    assert_eq!(done[0].digests(), done[1].digests());
    let lab = Lab::new();
    let project = Project::new(&echoes("sleep 3"));
    let run = lab.start(&project, &["run", "w.yaml", "--cache", STORE]);
    let locks = lab.files().join("locks");
    crate::harness::wait_for("the lease", || !files_below(&locks).is_empty());
    run.signal("KILL");
    run.finish();
    assert_eq!(files_below(&locks).len(), 1);
    assert_eq!(lab.run_ok(&project, &["--cache", STORE]).status("a"), "ran");
    assert!(files_below(&locks).is_empty(), "{:?}", files_below(&locks));
}

#[test]
fn what_is_old_and_unused_is_collected() {
    let (lab, project) = (Lab::new(), project());
    for most in ["most=900", "most=100"] {
        lab.run_ok(&project, &["--cache", STORE, "--set", most, "--overwrite"]);
    }
    let gc = |more: &[&str]| {
        let args = [&["cache", "gc", "--cache", STORE, "--keep-runs", "1"], more].concat();
        lab.run(&project, &[&args[..], &["--format", "json"]].concat()).exits(0)
    };
    // Another process may be about to name new files.
    has(&gc(&["--dry-run"]).json_lines()[0]["report"], "manifests blobs", json!([1, 0]));
    let before = SystemTime::now() - Duration::from_secs(2 * 86_400);
    for file in files_below(&lab.files()) {
        fs::File::options().write(true).open(file).unwrap().set_modified(before).unwrap();
    }
    let blobs = || files_below(&lab.files().join("blobs")).len();
    let there = blobs();
    let report = gc(&[]).json_lines()[0]["report"].clone();
    assert_eq!(report["manifests"], 1, "{report}");
    let removed = report["blobs"].as_u64().unwrap() as usize;
    assert!(removed > 0 && blobs() == there - removed, "{report}, {} of {there}", blobs());
    lab.verifies();
    lab.run_ok(&project, &["--cache", STORE, "--set", "most=100"]).all_hit();
}

#[test]
fn a_large_table_goes_in_parts() {
    let lab = Lab::new();
    let project = Project::steps("  a: { op: read, with: { path: data.csv, key: [id] } }\n");
    // Text that cannot be compressed to less than 8 MiB.
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut numbers = Numbers::new(1);
    let mut x =
        || -> String { (0..2_000).map(|_| char::from(alphabet[numbers.below(64)])).collect() };
    let rows: String = (0..6_000).map(|row| format!("{row},{}\n", x())).collect();
    project.write("data.csv", format!("id,x\n{rows}"));
    lab.run_ok(&project, &["--cache", STORE]);
    let parts = |query: &str| {
        let requests = lab.api.requests();
        requests.iter().filter(|request| request.query.contains(query)).count()
    };
    assert_eq!((parts("uploads"), parts("partNumber=1&"), parts("partNumber=2&")), (1, 1, 1));
    lab.verifies();
    lab.run_ok(&project, &["--cache", STORE]).all_hit();
}
