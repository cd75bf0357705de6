//! Tests of everything that can go wrong between GitHub and us, and that no token gets out.

use std::time::Instant;

use super::*;
use galeras_test_servers::github_api::GithubFault;

const TOKEN: &str = "ghp_SECRETsecret0123456789";

fn secret() -> Secret {
    Secret::new("GITHUB_TOKEN", TOKEN).unwrap()
}

fn raw(status: u16, headers: &[(&str, &str)], body: &str) -> GithubFault {
    let headers = headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    GithubFault::Raw(status, headers, body.into())
}

/// 250 repositories in three pages, the second of which has the faults.
async fn with(faults: &[GithubFault]) -> (SearchRun, usize) {
    let api = GithubApi::start(repos(250, |id| id));
    api.faults(faults.iter().cloned().enumerate().map(|(i, f)| (i + 1, f)).collect());
    let ran = run(&api, &query("r")).await;
    (ran, api.requests().len())
}

#[tokio::test]
async fn limits_are_waited_for() {
    let secondary = |status, retry_after| GithubFault::Secondary { status, retry_after };
    for (faults, waits) in [
        (vec![GithubFault::Primary { reset_in: 50 }], vec![50..=52]),
        (vec![GithubFault::Primary { reset_in: 0 }], vec![1..=2]),
        (vec![secondary(403, Some(17))], vec![17..=17]),
        (vec![secondary(429, Some(90)), secondary(429, Some(5))], vec![90..=90, 5..=5]),
        (vec![secondary(403, None); 3], vec![60..=60, 120..=120, 240..=240]),
        (vec![GithubFault::LastOne { reset_in: 30 }], vec![30..=32]),
    ] {
        let (ran, requests) = with(&faults).await;
        assert_eq!(ran.ids().len(), 250);
        let good = usize::from(matches!(faults[0], GithubFault::LastOne { .. }));
        assert_eq!(requests, 3 + faults.len() - good);
        let found = ran.waits();
        assert_eq!(found.len(), waits.len(), "{faults:?}");
        for (found, wait) in found.iter().zip(waits) {
            assert!(wait.contains(found), "{faults:?}: {found}");
        }
    }
}

#[tokio::test]
async fn limits_without_end_are_an_error() {
    let (ran, requests) =
        with(&vec![GithubFault::Secondary { status: 403, retry_after: None }; 20]).await;
    let (kind, text) = ran.error();
    assert_eq!((kind, requests), (GithubErrorKind::RateLimited, 1 + 7), "{text}");
    assert_eq!(ran.waits(), [60, 120, 240, 480, 960, 1_920]);
    let (ran, _) = with(&[GithubFault::Primary { reset_in: 8_000 }]).await;
    let (kind, text) = ran.error();
    assert_eq!(kind, GithubErrorKind::RateLimited);
    assert!(text.contains("until 20") && text.ends_with("start again then"), "{text}");
    assert_eq!(ran.notices, []);
    let huge = raw(403, &[("retry-after", "18446744073709551615")], "{}");
    assert_eq!(with(&[huge]).await.0.error().0, GithubErrorKind::RateLimited);
}

#[tokio::test]
async fn passing_failures_are_tried_again() {
    for fault in [
        GithubFault::BadGateway,
        GithubFault::CutBody,
        GithubFault::InvalidJson,
        raw(200, &[], "{}"),
        raw(200, &[], "\u{ff}"),
        raw(304, &[], ""),
    ] {
        let (ran, requests) = with(&vec![fault.clone(); 3]).await;
        assert_eq!((ran.ids().len(), requests), (250, 6), "{fault:?}");
        assert_eq!(ran.waits(), [1, 2, 4]);
        let (ran, requests) = with(&vec![fault.clone(); 20]).await;
        let (kind, text) = ran.error();
        assert_eq!((kind, requests), (GithubErrorKind::Transient, 9), "{text}");
        assert!(text.contains("(8 tries)"), "{text}");
        assert_eq!(ran.waits(), [1, 2, 4, 8, 16, 32, 64]);
    }
    let (ran, _) = with(&[raw(503, &[("retry-after", "9")], "")]).await;
    assert_eq!((ran.ids().len(), ran.waits()), (250, vec![9]));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported() {
    let client = GithubClient::new("http://127.0.0.1:1", None).unwrap();
    let client = client.with_clock(TestClock::new(false));
    let (kind, text) = run_by(&client, &query("r")).await.error();
    assert_eq!(kind, GithubErrorKind::Transient);
    assert!(text.contains("cannot be reached") && text.contains("refused"), "{text}");
}

#[tokio::test]
async fn slow_answers_are_tried_again() {
    let api = GithubApi::start(repos(50, |id| id));
    api.faults(vec![(0, GithubFault::Slow(Duration::from_millis(900)))]);
    let mut client = client(&api);
    client.timeout = Duration::from_millis(400);
    let ran = run_by(&client, &query("r")).await;
    assert_eq!((ran.ids().len(), ran.waits()), (50, vec![1]));
}

#[tokio::test]
async fn answers_that_are_too_long_are_not_read() {
    let journal = tempfile::tempdir().unwrap();
    let api = GithubApi::start(repos(50, |id| id));
    for base in [api.url(), format!("{}/api/v3", api.url())] {
        let client = GithubClient::new(&base, Some(secret())).unwrap();
        let mut client = client.with_clock(TestClock::new(false));
        client.max_answer = 10_000;
        api.forget();
        for status in [200, 404] {
            api.faults(vec![(0, raw(status, &[], &TOKEN.repeat(1_000)))]).forget();
            let ran = run_with(&client, &query("r secret"), journal.path()).await;
            let words = format!("{base}/search/repositories answers with more than 10000 bytes");
            assert_eq!(ran.error(), (GithubErrorKind::Other, words));
            assert_eq!(api.requests().len(), 1, "it would be as long again");
        }
    }
}

#[tokio::test]
async fn permanent_refusals_are_final() {
    let unknown = r#"{"message":"Validation Failed","errors":[{"message":"no such thing"},
        {"field":"q","code":"missing"}]}"#;
    for (fault, kind, words) in [
        (GithubFault::Unauthorized, GithubErrorKind::Denied, "asks for a token: Bad credentials"),
        (raw(403, &[], r#"{"message":"Blocked"}"#), GithubErrorKind::Denied, "refuses: Blocked"),
        (raw(422, &[], unknown), GithubErrorKind::InvalidQuery, "no such thing; q: missing"),
        (raw(404, &[], ""), GithubErrorKind::Other, "HTTP 404"),
        (raw(418, &[], "<b>"), GithubErrorKind::Other, "HTTP 418"),
        (raw(302, &[], ""), GithubErrorKind::Other, "nowhere"),
    ] {
        let (ran, requests) = with(&[fault]).await;
        let (found, text) = ran.error();
        assert_eq!((found, requests), (kind, 2), "{text}");
        assert!(text.contains(words), "{text}");
        assert_eq!(ran.waits(), Vec::<u64>::new());
    }
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_server_only() {
    let (api, other) = (GithubApi::start(repos(5, |id| id)), GithubApi::start(Vec::new()));
    let client = GithubClient::new(&api.url(), Some(secret())).unwrap();
    let to = "/api/v3/search/repositories?q=r&per_page=100&page=1";
    for status in [301, 302, 307, 308] {
        api.forget();
        api.faults(vec![(0, raw(status, &[("location", to)], ""))]);
        assert_eq!(run_by(&client, &query("r")).await.ids().len(), 5);
        let requests = api.requests();
        assert_eq!(requests[1].path, "/api/v3/search/repositories");
        for request in &requests {
            assert_eq!(request.header("authorization"), [format!("Bearer {TOKEN}")]);
        }
    }
    let port = api.url().rsplit(':').next().unwrap().to_string();
    for to in [
        format!("{}{to}", other.url()),
        format!("//{}{to}", other.url().trim_start_matches("http://")),
        format!("https://127.0.0.1:{port}{to}"),
        format!("http://user@127.0.0.1:{port}{to}"),
    ] {
        api.forget();
        api.faults(vec![(0, raw(302, &[("location", &to)], ""))]);
        let (kind, text) = run_by(&client, &query("r")).await.error();
        assert_eq!(kind, GithubErrorKind::Other);
        assert!(text.contains("not followed"), "{text}");
        assert_eq!((api.requests().len(), other.requests().len()), (1, 0));
    }
    api.script(move |_, _| Some(raw(302, &[("location", "/search/repositories?q=r")], "")));
    let (_, text) = run_by(&client, &query("r")).await.error();
    assert!(text.contains("circle"), "{text}");
}

#[tokio::test]
async fn pages_on_another_server_are_asked_here() {
    let (api, other) = (GithubApi::start(repos(150, |id| id)), GithubApi::start(Vec::new()));
    let away = format!("<{}/search/repositories?q=x>; rel=\"next\"", other.url());
    let page = r#"{"total_count": 50, "incomplete_results": false, "items": []}"#;
    // The second page follows; then all is asked again, because the first one was empty.
    api.faults(vec![(0, raw(200, &[("link", &away)], page))]);
    assert_eq!(run(&api, &query("r")).await.ids().len(), 150);
    assert_eq!(api.searches()[1].1, "2");
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn the_token_gets_out_nowhere() {
    let api = GithubApi::start(repos(3, |id| id));
    let client = || GithubClient::new(&api.url(), Some(secret())).unwrap();
    let text = format!("bad {TOKEN} here\u{1b}[31m\n{}", "x".repeat(2_000));
    let body = serde_json::json!({ "message": text, "errors": [TOKEN] }).to_string();
    let location = format!("http://{TOKEN}.example/");
    for fault in [
        raw(401, &[], &body),
        raw(403, &[], &body),
        raw(404, &[], &body),
        raw(422, &[], &body),
        raw(500, &[], &body),
        raw(302, &[("location", &location.to_lowercase())], ""),
        raw(200, &[], &format!("{{\"{TOKEN}\": 1}}")),
        raw(200, &[], &format!("{{\"total_count\": \"{TOKEN}\"}}")),
    ] {
        api.script(move |_, _| Some(fault.clone()));
        let client = client().with_clock(TestClock::new(false));
        let journal = tempfile::tempdir().unwrap();
        let ran = run_with(&client, &query("r"), journal.path()).await;
        let (kind, text) = ran.error();
        let all = format!("{text} {kind:?} {:?} {:?} {client:?}", ran.result, ran.notices);
        assert!(!all.contains(TOKEN), "{all}");
        assert!(text.chars().count() < 400 && !text.contains('\u{1b}'), "{text}");
        for entry in std::fs::read_dir(journal.path()).unwrap() {
            assert!(!std::fs::read_to_string(entry.unwrap().path()).unwrap().contains(TOKEN));
        }
    }
    api.script(|_, _| Some(GithubFault::Unauthorized));
    let (kind, text) = run_by(&client(), &query("r")).await.error();
    assert_eq!(kind, GithubErrorKind::Denied);
    assert_eq!(text, "the token in $GITHUB_TOKEN is not accepted: Bad credentials");
}

#[test]
fn wrong_addresses_of_an_api_are_refused() {
    let wrong = "api.github.com ftp://x https://u:hunter2@x https://hunter2@x http://x/?a=hunter2 \
                 http://x/#hunter2 file:///hunter2";
    for url in wrong.split(' ').chain([""]) {
        let error = GithubClient::new(url, None).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    assert_eq!(GithubClient::new(GITHUB, None).unwrap().base_url(), GITHUB);
}

#[tokio::test]
async fn a_wait_ends_at_once_when_cancelled() {
    let api = GithubApi::start(repos(3, |id| id));
    for fault in
        [GithubFault::Primary { reset_in: 600 }, GithubFault::BadGateway, GithubFault::Incomplete]
    {
        api.script(move |_, _| Some(fault.clone()));
        let client = GithubClient::new(&api.url(), None).unwrap().with_clock(TestClock::new(true));
        let (cancel, journal) = (CancellationToken::new(), tempfile::tempdir().unwrap());
        let started = Instant::now();
        let on_wait = cancel.clone();
        let notify = move |_| on_wait.cancel();
        let ran = search(&client, &query("r"), journal.path(), &notify, &cancel).await;
        assert_eq!(ran.unwrap_err().kind(), GithubErrorKind::Interrupted);
        assert!(started.elapsed() < Duration::from_secs(5));
    }
    let (cancel, journal) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    cancel.cancel();
    api.forget();
    let ran = search(&client(&api), &query("r"), journal.path(), &|_| (), &cancel).await;
    assert_eq!(ran.unwrap_err().kind(), GithubErrorKind::Interrupted);
    assert_eq!(api.requests().len(), 0);
}

#[tokio::test]
async fn incomplete_answers_are_never_taken() {
    let (ran, requests) = with(&[GithubFault::Incomplete, GithubFault::Incomplete]).await;
    assert_eq!((ran.ids().len(), requests), (250, 5));
    assert_eq!(ran.waits(), [2, 4]);
    // Too large a slice for GitHub's patience: it is cut.
    let api = GithubApi::start(repos(250, |id| id));
    api.script(|_, r| (!r.param("q").contains("..")).then_some(GithubFault::Incomplete));
    let ran = run(&api, &query("r stars:1..10000")).await;
    assert_eq!(ran.ids().len(), 250);
    api.script(|_, r| (r.param("q") == "r stars:1..10000").then_some(GithubFault::Incomplete));
    let ran = run(&api, &query("r stars:1..10000")).await;
    assert_eq!(ran.ids().len(), 250);
    assert_eq!(ran.incomplete(), []);
    api.script(|_, _| Some(GithubFault::Incomplete));
    api.forget();
    for limit in [None, Some(5)] {
        let ran = run(&api, &Search { limit, ..query("r") }).await;
        let (kind, text) = ran.error();
        assert_eq!(kind, GithubErrorKind::Transient);
        assert!(text.contains("incomplete"), "{text}");
    }
    assert!(api.requests().len() <= 20);
}

#[tokio::test]
async fn lists_that_fall_short_of_the_count_are_asked_again_then_cut_then_reported() {
    // Missing once: the second round has it.
    let (ran, requests) = with(&[GithubFault::Omit(1)]).await;
    assert_eq!((ran.ids().len(), requests, ran.incomplete()), (250, 6, vec![]));
    // Missing in the whole, not in its parts.
    let api = GithubApi::start(repos(250, |id| id));
    api.script(|_, r| (r.param("q") == "r").then_some(GithubFault::Omit(1)));
    let ran = run(&api, &query("r")).await;
    assert_eq!((ran.ids().len(), ran.incomplete()), (250, vec![]));
    // Never listed: reported with the numbers, also when it comes from the journal.
    api.script(|_, _| Some(GithubFault::Omit(1)));
    let (client, journal) = (client(&api), tempfile::tempdir().unwrap());
    for _ in 0..2 {
        let ran = run_with(&client, &query("r"), journal.path()).await;
        let missing: u64 = ran.incomplete().iter().map(|(e, f)| e - f).sum();
        assert_eq!(ran.ids().len() as u64 + missing, 250);
        assert!(missing > 0);
    }
    let ran = run(&api, &Search { limit: Some(10), ..query("r") }).await;
    assert_eq!(ran.incomplete(), [(10, 9)]);
}

#[tokio::test]
async fn a_repository_that_is_renamed_and_starred_meanwhile_counts_once() {
    let api = GithubApi::start(repos(2_000, |id| id));
    let moved = api.clone();
    let journal = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let notify = move |notice| {
        if matches!(notice, SearchNotice::Progress { found, .. } if found < 1_500) {
            let mut all = repos(2_000, |id| id);
            all[4].full_name = "new/r".into();
            all[4].stars = 9_999;
            moved.set_repos(all);
        }
    };
    let client = client(&api);
    let found = search(&client, &query("r stars:>0"), journal.path(), &notify, &cancel).await;
    let found = found.unwrap();
    assert_eq!(found.len(), 2_000);
    let five: Vec<_> = found.iter().filter(|r| r.id == 5).collect();
    assert_eq!((five.len(), five[0].stars), (1, 9_999));
}

#[tokio::test]
async fn parts_that_do_not_add_up_are_reported() {
    let api = GithubApi::start(repos(2_000, |id| id));
    let shrinking = api.clone();
    let notices = Mutex::new(Vec::new());
    let notify = |notice: SearchNotice| {
        if notices.lock().unwrap().is_empty() {
            shrinking.set_repos(repos(1_990, |id| id));
        }
        notices.lock().unwrap().push(notice);
    };
    let (client, journal) = (client(&api), tempfile::tempdir().unwrap());
    let cancel = CancellationToken::new();
    let found = search(&client, &query("r"), journal.path(), &notify, &cancel).await.unwrap();
    assert_eq!(found.len(), 1_990);
    let notices = notices.into_inner().unwrap();
    let last = SearchNotice::Incomplete { query: "r".into(), expected: 2_000, found: 1_990 };
    assert_eq!(notices.last(), Some(&last));
}
