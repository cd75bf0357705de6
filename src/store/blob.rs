//! Writing blobs: a file that is hashed while it is written and named by its digest when it
//! is complete.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::Arc;

use object_store::buffered::BufWriter;
use tokio::io::AsyncWriteExt;

use super::backend::{Backend, FolderBackend, below, blocking};
use super::content_store::{Store, blob_name};
use super::error::StoreError;
use super::local::TempFile;
use crate::digest::Digest;

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
            // Also over one that is there, which may be damaged: its size tells nothing.
            (Backend::Bucket { .. }, target) => upload(store, target, &digest).await?,
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

async fn upload(store: &Store, target: BlobFile, digest: &Digest) -> Result<(), StoreError> {
    let (Backend::Bucket { objects, root }, name) = (&store.inner.backend, blob_name(digest))
    else {
        return Ok(());
    };
    let path = below(root, &name);
    // The temporary file must live until its content is there.
    let file = match &target {
        BlobFile::Temp(temp) => temp.file.try_clone(),
        BlobFile::Nameless(file) => file.try_clone(),
    };
    let copy = async {
        let mut file = file?;
        file.rewind()?;
        let mut file = tokio::fs::File::from_std(file);
        let mut writer = BufWriter::new(Arc::clone(objects), path.clone());
        tokio::io::copy(&mut file, &mut writer).await?;
        writer.shutdown().await
    };
    copy.await.map_err(|error: io::Error| StoreError::of("write", &path, error))
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
            Backend::Bucket { .. } => BlobFile::Nameless(
                tempfile::tempfile()
                    .map_err(|error| StoreError::at("write", &std::env::temp_dir(), error))?,
            ),
        };
        Ok(BlobWriter { file, hasher: blake3::Hasher::new(), bytes: 0 })
    }
}
