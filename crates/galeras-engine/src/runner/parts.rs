//! Finished parts of a recipe: rows that later runs of the same operator and arguments reuse.

use super::error::RunError;
use galeras_base::digest::Digest;
use galeras_sql::session::StoredBlob;
use galeras_store::{MemoPart, Store, timestamp};

/// Makes a stored blob a part of the recipe. `row` is the digest of the input row, if the part is
/// the result of only one, or names a piece of that result.
///
/// # Errors
/// If the store cannot be written.
pub(super) async fn commit_part(
    store: &Store,
    recipe: &Digest,
    blob: StoredBlob,
    row: Option<String>,
) -> Result<(), RunError> {
    let StoredBlob { digest, bytes, rows } = blob;
    let part = MemoPart { blob: digest, bytes, rows, created: timestamp(), row };
    store.put_memo_part(recipe, &part).await?;
    tracing::debug!(blob = %digest.short(), rows, bytes, "part committed");
    Ok(())
}
