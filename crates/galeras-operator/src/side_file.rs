//! Files that a step reads in addition to its inputs.

use serde::{Deserialize, Serialize};

use galeras_base::digest::Digest;

/// A file that a step reads, by content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SideFile {
    /// Its name in messages: the path as written in the workflow.
    pub name: String,
    /// The digest of its content.
    pub digest: Digest,
}
