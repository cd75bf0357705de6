//! Settings of transfers, and the reports about them.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::error::{GitError, Result};

/// How often the interrupt flag is checked during a wait.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// Settings of transfers, and the receiver of reports.
#[derive(Clone)]
pub struct Network {
    /// Every transfer stops with `Interrupted` soon after this is set.
    pub interrupt: Arc<AtomicBool>,
    /// Receives reports, at most about ten per second, on the thread that fetches.
    pub activity: Arc<dyn Fn(Activity) + Send + Sync>,
    /// The wait before the first repetition; each further wait is four times as long.
    pub backoff: Duration,
    /// How long a server may be silent before the transfer is given up.
    pub silence: Duration,
    /// Decides whether a redirect from the first URL to the second may be followed; returns the
    /// reason for a refusal.
    pub redirects: Arc<RedirectCheck>,
    /// Variables for git in addition to those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// True if ssh must not ask anything; empty until git was found to be recent enough.
    pub(super) batch: Arc<OnceLock<bool>>,
}

/// Judges a redirect from one URL to another.
type RedirectCheck = dyn Fn(&str, &str) -> Result<(), String> + Send + Sync;

impl Network {
    /// Settings with the usual waits: half a second before the second attempt, and 50 seconds of
    /// silence, so that a server that never answers is given up within a minute. Only redirects that
    /// `redirects` accepts are followed.
    pub fn new(
        interrupt: Arc<AtomicBool>,
        activity: Arc<dyn Fn(Activity) + Send + Sync>,
        redirects: Arc<RedirectCheck>,
    ) -> Self {
        let (backoff, silence) = (Duration::from_millis(500), Duration::from_secs(50));
        let (environment, batch) = (Vec::new(), Arc::default());
        Self { interrupt, activity, backoff, silence, redirects, environment, batch }
    }

    /// Returns an error if the interrupt flag is set.
    pub(super) fn check(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) { Err(GitError::interrupted()) } else { Ok(()) }
    }

    /// Sleeps for `time`.
    pub(super) fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL));
        }
    }
}

/// A report about a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The name of the objects that are fetched ("commits", "trees", "files", "objects"), or
    /// "waiting", or "warning".
    pub what: &'static str,
    /// Bytes received in this stage.
    pub bytes: u64,
    /// Objects received in this stage.
    pub objects: u64,
    /// The server's own report of its work, the reason of a wait, or the text of a warning.
    pub detail: Option<String>,
}

impl Activity {
    /// Returns true if nothing is fetched in the meantime.
    pub fn is_waiting(&self) -> bool {
        self.what == "waiting"
    }

    /// The text of a warning: messages of git, ssh or the server, on one line.
    pub fn warning(&self) -> Option<&str> {
        self.detail.as_deref().filter(|_| self.what == "warning")
    }
}
