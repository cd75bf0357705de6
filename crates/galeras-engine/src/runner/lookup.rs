//! Whether the store has the complete result of a key, and whether its files are sound.

use std::fmt;

use super::error::RunError;
use galeras_base::digest::Digest;
use galeras_store::{BlobState, Manifest, Scrutiny, Store};

pub(super) enum Lookup {
    /// A result with all its files.
    Hit(Box<Manifest>),
    /// A result with missing or damaged files.
    Incomplete(UnsoundFiles),
    /// Nothing.
    Miss,
}

/// The missing or damaged files of a result.
#[derive(Debug)]
pub(super) struct UnsoundFiles {
    pub(super) missing: Vec<Digest>,
    pub(super) damaged: Vec<Digest>,
}

impl UnsoundFiles {
    pub(super) fn of(blobs: Vec<(Digest, BlobState)>) -> Self {
        let with = |state| {
            let found = blobs.iter().filter(move |(_, is)| *is == state);
            found.map(|(blob, _)| *blob).collect()
        };
        Self { missing: with(BlobState::Missing), damaged: with(BlobState::Damaged) }
    }
}

impl fmt::Display for UnsoundFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = |count, state| match count {
            0 => None,
            1 => Some(format!("one stored file is {state}")),
            _ => Some(format!("{count} stored files are {state}")),
        };
        let parts = [files(self.missing.len(), "missing"), files(self.damaged.len(), "damaged")];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Looks for the result of `key`, and at its files.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn lookup(store: &Store, key: &Digest) -> Result<Lookup, RunError> {
    let Some(manifest) = store.manifest(key).await? else { return Ok(Lookup::Miss) };
    let unsound = store.unsound_blobs(&manifest, Scrutiny::Usual).await?;
    Ok(if unsound.is_empty() {
        Lookup::Hit(Box::new(manifest))
    } else {
        Lookup::Incomplete(UnsoundFiles::of(unsound))
    })
}

/// The reason to recompute a result with rows that failed for external reasons.
pub(super) fn retry_reason(manifest: &Manifest) -> String {
    match manifest.retry_rows {
        1 => "one row failed and is tried again".to_string(),
        rows => format!("{rows} rows failed and are tried again"),
    }
}
