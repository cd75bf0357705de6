//! Tests that everything is found, once, with few requests, in the right order.

use std::collections::BTreeSet;

use super::*;

#[tokio::test]
async fn all_of_3700_repositories_are_found_once() {
    let api = GithubApi::start(population());
    let ran = run(&api, &query(PAPER)).await;
    let mut ids = ran.ids();
    assert!(ran.result.as_ref().unwrap().is_sorted_by_key(|r| r.full_name.clone()), "by name");
    ids.sort_unstable();
    assert_eq!(ids, (1..=3_700).collect::<Vec<_>>());
    assert_eq!(ran.waits(), Vec::<u64>::new());
    assert_eq!(ran.incomplete(), []);
    assert_eq!(ran.notices.last(), Some(&SearchNotice::Progress { found: 3_700, total: 3_700 }));
    let asked = api.requests().len();
    assert!(asked <= 60, "{asked} requests where 37 are the least: {:#?}", api.searches());
    let distinct: BTreeSet<_> = api.searches().into_iter().collect();
    assert_eq!(distinct.len(), asked, "nothing is asked twice");
}

#[tokio::test]
async fn a_search_without_stars_is_cut_as_well() {
    let api = GithubApi::start(repos(9_000, |id| 9_000_000 / (id + 99)));
    let ran = run(&api, &query("language:Python")).await;
    assert_eq!(ran.ids().len(), 9_000);
    let asked = api.requests().len();
    assert!(asked <= 120, "{asked} requests where 90 are the least");
}

#[tokio::test]
async fn a_search_of_one_page_is_one_request() {
    let api = GithubApi::start(repos(70, |id| id));
    let ran = run(&api, &query("language:Python stars:<=50")).await;
    assert_eq!(ran.ids().len(), 50);
    let repository = &ran.result.as_ref().unwrap()[0];
    assert_eq!(repository.license.as_deref(), Some("MIT"));
    assert_eq!(repository.clone_url, format!("{}/{}.git", api.url(), repository.full_name));
    let requests = api.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("user-agent"), [galeras_net::AGENT]);
    assert_eq!(requests[0].header("accept"), ["application/vnd.github+json"]);
    assert_eq!(requests[0].header("x-github-api-version"), ["2022-11-28"]);
    assert_eq!(requests[0].header("authorization"), Vec::<&str>::new());
    let none = run(&api, &query("language:Cobol")).await;
    assert_eq!(none.ids(), Vec::<u64>::new());
}

#[tokio::test]
async fn a_thousand_and_one() {
    for count in [999, 1_000, 1_001] {
        let api = GithubApi::start(repos(count, |id| id / 3));
        assert_eq!(run(&api, &query("language:Python")).await.ids().len() as u64, count);
    }
}

#[tokio::test]
async fn more_than_a_thousand_of_one_second_are_an_error() {
    let api = GithubApi::start(repos(1_001, |_| 5));
    let (kind, text) = run(&api, &query("language:Python")).await.error();
    assert_eq!(kind, GithubErrorKind::Other);
    assert!(text.contains("1001 repositories match") && text.contains("stars:5"), "{text}");
    assert!(text.contains("2015-06-01T10:00:00Z..2015-06-01T10:00:00Z"), "{text}");
    assert!(api.requests().len() < 60, "{}", api.requests().len());
}

#[tokio::test]
async fn the_path_of_an_enterprise_server_is_kept() {
    let api = GithubApi::start(repos(1_100, |id| id));
    for end in ["/api/v3", "/api/v3/", "/"] {
        api.forget();
        let client = GithubClient::new(&format!("{}{end}", api.url()), None).unwrap();
        assert_eq!(run_by(&client, &query("r")).await.ids().len(), 1_100);
        let prefix = end.trim_end_matches('/');
        let path = format!("{prefix}/search/repositories");
        assert!(api.requests().iter().all(|r| r.path == path));
    }
}

#[tokio::test]
async fn a_limit_asks_for_no_more_pages_than_needed() {
    let api = GithubApi::start(repos(3_000, |id| (id * 7_919) % 10_007));
    let mut best = repos(3_000, |id| (id * 7_919) % 10_007);
    best.sort_by_key(|r| std::cmp::Reverse(r.stars));
    let best: Vec<u64> = best.iter().map(|r| r.id).collect();
    for (limit, requests) in [(1, 1), (30, 1), (100, 1), (101, 2), (250, 3), (1_000, 10)] {
        api.forget();
        let search = Search { limit: Some(limit), sort: Some(Sort::Stars), ..query("r") };
        let ran = run(&api, &search).await;
        assert_eq!(ran.ids(), best[..limit as usize]);
        assert_eq!(api.requests().len(), requests, "{limit}");
        assert_eq!(ran.incomplete(), []);
    }
    api.forget();
    let ran = run(&api, &Search { limit: Some(30), ..query("r") }).await;
    assert_eq!(ran.ids().len(), 30);
    assert_eq!(api.requests()[0].param("sort"), "");
    let ran = run(&api, &Search { limit: Some(30), ..query("stars:<9") }).await;
    assert!(ran.ids().len() < 30 && ran.incomplete().is_empty(), "fewer than the limit");
    let none = run(&api, &Search { limit: Some(0), ..query("r") }).await;
    assert_eq!(none.ids(), Vec::<u64>::new());
}

#[tokio::test]
async fn a_larger_limit_takes_the_first_of_all() {
    let mut all = repos(2_500, |id| id % 50);
    for repo in &mut all {
        (repo.forks, repo.updated_at) =
            (repo.id % 83, format!("2023-01-01T00:00:{:02}Z", repo.id % 60));
    }
    let api = GithubApi::start(all.clone());
    for (sort, key) in [
        (None, (|r| r.stars) as fn(&Repo) -> u64),
        (Some(Sort::Stars), |r| r.stars),
        (Some(Sort::Forks), |r| r.forks),
        (Some(Sort::Updated), |r| r.id % 60),
    ] {
        let ran = run(&api, &Search { limit: Some(1_200), sort, ..query("r") }).await;
        let mut best: Vec<_> = all.iter().map(|r| (std::cmp::Reverse(key(r)), r.id)).collect();
        best.sort_unstable();
        let best: Vec<u64> = best[..1_200].iter().map(|(_, id)| *id).collect();
        assert_eq!(ran.ids(), best, "{sort:?}");
    }
    let help = Search { limit: Some(1_200), sort: Some(Sort::HelpWantedIssues), ..query("r") };
    assert_eq!(run(&api, &help).await.error().0, GithubErrorKind::InvalidQuery);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_can_be_spawned() {
    let api = GithubApi::start(repos(5, |id| id));
    let client = client(&api);
    let ran = tokio::spawn(async move {
        let journal = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        search(&client, &query("r"), journal.path(), &|_| (), &cancel).await
    });
    assert_eq!(ran.await.unwrap().unwrap().len(), 5);
}
