//! External facts that steps use, and those that `galeras.lock` pins.

use std::collections::BTreeMap;

use serde_json::Value;

use galeras_base::digest::Digest;

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
