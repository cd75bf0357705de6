//! Tests of the search against a GitHub on the loopback address.
//!
//! The server's repositories, a clock that does not wait, and running a search.

mod complete;
mod faults;
mod queries;
mod resume;
mod slices;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use galeras_net::{Clock, Secret, Sleep, SystemClock};
use galeras_test_servers::github_api::{GithubApi, Repo};

const PAPER: &str = "language:Python fork:false size:>=30000 pushed:>2021-12-31 stars:>1000";

/// A clock on which sleeping takes no time, or all of it.
struct TestClock {
    now: AtomicU64,
    endless: bool,
}

impl TestClock {
    fn new(endless: bool) -> Arc<Self> {
        Arc::new(Self { now: AtomicU64::new(SystemClock::new().now().as_secs()), endless })
    }
}

impl Clock for TestClock {
    fn now(&self) -> Duration {
        Duration::from_secs(self.now.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> Sleep<'_> {
        if self.endless {
            return Box::pin(std::future::pending());
        }
        self.now.fetch_add(duration.as_secs(), Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

/// The result and the notices of a search.
struct SearchRun {
    result: Result<Vec<GithubRepository>, GithubError>,
    notices: Vec<SearchNotice>,
}

impl SearchRun {
    #[track_caller]
    fn ids(&self) -> Vec<u64> {
        self.result.as_ref().unwrap().iter().map(|r| r.id).collect()
    }

    #[track_caller]
    fn error(&self) -> (GithubErrorKind, String) {
        let error = self.result.as_ref().unwrap_err();
        (error.kind(), error.to_string())
    }

    fn waits(&self) -> Vec<u64> {
        let seconds = |notice: &SearchNotice| match notice {
            SearchNotice::Waiting { seconds, .. } => Some(*seconds),
            _ => None,
        };
        self.notices.iter().filter_map(seconds).collect()
    }

    fn incomplete(&self) -> Vec<(u64, u64)> {
        let numbers = |notice: &SearchNotice| match notice {
            SearchNotice::Incomplete { expected, found, .. } => Some((*expected, *found)),
            _ => None,
        };
        self.notices.iter().filter_map(numbers).collect()
    }
}

fn client(api: &GithubApi) -> GithubClient {
    GithubClient::new(&api.url(), None).unwrap().with_clock(TestClock::new(false))
}

fn query(text: &str) -> Search {
    Search { query: text.into(), sort: None, limit: None }
}

async fn run_with(client: &GithubClient, what: &Search, journal: &Path) -> SearchRun {
    let notices = Mutex::new(Vec::new());
    let notify = |notice| notices.lock().unwrap().push(notice);
    let result = search(client, what, journal, &notify, &CancellationToken::new()).await;
    SearchRun { result, notices: notices.into_inner().unwrap() }
}

/// Searches with a new client and a new journal.
async fn run(api: &GithubApi, what: &Search) -> SearchRun {
    run_by(&client(api), what).await
}

/// Searches with a new journal.
async fn run_by(client: &GithubClient, what: &Search) -> SearchRun {
    let journal = tempfile::tempdir().unwrap();
    run_with(client, what, journal.path()).await
}

/// `count` repositories, the first with id 1, with `stars` by their number.
fn repos(count: u64, stars: impl Fn(u64) -> u64) -> Vec<Repo> {
    (1..=count).map(|id| Repo::new(id, &format!("o{}/r{id}", id % 97), stars(id))).collect()
}

/// A repository with so many stars, created at this time.
fn found(stars: u64, created: i64) -> GithubRepository {
    let page = serde_json::json!({
        "id": 1, "full_name": "a/b", "clone_url": "", "default_branch": "main", "size": 0,
        "stargazers_count": stars, "created_at": time::format(created), "fork": false,
    });
    serde_json::from_value(page).unwrap()
}

/// Pseudorandom numbers, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// 3,700 repositories of the paper's kind and 300 others. The stars are as skewed as GitHub's;
/// 1,500 have the same number, created over ten years, 400 of them in two seconds.
fn population() -> Vec<Repo> {
    let mut repos = repos(4_000, |id| if id <= 1_500 { 1_234 } else { 400_000_000 / (id * id) });
    for repo in &mut repos {
        repo.stars = if repo.id > 3_700 { 900 } else { repo.stars.max(1_001) };
        let (id, day) = (repo.id, repo.id % 28 + 1);
        repo.created_at = match id {
            1..=300 => "2016-05-05T05:05:05Z".into(),
            301..=400 => "2016-05-05T05:05:06Z".into(),
            _ => format!("20{}-{:02}-{day:02}T11:{:02}:00Z", 10 + id % 10, id % 12 + 1, id % 60),
        };
        if id > 1_500 && id <= 3_700 {
            repo.stars = 1_001 + 400_000 / (id - 1_500);
        }
    }
    for (at, repo) in repos.iter_mut().enumerate().take(3_950).skip(3_750) {
        repo.stars = 5_000;
        match at {
            3_750..3_800 => repo.fork = true,
            3_800..3_850 => repo.size = 29_999,
            3_850..3_900 => repo.language = Some("Rust".into()),
            _ => repo.pushed_at = "2021-12-31T23:59:59Z".into(),
        }
    }
    repos
}
