//! Tests of limits: those of a server, those of a user, and the budget.

use futures::future::join_all;

use super::*;

fn limited(headers: &[(&'static str, &str)]) -> Reply {
    status(429, headers, "{\"error\": {\"message\": \"Slow down\"}}")
}

#[tokio::test]
async fn every_way_to_ask_for_a_wait_is_obeyed() {
    for (headers, millis) in [
        (vec![("retry-after", "20")], 20_000),
        (vec![("retry-after", "Sat, 21 Nov 2026 11:54:31 GMT")], 60_000),
        (vec![("retry-after-ms", "1500"), ("retry-after", "2")], 1_500),
        (vec![("x-ratelimit-reset-requests", "1s")], 1_000),
        (vec![("x-ratelimit-reset-tokens", "6m0s")], 360_000),
        (vec![("x-ratelimit-reset-tokens", "120ms")], 120),
        (vec![("retry-after", "0")], 0),
    ] {
        let ran = TestClient::after(vec![limited(&headers)], ChatSettings::default()).await;
        assert!(ran.ask("hello").await.is_ok());
        assert_eq!((ran.waited(), ran.server.count()), (millis, 2), "{headers:?}");
        let notices = ran.notices();
        assert_eq!(notices.len(), usize::from(millis >= 3_000), "{notices:?}");
        assert!(notices.iter().all(|text| text.contains("Slow down")), "{notices:?}");
    }
}

#[tokio::test]
async fn waits_without_a_word_grow_and_end() {
    let ran = TestClient::after(vec![limited(&[]); 99], ChatSettings::default()).await;
    let reason = fatal(ran.ask("hello").await);
    assert!(reason.contains("10 waits"), "{reason}");
    assert_eq!(ran.server.count(), 11);
    let waits = ran.clock.waits();
    for (n, wait) in waits.iter().enumerate() {
        let most = Duration::from_secs((1 << n).min(60));
        assert!(*wait <= most && *wait * 2 >= most, "{waits:?}");
    }
    let replies = vec![limited(&[("retry-after", "86400")])];
    let ran = TestClient::after(replies, ChatSettings::default()).await;
    assert!(fatal(ran.ask("hello").await).contains("24 h 0 min"));
    assert!(ran.clock.waits().is_empty());
}

#[tokio::test]
async fn after_a_limit_all_wait_together() {
    let settings = ChatSettings { concurrency: 8, ..ChatSettings::default() };
    let ran = TestClient::after(vec![limited(&[("retry-after", "30")]); 8], settings).await;
    *ran.clock.pause.lock().unwrap() = Duration::from_millis(100);
    let start = ran.clock.now();
    let results = join_all((0..8).map(|_| ran.ask("hello"))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(ran.server.count(), 16);
    assert_eq!(ran.notices().len(), 1, "{:?}", ran.notices());
    let took = ran.clock.now() - start;
    let (least, most) = (Duration::from_secs(30), Duration::from_secs(32));
    assert!(took >= least && took < most, "{took:?}");
    assert!(ran.clock.waits().iter().filter(|wait| **wait < least).count() >= 7, "one by one");
}

#[tokio::test]
async fn a_limited_request_does_not_use_up_its_tries() {
    let script = |n: usize, _: &Request| if n % 7 == 6 { ok() } else { limited(&[]) };
    let ran = TestClient::start(ChatSettings { tries: 2, ..ChatSettings::default() }, script).await;
    for _ in 0..5 {
        assert!(ran.ask("hello").await.is_ok());
    }
    let script = |_, request: &Request| match request.body.contains("long") {
        true => limited(&[]),
        false => ok(),
    };
    let ran = TestClient::start(ChatSettings::default(), script).await;
    let (long, ()) = tokio::join!(ran.ask("long"), async {
        for _ in 0..2_000 {
            ran.ask("short").await.ok();
        }
    });
    let (rule, reason) = failed(long);
    assert_eq!(rule, "refused", "{reason}");
}

#[tokio::test]
async fn requests_per_minute_are_kept() {
    let settings = ChatSettings { requests_per_minute: Some(100), ..ChatSettings::default() };
    let ran = TestClient::after(vec![], settings).await;
    let start = ran.clock.now();
    let results = join_all((0..350).map(|_| ran.ask("hello"))).await;
    assert!(results.iter().all(Result::is_ok));
    let took = ran.clock.now() - start;
    assert!(took >= Duration::from_secs(208) && took < Duration::from_secs(212), "{took:?}");
}

#[tokio::test]
async fn tokens_per_minute_are_estimated_and_then_known() {
    let settings = ChatSettings { tokens_per_minute: Some(2_500), ..ChatSettings::default() };
    let ran = TestClient::after(vec![], settings).await;
    let start = ran.clock.now();
    for _ in 0..300 {
        ran.ask("hello").await.unwrap();
    }
    // 25 tokens each, although 400 are expected at first: 100 a minute.
    let took = ran.clock.now() - start;
    assert!(took > Duration::from_secs(175) && took < Duration::from_secs(190), "{took:?}");
}

#[tokio::test]
async fn an_absurd_number_of_tokens_delays_one_minute() {
    for limit in [Some(100), None] {
        let absurd = good("hi").replace("\"completion_tokens\":5", "\"completion_tokens\":MAX");
        let absurd = absurd.replace("MAX", &u64::MAX.to_string());
        assert_ne!(absurd, good("hi"));
        let settings = ChatSettings { tokens_per_minute: Some(10_000), ..ChatSettings::default() };
        let ran = TestClient::after(vec![ok(), status(200, &[], &absurd)], settings).await;
        let mut body = body("hello");
        if limit.is_none() {
            body.remove("max_tokens");
        }
        let ask = Ask::new(body).unwrap();
        let start = ran.clock.now();
        for _ in 0..20 {
            ran.send(&ask).await.unwrap();
        }
        let took = ran.clock.now() - start;
        assert!(took >= Duration::from_secs(55) && took < Duration::from_secs(70), "{took:?}");
    }
}

fn price() -> Price {
    Price::per_million(usd("1"), usd("2")).unwrap()
}

/// A budget of `limit`, and settings that use it.
fn within(limit: &str) -> (Arc<Budget>, ChatSettings) {
    let budget = spending::budget(limit);
    let (price, counted) = (Some(price()), Some(Arc::clone(&budget)));
    (budget, ChatSettings { budget: counted, price, ..ChatSettings::default() })
}

#[tokio::test]
async fn the_budget_ends_the_work_before_it_is_passed() {
    let script = |_, _: &Request| Reply::Late(Duration::from_millis(1), Box::new(ok()));
    // An answer costs 20 + 2 * 5 = 30 millionths; at worst it is 600 or so.
    let (budget, settings) = within("0.003");
    let ran = TestClient::start(settings, script).await;
    let results = join_all((0..200).map(|_| ran.ask("hello"))).await;
    let good = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(good, ran.server.count());
    assert!((75..=100).contains(&good), "{good}");
    let over = results.into_iter().find_map(Result::err).unwrap();
    assert!(matches!(over, ChatError::OverBudget(_)), "{over:?}");
    let wanted = "of the $0.003 that `max_usd` of the step `a` allows may be spent,";
    assert!(over.to_string().contains(wanted), "{over}");
    let requests = good as u64;
    let (prompt_tokens, completion_tokens) = (20 * requests, 5 * requests);
    let usd = price().of(prompt_tokens, completion_tokens);
    let tally = Tally { requests, unknown: 0, prompt_tokens, completion_tokens, usd };
    assert_eq!(budget.tally(), tally);
}

#[tokio::test]
async fn what_failed_costs_what_it_may_have_cost() {
    let worst = price().of(ask("hello").body.len() as u64 + 16 + 256, 100);
    let nothing = Usd::ZERO;
    let cut = Reply::Cut(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec());
    let paid = r#"{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}}"#;
    let silent = r#"{"choices": [{"message": {"content": "hi"}}]}"#;
    for (reply, cost) in [
        (status(400, &[], ""), nothing),
        (status(500, &[], ""), nothing),
        (status(504, &[], ""), worst),
        (Reply::Hang, worst),
        (cut, worst),
        (status(200, &[], "{}"), worst),
        (status(200, &[], silent), worst),
        (status(200, &[], paid), price().of(7, 0)),
    ] {
        let (budget, settings) = within("1");
        let timeout = Duration::from_millis(150);
        let settings = ChatSettings { tries: 1, timeout, ..settings };
        let ran = TestClient::after(vec![reply], settings).await;
        let _ = ran.ask("hello").await;
        assert_eq!((budget.tally().usd, ran.server.count()), (cost, 1));
    }
}

#[tokio::test]
async fn a_cancelled_request_costs_its_worst_case() {
    let (budget, settings) = within("1");
    let ran = TestClient::after(vec![Reply::Hang], settings).await;
    let (result, ()) = tokio::join!(ran.ask("hello"), async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        ran.cancel.cancel();
    });
    assert_eq!(result, Err(ChatError::Interrupted));
    assert!(budget.tally().usd > Usd::ZERO);
    assert_eq!(budget.tally().unknown, 1);
}

#[tokio::test]
async fn a_budget_needs_a_limit_of_answers_unless_they_are_free() {
    let (budget, settings) = within("1");
    let mut body = body("hello");
    body.remove("max_tokens");
    let ask = Ask::new(body).unwrap();
    for (price, part) in [(Some(price()), "length of answers"), (None, "needs a price")] {
        let settings = ChatSettings { price, ..settings.clone() };
        let ran = TestClient::after(vec![], settings).await;
        assert!(fatal(ran.send(&ask).await).contains(part));
        assert_eq!(ran.server.count(), 0);
    }
    let free = Price::per_million(usd("1"), Usd::ZERO).unwrap();
    let ran = TestClient::after(vec![], ChatSettings { price: Some(free), ..settings }).await;
    ran.send(&ask).await.unwrap();
    assert_eq!(budget.tally().usd, usd("0.00002"));
}
