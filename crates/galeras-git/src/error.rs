//! The error of everything that reads or fetches a repository.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What went wrong, as far as it decides what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitErrorKind {
    /// The interrupt flag was set.
    Interrupted,
    /// The network or the server failed in a way that may pass.
    Transient,
    /// There is no such repository, branch or commit.
    NotFound,
    /// The server wants a login, or refuses this one.
    Denied,
    /// A pack or an object is corrupt or missing.
    Damaged,
    /// An object is sound and says what git does not write.
    Malformed,
    /// More would have to be read than is read of any repository.
    Limit,
    /// The user has not agreed to ask the server that a redirect leads to.
    NotAgreed,
    /// Anything else.
    Other,
}

/// An error with a message for people: one sentence, without credentials.
#[derive(Clone, Debug)]
pub struct GitError {
    /// What kind of error it is.
    pub kind: GitErrorKind,
    /// What happened, in one sentence.
    pub message: String,
    /// How long the server asked us to wait.
    pub(crate) retry_after: Option<Duration>,
    /// What the operating system said, where a file is to blame.
    source: Option<Arc<io::Error>>,
}

impl fmt::Display for GitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for GitError {
    // By hand: an `Arc` in the chain would hide the kind of the I/O error from a downcast.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}

impl GitError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: GitErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, source: None }
    }

    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::new(GitErrorKind::Transient, message)
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(GitErrorKind::Other, message)
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(GitErrorKind::Interrupted, "the transfer was interrupted")
    }

    /// An object that cannot be read.
    pub(crate) fn damaged(message: &str) -> Self {
        Self::new(GitErrorKind::Damaged, message)
    }

    /// An object that is what it should be, and is not what git writes.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(GitErrorKind::Malformed, message)
    }

    /// A limit of `limits` that is exceeded.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(GitErrorKind::Limit, message)
    }

    /// The same, to be tried again after `wait` at the earliest.
    pub(crate) fn after(self, wait: Option<Duration>) -> Self {
        Self { retry_after: wait, ..self }
    }

    /// An error of the local file system.
    pub(crate) fn io(doing: &str, path: &std::path::Path, error: io::Error) -> Self {
        let message = format!("cannot {doing} `{}`: {error}", path.display());
        // What is there is not what was put there: a file for a folder, or bytes for a text.
        let kind = match error.kind() {
            io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::InvalidData => GitErrorKind::Damaged,
            _ => GitErrorKind::Other,
        };
        Self { source: Some(Arc::new(error)), ..Self::new(kind, message) }
    }
}
