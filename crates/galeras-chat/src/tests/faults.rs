//! Tests of everything that can go wrong between a server and us.

use futures::future::join_all;
use tokio::io::AsyncWriteExt;

use super::*;

/// The result of a request whose tries are answered by `replies` and then well, and the number of tries
/// there were.
async fn after(
    replies: Vec<Reply>,
    settings: ChatSettings,
) -> (Result<Answer, ChatError>, usize, Ran) {
    let server = Server::start(move |n, _| replies.get(n).cloned().unwrap_or_else(ok)).await;
    let ran = Ran::new(&server, settings);
    let result = ran.ask("hello").await;
    (result, server.count(), ran)
}

fn raw(text: &str) -> Reply {
    Reply::Cut(text.as_bytes().to_vec())
}

#[tokio::test]
async fn a_request_is_sent_as_the_api_wants_it() {
    let server = Server::start(|_, _| ok()).await;
    let key = Secret::new("KEY", "sk-abcdefgh").unwrap();
    let ran = Ran::with_key(&server, Some(key), ChatSettings::default());
    let answer = ran.ask("hello").await.unwrap();
    assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), ("hi", Some("stop")));
    assert_eq!((answer.prompt_tokens, answer.completion_tokens), (Some(20), Some(5)));
    server.with(|requests| {
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
    let damaged = || status(200, &[], "{\"choices\": [");
    let huge_head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(100));
    for replies in [
        vec![status(500, &[], "oops")],
        vec![
            status(502, &[], ""),
            status(503, &[], ""),
            status(504, &[], ""),
            status(408, &[], ""),
        ],
        vec![status(529, &[], ""), status(409, &[], ""), status(425, &[], "")],
        vec![damaged()],
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
        let tries = replies.len() + 1;
        let (result, count, ran) = after(replies, ChatSettings::default()).await;
        assert_eq!(result.unwrap().content, "hi");
        assert_eq!(count, tries);
        assert_eq!(ran.clock.waits().len(), tries - 1, "{:?}", ran.clock.waits());
    }
}

#[tokio::test]
async fn a_request_fails_after_its_tries() {
    let choices = "{\"choices\": []}";
    for (reply, rule, tries, told) in [
        (status(500, &[], "oops"), "server_error", 5, "HTTP 500): oops (5 tries)"),
        (status(500, &[("x-should-retry", "false")], ""), "server_error", 1, "HTTP 500)"),
        (raw(""), "cut_connection", 5, "before the answer did"),
        (raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"), "cut_connection", 5, "before"),
        (status(200, &[], "<p>"), "malformed_answer", 2, "damaged"),
        (raw("what?\r\n\r\n"), "malformed_answer", 2, "no HTTP"),
        (status(204, &[], ""), "malformed_answer", 2, "204"),
        (status(200, &[], choices), "no_choices", 2, "no choice"),
        (status(400, &[], "{\"error\": \"odd\"}"), "refused", 1, "odd"),
    ] {
        let (result, count, ran) = after(vec![reply; 9], ChatSettings::default()).await;
        let (found, reason) = failed(result);
        assert_eq!((found, count), (rule, tries), "{reason}");
        assert!(reason.contains(told), "{reason}");
        // 1 + 2 + 4 + 8 seconds, less up to half.
        let most = 1_000 * ((1 << (tries - 1)) - 1);
        assert!(ran.waited() <= most && ran.waited() >= most / 2, "{}", ran.waited());
    }
}

#[tokio::test]
async fn what_a_server_asks_a_single_request_to_wait_is_obeyed() {
    let (result, _, ran) =
        after(vec![status(500, &[("retry-after", "77")], "")], ChatSettings::default()).await;
    assert!(result.is_ok());
    assert_eq!(ran.clock.waits(), [Duration::from_secs(77)]);
    assert!(ran.notices()[0].contains("next try in 1 min 17 s"), "{:?}", ran.notices());
    let late = vec![status(500, &[("retry-after", "99999")], "")];
    assert_eq!(failed(after(late, ChatSettings::default()).await.0).0, "server_error");
}

#[tokio::test]
async fn slow_servers_run_into_the_time_out() {
    let drip = Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n{".to_vec());
    let drip_head = Reply::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec());
    for reply in [Reply::Hang, drip, drip_head] {
        let (result, count, _) = after(vec![reply; 9], hasty()).await;
        assert_eq!(
            (failed(result), count),
            (("time_out", "no answer in 150 ms (2 tries)".into()), 2)
        );
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
        let (result, count, _) = after(vec![raw(&reply)], ChatSettings::default()).await;
        assert_eq!((result.unwrap().content.as_str(), count), ("hi", 1), "{reply}");
    }
}

#[tokio::test]
async fn an_answer_longer_than_its_length_harms_nobody() {
    let text = good("hi");
    let longer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}xxxx", text.len());
    let shorter = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len() - 4);
    let server = Server::start(move |n, _| match n {
        0 => raw(&longer),
        2 => raw(&shorter),
        _ => ok(),
    });
    let server = server.await;
    let ran = Ran::new(&server, ChatSettings::default());
    for _ in 0..4 {
        assert_eq!(ran.ask("hello").await.unwrap().content, "hi");
    }
    assert_eq!(server.count(), 5, "the shorter one is damaged and asked again");
}

#[tokio::test]
async fn huge_answers_are_not_read() {
    for chunked in [false, true] {
        let server = Server::start(move |n, _| match n {
            0 => Reply::Huge { bytes: 100 << 20, chunked },
            _ => ok(),
        });
        let server = server.await;
        let settings = ChatSettings { max_answer_bytes: 1 << 20, ..ChatSettings::default() };
        let ran = Ran::new(&server, settings);
        let (rule, reason) = failed(ran.ask("hello").await);
        assert_eq!((rule, server.count()), ("too_large", 1), "{reason}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(server.written() < 20 << 20, "{} bytes", server.written());
        assert!(ran.ask("hello").await.is_ok(), "others go on");
    }
    let large = "x".repeat(900_000);
    let fits = status(200, &[], &good(&large));
    let settings = ChatSettings { max_answer_bytes: 1 << 20, ..ChatSettings::default() };
    assert_eq!(after(vec![fits], settings).await.0.unwrap().content.len(), 900_000);
}

#[tokio::test]
async fn what_ends_it_all_ends_it_all() {
    let html = ("content-type", "text/html; charset=utf-8");
    for (reply, told) in [
        (status(401, &[], "{\"error\": \"no key\"}"), "wants a key: no key"),
        (status(403, &[], ""), "403"),
        (status(404, &[], "404 page not found"), "/v1"),
        (status(404, &[], "{\"message\": \"The model `m` does not exist.\"}"), "no model `m`"),
        (
            status(307, &[("location", "https://evil.example/v1?x=1")], ""),
            "https://evil.example/v1,",
        ),
        (status(200, &[("content-type", "text/event-stream")], "data: {}\n\n"), "stream"),
        (status(200, &[("content-encoding", "gzip")], "..."), "compresses its answer (gzip)"),
        (status(200, &[html], "<html>"), "web page"),
        (status(429, &[], "{\"error\": {\"type\": \"insufficient_quota\"}}"), "quota"),
    ] {
        let server = Server::start(move |_, _| reply.clone()).await;
        let ran = Ran::new(&server, ChatSettings::default());
        let reason = fatal(ran.ask("hello").await);
        assert!(reason.contains(told), "{reason}");
        assert_eq!(fatal(ran.ask("hello").await), reason);
        assert_eq!(server.count(), 1, "nothing is sent afterwards");
    }
}

#[tokio::test]
async fn those_who_wait_hear_of_the_end() {
    let late = || Reply::Late(Duration::from_millis(20), Box::new(status(401, &[], "")));
    let server = Server::start(move |_, _| late()).await;
    let settings = ChatSettings { requests_per_minute: Some(2), ..ChatSettings::default() };
    let endpoint = Endpoint::new(Protocol::Chat, &server.url(), None).unwrap();
    let client = ChatClient::new(endpoint, settings).unwrap();
    let (request, cancel) = (ask("hello"), CancellationToken::new());
    let started = std::time::Instant::now();
    let results = join_all((0..20).map(|_| client.ask(&request, &|_| (), &cancel))).await;
    assert!(results.into_iter().all(|result| fatal(result).contains("wants a key")));
    assert_eq!(server.count(), 1);
    assert!(started.elapsed() < Duration::from_secs(5), "nobody waits for his turn");
}

#[tokio::test]
async fn connections_are_used_again_and_closed_ones_replaced() {
    let server = Server::start(|n, _| match n {
        2 | 4 => Reply::Close(good("hi")),
        _ => ok(),
    });
    let server = server.await;
    let ran = Ran::new(&server, ChatSettings::default());
    for _ in 0..10 {
        ran.ask("hello").await.unwrap();
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    let connections = server.with(|all| all.iter().map(|r| r.connection).max());
    assert_eq!((server.count(), connections), (10, Some(2)));
    assert!(ran.clock.waits().is_empty());
    for _ in 0..100 {
        join_all((0..16).map(|_| ran.ask("hello"))).await;
    }
    // 16 if every connection is free again before the next request looks for one.
    let distinct = server.with(|all| {
        all[10..].iter().map(|r| r.connection).collect::<std::collections::BTreeSet<_>>().len()
    });
    assert!(distinct < 64, "{distinct} connections for 1600 requests");
}

#[tokio::test]
async fn a_server_that_never_was_there_is_not_waited_for() {
    let server = Server::start(|_, _| ok()).await;
    server.stop();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let ran = Ran::new(&server, ChatSettings::default());
    let reason = fatal(ran.ask("hello").await);
    assert!(reason.contains("cannot be reached") && reason.contains("running"), "{reason}");
    assert!(reason.contains(&format!("http://127.0.0.1:{}", server.port)), "{reason}");
    assert!(ran.clock.waits().is_empty());
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://127.0.0.1:{}/v1", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let client = ChatClient::new(
        Endpoint::new(Protocol::Chat, &url, None).unwrap(),
        ChatSettings::default(),
    )
    .unwrap();
    let result = client.ask(&ask("hello"), &|_| (), &CancellationToken::new()).await;
    let reason = fatal(result);
    assert!(reason.contains("no safe connection to https://127.0.0.1"), "{reason}");
    server.abort();
}

#[tokio::test]
async fn a_server_that_dies_is_waited_for() {
    let server = Server::start(|_, _| ok()).await;
    let ran = Ran::new(&server, ChatSettings::default());
    ran.ask("hello").await.unwrap();
    server.stop();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let results = join_all((0..4).map(|_| ran.ask("hello"))).await;
    for result in results {
        assert!(fatal(result).contains("still so after 1 min"));
    }
    assert_eq!(ran.notices().len(), 1, "{:?}", ran.notices());
    let longest = ran.clock.waits().into_iter().max().unwrap();
    assert!(longest <= Duration::from_secs(8), "{longest:?}");
}

#[tokio::test]
async fn a_server_that_comes_back_goes_on() {
    let server = Server::start(|_, _| ok()).await;
    let port = server.port;
    let clock = Arc::new(SystemClock::new());
    let endpoint = Endpoint::new(Protocol::Chat, &server.url(), None).unwrap();
    let client = ChatClient::with_clock(endpoint, ChatSettings::default(), clock).unwrap();
    let (request, cancel) = (ask("hello"), CancellationToken::new());
    client.ask(&request, &|_| (), &cancel).await.unwrap();
    server.stop();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (answer, server) = tokio::join!(client.ask(&request, &|_| (), &cancel), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Server::start_at(port, |_, _| ok()).await
    });
    assert!(answer.is_ok());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_model_that_loads_is_waited_for() {
    let loading =
        || status(503, &[], "{\"error\": {\"message\": \"Loading model\", \"code\": 503}}");
    let (result, count, _) = after(vec![loading(); 8], ChatSettings::default()).await;
    assert_eq!((result.is_ok(), count), (true, 9));
    let (result, _, ran) = after(vec![loading(); 99], ChatSettings::default()).await;
    assert!(fatal(result).contains("loads its model"));
    assert!(ran.waited() == 60_000, "{}", ran.waited());
}

#[tokio::test]
async fn cancelling_ends_every_wait_at_once() {
    let server = Server::start(|n, _| match n {
        0 => status(429, &[("retry-after", "3000")], ""),
        _ => Reply::Hang,
    });
    let server = server.await;
    for settings in [
        ChatSettings::default(),
        ChatSettings { requests_per_minute: Some(1), ..ChatSettings::default() },
    ] {
        let endpoint = Endpoint::new(Protocol::Chat, &server.url(), None).unwrap();
        let client = ChatClient::new(endpoint, settings).unwrap();
        let (request, cancel) = (ask("hello"), CancellationToken::new());
        let all = join_all((0..5).map(|_| client.ask(&request, &|_| (), &cancel)));
        let started = std::time::Instant::now();
        let (results, ()) = tokio::join!(all, async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        });
        assert!(results.iter().all(|result| *result == Err(ChatError::Interrupted)));
        assert!(started.elapsed() < Duration::from_millis(500));
    }
}
