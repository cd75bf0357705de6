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
        let reply = limited(&headers);
        let server = Server::start(move |n, _| if n == 0 { reply.clone() } else { ok() }).await;
        let ran = Ran::new(&server, ChatSettings::default());
        assert!(ran.ask("hello").await.is_ok());
        assert_eq!((ran.waited(), server.count()), (millis, 2), "{headers:?}");
        let told = ran.notices();
        assert_eq!(told.len(), usize::from(millis >= 3_000), "{told:?}");
        assert!(told.iter().all(|text| text.contains("Slow down")), "{told:?}");
    }
}

#[tokio::test]
async fn waits_without_a_word_grow_and_end() {
    let server = Server::start(|_, _| limited(&[])).await;
    let ran = Ran::new(&server, ChatSettings::default());
    let reason = fatal(ran.ask("hello").await);
    assert!(reason.contains("10 waits"), "{reason}");
    assert_eq!(server.count(), 11);
    let waits = ran.clock.waits();
    for (n, wait) in waits.iter().enumerate() {
        let most = Duration::from_secs((1 << n).min(60));
        assert!(*wait <= most && *wait * 2 >= most, "{waits:?}");
    }
    let server = Server::start(|_, _| limited(&[("retry-after", "86400")])).await;
    let ran = Ran::new(&server, ChatSettings::default());
    assert!(fatal(ran.ask("hello").await).contains("24 h 0 min"));
    assert!(ran.clock.waits().is_empty());
}

#[tokio::test]
async fn after_a_limit_all_wait_together() {
    let server = Server::start(|n, _| match n {
        0..8 => limited(&[("retry-after", "30")]),
        _ => ok(),
    });
    let server = server.await;
    let ran = Ran::new(&server, ChatSettings { concurrency: 8, ..ChatSettings::default() });
    *ran.clock.pause.lock().unwrap() = Duration::from_millis(100);
    let start = ran.clock.now();
    let results = join_all((0..8).map(|_| ran.ask("hello"))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(server.count(), 16);
    assert_eq!(ran.notices().len(), 1, "{:?}", ran.notices());
    let took = ran.clock.now() - start;
    let (least, most) = (Duration::from_secs(30), Duration::from_secs(32));
    assert!(took >= least && took < most, "{took:?}");
    assert!(ran.clock.waits().iter().filter(|wait| **wait < least).count() >= 7, "one by one");
}

#[tokio::test]
async fn a_limited_request_does_not_use_up_its_tries() {
    let server = Server::start(|n, _| if n % 7 == 6 { ok() } else { limited(&[]) }).await;
    let ran = Ran::new(&server, ChatSettings { tries: 2, ..ChatSettings::default() });
    for _ in 0..5 {
        assert!(ran.ask("hello").await.is_ok());
    }
    let server = Server::start(|_, request| match request.body.contains("long") {
        true => limited(&[]),
        false => ok(),
    });
    let server = server.await;
    let ran = Ran::new(&server, ChatSettings::default());
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
    let times = Arc::new(Mutex::new(Vec::new()));
    let clock = FakeClock::new();
    let (log, now) = (Arc::clone(&times), Arc::clone(&clock));
    let server = Server::start(move |_, _| {
        log.lock().unwrap().push(now.now());
        ok()
    });
    let server = server.await;
    let settings = ChatSettings { requests_per_minute: Some(100), ..ChatSettings::default() };
    let endpoint = Endpoint::new(Protocol::Chat, &server.url(), None).unwrap();
    let client =
        ChatClient::with_clock(endpoint, settings, Arc::<FakeClock>::clone(&clock)).unwrap();
    let (request, cancel) = (ask("hello"), CancellationToken::new());
    let start = clock.now();
    let results = join_all((0..350).map(|_| client.ask(&request, &|_| (), &cancel))).await;
    assert!(results.iter().all(Result::is_ok));
    let took = clock.now() - start;
    assert!(took >= Duration::from_secs(208) && took < Duration::from_secs(212), "{took:?}");
}

#[tokio::test]
async fn tokens_per_minute_are_estimated_and_then_known() {
    let server = Server::start(|_, _| ok()).await;
    let settings = ChatSettings { tokens_per_minute: Some(2_500), ..ChatSettings::default() };
    let ran = Ran::new(&server, settings);
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
        let server = Server::start(move |n, _| match n {
            1 => Reply::Full(200, vec![], absurd.clone()),
            _ => ok(),
        });
        let server = server.await;
        let settings = ChatSettings { tokens_per_minute: Some(10_000), ..ChatSettings::default() };
        let ran = Ran::new(&server, settings);
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

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

fn price() -> Price {
    Price::per_million(usd("1"), usd("2")).unwrap()
}

/// Settings that let requests cost `limit` at most.
fn within(limit: &str, budget: &mut Option<Arc<Budget>>) -> ChatSettings {
    let limit = SpendingLimit {
        account: "a".into(),
        owner: "the step `a`".into(),
        max_usd: Some(usd(limit)),
        max_requests: None,
    };
    let accounts = Accounts::new(vec![limit], None);
    *budget = Some(Budget::new(accounts, vec![0]));
    let price = Some(price());
    ChatSettings { budget: budget.clone(), price, ..ChatSettings::default() }
}

fn spent(budget: &Option<Arc<Budget>>) -> Usd {
    budget.as_ref().unwrap().tally().usd
}

#[tokio::test]
async fn the_budget_ends_the_work_before_it_is_passed() {
    let server = Server::start(|_, _| Reply::Late(Duration::from_millis(1), Box::new(ok()))).await;
    // An answer costs 20 + 2 * 5 = 30 millionths; at worst it is 600 or so.
    let mut budget = None;
    let ran = Ran::new(&server, within("0.003", &mut budget));
    let results = join_all((0..200).map(|_| ran.ask("hello"))).await;
    let good = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(good, server.count());
    assert!((75..=100).contains(&good), "{good}");
    assert_eq!(spent(&budget), price().of(20 * good as u64, 5 * good as u64));
    let over = results.into_iter().find_map(Result::err).unwrap();
    assert!(matches!(over, ChatError::OverBudget(_)), "{over:?}");
    let wanted = "of the $0.003 that `max_usd` of the step `a` allows may be spent,";
    assert!(over.to_string().contains(wanted), "{over}");
    let tally = budget.unwrap().tally();
    assert_eq!((tally.requests, tally.unknown), (good as u64, 0));
    assert_eq!((tally.prompt_tokens, tally.completion_tokens), (20 * good as u64, 5 * good as u64));
}

#[tokio::test]
async fn what_failed_costs_what_it_may_have_cost() {
    let worst = price().of(ask("hello").bytes() as u64 + 16 + 256, 100);
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
        let server = Server::start(move |_, _| reply.clone()).await;
        let mut budget = None;
        let settings = within("1", &mut budget);
        let ran =
            Ran::new(&server, ChatSettings { tries: 1, timeout: hasty().timeout, ..settings });
        let _ = ran.ask("hello").await;
        assert_eq!((spent(&budget), server.count()), (cost, 1));
    }
}

#[tokio::test]
async fn a_cancelled_request_costs_its_worst_case() {
    let server = Server::start(|_, _| Reply::Hang).await;
    let mut budget = None;
    let ran = Ran::new(&server, within("1", &mut budget));
    let (result, ()) = tokio::join!(ran.ask("hello"), async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        ran.cancel.cancel();
    });
    assert_eq!(result, Err(ChatError::Interrupted));
    assert!(spent(&budget) > Usd::ZERO);
    assert_eq!(budget.unwrap().tally().unknown, 1);
}

#[tokio::test]
async fn a_budget_needs_a_limit_of_answers_unless_they_are_free() {
    let server = Server::start(|_, _| ok()).await;
    let mut budget = None;
    let settings = within("1", &mut budget);
    let mut body = body("hello");
    body.remove("max_tokens");
    let ask = Ask::new(body).unwrap();
    let ran = Ran::new(&server, settings.clone());
    let result = ran.client.ask(&ask, &|_| (), &ran.cancel).await;
    assert!(fatal(result).contains("length of answers"));
    let unpriced = Ran::new(&server, ChatSettings { price: None, ..settings.clone() });
    let result = unpriced.client.ask(&ask, &|_| (), &unpriced.cancel).await;
    assert!(fatal(result).contains("needs a price"));
    assert_eq!(server.count(), 0);
    let free = Price::per_million(usd("1"), Usd::ZERO).unwrap();
    let ran = Ran::new(&server, ChatSettings { price: Some(free), ..settings });
    ran.client.ask(&ask, &|_| (), &ran.cancel).await.unwrap();
    assert_eq!(spent(&budget), usd("0.00002"));
}
