//! The error of everything that reads or fetches a repository.

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
    /// A pack or an object is corrupt.
    Damaged,
    /// Anything else.
    Other,
}

/// An error with a message for people: one sentence, without credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GitError {
    /// What kind of error it is.
    pub kind: GitErrorKind,
    /// What happened, in one sentence.
    pub message: String,
    /// How long the server asked us to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl GitError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: GitErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
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

    /// An error of the local file system.
    pub(crate) fn io(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::other(format!("cannot {doing} `{}`: {error}", path.display()))
    }
}
