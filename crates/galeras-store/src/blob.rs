//! Writing blobs: files that are hashed while they are written, and get their digest as name.

use std::fs::File;
use std::io::{self, Read as _, Seek, Write};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use object_store::{ObjectStoreExt as _, PutMode, WriteMultipart};
use tokio::io::AsyncReadExt as _;

use super::backend::{Backend, BucketBackend, ConditionalPut, FolderBackend, blocking};
use super::content_store::Store;
use super::error::{Result, StoreError};
use super::local_files::place;
use super::object_name::blob_name;
use galeras_base::digest::Digest;
use galeras_base::error_chain;
use galeras_base::scratch::WholeFile;

/// The most bytes that are sent to a bucket with one request. A larger blob is sent in parts of
/// this size, or in as many parts as a bucket allows.
const PART: u64 = 8 << 20;
const MOST_PARTS: u64 = 9_000;

/// The parts of a blob that are sent at once.
const PARTS_AT_ONCE: usize = 4;

/// The bytes of a blob that are read at once.
const CHUNK: usize = 1 << 18;

/// A blob that is being written. Dropped without [`BlobWriter::commit`], it leaves nothing.
///
/// The file is on the disk of the store; for a bucket it is a nameless file in the system's folder
/// for temporary files.
#[derive(Debug)]
pub struct BlobWriter {
    file: BlobFile,
    hasher: blake3::Hasher,
    bytes: u64,
}

#[derive(Debug)]
enum BlobFile {
    Temp(WholeFile),
    Nameless(File),
}

impl BlobWriter {
    /// The number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digest of the bytes written so far.
    pub(super) fn digest(&self) -> Digest {
        Digest::from(self.hasher.finalize())
    }

    /// The complete content, from its beginning on. It shares its position with the writer.
    pub(super) fn reader(&self) -> io::Result<File> {
        self.file.rewound()?.try_clone()
    }

    /// Completes the blob: makes it durable and gives it its name, or uploads it. Returns its
    /// digest and size. Content that the store already has is stored once.
    pub async fn commit(self, store: &Store) -> Result<(Digest, u64)> {
        self.finish(store, false).await
    }

    /// As [`commit`](Self::commit). If the blob is `new`, as the store lacked it before, and
    /// another process has stored it since then, it is not replaced.
    pub(super) async fn finish(self, store: &Store, new: bool) -> Result<(Digest, u64)> {
        let (digest, bytes) = (Digest::from(self.hasher.finalize()), self.bytes);
        match &store.inner.backend {
            Backend::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || name_blob(&folder, self.file, &digest)).await?;
            }
            Backend::Bucket(bucket) => {
                upload(bucket, self.file, &blob_name(&digest), bytes, new).await?;
            }
        }
        Ok((digest, bytes))
    }
}

/// Gives a blob its name. An existing blob is replaced: that costs nothing and repairs a damaged
/// one.
fn name_blob(folder: &FolderBackend, file: BlobFile, digest: &Digest) -> Result<()> {
    let path = folder.path(&blob_name(digest));
    let failed = |error| StoreError::at("write", &path, error);
    let temp = match file {
        BlobFile::Temp(temp) => temp,
        BlobFile::Nameless(_) => {
            let temp = folder.temp()?;
            let copied = file.rewound().and_then(|mut file| io::copy(&mut file, &mut temp.file()));
            copied.map_err(failed)?;
            temp
        }
    };
    place(temp, &path).map_err(failed)?;
    // It was hashed while it was written.
    if let Ok(about) = std::fs::metadata(&path) {
        folder.verified.remember(digest, &about);
    }
    Ok(())
}

/// Sends a blob. Unless it is `new`, it replaces an existing one, which may be damaged.
async fn upload(
    bucket: &BucketBackend,
    blob: BlobFile,
    name: &str,
    bytes: u64,
    new: bool,
) -> Result<()> {
    if bytes > PART {
        return upload_parts(bucket, &blob, name, bytes).await;
    }
    let read = move || {
        let mut content = Vec::new();
        let read = blob.rewound().and_then(|mut file| file.read_to_end(&mut content));
        read.map_err(|error| from_disk(&error))?;
        Ok(Bytes::from(content))
    };
    let content = blocking(read).await?;
    // A put with a condition is not tried again if its answer is lost; the other put is.
    let put = match new {
        true => bucket.write_if(name, content.clone(), PutMode::Create).await.ok(),
        false => None,
    };
    let there = match put {
        Some(ConditionalPut::Done(_)) => true,
        Some(ConditionalPut::Refused) => bucket.size(name).await? == Some(bytes),
        Some(ConditionalPut::Unsupported) | None => false,
    };
    if there { Ok(()) } else { bucket.write(name, content).await }
}

/// Sends a blob in parts. It gets its name after the last one. If a part cannot be sent, nothing is
/// left.
async fn upload_parts(
    bucket: &BucketBackend,
    blob: &BlobFile,
    name: &str,
    bytes: u64,
) -> Result<()> {
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
            // If it cannot be aborted, the rules of the bucket remove its parts.
            let _ = upload.abort().await;
            Err(error)
        }
    }
}

fn from_disk(error: &io::Error) -> StoreError {
    StoreError::at("read", &std::env::temp_dir(), error_chain::copy_of(error))
}

impl BlobFile {
    fn file(&self) -> &File {
        match self {
            Self::Temp(temp) => temp.file(),
            Self::Nameless(file) => file,
        }
    }

    /// The file, from its beginning on.
    fn rewound(&self) -> io::Result<&File> {
        let mut file = self.file();
        file.rewind()?;
        Ok(file)
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.file().write(bytes)?;
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
    pub fn blob_writer(&self) -> Result<BlobWriter> {
        let failed = |error| StoreError::at("write", &std::env::temp_dir(), error);
        let file = match &self.inner.backend {
            Backend::Folder(folder) => BlobFile::Temp(folder.temp()?),
            Backend::Bucket(_) => BlobFile::Nameless(tempfile::tempfile().map_err(failed)?),
        };
        Ok(BlobWriter { file, hasher: blake3::Hasher::new(), bytes: 0 })
    }
}
