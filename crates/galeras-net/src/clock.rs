//! Time as clients see it, and the dates of HTTP headers.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;

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

/// The seconds since 1970 of a date in one of the three formats of RFC 9110, section 5.6.7:
/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` (RFC 850), and
/// `Sun Nov  6 08:49:37 1994` (asctime). The day of the week and the zone, which is always GMT, are
/// not looked at.
///
/// Returns `None` if `text` is not such a date, or lies before 1970.
pub fn http_date(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().skip(1).take(4).collect();
    let date = words.join(" ");
    let formats = ["%d %b %Y %H:%M:%S", "%d-%b-%y %H:%M:%S GMT", "%b %d %H:%M:%S %Y"];
    let time = formats.iter().find_map(|format| DateTime::strptime(format, &date).ok())?;
    u64::try_from(time.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs()).ok()
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

    #[test]
    fn dates_are_counted_right() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 12:34:56 GMT", Some(951_827_696)),
            ("Sat, 21 Nov 2026 11:53:31 GMT", Some(1_795_262_011)),
            ("Fri, 1 Jan 2100 00:00:00 GMT", Some(4_102_444_800)),
            ("Saturday, 21-Nov-26 11:53:31 GMT", Some(1_795_262_011)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Sat Nov 21 11:53:31 2026", Some(1_795_262_011)),
            ("Saturday, 31-Feb-26 11:53:31 GMT", None),
            ("Sat Nov 31 11:53:31 2026", None),
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("Sat, 21 Foo 2026 11:53:31 GMT", None),
            ("Sun, 30 Feb 2025 11:53:31 GMT", None),
            ("Sat, 21 Nov 2026 24:00:00 GMT", None),
            ("Sat, 21 Nov 2026", None),
            ("x 99999999999999999999 Nov 2026 11:53:31 GMT", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(http_date(text), seconds, "{text}");
        }
    }
}
