//! What ssh says beside what it sends: its own errors and warnings, and whatever the server wants
//! to be shown.
//!
//! It may be anything, of any length, and goes into errors and warnings as one line that moves no
//! cursor. It uses no other file of `net`.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{GitError, GitErrorKind};

/// Bytes that are kept until they are shown; the rest is dropped.
const KEPT: usize = 4096;

/// For how long the rest of it is waited for when a session has ended, and when it has not.
const REST: Duration = Duration::from_millis(500);
const MORE: Duration = Duration::from_millis(50);

/// What one session says.
#[derive(Default)]
pub(super) struct SshWords {
    bytes: Mutex<Vec<u8>>,
    ended: AtomicBool,
}

impl SshWords {
    /// Listens on a thread, until there is nothing more to come.
    ///
    /// # Errors
    /// If there are too many threads.
    pub(super) fn listen(mut said: impl Read + Send + 'static) -> std::io::Result<Arc<Self>> {
        let words = Arc::new(Self::default());
        let ours = Arc::clone(&words);
        let listen = move || {
            let mut chunk = [0; 1024];
            // Also what is not kept is read: ssh would wait.
            while let Ok(read) = said.read(&mut chunk)
                && read > 0
            {
                let mut bytes = ours.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                let room = KEPT.saturating_sub(bytes.len());
                bytes.extend_from_slice(chunk.get(..read.min(room)).unwrap_or_default());
            }
            ours.ended.store(true, Ordering::Release);
        };
        thread::Builder::new().name("ssh's words".into()).spawn(listen)?;
        Ok(words)
    }

    /// What was said in a session that has ended, since this was last asked, on one line.
    pub(super) fn take(&self) -> String {
        self.take_within(REST)
    }

    fn take_within(&self, wait: Duration) -> String {
        let end = Instant::now() + wait;
        while !self.ended.load(Ordering::Acquire) && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        let bytes = std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        shown(&String::from_utf8_lossy(&bytes))
    }

    /// The error of a session that ended before the server said anything.
    pub(super) fn ended(&self) -> GitError {
        let said = self.take();
        if said.is_empty() {
            let message = "the ssh session ended at once, as it does if there is no such \
                           repository, or no access to it";
            return GitError::new(GitErrorKind::NotFound, message);
        }
        let kind = kind(&said).unwrap_or(GitErrorKind::NotFound);
        GitError::new(kind, format!("the ssh session ended at once; ssh says: {said}"))
    }

    /// The error, with what was said about it.
    pub(super) fn explain(&self, mut error: GitError) -> GitError {
        let said = self.take_within(MORE);
        if said.is_empty() {
            return error;
        }
        if error.kind == GitErrorKind::Transient {
            error.kind = kind(&said).unwrap_or(error.kind);
        }
        error.message = format!("{}; ssh says: {said}", error.message);
        error
    }
}

/// The lines as one, with what a terminal would act upon written out.
fn shown(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut shown = String::with_capacity(text.len());
    for line in lines {
        if !shown.is_empty() {
            shown.push_str(" | ");
        }
        for c in line.chars() {
            match c {
                '\t' => shown.push(' '),
                c if is_hidden(c) => shown.extend(c.escape_unicode()),
                c => shown.push(c),
            }
        }
    }
    shown
}

/// Whether a terminal does something else than to show it: control characters, marks of direction.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// What kind of error ssh's own words tell of; they are English, as ssh is asked for that.
fn kind(said: &str) -> Option<GitErrorKind> {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["ermission denied", "publickey"]) {
        Some(GitErrorKind::Denied)
    } else if has(&["Host key verification failed"]) {
        Some(GitErrorKind::Other)
    } else if has(&[
        "resolve hostname",
        "connect to host",
        "Connection to ",
        "Connection closed by ",
        "Connection reset by ",
        "Connection timed out",
    ]) {
        Some(GitErrorKind::Transient)
    } else {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_line_of_bounded_length_that_moves_no_cursor() {
        let words =
            SshWords::listen(&b"\x1b]0;owned\x07\r\n\n a\tb \xff\xe2\x80\xae\n"[..]).unwrap();
        assert_eq!(words.take(), "\\u{1b}]0;owned\\u{7} | a b \u{fffd}\\u{202e}");
        assert_eq!(words.take(), "");
        let words = SshWords::listen(std::io::repeat(b'x').take(1 << 20)).unwrap();
        assert_eq!(words.take().len(), KEPT);
    }

    #[test]
    fn words_tell_what_kind_of_error_it_is() {
        for (said, expected) in [
            (&b""[..], GitErrorKind::NotFound),
            (b"ERROR: Repository not found.", GitErrorKind::NotFound),
            (b"a@b: Permission denied (publickey).", GitErrorKind::Denied),
            (b"ssh: connect to host b port 22: No route", GitErrorKind::Transient),
            (b"Host key verification failed.", GitErrorKind::Other),
        ] {
            let error = SshWords::listen(said).unwrap().ended();
            assert_eq!(error.kind, expected, "{error}");
            assert!(error.message.contains(str::from_utf8(said).unwrap()), "{error}");
        }
    }
}
