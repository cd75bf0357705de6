//! `query` with `github:` when GitHub fails, limits, dies or lies.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{
    Outcome, Project, Running, files_below, flat, patience, says, text, wait_for,
};
use crate::query_github::{PAPER, TOKEN, heads, hidden, names, project, project_at, repos};
use galeras_test_servers::github_api::{GithubApi, GithubFault, Repo};

/// The texts of what the run was busy with.
fn activities(outcome: &Outcome) -> Vec<String> {
    outcome.events("activity").iter().map(|event| text(event, "text").to_owned()).collect()
}

/// A connection to a server that can be spoilt at any time.
struct Gate {
    address: String,
    state: Arc<AtomicU16>,
}

/// The states of a [`Gate`]; any other number is the status it answers with.
const OPEN: u16 = 0;
const DEAD: u16 = 1;
const SILENT: u16 = 2;

impl Gate {
    fn start(target: &str) -> Self {
        let state = Arc::new(AtomicU16::new(OPEN));
        let (seen, target) = (state.clone(), target.trim_start_matches("http://").to_owned());
        let address = galeras_test_servers::listen(move |_, stream| relay(stream, &target, &seen));
        Self { address, state }
    }

    fn set(&self, state: u16) {
        self.state.store(state, Ordering::SeqCst);
    }

    /// The repositories, to be cloned through this gate.
    fn before(&self, mut repos: Vec<Repo>) -> Vec<Repo> {
        for repo in &mut repos {
            repo.clone_url = Some(format!("{}/{}.git", self.address, repo.full_name));
        }
        repos
    }
}

fn relay(mut client: TcpStream, target: &str, state: &AtomicU16) {
    let Ok(mut server) = TcpStream::connect(target) else { return };
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut buffer = [0; 16_384];
    while let Ok(n @ 1..) = client.read(&mut buffer) {
        let sent = match state.load(Ordering::SeqCst) {
            OPEN => server.write_all(&buffer[..n]),
            DEAD => break,
            SILENT => Ok(()),
            status => {
                write!(client, "HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n")
            }
        };
        if sent.is_err() {
            break;
        }
    }
    for stream in [client, server] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// A run has to end well although the first or second search goes wrong, with the result of an
/// undisturbed one, and its wait is reported.
#[track_caller]
fn survives(faults: &[(GithubFault, &str)]) {
    let api = GithubApi::start(repos(210));
    let project = project(&api, PAPER, "");
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    let pages = api.searches().len();
    for (case, (fault, waits)) in faults.iter().enumerate() {
        for at in [0, 1] {
            api.forget();
            api.faults(vec![(at, fault.clone())]);
            let outcome = project.run_ok(&["--cache", &format!("cache{case}{at}")]);
            assert_eq!(outcome.digests(), undisturbed.digests(), "{fault:?}");
            assert!(outcome.events("warning").is_empty(), "{outcome}");
            let told = activities(&outcome);
            let shown =
                told.iter().any(|text| text.starts_with("waiting ") && text.contains(waits));
            assert!(shown, "{fault:?}: {told:?}");
            assert!(outcome.took > Duration::from_secs(1), "{fault:?}: {:?}", outcome.took);
            // One try more; what was found before the fault is not asked again.
            let more = usize::from(!matches!(fault, GithubFault::LastOne { .. }));
            assert_eq!(api.searches().len(), pages + more, "{fault:?}");
            assert!(heads(&api).values().all(|n| *n == 1));
        }
    }
}

#[test]
fn limits_are_waited_for() {
    let secondary = |status| GithubFault::Secondary { status, retry_after: Some(1) };
    survives(&[
        (GithubFault::Primary { reset_in: 2 }, "GitHub's rate limit is used up"),
        (GithubFault::LastOne { reset_in: 2 }, "GitHub's rate limit is used up"),
        (secondary(429), "secondary rate limit"),
        (secondary(403), "secondary rate limit"),
    ]);
}

#[test]
fn broken_answers_are_asked_again() {
    survives(&[
        (GithubFault::BadGateway, "GitHub failed (HTTP 502)"),
        (GithubFault::CutBody, "GitHub cannot be reached"),
        (GithubFault::InvalidJson, "GitHub's answer is damaged"),
        (GithubFault::Incomplete, "GitHub's answer is incomplete"),
    ]);
}

#[test]
fn a_page_that_lacks_repositories_is_made_good() {
    let api = GithubApi::start(repos(250));
    let project = project(&api, PAPER, "");
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    api.forget();
    api.faults(vec![(1, GithubFault::Omit(7))]);
    assert_eq!(project.run_ok(&[]).digests(), undisturbed.digests());
    // Forever short: the run warns and continues.
    api.script(|_, request| (request.param("page") == "1").then_some(GithubFault::Omit(1)));
    let outcome = project.run_ok(&["--cache", "short"]);
    let told = outcome.events("warning");
    assert!(!told.is_empty() && outcome.step("repos")["rows"].as_u64().unwrap() < 250, "{outcome}");
    says(text(&told[0], "message"), &["GitHub counts"]);
}

/// GitHub's limits are obeyed as its headers state them, also without a terminal.
#[test]
fn without_a_terminal_a_short_wait_hangs_nothing_and_a_long_one_is_shown() {
    let api = GithubApi::start(repos(3));
    let project = project(&api, PAPER, "");
    api.faults(vec![(0, GithubFault::Primary { reset_in: 2 })]);
    let outcome = project.run(&["run", "w.yaml", "--cache", "short"]).exits(0);
    assert!(outcome.stdout.is_empty() && outcome.stderr.contains("3 rows"), "{outcome}");
    api.forget();
    api.faults(vec![(0, GithubFault::Primary { reset_in: 3_000 })]);
    let running = Running::start(project.command(&["run", "w.yaml"]));
    wait_for("the search", || !api.searches().is_empty());
    // Plain lines come every ten seconds at most.
    thread::sleep(Duration::from_secs(12));
    running.signal("INT");
    running.finish().exits(130).reports(&["waiting", "limit"]);
}

/// A search of several slices that ends early is continued by the next run: after a signal at a limit of
/// an hour, at a limit of a day, after a signal when the server is dead.
#[test]
fn a_search_that_ends_early_is_resumed() {
    // GitHub shows 1,000 of one search, so there are several.
    let mut many = repos(1_010);
    many.iter_mut().for_each(|repo| repo.stars = 1_001 + 2_000_000 / (repo.id * 3));
    let api = GithubApi::start(many);
    let gate = Gate::start(&api.url());
    let project = project_at(&gate.address, PAPER, "");
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    let all = api.searches().len();
    let at = all - 4;
    for (cache, signal, wait) in [
        ("int", Some("INT"), Some(3_600)),
        ("kill", Some("KILL"), Some(3_600)),
        ("day", None, Some(86_400)),
        ("dead", Some("INT"), None),
    ] {
        api.forget();
        let state = gate.state.clone();
        api.script(move |n, _| {
            if n == at && wait.is_none() {
                state.store(DEAD, Ordering::SeqCst);
            }
            wait.filter(|_| n >= at).map(|reset_in| GithubFault::Primary { reset_in })
        });
        if let Some(signal) = signal {
            let command = ["run", "w.yaml", "--format", "json", "--cache", cache];
            let running = Running::start(project.command(&command));
            wait_for("the end of the search", || api.searches().len() > at);
            thread::sleep(Duration::from_millis(300));
            let asked = Instant::now();
            running.signal(signal);
            let outcome = running.finish();
            assert!(asked.elapsed() < patience(2), "{cache}: {:?}", asked.elapsed());
            if signal == "INT" {
                assert_eq!(outcome.code, Some(130), "{outcome}");
                assert_eq!(outcome.finished()["status"], "interrupted", "{outcome}");
                let told = activities(&outcome);
                assert_eq!(told.last().unwrap().starts_with("waiting 36"), wait.is_some());
            }
        } else {
            let outcome = project.run(&["run", "w.yaml", "--cache", cache]).exits(1);
            let reasons = ["GitHub's rate limit is used up until 20", "run again later"];
            says(&flat(&outcome.stderr), &reasons);
            let plan = project.run(&["plan", "w.yaml", "--cache", cache]);
            plan.exits(0).prints(&["PREV_FAILED"]);
        }
        let before = api.searches();
        assert!(wait.is_none() || before.len() == at + 1, "{cache}: asked while it waits");
        api.forget();
        api.script(|_, _| None);
        gate.set(OPEN);
        assert_eq!(project.run_ok(&["--cache", cache]).digests(), undisturbed.digests());
        // No finished slice is asked again: of what was asked before, only the last query may be.
        let (last, after) = (&before.last().unwrap().0, api.searches());
        let twice: Vec<_> = after.iter().filter(|s| s.0 != *last && before.contains(s)).collect();
        assert!(twice.is_empty(), "{cache}: asked again: {twice:?}");
        assert!(before.len() > 6 && after.len() < all - 2, "{before:?} {after:?}");
        project.verifies(cache);
    }
}

#[test]
fn finished_heads_are_not_asked_again() {
    let api = GithubApi::start(Vec::new());
    let gate = Gate::start(&api.url());
    let mut all = repos(30);
    let late = gate.before(all.split_off(20));
    all.extend(late);
    api.set_repos(all);
    let project = project(&api, PAPER, "");
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    for signal in ["INT", "KILL"] {
        api.forget();
        gate.set(SILENT);
        let command = project.command(&["run", "w.yaml", "--format", "json", "--cache", signal]);
        let running = Running::start(command);
        wait_for("20 heads", || heads(&api).len() == 20);
        thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        running.signal(signal);
        assert_eq!(running.finish().code, (signal == "INT").then_some(130));
        assert!(asked.elapsed() < patience(2), "{:?}", asked.elapsed());
        api.forget();
        gate.set(OPEN);
        assert_eq!(project.run_ok(&["--cache", signal]).digests(), undisturbed.digests());
        assert_eq!(api.searches().len(), 0, "the search was finished");
        let asked = heads(&api);
        assert_eq!(asked.len(), 10, "{asked:?}");
        assert_eq!(files_below(&project.path(&format!("{signal}/downloads"))).len(), 0);
    }
}

#[test]
fn repositories_that_cannot_be_reached_are_recorded() {
    let api = GithubApi::start(Vec::new());
    let gate = Gate::start(&api.url());
    let mut all = repos(5);
    all[0].clone_url = Some(format!("{}/o/gone.git", api.url()));
    let last = gate.before(all.split_off(4));
    all.extend(last);
    api.set_repos(all);
    gate.set(500);
    let project = project(&api, PAPER, "");
    let outcome = project.run_ok(&[]);
    assert_eq!(names(&project, "repos"), ["o/r0002", "o/r0003", "o/r0004"]);
    let found = project.cells("repos.rejects", "repo step rule");
    assert_eq!(found, ["o/r0001 | repos | reachable", "o/r0005 | repos | reachable"]);
    let rejects = project.rows("repos.rejects");
    assert_eq!(rejects[0]["clone_url"], format!("{}/o/gone.git", api.url()));
    for (reject, answer) in rejects.iter().zip(["status 404", "status 500"]) {
        says(text(reject, "reason"), &[answer]);
    }
    assert_eq!(outcome.events("warning").len(), 2, "{outcome}");
    // The server is back: that one is tried again, and nothing else.
    api.forget();
    gate.set(OPEN);
    let after = project.run_ok(&[]);
    assert_eq!(after.step("repos")["reason"], "PREV_FAILED", "{after}");
    assert_eq!(names(&project, "repos").len(), 4);
    let asked: Vec<String> = heads(&api).into_keys().collect();
    assert_eq!((api.searches().len(), asked), (0, vec!["o/gone".into(), "o/r0005".into()]));
    // What is gone is gone.
    api.forget();
    project.run_ok(&[]).all_hit();
    assert_eq!(api.requests().len(), 0);
}

/// A project with one answer of a server that failed for a while, and a world that moved on.
fn half_answered() -> (GithubApi, Gate, Project) {
    let api = GithubApi::start(Vec::new());
    let gate = Gate::start(&api.url());
    let with_gate = |count| {
        let mut all = repos(count);
        let last = gate.before(all.split_off(1));
        all.extend(last);
        all
    };
    api.set_repos(with_gate(2));
    gate.set(503);
    let project = project(&api, PAPER, "").ran();
    assert_eq!(names(&project, "repos.rejects"), ["o/r0002"]);
    let mut moved = with_gate(3);
    moved[0].head = "77".repeat(20);
    api.set_repos(moved);
    gate.set(OPEN);
    (api, gate, project)
}

#[test]
fn force_and_lock_ask_anew_after_a_failure_too() {
    let (_api, _gate, project) = half_answered();
    let forced = project.run_ok(&["--force", "repos"]);
    assert_eq!(forced.step("repos")["rows"], 3, "{forced}");
    assert_eq!(project.rows("repos")[0]["head_sha"], "77".repeat(20));
    let (_api, gate, project) = half_answered();
    gate.set(500);
    project.run(&["lock", "w.yaml"]).exits(1).reports(&["galeras.lock was not changed"]);
    assert!(!project.path("galeras.lock").exists());
    gate.set(OPEN);
    project.run(&["lock", "w.yaml"]).exits(0);
    let lock = project.read("galeras.lock");
    assert!(lock.contains(&"77".repeat(20)) && lock.contains("o/r0003"), "{lock}");
}

#[test]
fn a_frozen_run_needs_no_server() {
    let api = GithubApi::start(Vec::new());
    let gate = Gate::start(&api.url());
    api.set_repos(gate.before(repos(2)));
    let project = project_at(&gate.address, PAPER, "");
    project.run(&["lock", "w.yaml"]).exits(0);
    gate.set(DEAD);
    api.forget();
    let outcome = project.run_ok(&["--frozen", "--cache", "empty"]);
    assert_eq!(outcome.step("repos")["rows"], 2);
    assert!(outcome.took < patience(10) && api.requests().is_empty());
    project.run_ok(&["--frozen", "--cache", "empty"]).all_hit();
}

/// An answer that GitHub gives at once and for good: the run fails with these words, after one
/// request, and shows no token although the answer quotes it.
#[track_caller]
fn refused(status: u16, message: &str, words: &[&str]) {
    let api = GithubApi::start(repos(1));
    let body = json!({
        "message": format!("{message} (Authorization: Bearer {TOKEN})"),
        "errors": [{ "message": format!("quoted {TOKEN}"), "field": "q", "code": "invalid" }],
    });
    api.script(move |_, _| Some(GithubFault::Raw(status, Vec::new(), body.to_string())));
    let project = project(&api, PAPER, "");
    let with_token = |args: &[&str]| project.run_with(args, &[("GITHUB_TOKEN", TOKEN)]);
    for format in ["human", "json"] {
        api.forget();
        let outcome = with_token(&["run", "w.yaml", "--format", format]).exits(1);
        hidden(&project, &outcome);
        let told = if format == "json" { &outcome.stdout } else { &outcome.stderr };
        says(&flat(told), words);
        assert_eq!(api.requests().len(), 1);
    }
    hidden(&project, &with_token(&["explain", "w.yaml", "repos"]));
}

#[test]
fn refusals_are_told_without_the_token() {
    refused(401, "Bad credentials", &["the token in $GITHUB_TOKEN is not accepted", "Bad cred"]);
    refused(403, "Resource not accessible", &["GitHub refuses", "Resource not accessible"]);
    refused(422, "Validation Failed", &["GitHub rejects the query", "Validation Failed"]);
    refused(404, "Not Found", &["HTTP 404", "Not Found"]);
    // A damaged answer that quotes the token is shown without it.
    let api = GithubApi::start(repos(1));
    let body = format!("{{\"total_count\": \"{TOKEN}\", \"incomplete_results\": false}}");
    api.script(move |_, _| Some(GithubFault::Raw(200, Vec::new(), body.clone())));
    let project = project(&api, PAPER, "");
    let mut command = project.command(&["run", "w.yaml", "--format", "json"]);
    command.env("GITHUB_TOKEN", TOKEN);
    let running = Running::start(command);
    wait_for("the second try", || api.searches().len() > 1);
    thread::sleep(Duration::from_millis(300));
    running.signal("INT");
    let outcome = running.finish().exits(130);
    assert!(activities(&outcome)[0].contains("answer is damaged"), "{outcome}");
    hidden(&project, &outcome);
}

/// GitHub does not return the numbers that it ranks by, so that more than 1,000 cannot be had;
/// that is known beforehand.
#[test]
fn a_ranking_that_cannot_be_had_is_found_before_anything_is_asked() {
    let api = GithubApi::start(repos(2));
    let project = project(&api, PAPER, ", limit: 1001, sort: help-wanted-issues");
    project.run_json(&[]).exits(2).prints(&["help-wanted-issues ranks at most 1000"]);
    assert_eq!(api.requests().len(), 0);
    // A locked answer keeps its rejects (P6).
    let api = GithubApi::start(repos(2));
    let project = self::project(&api, PAPER, ", branch: dev");
    let free = project.run_ok(&[]);
    project.run(&["lock", "w.yaml"]).exits(0);
    assert_eq!(project.run_ok(&[]).digests(), free.digests());
}
