//! A repository on its way into the table: before its head is known, and where it has none.

use serde_json::Value;

/// A repository whose head is not known yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnresolvedRepository {
    /// What it is called in tables.
    pub(super) repo: String,
    /// A URL or a folder.
    pub(super) address: String,
    /// Further columns as an object.
    pub(super) facts: Value,
    /// A search found it: its address is what the server says.
    pub(super) found: bool,
    /// The default branch, if that is known already.
    pub(super) known_branch: Option<String>,
}

/// A repository without a commit to start from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeadlessRepository {
    pub(super) repo: String,
    pub(super) address: String,
    pub(super) rule: &'static str,
    pub(super) reason: String,
}
