//! Tests that no text shows the key.

use std::cell::RefCell;

use super::*;

const KEY: &str = "sk-proj-AbCdEfGh0123456789ZyXwVu";

/// A client with the key of a server that always gives this reply.
async fn with_key(reply: Reply) -> TestClient {
    let server = Server::start(0, move |_, _| reply.clone()).await;
    TestClient::new(server, Protocol::Chat, Some(KEY), ChatSettings::default())
}

#[tokio::test]
async fn no_server_makes_us_show_the_key() {
    let percent: String = KEY.bytes().map(|b| format!("%{b:02x}")).collect();
    let masked = format!("{}****{}", &KEY[..11], &KEY[KEY.len() - 4..]);
    let echo =
        |text: &str| json!({"error": {"message": format!("Incorrect key: {text}.")}}).to_string();
    let unsupported = json!({"error": {"code": "unsupported_parameter", "message": KEY}});
    let head =
        |name: &'static str, value: String| Reply::Full(302, vec![(name, value)], String::new());
    let replies = vec![
        status(401, &[], &echo(KEY)),
        status(401, &[], &echo(&percent)),
        status(401, &[], &echo(&masked)),
        status(401, &[], &echo(&format!("{}{KEY}", "x".repeat(190)))),
        status(403, &[], KEY),
        status(400, &[], &unsupported.to_string()),
        status(404, &[], &format!("no model {KEY}")),
        status(429, &[("retry-after", "20")], &echo(KEY)),
        status(500, &[], &format!("<title>{KEY}</title>")),
        status(500, &[("retry-after", "20")], &echo(KEY)),
        status(200, &[], &format!("{{\"choices\": \"{KEY}\"}}")),
        status(200, &[], &format!("{{\"error\": \"{KEY}\"}}")),
        status(200, &[("content-encoding", KEY)], ""),
        head("location", format!("https://evil.example/{KEY}?key={KEY}")),
        head("location", format!("https://{KEY}.example/")),
        Reply::Cut(format!("HTTP/1.1 200 OK\r\n{KEY}").into_bytes()),
    ];
    for reply in replies {
        let ran = with_key(reply).await;
        let error = ran.ask("hello").await.unwrap_err();
        let shown = format!("{error} {error:?} {:?} {:?}", ran.client, ran.notices());
        let lower = shown.to_lowercase();
        for at in 0..KEY.len() - 8 {
            let piece = &KEY[at..at + 8].to_lowercase();
            assert!(!lower.contains(piece), "{piece} in {shown}");
        }
        for piece in [&percent, &KEY[KEY.len() - 4..]] {
            assert!(!shown.contains(piece), "{piece} in {shown}");
        }
        assert!(shown.contains("KEY"), "the variable is named: {shown}");
    }
}

#[tokio::test]
async fn no_answer_carries_the_key() {
    let reply = json!({
        "model": KEY, "system_fingerprint": KEY,
        "choices": [{"message": {"content": format!("a {KEY}"), "refusal": KEY}, "finish_reason": KEY}],
    });
    let ran = with_key(status(200, &[], &reply.to_string())).await;
    let answer = ran.ask("hello").await.unwrap();
    assert_eq!(answer.content, "a ***");
    assert!(!format!("{answer:?}").contains(KEY));
}

#[tokio::test]
async fn the_words_of_a_server_are_one_short_line() {
    let long = format!("a\u{1b}[31m\r\nb\u{202e} {}", "é ".repeat(1_000));
    let reply = status(400, &[], &json!({"error": {"message": long}}).to_string());
    let ran = TestClient::after(vec![reply], ChatSettings::default()).await;
    let (_, reason) = failed(ran.ask("hello").await);
    assert!(!reason.contains(|c: char| c.is_control() || c == '\u{202e}'), "{reason}");
    assert!(reason.chars().count() < 250 && reason.ends_with('…'), "{reason}");
}

thread_local! {
    /// The events of this thread, which are those of one test: each has a separate runtime.
    static EVENTS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Writes down every event of this program. It is there for all threads: what a thread without
/// a subscriber comes upon first would be switched off for those that have one.
struct Recorder;

impl tracing::Subscriber for Recorder {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("galeras")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        let mut write = |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!("{}={value:?} ", field.name()));
        };
        event.record(&mut write);
        EVENTS.with_borrow_mut(|events| events.push_str(&format!("{line}\n")));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn events_tell_requests_and_retries_and_no_secret() {
    tracing::subscriber::set_global_default(Recorder).unwrap();
    let replies = [status(500, &[], KEY), ok()];
    let server = Server::start(0, move |n, _| replies[n].clone()).await;
    let key = Secret::new("KEY", KEY).unwrap();
    let endpoint =
        Endpoint::new(Protocol::Chat, &format!("{}?key=hunter2", server.url()), Some(key)).unwrap();
    let client =
        ChatClient::with_clock(endpoint, ChatSettings::default(), FakeClock::new()).unwrap();
    // Another test may have emitted the same events just before the recorder was there.
    tracing::callsite::rebuild_interest_cache();
    EVENTS.take();
    let answer = client.ask(&ask("a prompt"), &|_| (), &CancellationToken::new()).await;
    assert_eq!(answer.unwrap().content, "hi");
    let events = EVENTS.take();
    let lines: Vec<&str> = events.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("status=500") && lines[0].contains("host=\"127.0.0.1\""));
    assert!(lines[1].contains("attempt=1") && lines[1].contains("wait_seconds="));
    assert!(lines[2].contains("status=200") && lines[2].contains("path=\"/"));
    for secret in [KEY, "hunter2", "prompt", "Bearer"] {
        assert!(!events.contains(secret), "{events}");
    }
}
