//! Stores and remotes in buckets of Google Cloud Storage, on a server that answers as its reference
//! says.

use galeras_test_servers::gcs_api::GcsApi;

use crate::harness::{Outcome, Project, Running};
use crate::remotes::{project, statuses, steps, warnings};

const STORE: &str = "gs://lab/p";

#[track_caller]
fn run(api: &GcsApi, project: &Project, args: &[&str]) -> Outcome {
    project.write("account.json", api.service_account());
    let mut command = project.command(args);
    command.env("GOOGLE_SERVICE_ACCOUNT", project.path("account.json"));
    Running::start(command).finish()
}

#[track_caller]
fn run_ok(api: &GcsApi, project: &Project, more: &[&str]) -> Outcome {
    run(api, project, &[&["run", "w.yaml", "--format", "json"], more].concat()).exits(0)
}

fn verifies(api: &GcsApi) {
    let args = ["cache", "verify", "--cache", STORE, "--format", "json"];
    let found = run(api, &Project::empty(), &args).exits(0);
    assert_eq!(found.json_lines().last().unwrap()["findings"], 0, "{found}");
}

#[test]
fn it_is_a_store_like_a_folder() {
    let (api, here, there) = (GcsApi::start(), project(), project());
    let expected = here.run_ok(&[]);
    let done = run_ok(&api, &there, &["--cache", STORE]);
    assert_eq!(statuses(&steps(&done)), ["ran"; 3], "{done}");
    assert_eq!(done.digests(), expected.digests());
    assert_eq!(there.read("kept.csv"), here.read("kept.csv"));
    verifies(&api);
    run_ok(&api, &there, &["--cache", STORE]).all_hit();
    let listed = run(&api, &there, &["cache", "ls", "--cache", STORE]).exits(0);
    assert!(listed.stdout.contains("3 results in 6 files"), "{listed}");
    // Leases are given back.
    assert!(api.keys().iter().all(|key| !key.starts_with("p/locks/")), "{:?}", api.keys());
    let gc = ["cache", "gc", "--max-bytes", "0", "--cache", STORE];
    run(&api, &there, &gc).exits(0);
    assert!(api.keys().iter().all(|key| !key.starts_with("p/blobs/")), "{:?}", api.keys());
    verifies(&api);
}

#[test]
fn what_was_pushed_there_are_hits_for_others() {
    let (api, owner, other) = (GcsApi::start(), project(), project());
    let expected = owner.run_ok(&[]);
    for sent in [5, 0] {
        let push = ["push", "w.yaml", "--remote", STORE, "--format", "json"];
        let told = run(&api, &owner, &push).exits(0).json_lines().pop().unwrap();
        assert_eq!(told["files"], sent, "{told}");
    }
    let mut tables = api.take();
    tables.retain(|r| r.method == "PUT" && r.key.starts_with("p/blobs/") && r.status == 200);
    assert_eq!(tables.len(), 5, "{tables:?}");
    api.read_only(true);
    let done = run_ok(&api, &other, &["--remote", STORE]);
    assert_eq!(statuses(&steps(&done)), ["hit (remote)"; 3], "{done}");
    assert_eq!((done.digests(), warnings(&done).len()), (expected.digests(), 0));
    run(&api, &other, &["pull", "w.yaml", "--remote", STORE]).exits(0);
    other.run_ok(&[]).all_hit();
    other.verifies("cache");
    owner.run_ok(&["--set", "most=100"]);
    let push = ["push", "w.yaml", "--set", "most=100", "--remote", STORE];
    let told = run(&api, &owner, &push).exits(4);
    assert!(told.stderr.contains("cannot write gs://lab/p/"), "{told}");
    assert!(told.stderr.contains("403 Forbidden (AccessDenied)"), "{told}");
}

#[test]
fn a_bucket_that_is_not_there_and_an_account_that_is_none_are_told() {
    let (api, project) = (GcsApi::start(), project());
    let told = run(&api, &project, &["cache", "ls", "--cache", "gs://nobody/p"]).exits(4);
    assert!(told.stderr.contains("there is no such bucket"), "{told}");
    project.write("wrong.json", "{\"private_key\": [\"hunter2\"], \"client_email\": 7}");
    for file in ["wrong.json", "missing.json"] {
        let mut command = project.command(&["cache", "ls", "--cache", STORE]);
        command.env("GOOGLE_SERVICE_ACCOUNT", project.path(file));
        let told = Running::start(command).finish().exits(4);
        assert!(told.stderr.contains("cannot open gs://lab/p"), "{told}");
        assert!(!told.stderr.contains("hunter2"), "{told}");
    }
}
