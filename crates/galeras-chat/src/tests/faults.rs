//! Tests of everything that can go wrong between a server and us.

use std::collections::BTreeSet;
use std::time::Instant;

use futures::future::join_all;
use tokio::io::AsyncWriteExt;

use super::*;

fn raw(text: &str) -> Reply {
    Reply::Cut(text.as_bytes().to_vec())
}

#[tokio::test]
async fn a_request_is_sent_as_the_api_wants_it() {
    let server = Server::start(0, |_, _| ok()).await;
    let settings = ChatSettings::default();
    let ran = TestClient::new(server, Protocol::Chat, Some("sk-abcdefgh"), settings);
    let answer = ran.ask("hello").await.unwrap();
    assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), ("hi", Some("stop")));
    assert_eq!((answer.prompt_tokens, answer.completion_tokens), (Some(20), Some(5)));
    ran.server.with(|requests| {
        let head = requests[0].head.to_lowercase();
        assert!(head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{head}");
        for line in [
            "authorization: bearer sk-abcdefgh",
            "content-type: application/json",
            "accept: application/json",
            "user-agent: galeras/",
        ] {
            assert_eq!(head.matches(line).count(), 1, "{line} in {head}");
        }
        assert!(!head.contains("accept-encoding"), "{head}");
        let sent: serde_json::Value = serde_json::from_str(&requests[0].body).unwrap();
        assert_eq!(sent["stream"], false);
        assert_eq!(sent["messages"][0]["content"], "hello");
    });
}

#[tokio::test]
async fn failing_servers_are_asked_again() {
    let of_status = |code| status(code, &[], "");
    let huge_head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(100));
    for replies in [
        vec![status(500, &[], "oops")],
        [502, 503, 504, 408].map(of_status).to_vec(),
        [529, 409, 425].map(of_status).to_vec(),
        vec![status(200, &[], "{\"choices\": [")],
        vec![status(200, &[], "")],
        vec![status(204, &[], "")],
        vec![status(200, &[], "{\"choices\": []}")],
        vec![status(200, &[], "{\"error\": {\"code\": 502, \"message\": \"upstream\"}}")],
        vec![raw("")],
        vec![raw("HTTP/1.1 200"), raw(&huge_head)],
        vec![raw("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"cho")],
        vec![raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho\r\n")],
        vec![raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")],
        vec![raw("what?\r\n\r\n")],
    ] {
        let failures = replies.len();
        let ran = TestClient::after(replies, ChatSettings::default()).await;
        assert_eq!(ran.ask("hello").await.unwrap().content, "hi");
        assert_eq!((ran.server.count(), ran.clock.waits().len()), (failures + 1, failures));
    }
}

#[tokio::test]
async fn a_request_fails_after_its_tries() {
    let choices = "{\"choices\": []}";
    for (reply, rule, tries, part) in [
        (status(500, &[], "oops"), "server_error", 5, "HTTP 500): oops (5 tries)"),
        (status(500, &[("x-should-retry", "false")], ""), "server_error", 1, "HTTP 500)"),
        (raw(""), "cut_connection", 5, "before the answer did"),
        (raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"), "cut_connection", 5, "before"),
        (status(200, &[], "\n<p>a\nb"), "malformed_answer", 2, "is not JSON: it begins with <p>a"),
        (raw("what?\r\n\r\n"), "malformed_answer", 2, "not HTTP"),
        (status(204, &[], ""), "malformed_answer", 2, "204"),
        (status(200, &[], choices), "no_choices", 2, "no choice"),
        (status(400, &[], "{\"error\": \"odd\"}"), "refused", 1, "odd"),
    ] {
        let ran = TestClient::after(vec![reply; 9], ChatSettings::default()).await;
        let (found, reason) = failed(ran.ask("hello").await);
        assert_eq!((found, ran.server.count()), (rule, tries), "{reason}");
        assert!(reason.contains(part), "{reason}");
        // 1 + 2 + 4 + 8 seconds, less up to half.
        let most = 1_000 * ((1 << (tries - 1)) - 1);
        assert!(ran.waited() <= most && ran.waited() >= most / 2, "{}", ran.waited());
    }
}

#[tokio::test]
async fn the_wait_that_a_server_asks_of_one_request_is_obeyed() {
    let replies = vec![status(500, &[("retry-after", "77")], "")];
    let ran = TestClient::after(replies, ChatSettings::default()).await;
    assert!(ran.ask("hello").await.is_ok());
    assert_eq!(ran.clock.waits(), [Duration::from_secs(77)]);
    assert!(ran.notices()[0].contains("next try in 1 min 17 s"), "{:?}", ran.notices());
    let late = vec![status(500, &[("retry-after", "99999")], "")];
    let ran = TestClient::after(late, ChatSettings::default()).await;
    assert_eq!(failed(ran.ask("hello").await).0, "server_error");
}

#[tokio::test]
async fn slow_servers_run_into_the_time_out() {
    let drip = Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n{".to_vec());
    let drip_head = Reply::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec());
    for reply in [Reply::Hang, drip, drip_head] {
        let timeout = Duration::from_millis(150);
        let settings = ChatSettings { timeout, ..ChatSettings::default() };
        let ran = TestClient::after(vec![reply; 9], settings).await;
        let reason = "no answer in 150 ms (2 tries)".to_string();
        assert_eq!(failed(ran.ask("hello").await), ("time_out", reason));
        assert_eq!(ran.server.count(), 2);
    }
}

#[tokio::test]
async fn answers_in_every_frame_are_read() {
    let text = good("hi");
    let (a, b) = text.split_at(30);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x};x=y\r\n{b}\r\n0\r\n\r\n",
        a.len(),
        b.len()
    );
    for reply in [
        chunked,
        format!("HTTP/1.0 200 OK\r\n\r\n{text}"),
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{text}"),
        format!("HTTP/1.1 201 Created\r\ncontent-type: text/plain\r\n\r\n\n {text} \n"),
        format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{text}"),
    ] {
        let ran = TestClient::after(vec![raw(&reply)], ChatSettings::default()).await;
        let content = ran.ask("hello").await.unwrap().content;
        assert_eq!((content.as_str(), ran.server.count()), ("hi", 1), "{reply}");
    }
}

#[tokio::test]
async fn an_answer_longer_than_its_length_harms_nobody() {
    let text = good("hi");
    let longer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}xxxx", text.len());
    let shorter = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len() - 4);
    let replies = vec![raw(&longer), ok(), raw(&shorter)];
    let ran = TestClient::after(replies, ChatSettings::default()).await;
    for _ in 0..4 {
        assert_eq!(ran.ask("hello").await.unwrap().content, "hi");
    }
    assert_eq!(ran.server.count(), 5, "the shorter one is damaged and asked again");
}

#[tokio::test]
async fn huge_answers_are_not_read() {
    let settings = || ChatSettings { max_answer_bytes: 1 << 20, ..ChatSettings::default() };
    for chunked in [false, true] {
        let replies = vec![Reply::Huge { bytes: 100 << 20, chunked }];
        let ran = TestClient::after(replies, settings()).await;
        let (rule, reason) = failed(ran.ask("hello").await);
        assert_eq!((rule, ran.server.count()), ("too_large", 1), "{reason}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(ran.server.written() < 20 << 20, "{} bytes", ran.server.written());
        assert!(ran.ask("hello").await.is_ok(), "other requests are sent");
    }
    let fits = status(200, &[], &good(&"x".repeat(900_000)));
    let ran = TestClient::after(vec![fits], settings()).await;
    assert_eq!(ran.ask("hello").await.unwrap().content.len(), 900_000);
}

#[tokio::test]
async fn errors_that_end_all_requests() {
    let html = ("content-type", "text/html; charset=utf-8");
    let elsewhere = ("location", "https://evil.example/v1?x=1");
    for (reply, part) in [
        (status(401, &[], "{\"error\": \"no key\"}"), "wants a key: no key"),
        (status(403, &[], ""), "403"),
        (status(404, &[], "404 page not found"), "/v1"),
        (status(404, &[], "{\"message\": \"The model `m` does not exist.\"}"), "no model `m`"),
        (status(307, &[elsewhere], ""), "https://evil.example/v1,"),
        (status(200, &[("content-type", "text/event-stream")], "data: {}\n\n"), "stream"),
        (status(200, &[("content-encoding", "gzip")], "..."), "compresses its answer (gzip)"),
        (status(200, &[html], "<html>"), "web page"),
        (status(429, &[], "{\"error\": {\"type\": \"insufficient_quota\"}}"), "quota"),
    ] {
        let ran = TestClient::after(vec![reply; 9], ChatSettings::default()).await;
        let reason = fatal(ran.ask("hello").await);
        assert!(reason.contains(part), "{reason}");
        assert_eq!(fatal(ran.ask("hello").await), reason);
        assert_eq!(ran.server.count(), 1, "nothing is sent afterwards");
    }
}

#[tokio::test]
async fn requests_that_wait_get_the_error_that_ends_all() {
    let late = || Reply::Late(Duration::from_millis(20), Box::new(status(401, &[], "")));
    let server = Server::start(0, move |_, _| late()).await;
    let settings = ChatSettings { requests_per_minute: Some(2), ..ChatSettings::default() };
    let client = unhurried(&server, settings);
    let (request, cancel) = (ask("hello"), CancellationToken::new());
    let started = Instant::now();
    let results = join_all((0..20).map(|_| client.ask(&request, &|_| (), &cancel))).await;
    assert!(results.into_iter().all(|result| fatal(result).contains("wants a key")));
    assert_eq!(server.count(), 1);
    assert!(started.elapsed() < Duration::from_secs(5), "none waits for its turn");
}

#[tokio::test]
async fn connections_are_used_again_and_closed_ones_replaced() {
    let script = |n: usize, _: &Request| match n {
        2 | 4 => Reply::Close(good("hi")),
        _ => ok(),
    };
    let ran = TestClient::start(ChatSettings::default(), script).await;
    for _ in 0..10 {
        ran.ask("hello").await.unwrap();
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    let connections = ran.server.with(|all| all.iter().map(|r| r.connection).max());
    assert_eq!((ran.server.count(), connections), (10, Some(2)));
    assert!(ran.clock.waits().is_empty());
    for _ in 0..100 {
        join_all((0..16).map(|_| ran.ask("hello"))).await;
    }
    // 16 if every connection is free again before the next request looks for one.
    let later = |all: &[Request]| all[10..].iter().map(|r| r.connection).collect::<BTreeSet<_>>();
    let distinct = ran.server.with(later).len();
    assert!(distinct < 64, "{distinct} connections for 1600 requests");
}

/// The server is gone when this returns.
async fn stop(server: &Server) {
    server.stop();
    tokio::time::sleep(Duration::from_millis(10)).await;
}

#[tokio::test]
async fn a_server_that_never_was_there_is_not_waited_for() {
    let ran = TestClient::after(vec![], ChatSettings::default()).await;
    stop(&ran.server).await;
    let reason = fatal(ran.ask("hello").await);
    assert!(reason.contains("cannot be reached") && reason.contains("running"), "{reason}");
    assert!(reason.contains(&format!("http://127.0.0.1:{}", ran.server.port)), "{reason}");
    assert!(ran.clock.waits().is_empty());
}

#[tokio::test]
async fn a_server_without_tls_is_reported() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://127.0.0.1:{}/v1", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let endpoint = Endpoint::new(Protocol::Chat, &url, None).unwrap();
    let client = ChatClient::new(endpoint, ChatSettings::default()).unwrap();
    let reason = fatal(client.ask(&ask("hello"), &|_| (), &CancellationToken::new()).await);
    assert!(reason.contains("no safe connection to https://127.0.0.1"), "{reason}");
    assert!(reason.ends_with("begins with http://"), "{reason}");
    server.abort();
}

#[tokio::test]
async fn a_server_that_dies_is_waited_for() {
    let ran = TestClient::after(vec![], ChatSettings::default()).await;
    ran.ask("hello").await.unwrap();
    stop(&ran.server).await;
    let results = join_all((0..4).map(|_| ran.ask("hello"))).await;
    for result in results {
        assert!(fatal(result).contains("still so after 1 min"));
    }
    assert_eq!(ran.notices().len(), 1, "{:?}", ran.notices());
    let longest = ran.clock.waits().into_iter().max().unwrap();
    assert!(longest <= Duration::from_secs(8), "{longest:?}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let server = Server::start(0, |_, _| ok()).await;
    let client = unhurried(&server, ChatSettings::default());
    let (request, cancel) = (ask("hello"), CancellationToken::new());
    client.ask(&request, &|_| (), &cancel).await.unwrap();
    stop(&server).await;
    let (answer, server) = tokio::join!(client.ask(&request, &|_| (), &cancel), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Server::start(server.port, |_, _| ok()).await
    });
    assert!(answer.is_ok());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_model_that_loads_is_waited_for() {
    let text = "{\"error\": {\"message\": \"Loading model\", \"code\": 503}}";
    let loading =
        |times| TestClient::after(vec![status(503, &[], text); times], Default::default());
    let ran = loading(8).await;
    assert_eq!((ran.ask("hello").await.is_ok(), ran.server.count()), (true, 9));
    let ran = loading(99).await;
    assert!(fatal(ran.ask("hello").await).contains("loads its model"));
    assert_eq!(ran.waited(), 60_000);
}

#[tokio::test]
async fn cancelling_ends_every_wait_at_once() {
    let script = |n: usize, _: &Request| match n {
        0 => status(429, &[("retry-after", "3000")], ""),
        _ => Reply::Hang,
    };
    let server = Server::start(0, script).await;
    for requests_per_minute in [None, Some(1)] {
        let client =
            unhurried(&server, ChatSettings { requests_per_minute, ..ChatSettings::default() });
        let (request, cancel) = (ask("hello"), CancellationToken::new());
        let all = join_all((0..5).map(|_| client.ask(&request, &|_| (), &cancel)));
        let started = Instant::now();
        let (results, ()) = tokio::join!(all, async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        });
        assert!(results.iter().all(|result| *result == Err(ChatError::Interrupted)));
        assert!(started.elapsed() < Duration::from_millis(500));
    }
}
