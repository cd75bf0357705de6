//! The dependencies of a step besides its inputs and arguments: files and external facts, and the
//! entries of `galeras.lock` for them and for analyses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_base::digest::Digest;

/// A file that a step reads, by content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SideFile {
    /// Its name in messages: the path as written in the workflow.
    pub name: String,
    /// The digest of its content.
    pub digest: Digest,
}

/// A dependency of a step's result besides inputs, arguments and files.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The rows of its main port are an external answer to these arguments.
    Snapshot {
        /// The arguments of the question.
        of: Value,
    },
    /// A file at a URL.
    File {
        /// The URL.
        url: String,
    },
    /// Something with a version, which [`Versioned`](super::Versioned) returns.
    Version {
        /// The arguments that name it.
        of: Value,
    },
    /// Something that cannot be pinned, with the reason.
    Moving(String),
}

/// A pinned answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The digest of the answer.
    pub digest: Digest,
    /// The rows of the main port, as objects of columns.
    pub rows: Vec<Value>,
    /// The rows of the port `rejects`.
    pub rejects: Vec<Value>,
}

/// The pinned facts.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Answers by [`question`].
    pub snapshots: BTreeMap<Digest, Snapshot>,
    /// The content of files by URL.
    pub files: BTreeMap<String, Digest>,
    /// Versions by [`question`].
    pub versions: BTreeMap<Digest, String>,
}

/// The digest under which the answer to an operator's question is pinned.
pub fn question(operator: &str, of: &Value) -> Digest {
    Digest::of_json(&serde_json::json!({"operator": operator, "of": of}))
}

/// The digest of a pinned answer.
pub fn answer_digest(rows: &[Value], rejects: &[Value]) -> Digest {
    Digest::of_json(&serde_json::json!([rows, rejects]))
}

impl Pins {
    /// The pinned answer to a question of an operator.
    pub fn snapshot(&self, operator: &str, of: &Value) -> Option<&Snapshot> {
        self.snapshots.get(&question(operator, of))
    }

    /// The pinned version of the thing that `of` names.
    pub fn version(&self, operator: &str, of: &Value) -> Option<&str> {
        self.versions.get(&question(operator, of)).map(String::as_str)
    }
}

/// The registrations of a step that the workflow's `prereg` names, the oldest first; empty if it
/// was not locked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Registration {
    /// All registrations.
    pub analyses: Vec<RegisteredAnalysis>,
}

/// An analysis as it was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegisteredAnalysis {
    /// The time of registration, RFC 3339 in UTC.
    pub at: String,
    /// True if there was no result for it yet.
    pub before_results: bool,
    /// The arguments, as [`BoundStep::args`](super::BoundStep::args) returned them without a
    /// registration.
    pub args: Value,
    /// Descriptions of later changes in the steps before this one; empty if there are none.
    pub changed_steps: Vec<String>,
}

/// The key of the registration in [`BoundStep::args`](super::BoundStep::args).
pub const REGISTRATION: &str = "registration";
