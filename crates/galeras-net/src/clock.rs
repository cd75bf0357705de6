//! Time as clients see it.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A wait of a [`Clock`].
pub type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Returns the time and sleeps. Tests replace it by a clock that does not wait.
pub trait Clock: Send + Sync {
    /// The time since 1970-01-01T00:00:00Z. Never goes back: limits are counted by it.
    fn now(&self) -> Duration;

    /// Completes after `duration`. Dropping it ends the wait.
    fn sleep(&self, duration: Duration) -> Sleep<'_>;
}

/// The clock of the system: right when it is created, and steady from then on even if the
/// system's clock is set. Its [`sleep`](Clock::sleep) needs a tokio runtime with time enabled.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    created: Instant,
    /// The time since 1970 when it was created.
    at: Duration,
}

impl SystemClock {
    /// A clock that is right now.
    #[must_use]
    pub fn new() -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { created: Instant::now(), at }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.at + self.created.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Sleep<'_> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_is_right_and_steady() {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let before = system();
        let clock = SystemClock::new();
        let first = clock.now();
        let second = clock.now();
        assert!(before <= first && first <= second);
        assert!(second < system() + Duration::from_secs(60));
    }
}
