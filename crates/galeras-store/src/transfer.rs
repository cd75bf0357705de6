//! Copies results from one store to another: manifests by key, tables by digest, outcomes of
//! checks.
//!
//! Nothing from another store is trusted: the key of a manifest must be the digest of its
//! pre-image, and the content of a table must have the digest in its name and the logical digests
//! in the manifest. The manifest is written last.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{Error, ObjectStoreExt as _};

use super::backend::{Backend, MAX_SMALL, below, blocking};
use super::blob_check::{BlobState, VerifyLevel};
use super::content_store::{Store, StoredOutcome};
use super::error::{Result, StoreError, StoreErrorKind};
use super::integrity::unseal;
use super::manifest::{Manifest, ManifestError, PortArtifact};
use super::manifest_signatures::StoredManifest;
use super::object_name::{blob_name, check_name, manifest_name};
use super::parquet_check::check_whole_footer;
use super::ssh_keygen::SignatureFile;
use super::table_file::{TableFile, open};
use super::table_shape::TableShape;
use super::verify::{read_table, table_problem, unreadable};
use galeras_base::digest::{Digest, table_digest};
use galeras_base::scratch::{KEPT_FREE, free_bytes};

/// How long another store may send nothing, before a table and within it.
const SILENCE: Duration = Duration::from_secs(20);

/// A store that sends fewer bytes than [`SLOWEST_BYTES`] of a table in this time is given up, as
/// single bytes would never be a long silence.
const SLOWEST: Duration = Duration::from_secs(300);
const SLOWEST_BYTES: u64 = 64 << 10;

/// The result of a key in a store, for another store.
#[derive(Debug)]
pub enum Offer {
    /// A result.
    Manifest(Box<StoredManifest>),
    /// Nothing.
    Nothing,
    /// Something that cannot be used, for this reason.
    Unusable(String),
}

/// Why a table could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source cannot be reached, or sends a wrong table.
    #[error(transparent)]
    From(StoreError),
    /// The target cannot be written.
    #[error(transparent)]
    To(StoreError),
}

impl Store {
    /// Reads the result of a key. A manifest of another version is [`Offer::Nothing`], and a
    /// truncated one is [`Offer::Unusable`].
    pub async fn offer(&self, key: &Digest) -> Result<Offer> {
        let bytes = match self.in_time(self.whole(&manifest_name(key))).await? {
            Some(Ok(bytes)) => bytes,
            Some(Err(cause)) => return Ok(Offer::Unusable(cause)),
            None => return Ok(Offer::Nothing),
        };
        let stored = match StoredManifest::parse(bytes) {
            Ok(stored) => stored,
            Err(ManifestError::OtherFormat(_)) => return Ok(Offer::Nothing),
            Err(ManifestError::Damaged(cause)) => return Ok(Offer::Unusable(cause)),
        };
        let manifest = &stored.manifest;
        if manifest.key != *key || manifest.preimage.key() != *key {
            return Ok(Offer::Unusable("it has the result of another key".into()));
        }
        Ok(match implausible(manifest) {
            None => Offer::Manifest(Box::new(stored)),
            Some(cause) => Offer::Unusable(cause),
        })
    }

    /// Describes a table whose size in the store is not the one in its manifest. A missing table
    /// has no size; it may not be needed.
    pub async fn other_size(&self, manifest: &Manifest) -> Result<Option<String>> {
        let looks = manifest.ports.iter().map(|port| async move {
            let name = blob_name(&port.blob);
            let size = self.in_time(self.inner.backend.size(&name)).await?;
            let other = size.filter(|size| *size != port.bytes);
            let words = |size| {
                format!("its table `{}` has {size} bytes instead of {}", port.port, port.bytes)
            };
            Ok::<_, StoreError>(other.map(words))
        });
        Ok(futures::future::try_join_all(looks).await?.into_iter().flatten().next())
    }

    /// Reads the signatures of the result of a key, with a time limit.
    pub async fn offered_signatures(&self, key: &Digest) -> Result<SignatureFile> {
        self.in_time(self.signatures(key)).await
    }

    /// Returns true if the store has a sound table of this digest; in a bucket, one of this size.
    pub async fn has_blob(&self, blob: &Digest, bytes: u64) -> Result<bool> {
        Ok(self.blob_state(blob, bytes, VerifyLevel::Usual).await? == BlobState::Sound)
    }

    /// Copies a table that `to` lacks; returns true if it did. An existing table was not compared
    /// with its manifest ([`Store::judge`]) or with the shape. Errors are those of
    /// [`Store::copy_file`].
    pub async fn copy_table(
        &self,
        to: &Store,
        port: &PortArtifact,
        shape: Option<&TableShape>,
    ) -> Result<bool, CopyError> {
        if to.has_blob(&port.blob, port.bytes).await.map_err(CopyError::To)? {
            return Ok(false);
        }
        self.copy_file(to, port, shape, |_| {}).await?;
        Ok(true)
    }

    /// Compares a stored table with a manifest from another store, and describes the difference. A
    /// table in a bucket is not compared: it would have to be downloaded.
    pub async fn judge(&self, port: &PortArtifact) -> Result<Option<String>> {
        if self.inner.backend.folder().is_none() {
            return Ok(None);
        }
        let Some(file) = open(self, &blob_name(&port.blob)).await? else {
            return Ok(Some("its table is missing".into()));
        };
        let port = port.clone();
        blocking(move || Ok(difference(file, &port, None))).await
    }

    /// Copies the file of a table into `to`, and calls `progress` with the number of new bytes. The
    /// file is hashed on its way. It gets its name in `to` only if it matches the manifest and the
    /// shape. Fails if the source or the target fails, or the table is wrong.
    pub async fn copy_file(
        &self,
        to: &Store,
        port: &PortArtifact,
        shape: Option<&TableShape>,
        progress: impl Fn(u64),
    ) -> Result<(), CopyError> {
        let name = blob_name(&port.blob);
        let wrong = |cause: String| {
            let place = format!("{name} from {}", self.location());
            CopyError::From(StoreError::new(StoreErrorKind::Corrupt, "take", place, cause))
        };
        let chunks = self.in_time(self.chunks(&name)).await.map_err(CopyError::From)?;
        let mut chunks = chunks.ok_or_else(|| wrong("it is missing".into()))?;
        let mut writer = to.blob_writer().map_err(CopyError::To)?;
        let free = free_bytes(&match &to.inner.backend {
            Backend::Folder(folder) => folder.root.clone(),
            Backend::Bucket(_) => std::env::temp_dir(),
        });
        if port.bytes.saturating_add(KEPT_FREE) > free {
            let (size, free) = (port.bytes >> 20, free >> 20);
            return Err(wrong(format!("it has {size} MiB, and the disk has {free} MiB left")));
        }
        let mut pace = Pace { since: Instant::now(), before: 0 };
        loop {
            let next = self.in_time(chunks.try_next()).await;
            let Some(chunk) = next.map_err(CopyError::From)? else { break };
            if writer.bytes() + chunk.len() as u64 > port.bytes {
                return Err(wrong(format!("it has more than {} bytes", port.bytes)));
            }
            let written = writer.write_all(&chunk);
            let failed = |error| CopyError::To(StoreError::of("write", to.location(), error));
            written.map_err(failed)?;
            progress(chunk.len() as u64);
            if pace.is_too_slow(writer.bytes(), Instant::now()) {
                let (kib, seconds) = (SLOWEST_BYTES >> 10, SLOWEST.as_secs());
                let cause = format!("less than {kib} KiB came in {seconds} seconds");
                return Err(CopyError::From(self.too_slow(cause)));
            }
        }
        if writer.bytes() != port.bytes || writer.digest() != port.blob {
            return Err(wrong("its content does not have the digest in its name".into()));
        }
        let failed = |error| CopyError::To(StoreError::of("read", "a table", error));
        let file = writer.reader().map_err(failed)?;
        let compared = {
            let (port, shape) = (port.clone(), shape.cloned());
            blocking(move || {
                Ok(match check_whole_footer(&file) {
                    Err(why) => Some(unreadable(why)),
                    Ok(_) => difference(file, &port, shape.as_ref()),
                })
            })
        };
        if let Some(cause) = compared.await.map_err(CopyError::From)? {
            return Err(wrong(cause));
        }
        writer.finish(to, true).await.map_err(CopyError::To)?;
        if let Some(shape) = shape {
            to.note_shape(&port.blob, shape);
        }
        Ok(())
    }

    /// The content of a small object, or the reason why it is truncated; `None` if it does not
    /// exist.
    async fn whole(&self, name: &str) -> Result<Option<Result<Vec<u8>, String>>> {
        if self.inner.backend.folder().is_some() {
            return Ok(self.inner.backend.read(name).await?.map(Ok));
        }
        let Some(mut chunks) = self.chunks(name).await? else { return Ok(None) };
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) => bytes.extend_from_slice(&chunk),
                Err(error) => return Ok(Some(Err(error.to_string()))),
            }
            if bytes.len() as u64 > MAX_SMALL {
                return Ok(Some(Err(format!("it has more than {MAX_SMALL} bytes"))));
            }
        }
        Ok(Some(Ok(bytes)))
    }

    /// The content of an object in pieces; `None` if it does not exist.
    pub(super) async fn chunks(
        &self,
        name: &str,
    ) -> Result<Option<BoxStream<'static, Result<Bytes>>>> {
        let place = format!("{}/{name}", self.location().trim_end_matches('/'));
        match self.inner.objects.get(&below(&self.inner.root, name)).await {
            Ok(object) => {
                let chunks = object.into_stream();
                let failed = move |error| StoreError::of("read", &place, error);
                Ok(Some(chunks.map_err(failed).boxed()))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::of("read", place, error)),
        }
    }

    /// The result of this work, or an error if the store sends nothing for too long.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout(SILENCE, work).await.unwrap_or_else(|_| {
            Err(self.too_slow(format!("nothing came for {} seconds", SILENCE.as_secs())))
        })
    }

    fn too_slow(&self, cause: String) -> StoreError {
        StoreError::new(StoreErrorKind::Io, "read", self.location(), cause)
    }

    /// Copies the outcome of a check into `to`; returns true if there was a sound one.
    pub async fn copy_check(&self, to: &Store, key: &Digest) -> Result<bool> {
        let name = check_name(key);
        let Some(bytes) = self.in_time(self.inner.backend.read(&name)).await? else {
            return Ok(false);
        };
        let sound = unseal::<StoredOutcome>(&bytes).is_ok_and(|outcome| outcome.key == *key);
        if sound {
            to.write_changed(&name, &bytes).await?;
        }
        Ok(sound)
    }
}

/// The rate of a copy, measured in windows of [`SLOWEST`].
struct Pace {
    since: Instant,
    /// The bytes before the window.
    before: u64,
}

impl Pace {
    /// Returns true if `bytes`, the total by `now`, are too few.
    fn is_too_slow(&mut self, bytes: u64, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) < SLOWEST {
            return false;
        }
        let slow = bytes.saturating_sub(self.before) < SLOWEST_BYTES;
        (self.since, self.before) = (now, bytes);
        slow
    }
}

/// More rows or bytes than any table has, and few enough that sums do not overflow.
const BEYOND_ALL: u64 = 1 << 48;

/// Describes an impossible number or digest in a manifest.
fn implausible(manifest: &Manifest) -> Option<String> {
    let Manifest { ports, computed_rows, reused_rows, retry_rows, .. } = manifest;
    let of_ports = ports.iter().flat_map(|port| [port.rows, port.bytes]);
    let mut numbers = of_ports.chain([*computed_rows, *reused_rows, *retry_rows]);
    if numbers.any(|number| number >= BEYOND_ALL) {
        return Some("it has a size that no table has".into());
    }
    let odd = ports.iter().find(|port| table_digest(&port.columns, port.rows) != port.digest);
    odd.map(|port| format!("the digest of its table `{}` is not that of its columns", port.port))
}

/// Describes how the table in a file differs from its manifest or from a shape.
fn difference(file: File, port: &PortArtifact, shape: Option<&TableShape>) -> Option<String> {
    let table = match TableFile::open(file) {
        Ok(table) => table,
        Err(cause) => return Some(unreadable(cause)),
    };
    table_problem(&read_table(&table, true), port.rows, Some(port), "its manifest")
        .or_else(|| shape.and_then(|shape| shape.rows_differ(&table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_sends_single_bytes_is_given_up() {
        let start = Instant::now();
        let mut pace = Pace { since: start, before: 0 };
        assert!(!pace.is_too_slow(1, start + SLOWEST / 2));
        assert!(!pace.is_too_slow(SLOWEST_BYTES, start + SLOWEST));
        assert!(!pace.is_too_slow(SLOWEST_BYTES + 1, start + SLOWEST * 3 / 2));
        assert!(pace.is_too_slow(2 * SLOWEST_BYTES - 1, start + SLOWEST * 2));
    }
}
