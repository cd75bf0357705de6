//! Tests of the differences between protocols.

use super::*;

const KEY: &str = "sk-ant-AbCdEfGh0123456789ZyXwVu";

fn key() -> Option<Secret> {
    Some(Secret::new("KEY", KEY).unwrap())
}

fn message(text: &str) -> String {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 20, "output_tokens": 5},
    })
    .to_string()
}

/// An error as Anthropic words it.
fn anthropic(code: u16, headers: &[(&'static str, &str)], kind: &str, message: &str) -> Reply {
    let error = json!({"type": "error", "error": {"type": kind, "message": message},
        "request_id": "req_1"});
    status(code, headers, &error.to_string())
}

/// The result of a request to the messages API whose tries are answered by `replies` and then well,
/// and how many tries there were.
async fn after(replies: Vec<Reply>) -> (Result<Answer, ChatError>, usize, Ran) {
    let server = Server::start(move |n, _| {
        replies.get(n).cloned().unwrap_or_else(|| Reply::Full(200, vec![], message("hi")))
    });
    let server = server.await;
    let settings = ChatSettings::default();
    let ran = Ran::speaking(Protocol::Messages, &server, key(), settings);
    let result = ran.ask("hello").await;
    (result, server.count(), ran)
}

#[tokio::test]
async fn messages_are_asked_as_their_api_wants_it() {
    let server = Server::start(|_, _| Reply::Full(200, vec![], message("hi"))).await;
    let ran = Ran::speaking(Protocol::Messages, &server, key(), ChatSettings::default());
    let answer = ran.ask("hello").await.unwrap();
    assert_eq!(
        (answer.content.as_str(), answer.finish_reason.as_deref()),
        ("hi", Some("end_turn"))
    );
    assert_eq!((answer.prompt_tokens, answer.completion_tokens), (Some(20), Some(5)));
    server.with(|requests| {
        let head = requests[0].head.to_lowercase();
        assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
        let key = format!("x-api-key: {}", KEY.to_lowercase());
        for line in
            [key.as_str(), "anthropic-version: 2023-06-01", "content-type: application/json"]
        {
            assert_eq!(head.matches(line).count(), 1, "{line} in {head}");
        }
        assert!(!head.contains("authorization"), "{head}");
    });
}

#[tokio::test]
async fn a_text_goes_on() {
    let reply = json!({
        "object": "text_completion", "model": "m-1",
        "choices": [{"index": 0, "text": " b", "finish_reason": "length",
            "logprobs": {"tokens": [" b"], "token_logprobs": [-0.5], "text_offset": [1]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    });
    let server = Server::start(move |_, _| status(200, &[], &reply.to_string())).await;
    let settings = ChatSettings::default();
    let ran = Ran::speaking(Protocol::Completions, &server, key(), settings);
    let body = json!({"model": "m", "prompt": "a", "suffix": "c", "max_tokens": 1, "logprobs": 1});
    let answer = ran.send(&Ask::new(body.as_object().unwrap().clone()).unwrap()).await.unwrap();
    assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), (" b", Some("length")));
    assert_eq!(
        answer.logprobs,
        Some(vec![TokenLogprob { token: " b".into(), logprob: Some(-0.5) }])
    );
    server.with(|requests| {
        let head = requests[0].head.to_lowercase();
        assert!(head.starts_with("post /v1/completions http/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: bearer sk-ant-"), "{head}");
        let sent: serde_json::Value = serde_json::from_str(&requests[0].body).unwrap();
        assert_eq!(
            (&sent["prompt"], &sent["suffix"], &sent["stream"]),
            (&json!("a"), &json!("c"), &json!(false))
        );
    });
}

#[tokio::test]
async fn an_overloaded_server_is_waited_for_by_all() {
    let overloaded = |headers| anthropic(529, headers, "overloaded_error", "Overloaded");
    let (result, count, ran) = after(vec![overloaded(&[("retry-after", "20")])]).await;
    assert_eq!((result.unwrap().content.as_str(), count), ("hi", 2));
    assert_eq!(ran.waited(), 20_000);
    assert!(ran.notices()[0].contains("Overloaded"), "{:?}", ran.notices());
    let (result, count, _) = after(vec![overloaded(&[]); 3]).await;
    assert_eq!((result.unwrap().content.as_str(), count), ("hi", 4));
    let (result, count, _) = after(vec![overloaded(&[]); 9]).await;
    let (rule, reason) = failed(result);
    assert_eq!((rule, count), ("server_error", 5));
    assert!(reason.contains("Overloaded"), "{reason}");
    let limited = anthropic(429, &[("retry-after", "7")], "rate_limit_error", "Slow down");
    let (result, count, ran) = after(vec![limited]).await;
    assert_eq!((result.is_ok(), count, ran.waited()), (true, 2, 7_000));
}

#[tokio::test]
async fn what_ends_it_all_and_what_ends_one() {
    for (reply, told) in [
        (anthropic(401, &[], "authentication_error", "invalid x-api-key"), "the key in $KEY"),
        (anthropic(403, &[], "permission_error", "no"), "refuses (HTTP 403)"),
        (anthropic(404, &[], "not_found_error", "model: m"), "has no model `m`"),
        (anthropic(404, &[], "not_found_error", "Not Found"), "/v1/messages"),
        (
            anthropic(400, &[], "invalid_request_error", "Your credit balance is too low to go on"),
            "no money left",
        ),
        (
            anthropic(400, &[], "invalid_request_error", "seed: Extra inputs are not permitted"),
            "leave it out",
        ),
    ] {
        let (result, count, _) = after(vec![reply; 3]).await;
        let reason = fatal(result);
        assert_eq!(count, 1, "{reason}");
        assert!(reason.contains(told), "{reason}");
    }
    let empty = json!({"type": "message", "content": null, "usage": {"input_tokens": 1, "output_tokens": 0}});
    let within = json!({"type": "error", "error": {"type": "api_error", "message": "M"}});
    for (reply, rule, tries) in [
        (anthropic(400, &[], "invalid_request_error", "prompt is too long: 9"), "refused", 1),
        (anthropic(413, &[], "request_too_large", "too large"), "refused", 1),
        (anthropic(500, &[], "api_error", "M"), "server_error", 5),
        (anthropic(504, &[], "timeout_error", "M"), "server_error", 5),
        (status(200, &[], &within.to_string()), "server_error", 5),
        (status(200, &[], &empty.to_string()), "no_choices", 2),
        (status(200, &[], r#"{"content": 7}"#), "malformed_answer", 2),
        (status(200, &[], r#"{"content": [{"type": "#), "malformed_answer", 2),
        (status(200, &[], &"[".repeat(100_000)), "malformed_answer", 2),
        (Reply::Cut(Vec::new()), "cut_connection", 5),
    ] {
        let (result, count, _) = after(vec![reply; 9]).await;
        let (found, reason) = failed(result);
        assert_eq!((found, count), (rule, tries), "{reason}");
    }
}

#[tokio::test]
async fn no_text_shows_the_key_of_messages() {
    for reply in [
        anthropic(401, &[], "authentication_error", KEY),
        anthropic(529, &[("retry-after", "20")], KEY, KEY),
        anthropic(400, &[], "invalid_request_error", KEY),
        status(200, &[], &format!("{{\"content\": {KEY}}}")),
    ] {
        let (result, _, ran) = after(vec![reply; 99]).await;
        let shown = format!("{:?} {:?} {:?}", result.unwrap_err(), ran.client, ran.notices());
        assert!(!shown.contains(&KEY[7..15]), "{shown}");
    }
    // Nor do the tokens of an answer, in pieces.
    let (a, b) = KEY.split_at(12);
    let tokens = json!([{"token": "x", "logprob": -1.0}, {"token": a, "logprob": -1.0},
        {"token": b, "logprob": -1.0}]);
    let reply = json!({"choices": [{"message": {"content": format!("x{KEY}")},
        "logprobs": {"content": tokens}}]});
    let server = Server::start(move |_, _| status(200, &[], &reply.to_string())).await;
    let ran = Ran::with_key(&server, key(), ChatSettings::default());
    let answer = ran.ask("hello").await.unwrap();
    assert_eq!((answer.content.as_str(), answer.logprobs), ("x***", None));
}
