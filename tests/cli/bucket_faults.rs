//! Buckets that refuse, are not there, or are behind a server that is down: a remote costs a warning, a
//! store of one's own an error with advice, and neither shows a credential.

use std::time::Duration;

use galeras_test_servers::s3_api::{KEY_ID, SECRET};

use crate::buckets::{Lab, STORE, computed};
use crate::harness::{Outcome, Project, Running, hides, patience, says};
use crate::remotes::{project, statuses, steps};

/// A remote cannot be used: the run computes and warns once. Returns the warning.
#[track_caller]
fn warns(done: &Outcome) -> String {
    assert_eq!(statuses(&steps(done)), ["ran"; 3], "{done}");
    let told = done.warnings();
    assert_eq!(told.len(), 1, "{told:?}");
    told[0].clone()
}

#[track_caller]
fn keeps_secret(said: &Outcome, secrets: &[&str]) {
    hides(&format!("{}{}", said.stdout, said.stderr), &[&[SECRET, KEY_ID], secrets].concat());
}

fn run_with(lab: &Lab, project: &Project, args: &[&str], env: &[(&str, &str)]) -> Outcome {
    let mut command = project.command(args);
    command.envs(lab.api.env()).envs(env.iter().copied());
    Running::start(command).finish()
}

const RUN: [&str; 4] = ["run", "w.yaml", "--format", "json"];
const REMOTE: [&str; 6] = ["run", "w.yaml", "--format", "json", "--remote", STORE];
const LS: [&str; 4] = ["cache", "ls", "--cache", STORE];

/// A new project's command fails with these words, and shows none of the secrets.
#[track_caller]
fn refused(lab: &Lab, args: &[&str], env: &[(&str, &str)], words: &[&str], secrets: &[&str]) {
    keeps_secret(&run_with(lab, &project(), args, env).exits(4).reports(words), secrets);
}

#[test]
fn a_bucket_that_may_only_be_read_gives_results_and_takes_none() {
    let ((owner, expected), lab) = (computed(), Lab::new());
    lab.push(&owner).exits(0);
    lab.run_ok(&owner, &["--cache", STORE]).all_hit();
    lab.api.behave(|manners| manners.read_only = true);
    // As a remote, and as a store in which all is there.
    let done = lab.run_ok(&project(), &["--remote", STORE]);
    let found = (statuses(&steps(&done)), done.warnings().len());
    assert_eq!(found, (vec!["hit (remote)".into(); 3], 0));
    assert_eq!(done.digests(), expected.digests());
    let done = lab.run_ok(&owner, &["--cache", STORE]);
    done.all_hit();
    assert_eq!(done.warnings(), [""; 0], "{done}");

    owner.run_ok(&["--set", "most=100"]);
    let push = ["push", "w.yaml", "--set", "most=100", "--remote", STORE];
    let told = lab.run(&owner, &push).exits(4);
    let denied = "the server answered 403 Forbidden (AccessDenied)";
    let words = ["cannot write s3://lab/p/blobs/", denied, "help: check the credentials"];
    keeps_secret(&told.reports(&words), &["AWSAccessKeyId"]);
    let run = [&RUN[..], &["--cache", STORE, "--overwrite", "--set", "most=100"]].concat();
    let detail = lab.run(&owner, &run).exits(4).detail("kept");
    says(&detail, &["403 Forbidden (AccessDenied)"]);
}

#[test]
fn wrong_credentials_and_tokens_are_told_and_not_shown() {
    let lab = Lab::new();
    let wrong_secret = [("AWS_SECRET_ACCESS_KEY", "hunter2-hunter2")];
    let wrong_key = [("AWS_ACCESS_KEY_ID", "HUNTER2HUNTER2")];
    for env in [wrong_secret, wrong_key] {
        let done = run_with(&lab, &project(), &REMOTE, &env).exits(0);
        let told = warns(&done);
        assert!(told.starts_with("the remote cannot be reached"), "{told}");
        says(&told, &["the server answered 403 Forbidden ("]);
        keeps_secret(&done, &[env[0].1]);
        for args in [
            &["run", "w.yaml", "--cache", STORE][..],
            &["plan", "w.yaml", "--cache", STORE],
            &LS,
            &["pull", "w.yaml", "--remote", STORE],
        ] {
            refused(&lab, args, &env, &["403 Forbidden"], &[env[0].1]);
        }
    }
    let half = [("AWS_SECRET_ACCESS_KEY", "hunter2-hunter2"), ("AWS_ACCESS_KEY_ID", "")];
    refused(&lab, &["plan", "w.yaml", "--cache", STORE], &half, &[], &["hunter2"]);
    let lab = Lab::new();
    lab.api.behave(|manners| manners.expired = true);
    let env = [("AWS_SESSION_TOKEN", "hunter2-token")];
    let done = run_with(&lab, &project(), &REMOTE, &env).exits(0);
    assert!(warns(&done).contains("400 Bad Request (ExpiredToken)"), "{done}");
    keeps_secret(&done, &["hunter2"]);
    refused(&lab, &LS, &env, &["ExpiredToken", "help: "], &["hunter2"]);
    // Also where tables are read: it ends between two requests.
    lab.api.behave(|manners| manners.expired = false);
    let project = project();
    lab.run_ok(&project, &["--cache", STORE]);
    lab.api.behave(|manners| manners.expired = true);
    let rows = ["show", "w.yaml", "kept", "--cache", STORE];
    keeps_secret(&run_with(&lab, &project, &rows, &env), &["hunter2"]);
}

#[test]
fn a_bucket_or_server_that_is_not_there_costs_a_remote_a_warning_and_a_store_an_error() {
    let lab = Lab::new();
    let gone = "s3://nobody/p";
    let remote = [&RUN[..], &["--remote", gone]].concat();
    assert!(warns(&lab.run(&project(), &remote).exits(0)).ends_with("there is no such bucket"));
    let (owner, _) = computed();
    for args in [
        &["run", "w.yaml", "--cache", gone][..],
        &["cache", "ls", "--cache", gone],
        &["push", "w.yaml", "--remote", gone],
        &["pull", "w.yaml", "--cache", "empty", "--remote", gone],
    ] {
        lab.run(&owner, args).exits(4).reports(&["there is no such bucket"]);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let lab = Lab::new();
    let env = [("AWS_ENDPOINT_URL", address.as_str())];
    let done = run_with(&lab, &project(), &REMOTE, &env).exits(0);
    assert!(warns(&done).ends_with("the server cannot be reached: Connection refused"), "{done}");
    assert!(done.took < patience(15), "{:?}", done.took);
    let run = [&RUN[..], &["--cache", STORE]].concat();
    let run = run_with(&lab, &project(), &run, &env).exits(4);
    assert!(format!("{run}").contains("Connection refused"), "{run}");
    assert!(run.took < patience(25), "{:?}", run.took);
    // An address that is none is reported, and not shown: it may hold a password.
    for address in ["me:hunter2@host", "", "ftp://me:hunter2@host"] {
        let name = "AWS_ENDPOINT_URL";
        refused(&lab, &LS, &[(name, address)], &[name], &["hunter2"]);
    }
    refused(&lab, &LS, &[("AWS_ALLOW_HTTP", "false")], &["AWS_ALLOW_HTTP=true"], &[]);
}

#[test]
fn a_server_that_is_gone_for_some_seconds_or_has_no_conditional_puts_will_do() {
    let ((_, expected), lab) = (computed(), Lab::new());
    let project = project();
    lab.api.behave(|manners| manners.down = true);
    let run = lab.start(&project, &[&RUN[..], &["--cache", STORE]].concat());
    std::thread::sleep(Duration::from_secs(5));
    lab.api.behave(|manners| manners.down = false);
    let done = run.finish().exits(0);
    assert_eq!((done.digests(), done.warnings().len()), (expected.digests(), 0), "{done}");
    let ((owner, expected), lab) = (computed(), Lab::new());
    lab.api.behave(|manners| manners.unconditional = true);
    lab.push(&owner).exits(0);
    lab.verifies();
    let project = self::project();
    let done = lab.run_ok(&project, &["--cache", STORE, "--set", "most=100"]);
    assert_eq!(done.status("kept"), "ran");
    lab.run_ok(&project, &["--cache", STORE, "--overwrite"]).all_hit_as(&expected);
}
