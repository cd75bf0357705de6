//! The error of this crate: one sentence for the user, and a kind for the caller.

use std::io;

/// The kind of a [`GithubError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GithubErrorKind {
    /// The caller cancelled. The journal has the finished part.
    Interrupted,
    /// The network or GitHub failed at every try. A later search may succeed.
    Transient,
    /// GitHub refuses the token, or the lack of one.
    Denied,
    /// The search string or its ranking is wrong.
    InvalidQuery,
    /// GitHub's limits ask for a longer wait than we accept.
    RateLimited,
    /// Any other failure.
    Other,
}

/// A failure, displayed as one sentence without a full stop. Never quotes a token.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct GithubError {
    kind: GithubErrorKind,
    message: String,
    /// The operating system's error, if a file is the cause.
    source: Option<io::Error>,
}

impl GithubError {
    pub(super) fn new(kind: GithubErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(super) fn other(message: impl Into<String>) -> Self {
        Self::new(GithubErrorKind::Other, message)
    }

    /// The error of a file of the journal.
    pub(super) fn io(message: impl Into<String>, error: io::Error) -> Self {
        Self { source: Some(error), ..Self::other(message) }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(GithubErrorKind::InvalidQuery, message)
    }

    pub(super) fn interrupted() -> Self {
        Self::new(GithubErrorKind::Interrupted, "the search was interrupted")
    }

    /// The kind of the error.
    pub fn kind(&self) -> GithubErrorKind {
        self.kind
    }
}
