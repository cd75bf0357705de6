//! The error of everything that reads or fetches a repository.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The kind of an error, which decides how to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitErrorKind {
    /// The interrupt flag was set.
    Interrupted,
    /// The network or the server failed in a way that may pass.
    Transient,
    /// The repository, branch or commit does not exist.
    NotFound,
    /// The server wants a login, or refuses this one.
    Denied,
    /// A pack or an object is corrupt or missing.
    Damaged,
    /// An object is intact, but git would not write it.
    Malformed,
    /// More would have to be read than is read of any repository.
    Limit,
    /// The user has not agreed to ask the server that a redirect leads to.
    NotAgreed,
    /// The server sends no parts of a repository.
    NotServed,
    /// Anything else.
    Other,
}

/// A result of reading or fetching a repository.
pub(crate) type Result<T, E = GitError> = std::result::Result<T, E>;

/// An error with a message for people: one sentence, without credentials.
#[derive(Clone, Debug)]
pub struct GitError {
    /// The kind of error.
    pub kind: GitErrorKind,
    /// One sentence for people.
    pub message: String,
    /// How long the server asked us to wait.
    pub(crate) retry_after: Option<Duration>,
    /// The error of the operating system, if a file caused this one.
    pub(crate) source: Option<Arc<io::Error>>,
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
    /// An error of `kind` with a message.
    pub fn new(kind: GitErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), retry_after: None, source: None }
    }

    pub(crate) fn transient(message: impl fmt::Display) -> Self {
        Self::new(GitErrorKind::Transient, message)
    }

    pub(crate) fn other(message: impl fmt::Display) -> Self {
        Self::new(GitErrorKind::Other, message)
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(GitErrorKind::Interrupted, "the transfer was interrupted")
    }

    /// An object that cannot be read.
    pub(crate) fn damaged(message: impl fmt::Display) -> Self {
        Self::new(GitErrorKind::Damaged, message)
    }

    /// A limit of `limits` that is exceeded.
    pub(crate) fn limit(message: impl fmt::Display) -> Self {
        Self::new(GitErrorKind::Limit, message)
    }

    /// An error of the local file system.
    pub(crate) fn io(doing: &str, path: &std::path::Path, error: io::Error) -> Self {
        use io::ErrorKind::{AlreadyExists, InvalidData, IsADirectory, NotADirectory};
        let message = format!("cannot {doing} `{}`: {error}", path.display());
        // Somebody replaced a file by a folder, or a text by other bytes.
        let kind = match error.kind() {
            NotADirectory | IsADirectory | AlreadyExists | InvalidData => GitErrorKind::Damaged,
            _ => GitErrorKind::Other,
        };
        Self { source: Some(Arc::new(error)), ..Self::new(kind, message) }
    }
}
