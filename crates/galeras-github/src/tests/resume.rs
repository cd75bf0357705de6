//! Tests of the journal: finished slices are not asked again, damaged ones are.

use std::collections::BTreeSet;
use std::fs;

use super::*;
use galeras_test_servers::github_api::GithubFault;

/// Runs the search until the `stop`th request hangs, then cancels it.
async fn interrupted(api: &GithubApi, what: &Search, journal: &Path, stop: usize) {
    let cancel = CancellationToken::new();
    let seen = cancel.clone();
    api.script(move |n, _| {
        if n == stop {
            seen.cancel();
            return Some(GithubFault::Slow(Duration::from_secs(2)));
        }
        None
    });
    let error = search(&client(api), what, journal, &|_| (), &cancel).await.unwrap_err();
    assert_eq!(error.kind(), GithubErrorKind::Interrupted);
    api.script(|_, _| None);
}

fn file(folder: &Path) -> std::path::PathBuf {
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

#[tokio::test]
async fn finished_slices_are_not_asked_again() {
    let api = GithubApi::start(population());
    let whole = run(&api, &query(PAPER)).await;
    let all = api.searches();
    for stop in [0, 7, 39] {
        let journal = tempfile::tempdir().unwrap();
        api.forget();
        interrupted(&api, &query(PAPER), journal.path(), stop).await;
        let before = api.searches();
        assert_eq!(before, all[..=stop]);
        api.forget();
        let ran = run_with(&client(&api), &query(PAPER), journal.path()).await;
        assert_eq!(ran.ids(), whole.ids());
        let after = api.searches();
        // The slice that was on the way begins again; nothing before it does.
        let unfinished = &before[stop].0;
        let done: BTreeSet<_> = before.iter().filter(|(q, _)| q != unfinished).collect();
        assert!(after.iter().all(|asked| !done.contains(asked)), "{stop}");
        let again = before.iter().filter(|(q, _)| q == unfinished).count();
        assert_eq!(before.len() - again + after.len(), all.len());
        // Finished, it asks nothing at all.
        api.forget();
        let ran = run_with(&client(&api), &query(PAPER), journal.path()).await;
        assert_eq!((ran.ids(), api.requests().len()), (whole.ids(), 0));
    }
}

#[tokio::test]
async fn a_limited_search_is_kept_in_its_order() {
    let api = GithubApi::start(repos(500, |id| id));
    let journal = tempfile::tempdir().unwrap();
    let what = Search { limit: Some(150), sort: Some(Sort::Stars), ..query("r") };
    let first = run_with(&client(&api), &what, journal.path()).await;
    let again = run_with(&client(&api), &what, journal.path()).await;
    assert_eq!((first.ids(), api.requests().len()), (again.ids(), 2));
}

#[tokio::test]
async fn another_search_does_not_use_the_journal() {
    let api = GithubApi::start(repos(150, |id| id));
    let journal = tempfile::tempdir().unwrap();
    let all = query("language:Python");
    let searches = [
        all.clone(),
        query("language:python"),
        Search { limit: Some(150), ..all.clone() },
        Search { sort: Some(Sort::Stars), limit: Some(150), ..all.clone() },
        Search { sort: Some(Sort::Stars), ..all.clone() },
    ];
    for what in &searches {
        api.forget();
        assert_eq!(run_with(&client(&api), what, journal.path()).await.ids().len(), 150);
        assert_eq!(api.requests().len(), 2, "{what:?}");
    }
    let other = GithubClient::new(&format!("{}/api/v3", api.url()), None).unwrap();
    api.forget();
    run_with(&other, &all, journal.path()).await;
    assert_eq!(api.requests().len(), 2);
    assert_eq!(fs::read_dir(journal.path()).unwrap().count(), 6);
    // A file under the name of another one is not believed.
    let before = file(journal.path());
    let wrong = fs::read(&before).unwrap();
    for entry in fs::read_dir(journal.path()).unwrap() {
        fs::write(entry.unwrap().path(), &wrong).unwrap();
    }
    for what in &searches {
        assert_eq!(run_with(&client(&api), what, journal.path()).await.ids().len(), 150);
    }
}

#[tokio::test]
async fn a_damaged_journal_is_used_up_to_the_damage() {
    let api = GithubApi::start(repos(1_300, |id| id));
    let journal = tempfile::tempdir().unwrap();
    let whole = run_with(&client(&api), &query("r"), journal.path()).await;
    let path = file(journal.path());
    let good = fs::read(&path).unwrap();
    let lines = good.split_inclusive(|b| *b == b'\n').count();
    assert!(lines > 5);
    let total = api.requests().len();
    let steps = [0, 40, good.len() / 2, good.len() - 1];
    for at in steps {
        for damage in 0..3 {
            let mut bad = good.clone();
            match damage {
                0 => bad.truncate(at),
                1 => bad[at] ^= 4,
                _ => bad.splice(at..at, *b"\0\n").for_each(drop),
            }
            fs::write(&path, bad).unwrap();
            api.forget();
            let ran = run_with(&client(&api), &query("r"), journal.path()).await;
            assert_eq!(ran.ids(), whole.ids());
            let asked = api.requests().len();
            assert!(asked > 0 && asked <= total, "{at} {damage}");
            assert_eq!(fs::read(&path).unwrap(), good, "the journal is whole again");
        }
    }
}

#[tokio::test]
async fn two_searches_do_not_share_a_journal() {
    let api = GithubApi::start(repos(10, |id| id));
    let journal = tempfile::tempdir().unwrap();
    api.faults(vec![(0, GithubFault::Slow(Duration::from_millis(300)))]);
    let (client, what) = (client(&api), query("r"));
    let first = run_with(&client, &what, journal.path());
    let second = run_with(&client, &what, journal.path());
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.ids().len(), 10);
    let (kind, text) = second.error();
    assert_eq!(kind, GithubErrorKind::Other);
    assert!(text.contains("another process"), "{text}");
}
