//! Servers that fail, die or talk nonsense: what is tried again, what is said, and that all other
//! prompts get their answers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::generate_openai::{only, project, warnings};
use crate::harness::{Outcome, flat, patience, says};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, error};

/// Quick tries, so that a test of all that fails takes seconds.
const QUICK: &str = "tries: 2, timeout_seconds: 1";

fn raw(status: u16, body: Value) -> ChatFault {
    ChatFault::Raw(status, vec![], body.to_string())
}

/// Requests by their last message.
fn counts(api: &ChatApi) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    api.asked().iter().for_each(|asked| *counts.entry(asked.last()).or_default() += 1);
    counts
}

/// One prompt of four always fails so: it is rejected with this rule and these words after as
/// many tries, the others are answered, and the next run asks it alone.
#[track_caller]
fn rejects(fault: ChatFault, tries: usize, rule: &str, words: &[&str]) {
    let api = ChatApi::start();
    api.spoil("f1(", fault.clone());
    let project = project(&api, 4, QUICK);
    let outcome = project.run_ok(&[]);
    let reject = only(&project, "answers.rejects");
    assert_eq!(
        (&reject["rule"], &reject["code"]),
        (&json!(rule), &json!("def f1(a):")),
        "{fault:?}: {reject}"
    );
    assert_eq!((&reject["step"], &reject["sample"]), (&json!("answers"), &json!(0)));
    let reason = reject["reason"].as_str().unwrap();
    says(reason, words);
    let told = warnings(&outcome);
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
fn survives(fault: ChatFault) {
    let api = ChatApi::start();
    let project = project(&api, 3, QUICK);
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    api.take();
    api.faults(vec![fault.clone()]);
    let outcome = project.run_ok(&[]);
    assert_eq!(api.count(), 4, "{fault:?}");
    assert_eq!(outcome.digests(), undisturbed.digests(), "{fault:?}");
    assert!(warnings(&outcome).is_empty(), "{fault:?}: {outcome}");
}

/// No prompt will be answered: the step ends after these requests at most, and says this.
#[track_caller]
fn ends(fault: ChatFault, words: &[&str]) {
    let api = ChatApi::start();
    let spoilt = fault.clone();
    api.script(move |_| Some(spoilt.clone()));
    let project = project(&api, 40, "concurrency: 4");
    let outcome = project.run_json(&[]).exits(1);
    said(&outcome, words);
    assert!(api.count() <= 4, "{fault:?}: {} requests", api.count());
    assert!(outcome.took < patience(8), "{fault:?}: {:?}", outcome.took);
    says(&flat(&project.run(&["run", "w.yaml"]).exits(1).stderr), words);
    project.verifies("cache");
}

#[track_caller]
fn said(outcome: &Outcome, words: &[&str]) {
    says(&outcome.detail("answers"), words);
}

#[test]
fn what_fails_in_passing_is_asked_again() {
    survives(ChatFault::Error(500, "internal", "oops".into()));
    survives(ChatFault::CutBefore);
    survives(ChatFault::Malformed);
    survives(ChatFault::Hang);
    survives(ChatFault::Raw(503, vec![], error("unavailable_error", "Loading model")));
    survives(raw(200, json!({"error": {"message": "upstream", "code": 502}})));
}

#[test]
fn what_goes_on_failing_is_rejected_after_its_tries() {
    let oops = || ChatFault::Error(500, "internal", "oops".into());
    rejects(oops(), 2, "server_error", &["HTTP 500", "oops", "2 tries"]);
    rejects(ChatFault::CutBefore, 2, "cut_connection", &["ended before the answer", "2 tries"]);
    rejects(ChatFault::Malformed, 2, "malformed_answer", &["damaged", "2 tries"]);
    rejects(ChatFault::NoChoices, 2, "no_choices", &["no choice"]);
    rejects(ChatFault::Hang, 2, "time_out", &["no answer in 1 s", "2 tries"]);
    rejects(raw(200, json!({"object": "list"})), 2, "no_choices", &["no choice"]);
    rejects(ChatFault::Raw(200, vec![], "true".into()), 2, "malformed_answer", &["damaged"]);
}

#[test]
fn what_the_server_refuses_is_not_asked_again() {
    let refused =
        |status, code: &'static str, text: &str| ChatFault::Error(status, code, text.into());
    rejects(refused(400, "bad", "no way"), 1, "refused", &["refuses", "no way"]);
    rejects(refused(413, "big", "too big"), 1, "refused", &["too long", "too big"]);
    let long = "This model's maximum context length is 2048 tokens, you requested 9999";
    rejects(refused(400, "context_length_exceeded", long), 1, "refused", &["context", "2048"]);
    // llama.cpp's server and llama-cpp-python's word it so.
    let long = "the request exceeds the available context size (2048 tokens)";
    rejects(refused(400, "exceed_context_size_error", long), 1, "refused", &["context"]);
    rejects(
        refused(500, "internal", "Requested tokens (9) exceed context window of 8"),
        1,
        "refused",
        &["context"],
    );
    rejects(refused(400, "content_filter", "filtered"), 1, "content_filter", &["filter"]);
    let detail = json!({"detail": [{"loc": ["body", "seed"], "msg": "bad seed"}]});
    rejects(raw(422, detail), 1, "refused", &["body.seed: bad seed"]);
    let never = vec![("x-should-retry".into(), "false".into())];
    rejects(ChatFault::Raw(500, never, error("e", "stop")), 1, "server_error", &["stop"]);
}

#[test]
fn an_answer_without_end_is_rejected() {
    for told in [true, false] {
        rejects(ChatFault::Huge(100 << 20, told), 1, "too_large", &["longer than"]);
    }
}

#[test]
fn what_will_not_change_ends_the_step_at_once() {
    let model = "The model `tiny` does not exist";
    ends(ChatFault::Error(404, "model_not_found", model.into()), &["has no model `tiny`", "exist"]);
    ends(raw(404, json!({"detail": "Not Found"})), &["no chat completions at", "/v1"]);
    ends(raw(404, json!({"detail": "model 'tiny' not found"})), &["has no model `tiny`"]);
    ends(ChatFault::Error(401, "invalid_api_key", "Who?".into()), &["wants a key", "Who?"]);
    ends(raw(403, json!({"error": "forbidden"})), &["HTTP 403", "forbidden"]);
    ends(ChatFault::Error(402, "e", "Pay".into()), &["no money left", "Pay"]);
    ends(ChatFault::Error(429, "insufficient_quota", "Pay".into()), &["quota", "Pay"]);
    ends(
        ChatFault::Limited("retry-after", "4000".into()),
        &["HTTP 429", "1 h 6 min", "start again"],
    );
    ends(ChatFault::Stream, &["streams its answer", "event-stream"]);
    let to = vec![("location".to_owned(), "https://elsewhere.example/v1?key=x".to_owned())];
    ends(ChatFault::Raw(308, to, String::new()), &["redirects to https://elsewhere.example/v1, "]);
    let page = vec![("content-type".to_owned(), "text/html".to_owned())];
    ends(ChatFault::Raw(200, page, "<html>hello".into()), &["a web page", "/v1"]);
    let packed = vec![("content-encoding".to_owned(), "gzip".to_owned())];
    ends(ChatFault::Raw(200, packed, "{}".into()), &["compresses its answer"]);
    let unknown = json!({"error": {"message": "Unsupported parameter: 'seed'", "code": "unsupported_parameter", "param": "seed"}});
    ends(raw(400, unknown), &["does not take a parameter", "seed"]);
}

#[test]
fn an_address_without_its_end_is_told() {
    let api = ChatApi::start();
    let project = project(&api, 2, "");
    project.change("/v1'", "'");
    let outcome = project.run_json(&[]).exits(1);
    said(&outcome, &["/chat/completions", "HTTP 404", "ends in /v1"]);
}

/// Earlier answers are kept, and reported as kept.
#[test]
fn a_step_that_ends_early_keeps_its_answers() {
    let api = ChatApi::start();
    let gone = || ChatFault::Error(404, "model_not_found", "The model does not exist".into());
    api.script(move |asked| (asked.number >= 7).then(gone));
    let project = project(&api, 20, "concurrency: 1");
    let outcome = project.run_json(&[]).exits(1);
    said(&outcome, &["has no model `tiny`", "the answers for 7 rows are kept"]);
    assert_eq!(api.take().len(), 8);
    api.heal();
    let outcome = project.run_ok(&[]);
    assert_eq!(api.count(), 13);
    assert_eq!(outcome.step("answers")["reused_rows"], 7);
}

/// Requests under way may have been paid: their answers are taken although the step ends.
#[test]
fn answers_under_way_are_kept_when_the_step_ends() {
    let api = ChatApi::start();
    api.script(|asked| {
        Some(match asked.number {
            3 => ChatFault::Error(401, "invalid_api_key", "no".into()),
            _ => ChatFault::Slow(Duration::from_millis(700)),
        })
    });
    let project = project(&api, 20, "concurrency: 4");
    project.run_json(&[]).exits(1);
    assert_eq!(api.take().len(), 4);
    api.heal();
    project.run_ok(&[]);
    assert_eq!(api.count(), 17);
}

#[test]
fn warnings_are_not_as_many_as_rows() {
    let api = ChatApi::start();
    api.script(|_| Some(ChatFault::Error(400, "bad", "no way".into())));
    let project = project(&api, 200, "");
    let outcome = project.run_ok(&[]);
    assert_eq!(warnings(&outcome).len(), 1, "{outcome}");
    assert_eq!((project.rows("answers.rejects").len(), project.rows("answers").len()), (200, 0));
    let step = outcome.step("answers");
    let ports: BTreeMap<&str, u64> = step["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["port"].as_str().unwrap(), p["rows"].as_u64().unwrap()))
        .collect();
    assert_eq!(ports, BTreeMap::from([("out", 0), ("rejects", 200), ("summary", 0)]));
}

/// A row without a conversation is no failure of the server: it is not tried again.
#[test]
fn a_text_that_is_null_is_rejected() {
    let api = ChatApi::start();
    let project = project(&api, 2, "messages: code");
    project.change("    from: prompts\n", "    from: data\n");
    project.write("data.jsonl", "{\"id\":\"a\",\"code\":\"x\"}\n{\"id\":\"b\",\"code\":null}\n");
    project.run_ok(&[]);
    let reject = only(&project, "answers.rejects");
    assert_eq!((&reject["id"], &reject["rule"]), (&json!("b"), &json!("messages")));
    assert!(reject["reason"].as_str().unwrap().contains("`code`"), "{reject}");
    assert_eq!((project.rows("answers").len(), api.count()), (1, 1));
    project.run_ok(&[]).all_hit();
}
