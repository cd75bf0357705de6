//! Where a file comes from, for whoever asks.

use std::path::Path;
use std::sync::Arc;

use super::error::RunError;
use super::file_digests::FileDigests;
use super::output_place::{Occupant, place};
use galeras_base::digest::Digest;
use galeras_store::{OutputOrigin, OutputRecord, Store};

/// Where a file comes from.
#[derive(Debug)]
pub enum FileOrigin {
    /// Workflows wrote it just so.
    Written {
        /// The digest of its bytes.
        content: Digest,
        /// Who wrote it, the latest last.
        origins: Vec<OutputOrigin>,
        /// What the store knows of each; nothing if only the file says it.
        records: Vec<OutputRecord>,
    },
    /// A workflow wrote it, and it was changed since.
    Changed {
        /// The digest of its bytes.
        content: Digest,
        /// Who wrote what was there before.
        origin: OutputOrigin,
    },
    /// Nobody knows.
    Unknown {
        /// The digest of its bytes.
        content: Digest,
    },
    /// It is not there.
    Missing,
    /// It is not a file that can be read: what it is, in words that follow its name.
    Other(String),
}

/// Where the file at `path` comes from, as the store knows or the file itself says.
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
            // Of a file that was copied, the records of this place tell more than the others.
            let here = place(path);
            if records.iter().any(|record| record.place == here) {
                records.retain(|record| record.place == here);
            }
            FileOrigin::Written { content, origins, records }
        }
    })
}
