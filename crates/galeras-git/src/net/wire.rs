//! What the layers of one transfer share, and its repeated attempts.
//!
//! The interrupt flag, the counts that are reported, and what was noticed about a failure where it
//! happened, since the layers between (gix) wrap errors in their own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::network::{Activity, Network};
use super::ssh_words::SshWords;
use crate::error::{GitError, GitErrorKind};
use crate::limits::ADVERTISED_BYTES;

/// How often a request is tried in all.
const ATTEMPTS: u32 = 4;

/// The longest wait that a server may ask for.
const LONGEST: Duration = Duration::from_secs(120);

/// How often the interrupt flag is looked at while waiting.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// The least time between two reports.
const REPORT: Duration = Duration::from_millis(100);

/// What the server may say before the rest is left off (bytes).
const SAID: usize = 2000;

/// Shared by everything that takes part in the transfers of one repository.
pub(super) struct Wire {
    interrupt: Arc<AtomicBool>,
    activity: Arc<dyn Fn(Activity) + Send + Sync>,
    bytes: AtomicU64,
    /// Bytes that may still come.
    allowed: AtomicU64,
    objects: AtomicU64,
    ended: AtomicBool,
    silence: Duration,
    backoff: Duration,
    notes: Mutex<Notes>,
}

struct Notes {
    what: &'static str,
    detail: Option<String>,
    reported: Option<Instant>,
    failure: Option<GitError>,
    said: Option<String>,
    words: Option<Arc<SshWords>>,
}

impl Wire {
    pub(super) fn new(net: &Network) -> Arc<Self> {
        let notes = Notes {
            what: "waiting",
            detail: None,
            reported: None,
            failure: None,
            said: None,
            words: None,
        };
        Arc::new(Self {
            interrupt: Arc::clone(&net.interrupt),
            activity: Arc::clone(&net.activity),
            bytes: AtomicU64::new(0),
            allowed: AtomicU64::new(u64::MAX),
            objects: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            silence: net.silence,
            backoff: net.backoff,
            notes: Mutex::new(notes),
        })
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn interrupt(&self) -> &AtomicBool {
        &self.interrupt
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// An error if the interrupt flag is set.
    pub(super) fn check(&self) -> Result<(), GitError> {
        if self.interrupted() { Err(GitError::interrupted()) } else { Ok(()) }
    }

    /// Starts the counts of `what` anew.
    pub(super) fn begin(&self, what: &'static str) {
        self.bytes.store(0, Ordering::Relaxed);
        self.objects.store(0, Ordering::Relaxed);
        {
            let mut notes = self.notes();
            notes.what = what;
            notes.detail = None;
        }
        self.report(true);
    }

    /// Forgets what was noticed about an earlier attempt.
    pub(super) fn attempt(&self) {
        self.ended.store(false, Ordering::Relaxed);
        let mut notes = self.notes();
        notes.failure = None;
        notes.said = None;
        notes.detail = None;
    }

    /// Bytes received and objects since `begin`.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.objects.load(Ordering::Relaxed))
    }

    /// Sets the count of objects back, after an attempt that failed.
    pub(super) fn rewind(&self, objects: u64) {
        self.objects.store(objects, Ordering::Relaxed);
    }

    /// From now on, so many bytes may come: what is kept in memory as a whole has to end.
    pub(super) fn allow(&self, bytes: u64) {
        self.allowed.store(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that came.
    ///
    /// # Errors
    /// `Limit` if they are more than [`Self::allow`] says.
    pub(super) fn count_bytes(&self, bytes: usize) -> std::io::Result<()> {
        let bytes = bytes as u64;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.report(false);
        let less = |allowed: u64| match allowed {
            u64::MAX => Some(allowed),
            _ => allowed.checked_sub(bytes),
        };
        let counted = self.allowed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        counted.map(drop).map_err(|_| {
            let most = ADVERTISED_BYTES >> 20;
            let message = format!("the server says more than {most} MB before it sends objects");
            self.fail_io(GitError::limit(message))
        })
    }

    pub(super) fn count_objects(&self, objects: usize) {
        self.objects.fetch_add(objects as u64, Ordering::Relaxed);
        self.report(false);
    }

    /// Reports, unless it has just done so and does not `have_to`.
    pub(super) fn report(&self, have_to: bool) {
        let activity = {
            let mut notes = self.notes();
            let recent = notes.reported.is_some_and(|at| at.elapsed() < REPORT);
            if recent && !have_to {
                return;
            }
            notes.reported = Some(Instant::now());
            let (bytes, objects) = self.counts();
            Activity { what: notes.what, bytes, objects, detail: notes.detail.clone() }
        };
        (self.activity)(activity);
    }

    /// Reports a wait, and why.
    pub(super) fn report_waiting(&self, why: String) {
        let (bytes, objects) = self.counts();
        (self.activity)(Activity { what: "waiting", bytes, objects, detail: Some(why) });
    }

    /// Reports something that the user should know and that stops nothing.
    pub(super) fn warn(&self, text: String) {
        let (bytes, objects) = self.counts();
        (self.activity)(Activity { what: "warning", bytes, objects, detail: Some(text) });
    }

    /// Notes the ssh session that there is now.
    pub(super) fn listen(&self, words: &Arc<SshWords>) {
        self.notes().words = Some(Arc::clone(words));
    }

    /// Forgets that session, if it is still the one.
    pub(super) fn forget(&self, words: &Arc<SshWords>) {
        self.notes().words.take_if(|noted| Arc::ptr_eq(noted, words));
    }

    /// What is said in the ssh session that there is now.
    pub(super) fn words(&self) -> Option<Arc<SshWords>> {
        self.notes().words.clone()
    }

    /// Notes a failure where it happens. The first one counts.
    pub(super) fn fail(&self, error: GitError) {
        self.notes().failure.get_or_insert(error);
    }

    /// The same, as the error of a reader or writer.
    pub(super) fn fail_io(&self, error: GitError) -> std::io::Error {
        use std::io::ErrorKind;
        let kind = match error.kind {
            GitErrorKind::Denied => ErrorKind::PermissionDenied,
            GitErrorKind::NotFound => ErrorKind::NotFound,
            GitErrorKind::Transient => ErrorKind::ConnectionAborted,
            // Not `Interrupted`: readers try that again.
            _ => ErrorKind::Other,
        };
        let io = std::io::Error::new(kind, error.message.clone());
        self.fail(error);
        io
    }

    /// The failure that was noted.
    pub(super) fn failure(&self) -> Option<GitError> {
        self.notes().failure.take()
    }

    /// Notes that the other side ended the connection or the response.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// The other side has ended the connection or the response.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Notes what the server says about an error.
    pub(super) fn say(&self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut notes = self.notes();
        let said = notes.said.get_or_insert_default();
        if !text.is_empty() && said.len() < SAID {
            if !said.is_empty() {
                said.push_str("; ");
            }
            said.push_str(&text);
        }
    }

    /// What the server said about an error.
    pub(super) fn said(&self) -> Option<String> {
        self.notes().said.take().filter(|said| !said.is_empty())
    }

    /// Notes what the server says it is doing.
    pub(super) fn doing(&self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        if let Some(line) = line {
            self.notes().detail =
                Some(line.chars().filter(|c| !c.is_control()).take(200).collect());
            self.report(false);
        }
    }

    /// Does `act` again after errors that may pass.
    pub(super) fn retry<T>(
        &self,
        mut act: impl FnMut() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let mut attempt = 1;
        let mut wait = self.backoff;
        loop {
            let error = match act() {
                Err(error) if error.kind == GitErrorKind::Transient && attempt < ATTEMPTS => error,
                result => return result,
            };
            let pause = error.retry_after.unwrap_or(wait).min(LONGEST);
            tracing::debug!(
                attempt,
                wait_seconds = pause.as_secs_f64(),
                "git request failed; trying again"
            );
            self.report_waiting(error.message);
            self.sleep(pause)?;
            attempt += 1;
            wait *= 4;
        }
    }

    /// Sleeps for `time`.
    ///
    /// # Errors
    /// `Interrupted`.
    pub(super) fn sleep(&self, time: Duration) -> Result<(), GitError> {
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

    /// How long to wait for one byte.
    pub(super) fn silence(&self) -> Duration {
        self.silence
    }

    /// Waits for a future.
    ///
    /// # Errors
    /// `Interrupted`, and `Transient` after `limit`.
    pub(super) async fn wait<F: Future>(
        &self,
        future: F,
        limit: Duration,
    ) -> Result<F::Output, GitError> {
        let end = Instant::now() + limit;
        tokio::pin!(future);
        // What is ready at once every time must not outrun the flag.
        self.check()?;
        loop {
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = tokio::time::sleep(POLL) => self.check()?,
            }
            if Instant::now() >= end {
                return Err(silent(limit));
            }
        }
    }
}

/// The error of a server that said nothing for so long.
pub(super) fn silent(time: Duration) -> GitError {
    GitError::transient(format!("the server was silent for {} seconds", time.as_secs_f32()))
}
