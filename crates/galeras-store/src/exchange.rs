//! What one store gives to another: manifests by key, tables by digest, outcomes of checks.
//!
//! Nothing that comes from elsewhere is believed: a manifest must be the pre-image of its key, a
//! table the content of its digest and of the logical digests that the manifest claims. What is
//! sent is sent in the order in which a store is written, the manifest last.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use tokio::io::AsyncReadExt as _;

use super::backend::{Backend, blocking};
use super::blob::BlobWriter;
use super::content_store::{Store, blob_name, check_name, manifest_name};
use super::descendants::StoredOutcome;
use super::error::{StoreError, StoreErrorKind};
use super::manifest::{Manifest, PortArtifact, Unreadable};
use super::object::MAX_SMALL;
use super::parquet_check::check_whole_footer;
use super::sealed::unseal;
use super::shape::TableShape;
use super::signed::StoredManifest;
use super::soundness::{BlobState, VerifyLevel};
use super::ssh_keygen::SignatureFile;
use super::table_file::TableFile;
use super::tables::open;
use super::verify::{compare, read_table};
use galeras_base::digest::{Digest, table_digest};
use galeras_base::scratch::{KEPT_FREE, free_bytes};

/// How long another store may say nothing, before a table and while it sends one.
const SILENCE: Duration = Duration::from_secs(20);

/// A store that gives fewer bytes than [`SLOWEST_BYTES`] of a table in this time says nothing, too:
/// bytes that come one by one would keep the silence from ever being long.
const SLOWEST: Duration = Duration::from_secs(300);
const SLOWEST_BYTES: u64 = 64 << 10;

/// How much of a file is read at once.
const CHUNK: usize = 1 << 18;

/// What a store has under a key, for another store.
#[derive(Debug)]
pub enum Offer {
    /// A result.
    Manifest(Box<StoredManifest>),
    /// Nothing.
    Nothing,
    /// Something that cannot be used, for this reason.
    Unusable(String),
}

/// Why a table could not be copied: whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The store that it comes from cannot be reached, or gives something else.
    #[error(transparent)]
    From(StoreError),
    /// The store that it goes to cannot be written.
    #[error(transparent)]
    To(StoreError),
}

impl Store {
    /// What this store has under a key. A manifest of another version is nothing, and one that does
    /// not come whole is none.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn offer(&self, key: &Digest) -> Result<Offer, StoreError> {
        let bytes = match self.in_time(self.whole(&manifest_name(key))).await? {
            Some(Ok(bytes)) => bytes,
            Some(Err(cause)) => return Ok(Offer::Unusable(cause)),
            None => return Ok(Offer::Nothing),
        };
        Ok(match StoredManifest::parse(bytes) {
            Ok(stored) if is_of(stored.manifest(), key) => match implausible(stored.manifest()) {
                None => Offer::Manifest(Box::new(stored)),
                Some(cause) => Offer::Unusable(cause),
            },
            Ok(_) => Offer::Unusable("it has the result of another key".into()),
            Err(Unreadable::OtherFormat(_)) => Offer::Nothing,
            Err(Unreadable::Damaged(cause)) => Offer::Unusable(cause),
        })
    }

    /// What a manifest says otherwise of the size of a table than the store itself, in words. A table
    /// that is not there has no size; nobody may need it.
    ///
    /// # Errors
    /// If the store does not tell sizes, or cannot be reached.
    pub async fn other_size(&self, manifest: &Manifest) -> Result<Option<String>, StoreError> {
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

    /// The signatures of what the store has under a key, unless it says nothing for too long.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn offered_signatures(&self, key: &Digest) -> Result<SignatureFile, StoreError> {
        self.in_time(self.signatures(key)).await
    }

    /// Whether the store has a sound table of this digest; of an object in a bucket, whether it has
    /// one of this size.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn has_blob(&self, blob: &Digest, bytes: u64) -> Result<bool, StoreError> {
        Ok(self.blob_state(blob, bytes, VerifyLevel::Usual).await? == BlobState::Sound)
    }

    /// Copies a table that `to` lacks; says whether it did. One that is there already was not compared
    /// with what the manifest says ([`Store::judge`]) or with the shape.
    ///
    /// # Errors
    /// Of which store it is, and why.
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

    /// In words what is wrong with a table that is here, compared with what a manifest from elsewhere
    /// says of it. In a bucket it is not looked at: all of it would have to be fetched.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn judge(&self, port: &PortArtifact) -> Result<Option<String>, StoreError> {
        if self.inner.backend.folder().is_none() {
            return Ok(None);
        }
        let Some(file) = open(self, &blob_name(&port.blob)).await? else {
            return Ok(Some("its table is missing".into()));
        };
        let port = port.clone();
        blocking(move || Ok(judged(file, &port, None))).await
    }

    /// Copies the file of a table into `to`, telling how many bytes came whenever some did. What
    /// comes is hashed on its way, and gets its name in `to` only if it is what the manifest says, and
    /// has this shape.
    ///
    /// # Errors
    /// Of which store it is, and why.
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
            StoreError::new(StoreErrorKind::Corrupt, "take", place, cause)
        };
        let chunks = self
            .in_time(self.chunks(&name))
            .await
            .and_then(|chunks| chunks.ok_or_else(|| wrong("it is missing".into())));
        let mut chunks = chunks.map_err(CopyError::From)?;
        let mut writer = to.blob_writer().map_err(CopyError::To)?;
        let (needed, free) = (port.bytes.saturating_add(KEPT_FREE), to.free_bytes());
        if needed > free {
            let (size, free) = (port.bytes >> 20, free >> 20);
            let cause = format!("it has {size} MiB, and the disk has {free} MiB left");
            return Err(CopyError::From(wrong(cause)));
        }
        let mut pace = Pace::since(Instant::now());
        loop {
            let next = self.in_time(async { chunks.next().await.transpose() }).await;
            let Some(chunk) = next.map_err(CopyError::From)? else { break };
            if writer.bytes() + chunk.len() as u64 > port.bytes {
                let cause = format!("it has more than {} bytes", port.bytes);
                return Err(CopyError::From(wrong(cause)));
            }
            let written = writer.write_all(&chunk);
            let failed = |error| CopyError::To(StoreError::of("write", to.location(), error));
            written.map_err(failed)?;
            progress(chunk.len() as u64);
            if pace.is_too_slow(writer.bytes(), Instant::now()) {
                let (kib, seconds) = (SLOWEST_BYTES >> 10, SLOWEST.as_secs());
                let cause = format!("less than {kib} KiB came in {seconds} seconds");
                return Err(CopyError::From(StoreError::new(
                    StoreErrorKind::Io,
                    "read",
                    self.location(),
                    cause,
                )));
            }
        }
        if writer.bytes() != port.bytes || writer.digest() != port.blob {
            let cause = "its content is not what its name says".to_string();
            return Err(CopyError::From(wrong(cause)));
        }
        // Whoever wrote it, it is read from now on.
        let failed = |error| CopyError::To(StoreError::of("read", "a table", error));
        let written = writer.reader().map_err(failed)?;
        let checked = blocking(move || Ok(check_whole_footer(&written)));
        if let Err(why) = checked.await.map_err(CopyError::From)? {
            return Err(CopyError::From(wrong(format!("its table cannot be read: {why}"))));
        }
        let writer = compared(writer, port, shape, wrong).await?;
        writer.commit_new(to).await.map_err(CopyError::To)?;
        if let Some(shape) = shape {
            to.note_shape(&port.blob, shape);
        }
        Ok(())
    }

    /// A small object, or in words why it does not come whole; `None` if it is not there.
    async fn whole(&self, name: &str) -> Result<Option<Result<Vec<u8>, String>>, StoreError> {
        let Backend::Bucket(_) = &self.inner.backend else {
            return Ok(self.inner.backend.read(name).await?.map(Ok));
        };
        let Some(mut chunks) = self.chunks(name).await? else { return Ok(None) };
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) => bytes.extend_from_slice(&chunk),
                Err(error) => return Ok(Some(Err(error.to_string()))),
            }
            // Never as much memory as the server sends.
            if bytes.len() as u64 > MAX_SMALL {
                return Ok(Some(Err(format!("it has more than {MAX_SMALL} bytes"))));
            }
        }
        Ok(Some(Ok(bytes)))
    }

    /// What may still be written where tables are put together.
    fn free_bytes(&self) -> u64 {
        match &self.inner.backend {
            Backend::Folder(folder) => free_bytes(&folder.root),
            Backend::Bucket(_) => free_bytes(&std::env::temp_dir()),
        }
    }

    /// What comes of this, unless the store says nothing for too long.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        tokio::time::timeout(SILENCE, work).await.unwrap_or_else(|_| {
            let cause = format!("nothing came for {} seconds", SILENCE.as_secs());
            Err(StoreError::new(StoreErrorKind::Io, "read", self.location(), cause))
        })
    }

    /// An object as it comes; `None` if it is not there.
    async fn chunks(
        &self,
        name: &str,
    ) -> Result<Option<impl Stream<Item = Result<Bytes, StoreError>> + Unpin>, StoreError> {
        let location = self.location().to_string();
        let stream = match &self.inner.backend {
            Backend::Folder(folder) => {
                let path = folder.path(name);
                match tokio::fs::File::open(&path).await {
                    Ok(file) => file_chunks(file)
                        .map(move |chunk| {
                            chunk.map_err(|error| StoreError::of("read", &location, error))
                        })
                        .boxed(),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(StoreError::at("read", &path, error)),
                }
            }
            Backend::Bucket(bucket) => {
                let Some(chunks) = bucket.chunks(name).await? else { return Ok(None) };
                let place = format!("{}/{name}", location.trim_end_matches('/'));
                chunks
                    .map(move |chunk| chunk.map_err(|error| StoreError::of("read", &place, error)))
                    .boxed()
            }
        };
        Ok(Some(stream))
    }

    /// Copies the outcome of a check into `to`; says whether there was a sound one.
    ///
    /// # Errors
    /// If one of the stores cannot be reached.
    pub async fn copy_check(&self, to: &Store, key: &Digest) -> Result<bool, StoreError> {
        let name = check_name(key);
        let Some(bytes) = self.in_time(self.inner.backend.read(&name)).await? else {
            return Ok(false);
        };
        if !unseal::<StoredOutcome>(&bytes).is_ok_and(|outcome| outcome.key == *key) {
            return Ok(false);
        }
        to.write_changed(&name, &bytes).await?;
        Ok(true)
    }
}

/// How fast a table comes, window by window.
struct Pace {
    since: Instant,
    /// The bytes before the window.
    before: u64,
}

impl Pace {
    fn since(since: Instant) -> Self {
        Self { since, before: 0 }
    }

    /// Returns true if too little has come by `now`, when so many bytes have come in all.
    fn is_too_slow(&mut self, bytes: u64, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) < SLOWEST {
            return false;
        }
        let slow = bytes.saturating_sub(self.before) < SLOWEST_BYTES;
        (self.since, self.before) = (now, bytes);
        slow
    }
}

/// More rows or bytes than any table has. Sums of what manifests say stay far from overflow.
const BEYOND_ALL: u64 = 1 << 48;

/// What a manifest says that cannot be so, whatever is in its tables.
fn implausible(manifest: &Manifest) -> Option<String> {
    let Manifest { ports, computed_rows, reused_rows, retry_rows, .. } = manifest;
    let of_ports = ports.iter().flat_map(|port| [port.rows, port.bytes]);
    let mut numbers = of_ports.chain([*computed_rows, *reused_rows, *retry_rows]);
    if numbers.any(|number| number >= BEYOND_ALL) {
        return Some("it says a size that no table has".into());
    }
    let odd = ports.iter().find(|port| table_digest(&port.columns, port.rows) != port.digest);
    odd.map(|port| format!("the digest of its table `{}` is not that of its columns", port.port))
}

fn is_of(manifest: &Manifest, key: &Digest) -> bool {
    manifest.key == *key && manifest.preimage.key() == *key
}

/// The content of a file, piece by piece.
fn file_chunks(file: tokio::fs::File) -> impl Stream<Item = io::Result<Bytes>> + Send {
    futures::stream::try_unfold(file, async |mut file| {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = file.read_buf(&mut chunk).await?;
        Ok((read > 0).then(|| (chunk.freeze(), file)))
    })
}

/// The writer, if what was written to it is the table that a manifest describes.
async fn compared(
    writer: BlobWriter,
    port: &PortArtifact,
    shape: Option<&TableShape>,
    wrong: impl Fn(String) -> StoreError,
) -> Result<BlobWriter, CopyError> {
    let failed = |error| CopyError::To(StoreError::of("read", "a table", error));
    let file = writer.reader().map_err(failed)?;
    let (port, shape) = (port.clone(), shape.cloned());
    let judged = blocking(move || Ok(judged(file, &port, shape.as_ref())));
    match judged.await.map_err(CopyError::From)? {
        Some(cause) => Err(CopyError::From(wrong(cause))),
        None => Ok(writer),
    }
}

/// In words what is wrong with the table in a file.
fn judged(file: File, port: &PortArtifact, shape: Option<&TableShape>) -> Option<String> {
    let table = match TableFile::open(file) {
        Ok(table) => table,
        Err(cause) => return Some(format!("its table cannot be read: {cause}")),
    };
    match read_table(&table, true) {
        Err(cause) => Some(format!("its table cannot be read: {cause}")),
        Ok((_, rows)) if rows != port.rows => {
            Some(format!("it has {rows} rows instead of {}", port.rows))
        }
        Ok((columns, _)) => compare(&columns, port, "its manifest")
            .or_else(|| shape.and_then(|shape| shape.rows_differ(&table))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_trickles_is_given_up() {
        let start = Instant::now();
        let mut pace = Pace::since(start);
        assert!(!pace.is_too_slow(1, start + SLOWEST / 2));
        assert!(!pace.is_too_slow(SLOWEST_BYTES, start + SLOWEST));
        assert!(!pace.is_too_slow(SLOWEST_BYTES + 1, start + SLOWEST * 3 / 2));
        assert!(pace.is_too_slow(2 * SLOWEST_BYTES - 1, start + SLOWEST * 2));
    }
}
