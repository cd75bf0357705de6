//! Writing blobs: a file that is hashed while it is written and named by its digest when it
//! is complete.

use std::fs::File;
use std::io::{self, Read as _, Seek, Write};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use object_store::{ObjectStoreExt as _, PutMode, WriteMultipart};
use tokio::io::AsyncReadExt as _;

use super::backend::{Backend, FolderBackend, blocking};
use super::bucket::{BucketBackend, ConditionalPut};
use super::content_store::{Store, blob_name};
use super::error::StoreError;
use super::local::TempFile;
use galeras_base::digest::Digest;
use galeras_base::error_chain;

/// The most bytes that go to a bucket with one request. What is larger goes in parts of this size, or
/// so many that a bucket takes.
const PART: u64 = 8 << 20;
const MOST_PARTS: u64 = 9_000;

/// How many parts of a blob are on their way at once.
const PARTS_AT_ONCE: usize = 4;

/// How much of a blob is read at once.
const CHUNK: usize = 1 << 18;

/// A blob that is being written. Dropped without [`BlobWriter::commit`], it leaves nothing.
///
/// The file is in the store's folder, so that the disk that fills up is the store's; for a
/// bucket it is a nameless file in the system's folder for temporary files.
#[derive(Debug)]
pub struct BlobWriter {
    file: BlobFile,
    hasher: blake3::Hasher,
    bytes: u64,
}

#[derive(Debug)]
enum BlobFile {
    Temp(TempFile),
    Nameless(File),
}

impl BlobWriter {
    /// The number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digest of what was written so far.
    pub(super) fn digest(&self) -> Digest {
        Digest::from(self.hasher.finalize())
    }

    /// What was written so far, from its beginning on. It shares its position with the writer, and
    /// is for a look at what is complete.
    pub(super) fn reader(&self) -> io::Result<File> {
        let mut file = match &self.file {
            BlobFile::Temp(temp) => temp.file.try_clone(),
            BlobFile::Nameless(file) => file.try_clone(),
        }?;
        file.rewind()?;
        Ok(file)
    }

    /// Completes the blob: makes it durable and gives it its name, or uploads it. Returns
    /// its digest and size. Content that the store has already is stored once.
    pub async fn commit(self, store: &Store) -> Result<(Digest, u64), StoreError> {
        self.finish(store, false).await
    }

    /// Like [`commit`](Self::commit), for a blob that the store was just found to lack. If it got there
    /// meanwhile, it stays as it is.
    pub(super) async fn commit_new(self, store: &Store) -> Result<(Digest, u64), StoreError> {
        self.finish(store, true).await
    }

    async fn finish(self, store: &Store, new: bool) -> Result<(Digest, u64), StoreError> {
        let (digest, bytes) = (Digest::from(self.hasher.finalize()), self.bytes);
        match (&store.inner.backend, self.file) {
            (Backend::Folder(folder), BlobFile::Temp(temp)) => {
                let folder = Arc::clone(folder);
                blocking(move || place(&folder, temp, &digest)).await?;
            }
            (Backend::Folder(folder), BlobFile::Nameless(mut file)) => {
                let folder = Arc::clone(folder);
                blocking(move || {
                    let mut temp = folder.temp()?;
                    file.rewind()
                        .and_then(|()| io::copy(&mut file, &mut temp.file))
                        .map_err(|error| StoreError::at("write", &folder.root, error))?;
                    place(&folder, temp, &digest)
                })
                .await?;
            }
            (Backend::Bucket(bucket), file) => {
                upload(bucket, file, &blob_name(&digest), bytes, new).await?;
            }
        }
        Ok((digest, bytes))
    }
}

/// Renames over a blob that is already there: that costs nothing and heals a damaged one.
fn place(folder: &FolderBackend, temp: TempFile, digest: &Digest) -> Result<(), StoreError> {
    let path = folder.path(&blob_name(digest));
    temp.persist(&path).map_err(|error| StoreError::at("write", &path, error))?;
    // It was hashed on its way to the disk.
    if let Ok(about) = std::fs::metadata(&path) {
        folder.verified.remember(digest, &about);
    }
    Ok(())
}

/// Sends a blob. Without `new` also over one that is there, which may be damaged: its size tells
/// nothing.
async fn upload(
    bucket: &BucketBackend,
    mut blob: BlobFile,
    name: &str,
    bytes: u64,
    new: bool,
) -> Result<(), StoreError> {
    if bytes > PART {
        return upload_parts(bucket, &mut blob, name, bytes).await;
    }
    let content = blocking(move || blob.content().map_err(|error| from_disk(&error))).await?;
    let content = Bytes::from(content);
    // A put with a condition is not tried again if its answer is lost; the other one is.
    let put = match new {
        true => bucket.write_if(name, content.clone(), PutMode::Create).await.ok(),
        false => None,
    };
    let there = match put {
        Some(ConditionalPut::Done(_)) => true,
        Some(ConditionalPut::Refused) => bucket.size(name).await? == Some(bytes),
        Some(ConditionalPut::Unknown) | None => false,
    };
    if there { Ok(()) } else { bucket.write(name, content).await }
}

/// Sends a blob part by part. It has its name when all of them are there, and leaves nothing if one
/// cannot be sent.
async fn upload_parts(
    bucket: &BucketBackend,
    blob: &mut BlobFile,
    name: &str,
    bytes: u64,
) -> Result<(), StoreError> {
    let failed = |error: object_store::Error| bucket.failed("write", name, error);
    let file = blob.rewound().and_then(|file| file.try_clone());
    let mut file = tokio::fs::File::from_std(file.map_err(|error| from_disk(&error))?);
    let upload = bucket.objects.put_multipart(&bucket.path(name)).await.map_err(failed)?;
    let part = PART.max(bytes / MOST_PARTS) as usize;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, part);
    let sent = async {
        loop {
            let mut chunk = BytesMut::with_capacity(CHUNK);
            let read = file.read_buf(&mut chunk).await.map_err(|error| from_disk(&error))?;
            let at_once = if read == 0 { 0 } else { PARTS_AT_ONCE };
            upload.wait_for_capacity(at_once).await.map_err(failed)?;
            if read == 0 {
                return Ok::<_, StoreError>(());
            }
            upload.put(chunk.freeze());
        }
    };
    let sent = sent.await;
    match sent {
        Ok(()) => upload.finish().await.map(|_| ()).map_err(failed),
        Err(error) => {
            // What cannot be called off is removed by the rules of the bucket.
            let _ = upload.abort().await;
            Err(error)
        }
    }
}

fn from_disk(error: &io::Error) -> StoreError {
    StoreError::at("read", &std::env::temp_dir(), error_chain::copy_of(error))
}

impl BlobFile {
    /// The file, from its beginning on.
    fn rewound(&mut self) -> io::Result<&mut File> {
        let file = match self {
            Self::Temp(temp) => &mut temp.file,
            Self::Nameless(file) => file,
        };
        file.rewind()?;
        Ok(file)
    }

    fn content(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.rewound()?.read_to_end(&mut content)?;
        Ok(content)
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.file {
            BlobFile::Temp(temp) => temp.file.write(bytes),
            BlobFile::Nameless(file) => file.write(bytes),
        }?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Store {
    /// A new, empty blob.
    pub fn blob_writer(&self) -> Result<BlobWriter, StoreError> {
        let file = match &self.inner.backend {
            Backend::Folder(folder) => BlobFile::Temp(folder.temp()?),
            Backend::Bucket(_) => BlobFile::Nameless(
                tempfile::tempfile()
                    .map_err(|error| StoreError::at("write", &std::env::temp_dir(), error))?,
            ),
        };
        Ok(BlobWriter { file, hasher: blake3::Hasher::new(), bytes: 0 })
    }
}
