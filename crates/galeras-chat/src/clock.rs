//! Time as the client sees it, so that tests need not wait.
//!
//! Lives here: the clock and how it sleeps. Does not live here: what is waited for (`pace`,
//! `client`).

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What tells the time and sleeps.
pub trait Clock: Send + Sync {
    /// The time since 1970. Never goes back: limits are counted by it.
    fn now(&self) -> Duration;

    /// Completes after `duration`. Dropped when the wait is interrupted.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The clock of the system, as it was when this value was made, and steady from then on. Its
/// `sleep` needs a tokio runtime with time.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    made: Instant,
    at: Duration,
}

impl SystemClock {
    /// A clock that is right now.
    #[must_use]
    pub fn new() -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { made: Instant::now(), at }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.at + self.made.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(duration))
    }
}
