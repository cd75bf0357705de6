//! Finds the origin of a file.

use std::path::Path;
use std::sync::Arc;

use super::error::RunError;
use super::file_digests::FileDigests;
use super::output_place::{Occupant, place};
use galeras_base::digest::Digest;
use galeras_store::{OutputOrigin, OutputRecord, Store};

/// The origin of a file.
#[derive(Debug)]
pub enum FileOrigin {
    /// Workflows wrote exactly this file.
    Written {
        /// The digest of its bytes.
        content: Digest,
        /// The workflows that wrote it, the latest last.
        origins: Vec<OutputOrigin>,
        /// The store's record of each; empty if only the file has its origin.
        records: Vec<OutputRecord>,
    },
    /// A workflow wrote it, and it has changed since.
    Changed {
        /// The digest of its bytes.
        content: Digest,
        /// The workflow that wrote the previous content.
        origin: OutputOrigin,
    },
    /// Unknown.
    Unknown {
        /// The digest of its bytes.
        content: Digest,
    },
    /// The file is missing.
    Missing,
    /// Not a readable file: a description that follows its name.
    Other(String),
}

/// The origin of the file at `path`, from the store or the file itself.
///
/// # Errors
/// If the store cannot be read.
pub async fn file_origin(path: &Path, store: &Store) -> Result<FileOrigin, RunError> {
    Ok(match Occupant::of(path, store, &Arc::new(FileDigests::default())).await? {
        Occupant::Nothing => FileOrigin::Missing,
        Occupant::Other(what) => FileOrigin::Other(what),
        Occupant::Unknown { content } => FileOrigin::Unknown { content },
        Occupant::Changed { content, by } => FileOrigin::Changed { content, origin: by },
        Occupant::Written { content, origins } => {
            let mut records = store.outputs_of(&content).await?;
            // For a copied file, prefer the records of this path.
            let here = place(path);
            if records.iter().any(|record| record.place == here) {
                records.retain(|record| record.place == here);
            }
            FileOrigin::Written { content, origins, records }
        }
    })
}
