//! A repository before its head is known, or without one.

use serde_json::Value;

/// A repository whose head is not known yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnresolvedRepository {
    /// The name in tables.
    pub(super) repo: String,
    pub(super) address: String,
    /// Further columns as an object.
    pub(super) facts: Value,
    /// The source of its address.
    pub(super) origin: Origin,
    /// The default branch, if already known.
    pub(super) known_branch: Option<String>,
}

/// The source of a repository's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The workflow.
    Listed,
    /// A search on a server of this machine.
    FoundHere,
    /// A search on another server.
    FoundElsewhere,
}

/// A repository without a commit to start from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeadlessRepository {
    pub(super) repo: String,
    pub(super) address: String,
    pub(super) rule: &'static str,
    pub(super) reason: String,
}
