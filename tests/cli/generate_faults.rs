//! Servers of `generate` that fail, die or talk nonsense: retries, messages, and answers for all other
//! prompts; and limits: money, pace, and waits that a server asks for.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::generate_openai::{WORKFLOW, answers, served, served_of};
use crate::harness::{
    Outcome, Project, Running, flat, has, patience, says, text, values, wait_for,
};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest, error};

/// Quick tries, so that a test of failures takes seconds.
const QUICK: &str = "tries: 2, timeout_seconds: 1, min_answered: 0";

fn raw(status: u16, body: Value) -> ChatFault {
    ChatFault::Raw(status, vec![], body.to_string())
}

fn counts(api: &ChatApi) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    api.asked().iter().for_each(|asked| *counts.entry(asked.last()).or_default() += 1);
    counts
}

/// One prompt of four always fails so: it is rejected with this rule and these words after as
/// many tries, the others are answered, and the next run asks it alone.
#[track_caller]
pub fn rejects(workflow: &str, fault: ChatFault, tries: usize, rule: &str, words: &[&str]) {
    let (api, project) = served_of(workflow, 4, QUICK);
    api.spoil("f1(", fault.clone());
    let told = project.run_ok(&[]).warnings();
    let reject = project.only("answers.rejects");
    has(&reject, "rule code step sample", json!([rule, "def f1(a):", "answers", 0]));
    let reason = text(&reject, "reason");
    says(reason, words);
    assert!(told.len() == 1 && told[0].contains(reason), "{fault:?}: {told:?}");
    let counted = counts(&api);
    for (said, count) in &counted {
        let wanted = if said.contains("f1(") { tries } else { 1 };
        assert_eq!(*count, wanted, "{fault:?}: {said}: {reason}");
    }
    assert_eq!((counted.len(), project.rows("answers").len()), (4, 3), "{fault:?}");
    api.take();
    api.heal();
    project.run_ok(&[]);
    assert_eq!((api.count(), project.rows("answers").len()), (1, 4), "{fault:?}");
}

/// One request fails so: it is sent again, and all is as if nothing had happened.
#[track_caller]
pub fn survives(workflow: &str, fault: ChatFault) {
    let (api, project) = served_of(workflow, 3, QUICK);
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    api.take();
    api.faults(vec![fault.clone()]);
    let outcome = project.run_ok(&[]);
    assert_eq!(api.count(), 4, "{fault:?}");
    assert_eq!(outcome.digests(), undisturbed.digests(), "{fault:?}");
    assert!(outcome.warnings().is_empty(), "{fault:?}: {outcome}");
}

/// No prompt will be answered: the step ends with these words after four requests at most.
#[track_caller]
fn ends(fault: ChatFault, words: &[&str]) {
    let (api, project) = served(40, "concurrency: 4");
    let spoilt = fault.clone();
    api.script(move |_| Some(spoilt.clone()));
    let outcome = project.fails("answers", words);
    assert!(api.count() <= 4, "{fault:?}: {} requests", api.count());
    assert!(outcome.took < patience(8), "{fault:?}: {:?}", outcome.took);
    says(&flat(&project.run(&["run", "w.yaml"]).exits(1).stderr), words);
    project.verifies("cache");
}

#[test]
fn what_fails_in_passing_is_asked_again() {
    for fault in [
        ChatFault::Error(500, "internal", "oops".into()),
        ChatFault::CutBefore,
        ChatFault::Malformed,
        ChatFault::Hang,
        ChatFault::Raw(503, vec![], error("unavailable_error", "Loading model")),
        raw(200, json!({"error": {"message": "upstream", "code": 502}})),
    ] {
        survives(WORKFLOW, fault);
    }
}

#[test]
fn what_goes_on_failing_is_rejected_after_its_tries() {
    let oops = ChatFault::Error(500, "internal", "oops".into());
    for (fault, rule, words) in [
        (oops, "server_error", &["HTTP 500", "oops", "2 tries"][..]),
        (ChatFault::CutBefore, "cut_connection", &["ended before the answer", "2 tries"]),
        (ChatFault::Malformed, "malformed_answer", &["damaged", "2 tries"]),
        (ChatFault::NoChoices, "no_choices", &["no choice"]),
        (ChatFault::Hang, "time_out", &["no answer in 1 s", "2 tries"]),
        (raw(200, json!({"object": "list"})), "no_choices", &["no choice"]),
        (ChatFault::Raw(200, vec![], "true".into()), "malformed_answer", &["damaged"]),
    ] {
        rejects(WORKFLOW, fault, 2, rule, words);
    }
}

#[test]
fn a_body_without_an_answer_is_kept_as_it_was_paid() {
    for body in [json!({"choices": [{"message": {"content": 7}}]}), json!({"output": "x = 1"})] {
        let (api, project) = served_of(WORKFLOW, 1, QUICK);
        api.spoil("f0(", raw(200, body.clone()));
        project.run_ok(&[]);
        assert_eq!(project.only("answers.rejects")["raw_response"], body.to_string());
        api.heal();
        project.run_ok(&[]);
        assert_eq!(project.rows("answers").len(), 1);
    }
}

#[test]
fn what_the_server_refuses_is_not_asked_again() {
    let refused =
        |status, code: &'static str, text: &str| ChatFault::Error(status, code, text.into());
    let long = "This model's maximum context length is 2048 tokens, you requested 9999";
    // llama.cpp's server and llama-cpp-python word it so.
    let llama = "the request exceeds the available context size (2048 tokens)";
    let python = "Requested tokens (9) exceed context window of 8";
    let detail = json!({"detail": [{"loc": ["body", "seed"], "msg": "bad seed"}]});
    let never = vec![("x-should-retry".into(), "false".into())];
    for (fault, rule, words) in [
        (refused(400, "bad", "no way"), "refused", &["refuses", "no way"][..]),
        (refused(413, "big", "too big"), "refused", &["too long", "too big"]),
        (refused(400, "context_length_exceeded", long), "refused", &["context", "2048"]),
        (refused(400, "exceed_context_size_error", llama), "refused", &["context"]),
        (refused(500, "internal", python), "refused", &["context"]),
        (refused(400, "content_filter", "filtered"), "content_filter", &["filter"]),
        (raw(422, detail), "refused", &["body.seed: bad seed"]),
        (ChatFault::Raw(500, never, error("e", "stop")), "server_error", &["stop"]),
        // Answers without an end.
        (ChatFault::Huge(100 << 20, true), "too_large", &["longer than"]),
        (ChatFault::Huge(100 << 20, false), "too_large", &["longer than"]),
    ] {
        rejects(WORKFLOW, fault, 1, rule, words);
    }
}

#[test]
fn what_will_not_change_ends_the_step_at_once_as_does_an_address_without_its_end() {
    let model = "The model `tiny` does not exist";
    ends(ChatFault::Error(404, "model_not_found", model.into()), &["has no model `tiny`", "exist"]);
    ends(raw(404, json!({"detail": "Not Found"})), &["no chat completions at", "/v1"]);
    ends(raw(404, json!({"detail": "model 'tiny' not found"})), &["has no model `tiny`"]);
    ends(ChatFault::Error(401, "invalid_api_key", "Who?".into()), &["wants a key", "Who?"]);
    ends(raw(403, json!({"error": "forbidden"})), &["HTTP 403", "forbidden"]);
    ends(ChatFault::Error(402, "e", "Pay".into()), &["no money left", "Pay"]);
    ends(ChatFault::Error(429, "insufficient_quota", "Pay".into()), &["quota", "Pay"]);
    let limited = ChatFault::Limited("retry-after", "4000".into());
    ends(limited, &["HTTP 429", "1 h 6 min", "start again"]);
    ends(ChatFault::Stream, &["streams its answer", "event-stream"]);
    let to = vec![("location".to_owned(), "https://elsewhere.example/v1?key=x".to_owned())];
    ends(ChatFault::Raw(308, to, String::new()), &["redirects to https://elsewhere.example/v1, "]);
    let page = vec![("content-type".to_owned(), "text/html".to_owned())];
    ends(ChatFault::Raw(200, page, "<html>hello".into()), &["a web page", "/v1"]);
    let packed = vec![("content-encoding".to_owned(), "gzip".to_owned())];
    ends(ChatFault::Raw(200, packed, "{}".into()), &["compresses its answer"]);
    let unknown = json!({"error": {"message": "Unsupported parameter: 'seed'", "code": "unsupported_parameter", "param": "seed"}});
    ends(raw(400, unknown), &["does not take a parameter", "seed"]);
    let (_api, project) = served(2, "");
    project.change("/v1'", "'");
    project.fails("answers", &["/chat/completions", "HTTP 404", "ends in /v1"]);
}

#[test]
fn a_step_that_ends_keeps_its_answers_and_those_under_way() {
    let (api, project) = served(20, "concurrency: 1");
    let gone = || ChatFault::Error(404, "model_not_found", "The model does not exist".into());
    api.script(move |asked| (asked.number >= 7).then(gone));
    project.fails("answers", &["has no model `tiny`", "the answers for 7 rows are kept"]);
    assert_eq!(api.take().len(), 8);
    api.heal();
    assert_eq!(project.run_ok(&[]).step("answers")["reused_rows"], 7);
    assert_eq!(api.count(), 13);
    // Requests under way may have been paid: their answers are taken although the step ends.
    let (api, project) = served(20, "concurrency: 4");
    api.script(|asked| {
        Some(match asked.number {
            3 => ChatFault::Error(401, "invalid_api_key", "no".into()),
            _ => ChatFault::Slow(Duration::from_millis(700)),
        })
    });
    project.run_json(&[]).exits(1);
    assert_eq!(api.take().len(), 4);
    api.heal();
    project.run_ok(&[]);
    assert_eq!(api.count(), 17);
}

#[test]
fn a_step_with_too_few_answers_fails_and_keeps_those_it_has() {
    let oops = || ChatFault::Error(500, "internal", "oops".into());
    for (more, spoilt, wanted) in [
        ("seed: 1", "f", Some("4 of 4 answers are missing: server_error, ")),
        ("seed: 1", "f1(", Some("1 of 4 answers is missing: server_error, ")),
        ("min_answered: 0.76", "f1(", Some("`min_answered: 0.75` (it is 0.76)")),
        ("min_answered: 0.75", "f1(", None),
    ] {
        let (api, project) = served(4, &format!("tries: 1, {more}"));
        project.append("outputs: { all: { from: answers, path: all.jsonl } }\n");
        let before = "{\"good\":1}\n";
        project.write("all.jsonl", before);
        api.spoil(spoilt, oops());
        let run = ["--overwrite"];
        match wanted {
            Some(words) => {
                let detail = project.run_json(&run).exits(1).detail("answers");
                says(&detail, &[words, "oops", "run again"]);
                assert_eq!(project.read("all.jsonl"), before, "{more}");
            }
            None => {
                let outcome = project.run_ok(&run);
                says(&outcome.warnings()[0], &["1 of 4 answers is missing", "oops"]);
                let counts = values(&outcome.step("answers"), "rows computed_rows reused_rows");
                assert_eq!(counts, json!([3, 3, 0]));
            }
        }
        let answered = 4 - api.take().iter().filter(|asked| asked.last().contains(spoilt)).count();
        api.heal();
        let outcome = project.run_ok(&run);
        assert_eq!(api.count(), 4 - answered, "{more}: {spoilt}");
        let counts = values(&outcome.step("answers"), "rows computed_rows reused_rows");
        assert_eq!(counts, json!([4, 4 - answered, answered]));
    }
}

#[test]
fn missing_answers_are_counted_in_one_warning_and_a_text_that_is_null_is_rejected() {
    let (api, project) = served(200, "min_answered: 0");
    api.script(|_| Some(ChatFault::Error(400, "bad", "no way".into())));
    let outcome = project.run_ok(&[]);
    let told = outcome.warnings();
    assert_eq!(told.len(), 1);
    says(&told[0], &["200 of 200 answers are missing", "no way"]);
    assert_eq!(values(&outcome.step("answers"), "computed_rows reused_rows"), json!([0, 0]));
    let counts = ["answers.rejects", "answers", "answers.summary"];
    assert_eq!(counts.map(|port| project.rows(port).len()), [200, 0, 0]);
    // A row without a conversation does not count as a failure of the server: it is not tried again.
    let (api, project) = served(2, "messages: code");
    project.write("data.jsonl", "{\"id\":\"a\",\"code\":\"x y\"}\n{\"id\":\"b\",\"code\":null}\n");
    project.rerun("    from: prompts\n", "    from: data\n");
    let reject = project.only("answers.rejects");
    has(&reject, "id rule", json!(["b", "messages"]));
    says(text(&reject, "reason"), &["`code`"]);
    project.only("answers");
    assert_eq!(self::counts(&api), BTreeMap::from([("x y".into(), 1)]));
    project.run_ok(&[]).all_hit();
}

/// An answer of ten tokens, the most, costs ten dollars; prompts cost nothing.
const TEN: &str = "price: { input: 0, output: 1000000 }, max_tokens: 10";
const ROWS: usize = 40;

/// The run ends after $30 of $35.
#[track_caller]
fn over_budget(project: &Project) -> Outcome {
    project.fails("answers", &["limit of the cost", "$30.00", "$35.00", "max_usd"])
}

#[test]
fn the_run_stops_before_the_request_that_would_pass_the_limit() {
    for concurrency in [1, 8] {
        let (api, project) =
            served(ROWS, &format!("{TEN}, concurrency: {concurrency}, max_usd: 35"));
        api.set_tokens(5, 10).set_latency(Duration::from_millis(10));
        let detail = over_budget(&project).detail("answers");
        says(&detail, &["the answers for 3 rows are kept"]);
        assert_eq!(api.take().len(), 3, "{detail}");
        // Money spent by one run counts in the next.
        over_budget(&project);
        assert_eq!(api.take().len(), 0);
        let outcome = project.rerun("max_usd: 35", "max_usd: 400");
        assert_eq!((api.take().len(), answers(&project).len()), (ROWS - 3, ROWS));
        assert_eq!(outcome.step("answers")["reused_rows"], 3);
        assert_eq!(project.only("answers.summary")["cost_usd"], 400.0);
    }
}

#[test]
fn what_nobody_counts_costs_the_most() {
    type Script = fn(&ChatRequest) -> Option<ChatFault>;
    let cut: Script = |asked| (asked.number == 0).then_some(ChatFault::CutBody);
    let untold: Script = |_| Some(ChatFault::With(json!({"usage": null})));
    let refused: Script =
        |asked| (asked.number < 2).then(|| ChatFault::Error(500, "e", "oops".into()));
    // A refusal costs nothing.
    for (script, requests, kept) in
        [(cut, 3, "2 rows are kept"), (untold, 3, "3 rows are kept"), (refused, 5, "rows are kept")]
    {
        let (api, project) = served(ROWS, &format!("{TEN}, concurrency: 1, max_usd: 35"));
        api.set_tokens(5, 10).script(script);
        over_budget(&project).prints(&[kept]);
        assert_eq!(api.take().len(), requests);
    }
}

/// Prompts count as well, and their cost is guessed, never too low.
#[test]
fn what_was_really_spent_is_within_the_limit() {
    for (concurrency, tokens) in [(1, 12), (8, 12), (8, 60)] {
        let more = "price: { input: 1000000, output: 2000000 }, max_tokens: 10, max_usd: 1500";
        let (api, project) = served(200, &format!("{more}, concurrency: {concurrency}"));
        api.set_tokens(tokens, 3).set_latency(Duration::from_millis(5));
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
fn requests_and_tokens_keep_their_pace() {
    let (api, project) = served(8, "requests_per_minute: 120, concurrency: 8");
    let outcome = project.run_ok(&[]);
    let at = gaps(&api.asked());
    for (i, one) in at.iter().enumerate() {
        for (j, other) in at.iter().enumerate().skip(i + 1) {
            assert!(other - one >= (j - i) as f64 * 0.5 - 0.3, "{i} {j}: {at:?}");
        }
    }
    assert!(outcome.took < patience(6), "{:?} {at:?}", outcome.took);
    let (api, project) = served(5, "tokens_per_minute: 12000, max_tokens: 100, concurrency: 8");
    api.set_tokens(100, 100);
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
        let (api, project) = served(2, "concurrency: 1");
        api.faults(vec![ChatFault::Limited(name, value.clone())]);
        let outcome = project.run_ok(&[]);
        let at = gaps(&api.asked());
        assert_eq!(at.len(), 3, "{name}: {value}");
        assert!((least..most).contains(&at[1]), "{name}: {value}: {at:?}");
        assert!(outcome.warnings().is_empty() && answers(&project).len() == 2, "{outcome}");
    }
}

#[test]
fn all_requests_wait_and_the_wait_is_shown() {
    let (api, project) = served(24, "concurrency: 4");
    api.set_latency(Duration::from_millis(50));
    api.script(|asked| (asked.number == 8).then(|| ChatFault::Limited("retry-after", "4".into())));
    let outcome = project.run_ok(&[]);
    let asked = api.asked();
    assert_eq!((asked.len(), answers(&project).len()), (25, 24));
    // When the refusal was sent, and had time to arrive.
    let refused = asked[8].at + Duration::from_millis(50);
    let after = |a: &ChatRequest| a.at.saturating_duration_since(refused).as_secs_f64();
    let early = asked.iter().any(|a| (0.3..3.9).contains(&after(a)));
    assert!(!early, "{:?}", gaps(&asked));
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
        let (api, project) = served(20, more);
        let script = fault.clone();
        api.script(move |_| script.clone());
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
