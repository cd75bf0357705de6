//! The error of everything that asks GitHub.
//!
//! What failed, as one plain sentence, and its kind, by which callers decide what to do.

use std::io;

/// What sort of failure a [`GithubError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GithubErrorKind {
    /// The caller cancelled; what was finished is in the journal.
    Interrupted,
    /// The network or GitHub failed for longer than we try; a later try may succeed.
    Transient,
    /// GitHub refuses the token, or the lack of one.
    Denied,
    /// The search string, or what is asked about it, is wrong.
    InvalidQuery,
    /// GitHub's limits ask for a longer pause than we wait.
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
    retry_at: Option<u64>,
    /// What the operating system said, where a file is to blame.
    source: Option<io::Error>,
}

impl GithubError {
    pub(super) fn new(kind: GithubErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_at: None, source: None }
    }

    pub(super) fn other(message: impl Into<String>) -> Self {
        Self::new(GithubErrorKind::Other, message)
    }

    /// A file of ours cannot be written or read.
    pub(super) fn io(message: impl Into<String>, error: io::Error) -> Self {
        Self { source: Some(error), ..Self::other(message) }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(GithubErrorKind::InvalidQuery, message)
    }

    pub(super) fn interrupted() -> Self {
        Self::new(GithubErrorKind::Interrupted, "the search was interrupted")
    }

    pub(super) fn rate_limited(message: impl Into<String>, retry_at: Option<u64>) -> Self {
        Self { retry_at, ..Self::new(GithubErrorKind::RateLimited, message) }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> GithubErrorKind {
        self.kind
    }

    /// When GitHub takes requests again, in seconds since 1970, if it said so.
    pub fn retry_at(&self) -> Option<u64> {
        self.retry_at
    }
}
