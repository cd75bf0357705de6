//! `generate` within limits: money, pace, and waits that a server asks for.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::generate_openai::{answers, only, project, warnings};
use crate::harness::{Outcome, Project, Running, patience, says, wait_for};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest};

/// An answer of ten tokens, the most, costs ten dollars; prompts cost nothing.
const TEN: &str = "price: { input: 0, output: 1000000 }, max_tokens: 10";
const ROWS: usize = 40;

#[track_caller]
fn over_budget(project: &Project, spent: &str, limit: &str) -> Outcome {
    let outcome = project.run_json(&[]).exits(1);
    says(&outcome.detail("answers"), &["limit of the cost", spent, limit, "max_usd"]);
    outcome
}

#[test]
fn the_run_stops_before_the_request_that_would_pass_the_limit() {
    for concurrency in [1, 8] {
        let api = ChatApi::start();
        api.set_tokens(5, 10).set_latency(Duration::from_millis(10));
        let project =
            project(&api, ROWS, &format!("{TEN}, concurrency: {concurrency}, max_usd: 35"));
        let outcome = over_budget(&project, "$30.00", "$35.00");
        assert_eq!(api.take().len(), 3, "{outcome}");
        let detail = outcome.step("answers")["detail"].to_string();
        assert!(detail.contains("the answers for 3 rows are kept"), "{detail}");
        // Money spent by one run counts in the next.
        over_budget(&project, "$30.00", "$35.00");
        assert_eq!(api.take().len(), 0);
        // A higher limit uses what was paid.
        project.change("max_usd: 35", "max_usd: 400");
        let outcome = project.run_ok(&[]);
        assert_eq!((api.take().len(), answers(&project).len()), (ROWS - 3, ROWS));
        assert_eq!(outcome.step("answers")["reused_rows"], 3);
        assert_eq!(only(&project, "answers.summary")["cost_usd"], 400.0);
    }
}

#[test]
fn what_nobody_counts_costs_the_most() {
    let cut: fn(&ChatRequest) -> Option<ChatFault> =
        |asked| (asked.number == 0).then_some(ChatFault::CutBody);
    let untold: fn(&ChatRequest) -> Option<ChatFault> =
        |_| Some(ChatFault::With(serde_json::json!({"usage": null})));
    for (script, kept) in [(cut, 2), (untold, 3)] {
        let api = ChatApi::start();
        api.set_tokens(5, 10).script(script);
        let project = project(&api, ROWS, &format!("{TEN}, concurrency: 1, max_usd: 35"));
        let outcome = over_budget(&project, "$30.00", "$35.00");
        assert_eq!(api.take().len(), 3);
        assert!(outcome.stdout.contains(&format!("{kept} rows are kept")), "{outcome}");
    }
}

#[test]
fn a_refusal_costs_nothing() {
    let api = ChatApi::start();
    api.set_tokens(5, 10);
    api.script(|asked| {
        (asked.number < 2).then(|| ChatFault::Error(500, "internal", "oops".into()))
    });
    let project = project(&api, ROWS, &format!("{TEN}, concurrency: 1, max_usd: 35"));
    over_budget(&project, "$30.00", "$35.00");
    assert_eq!(api.count(), 5);
}

/// Prompts count as well, and what they will cost is guessed: never too low.
#[test]
fn what_was_really_spent_is_within_the_limit() {
    for (concurrency, tokens) in [(1, 12), (8, 12), (8, 60)] {
        let api = ChatApi::start();
        api.set_tokens(tokens, 3).set_latency(Duration::from_millis(5));
        let more = "price: { input: 1000000, output: 2000000 }, max_tokens: 10, max_usd: 1500";
        let project = project(&api, 200, &format!("{more}, concurrency: {concurrency}"));
        let outcome = project.run_json(&[]).exits(1);
        let spent = api.count() as u64 * (tokens + 6);
        assert!(spent <= 1_500, "{spent}: {outcome}");
        // Nor is most of the money left.
        assert!(spent >= 1_000, "{spent}: {outcome}");
    }
}

fn gaps(asked: &[ChatRequest]) -> Vec<f64> {
    asked.iter().map(|a| (a.at - asked[0].at).as_secs_f64()).collect()
}

#[test]
fn requests_keep_their_pace() {
    let api = ChatApi::start();
    let project = project(&api, 8, "requests_per_minute: 120, concurrency: 8");
    let outcome = project.run_ok(&[]);
    let at = gaps(&api.asked());
    for (i, one) in at.iter().enumerate() {
        for (j, other) in at.iter().enumerate().skip(i + 1) {
            let least = (j - i) as f64 * 0.5 - 0.3;
            assert!(other - one >= least, "{i} {j}: {at:?}");
        }
    }
    assert!(outcome.took < patience(6), "{:?} {at:?}", outcome.took);
}

#[test]
fn tokens_keep_their_pace() {
    let api = ChatApi::start();
    api.set_tokens(100, 100);
    let more = "tokens_per_minute: 12000, max_tokens: 100, concurrency: 8";
    let project = project(&api, 5, more);
    let outcome = project.run_ok(&[]);
    // Two hundred a second are allowed, and as many are used by each.
    let at = gaps(&api.asked());
    assert!(at.iter().enumerate().all(|(i, at)| *at >= i as f64 - 0.5), "{at:?}");
    assert!(outcome.took < patience(15), "{:?} {at:?}", outcome.took);
}

/// `Sat, 21 Nov 2026 11:53:31 GMT`, so many seconds from now.
fn date_in(seconds: u32) -> String {
    let mut date = Command::new("date");
    date.env("LC_ALL", "C").args(["-u", "-d", &format!("+{seconds} seconds")]);
    let told = date.arg("+%a, %d %b %Y %H:%M:%S GMT").output().unwrap();
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_wait_that_the_server_asks_for_is_kept() {
    let soon: fn() -> String = || date_in(3);
    for (name, value, least, most) in [
        ("retry-after", (|| "2".into()) as fn() -> String, 2.0, 4.0),
        ("retry-after-ms", || "700".into(), 0.7, 2.0),
        ("retry-after", soon, 1.5, 5.0),
        ("x-ratelimit-reset-requests", || "1s".into(), 1.0, 3.0),
    ] {
        let value = value();
        let api = ChatApi::start();
        api.faults(vec![ChatFault::Limited(name, value.clone())]);
        let project = project(&api, 2, "concurrency: 1");
        let outcome = project.run_ok(&[]);
        let at = gaps(&api.asked());
        assert_eq!(at.len(), 3, "{name}: {value}");
        assert!((least..most).contains(&at[1]), "{name}: {value}: {at:?}");
        assert!(warnings(&outcome).is_empty() && answers(&project).len() == 2, "{outcome}");
    }
}

#[test]
fn all_requests_wait_and_the_wait_is_shown() {
    let api = ChatApi::start();
    api.set_latency(Duration::from_millis(50));
    api.script(|asked| (asked.number == 8).then(|| ChatFault::Limited("retry-after", "4".into())));
    let project = project(&api, 24, "concurrency: 4");
    let outcome = project.run_ok(&[]);
    let asked = api.asked();
    assert_eq!((asked.len(), answers(&project).len()), (25, 24));
    // When the refusal was sent, and had time to arrive.
    let refused = asked[8].at + Duration::from_millis(50);
    let early = asked.iter().filter(|a| {
        let after = a.at.saturating_duration_since(refused).as_secs_f64();
        (0.3..3.9).contains(&after)
    });
    assert_eq!(early.count(), 0, "{:?}", gaps(&asked));
    let told = outcome.events("activity");
    let waiting = |e: &&Value| e["waiting"] == true && e["text"].to_string().contains("HTTP 429");
    assert_eq!(told.iter().filter(waiting).count(), 1, "{told:?}");
}

#[test]
fn a_long_wait_ends_at_once_when_it_is_interrupted() {
    for (more, fault) in [
        ("", Some(ChatFault::Limited("retry-after", "3000".into()))),
        ("requests_per_minute: 1", None),
        ("", Some(ChatFault::Hang)),
        ("timeout_seconds: 3000", Some(ChatFault::Error(500, "internal", "oops".into()))),
    ] {
        let api = ChatApi::start();
        let script = fault.clone();
        api.script(move |_| script.clone());
        let project = project(&api, 20, more);
        let running = Running::start(project.command(&["run", "w.yaml", "--format", "json"]));
        wait_for("a request", || api.count() > 0);
        thread::sleep(Duration::from_millis(500));
        let at = Instant::now();
        running.signal("INT");
        let outcome = running.finish().exits(130);
        assert!(at.elapsed() < patience(2), "{fault:?}: {:?}", at.elapsed());
        assert_eq!(outcome.finished()["status"], "interrupted", "{outcome}");
        project.verifies("cache");
    }
}
