//! Facts about the world, and those of them that `galeras.lock` pins: what a step asks, and how it
//! finds the pinned answer.

use std::collections::BTreeMap;

use serde_json::Value;

use galeras_base::digest::Digest;

/// What a step's result depends on besides inputs, arguments and files.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The rows of its main port are an answer of the world to these questions.
    Snapshot {
        /// The arguments that ask.
        of: Value,
    },
    /// A file behind a URL.
    File {
        /// The URL.
        url: String,
    },
    /// Something that has a version, which [`Versioned`](super::Versioned) tells.
    Version {
        /// The arguments that name it.
        of: Value,
    },
    /// Something that cannot be pinned, for this reason.
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

/// The digest under which the answer to a question of an operator is pinned.
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

    /// The pinned version of what an operator names.
    pub fn version(&self, operator: &str, of: &Value) -> Option<&str> {
        self.versions.get(&question(operator, of)).map(String::as_str)
    }
}
