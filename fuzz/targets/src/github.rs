//! A search on GitHub whose server answers with the input.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use galeras_github::{GithubClient, Search, SearchNotice, search};
use galeras_net::Secret;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::chat::FastClock;
use crate::loopback::{Loopback, Reply, harmless, replies};

/// No text of the client may contain it, for any answer of the server.
const TOKEN: &str = "ghp_FuzzZq3vN8wLr5Ty7Kp2";

struct World {
    server: Loopback,
    runtime: Runtime,
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    Mutex::new(World { server: Loopback::start(), runtime })
});

/// The answers of GitHub, separated by lines of `%%`: a status, header lines, an empty line, a
/// body. The last one is repeated; the search must end for any answers.
pub(crate) fn answers(input: &[u8]) {
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let get: Vec<Reply> = replies(input, 6, TOKEN);
    if get.is_empty() {
        return;
    }
    // By rank, by hand, and everything.
    for limit in [Some(2), Some(1500), None] {
        world.server.set(get.clone());
        let clock = FastClock::new();
        let token = Secret::new("FUZZ_TOKEN", TOKEN).unwrap();
        let client = GithubClient::new(&world.server.url("api"), Some(token)).unwrap();
        let client = client.with_clock(Arc::new(clock));
        let query = "language:python stars:5..8 created:2020-01-01..2020-01-03";
        let wanted = Search { query: query.into(), sort: None, limit };
        let journal = tempfile::tempdir().unwrap();
        let (said, cancel) = (Mutex::new(Vec::new()), CancellationToken::new());
        let tell = |notice: SearchNotice| said.lock().unwrap().push(format!("{notice:?}"));
        let found = search(&client, &wanted, journal.path(), &tell, &cancel);
        match world.runtime.block_on(found) {
            Ok(repositories) => {
                let most = limit.unwrap_or(u64::MAX);
                assert!(repositories.len() as u64 <= most);
                let mut ids: Vec<u64> = repositories.iter().map(|found| found.id).collect();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), repositories.len(), "a repository is there twice");
            }
            Err(error) => said.lock().unwrap().push(harmless(&error)),
        }
        let said = said.into_inner().unwrap();
        assert!(!said.iter().any(|text| text.contains(TOKEN)), "the token is shown: {said:?}");
    }
}
