//! Tests of the differences between protocols.

use super::*;

const KEY: &str = "sk-ant-AbCdEfGh0123456789ZyXwVu";

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

/// A client of the messages API whose tries are answered by `replies`, and then well.
async fn after(replies: Vec<Reply>) -> TestClient {
    let script = move |n: usize, _: &Request| {
        replies.get(n).cloned().unwrap_or_else(|| Reply::Full(200, vec![], message("hi")))
    };
    speaking(Protocol::Messages, script).await
}

async fn speaking(
    protocol: Protocol,
    script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
) -> TestClient {
    let server = Server::start(0, script).await;
    TestClient::new(server, protocol, Some(KEY), ChatSettings::default())
}

#[tokio::test]
async fn messages_are_asked_as_their_api_wants_it() {
    let ran = after(vec![]).await;
    let answer = ran.ask("hello").await.unwrap();
    let (content, reason) = (answer.content.as_str(), answer.finish_reason.as_deref());
    assert_eq!((content, reason), ("hi", Some("end_turn")));
    assert_eq!((answer.prompt_tokens, answer.completion_tokens), (Some(20), Some(5)));
    ran.server.with(|requests| {
        let head = requests[0].head.to_lowercase();
        assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
        let key = format!("x-api-key: {}", KEY.to_lowercase());
        let version = "anthropic-version: 2023-06-01";
        for line in [key.as_str(), version, "content-type: application/json"] {
            assert_eq!(head.matches(line).count(), 1, "{line} in {head}");
        }
        assert!(!head.contains("authorization"), "{head}");
    });
}

#[tokio::test]
async fn a_text_is_continued() {
    let reply = json!({
        "object": "text_completion", "model": "m-1",
        "choices": [{"index": 0, "text": " b", "finish_reason": "length",
            "logprobs": {"tokens": [" b"], "token_logprobs": [-0.5], "text_offset": [1]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    });
    let script = move |_, _: &Request| status(200, &[], &reply.to_string());
    let ran = speaking(Protocol::Completions, script).await;
    let body = json!({"model": "m", "prompt": "a", "suffix": "c", "max_tokens": 1, "logprobs": 1});
    let answer = ran.send(&Ask::new(body.as_object().unwrap().clone()).unwrap()).await.unwrap();
    assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), (" b", Some("length")));
    let token = TokenLogprob { token: " b".into(), logprob: Some(-0.5) };
    assert_eq!(answer.logprobs, Some(vec![token]));
    ran.server.with(|requests| {
        let head = requests[0].head.to_lowercase();
        assert!(head.starts_with("post /v1/completions http/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: bearer sk-ant-"), "{head}");
        let sent: serde_json::Value = serde_json::from_str(&requests[0].body).unwrap();
        let parts = ["prompt", "suffix", "stream"].map(|part| sent[part].clone());
        assert_eq!(parts, [json!("a"), json!("c"), json!(false)]);
    });
}

#[tokio::test]
async fn an_overloaded_server_is_waited_for_by_all() {
    let overloaded = |headers| anthropic(529, headers, "overloaded_error", "Overloaded");
    let limited = anthropic(429, &[("retry-after", "7")], "rate_limit_error", "Slow down");
    for (replies, waited) in [
        (vec![overloaded(&[("retry-after", "20")])], Some(20_000)),
        (vec![overloaded(&[]); 3], None),
        (vec![limited], Some(7_000)),
    ] {
        let failures = replies.len();
        let ran = after(replies).await;
        assert_eq!(ran.ask("hello").await.unwrap().content, "hi");
        assert_eq!(ran.server.count(), failures + 1);
        assert!(waited.is_none_or(|waited| ran.waited() == waited), "{}", ran.waited());
        let notices = ran.notices().join(" ");
        assert!(waited != Some(20_000) || notices.contains("Overloaded"), "{notices}");
    }
    let ran = after(vec![overloaded(&[]); 9]).await;
    let (rule, reason) = failed(ran.ask("hello").await);
    assert_eq!((rule, ran.server.count()), ("server_error", 5));
    assert!(reason.contains("Overloaded"), "{reason}");
}

#[tokio::test]
async fn errors_end_all_requests_or_one() {
    let invalid = |message| anthropic(400, &[], "invalid_request_error", message);
    for (reply, part) in [
        (anthropic(401, &[], "authentication_error", "invalid x-api-key"), "the key in $KEY"),
        (anthropic(403, &[], "permission_error", "no"), "refuses (HTTP 403)"),
        (anthropic(404, &[], "not_found_error", "model: m"), "has no model `m`"),
        (anthropic(404, &[], "not_found_error", "Not Found"), "/v1/messages"),
        (invalid("Your credit balance is too low"), "no money left"),
        (invalid("seed: Extra inputs are not permitted"), "leave it out"),
    ] {
        let ran = after(vec![reply; 3]).await;
        let reason = fatal(ran.ask("hello").await);
        assert_eq!(ran.server.count(), 1, "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
    let empty = json!({"type": "message", "content": null, "usage": {"input_tokens": 1, "output_tokens": 0}});
    let within = json!({"type": "error", "error": {"type": "api_error", "message": "M"}});
    for (reply, rule, tries) in [
        (invalid("prompt is too long: 9"), "refused", 1),
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
        let ran = after(vec![reply; 9]).await;
        let (found, reason) = failed(ran.ask("hello").await);
        assert_eq!((found, ran.server.count()), (rule, tries), "{reason}");
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
        let ran = after(vec![reply; 99]).await;
        let error = ran.ask("hello").await.unwrap_err();
        let shown = format!("{error:?} {:?} {:?}", ran.client, ran.notices());
        assert!(!shown.contains(&KEY[7..15]), "{shown}");
    }
    // Nor do the tokens of an answer, in pieces.
    let (a, b) = KEY.split_at(12);
    let tokens = json!([{"token": "x", "logprob": -1.0}, {"token": a, "logprob": -1.0},
        {"token": b, "logprob": -1.0}]);
    let reply = json!({"choices": [{"message": {"content": format!("x{KEY}")},
        "logprobs": {"content": tokens}}]});
    let script = move |_, _: &Request| status(200, &[], &reply.to_string());
    let ran = speaking(Protocol::Chat, script).await;
    let answer = ran.ask("hello").await.unwrap();
    assert_eq!((answer.content.as_str(), answer.logprobs), ("x***", None));
}
