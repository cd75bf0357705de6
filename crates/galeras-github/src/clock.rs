//! Time as the client sees it, so that tests need not wait.
//!
//! Lives here: the clock and how it sleeps. Does not live here: what is waited for (`client`).

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What tells the time and sleeps.
pub trait Clock: Send + Sync {
    /// Seconds since 1970.
    fn now(&self) -> u64;

    /// Completes after `duration`. Dropped when the wait is interrupted.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The clock of the system. Its `sleep` needs a tokio runtime with time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(duration))
    }
}
