//! A Git server on this machine, what reaches it, and what its answers look like.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use galeras_git::{GitError, Network};
use tokio::runtime::{Builder, Runtime};

use crate::loopback::{Loopback, Reply};

/// What a server says first.
pub(crate) const ADVERTISED: &[u8] = b"001e# service=git-upload-pack\n0000000eversion 2\n\
    0015agent=git/2.47.3\n0013ls-refs=unborn\n0020fetch=shallow wait-for-done\n\
    0012server-option\n0017object-format=sha1\n0000";

/// The server and what reaches it.
pub(crate) struct World {
    pub(crate) server: Loopback,
    pub(crate) network: Network,
    _runtime: Runtime,
}

pub(crate) static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let interrupt = Arc::new(AtomicBool::new(false));
    let network = Network::new(
        runtime.handle().clone(),
        interrupt,
        Arc::new(|_| ()),
        Arc::new(|_, _| Ok(())),
    );
    let mut network = network.unwrap();
    network.backoff = Duration::ZERO;
    network.silence = Duration::from_secs(20);
    Mutex::new(World { server: Loopback::start(), network, _runtime: runtime })
});

/// What went well; an error must say something.
pub(crate) fn said<T>(result: Result<T, GitError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(!error.message.contains("panicked"), "{}", error.message);
            None
        }
    }
}

/// The answer of a server of Git.
pub(crate) fn reply(body: Vec<u8>, post: bool) -> Reply {
    let kind = if post { "result" } else { "advertisement" };
    let head = vec![format!("content-type: application/x-git-upload-pack-{kind}")];
    Reply { status: 200, head, body }
}

/// The answer that brings a pack.
pub(crate) fn fetched(pack: &[u8]) -> Reply {
    let mut body = packet(b"packfile\n");
    for piece in pack.chunks(60_000) {
        body.extend(packet(&[&[1], piece].concat()));
    }
    body.extend_from_slice(b"0000");
    reply(body, true)
}

/// A packet line: four digits that say how long it is, and its content.
pub(crate) fn packet(content: &[u8]) -> Vec<u8> {
    let mut line = format!("{:04x}", content.len() + 4).into_bytes();
    line.extend_from_slice(content);
    line
}
