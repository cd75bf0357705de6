//! Whether the store has the complete result of a key, and whether its files are sound.

use super::error::RunError;
use crate::digest::Digest;
use crate::store::{Manifest, Store};

/// What the store has under a key.
pub(super) enum Lookup {
    /// A result with all its files.
    Hit(Box<Manifest>),
    /// A result of which these files are missing or of another size.
    Incomplete(Vec<Digest>),
    /// Nothing.
    Miss,
}

/// Looks for the result of `key`.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn lookup(store: &Store, key: &Digest) -> Result<Lookup, RunError> {
    let Some(manifest) = store.manifest(key).await? else { return Ok(Lookup::Miss) };
    let missing = store.missing_blobs(&manifest).await;
    Ok(if missing.is_empty() {
        Lookup::Hit(Box::new(manifest))
    } else {
        Lookup::Incomplete(missing)
    })
}

/// Why a result with rows that failed for reasons outside of them is computed again.
pub(super) fn retry_reason(manifest: &Manifest) -> String {
    match manifest.retry_rows {
        1 => "one row failed and is tried again".to_string(),
        rows => format!("{rows} rows failed and are tried again"),
    }
}

/// Whether a stored file of a result does not have the content it should have.
pub(super) fn is_damaged(store: &Store, manifest: &Manifest) -> bool {
    manifest.ports.iter().any(|port| {
        store.local_blob(&port.blob).is_some_and(|path| {
            let hash = std::fs::File::open(path).and_then(|file| {
                let mut hasher = blake3::Hasher::new();
                hasher.update_reader(file)?;
                Ok(Digest::from(hasher.finalize()))
            });
            hash.map_or(true, |hash| hash != port.blob)
        })
    })
}
