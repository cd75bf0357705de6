//! The files that tables are read from.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use futures::StreamExt;

use super::backend::{Backend, blocking};
use super::content_store::{Store, blob_name};
use super::error::StoreError;
use super::table_file::TableFile;
use galeras_base::digest::Digest;

impl Store {
    /// The table in this blob; `None` if the store is not a folder.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn table_file(&self, blob: &Digest) -> parquet::errors::Result<Option<TableFile>> {
        let Some(path) = self.local_blob(blob) else { return Ok(None) };
        TableFile::open(File::open(path)?).map(Some)
    }

    /// A blob's file, or a copy of the blob in a nameless file; `None` if it is not there.
    ///
    /// # Errors
    /// If it cannot be opened or fetched.
    pub async fn open_blob(&self, blob: &Digest) -> Result<Option<File>, StoreError> {
        open(self, &blob_name(blob)).await
    }
}

/// The blob's file, or a copy of the blob in a nameless file; `None` if it is not there.
pub(super) async fn open(store: &Store, name: &str) -> Result<Option<File>, StoreError> {
    match &store.inner.backend {
        Backend::Folder(folder) => {
            let path = folder.path(name);
            blocking(move || match File::open(&path) {
                Ok(file) => Ok(Some(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(StoreError::at("read", &path, error)),
            })
            .await
        }
        Backend::Bucket(bucket) => {
            let failed = |error| bucket.failed("read", name, error);
            let failed_copy = |error| StoreError::at("write", &std::env::temp_dir(), error);
            let Some(mut chunks) = bucket.chunks(name).await? else { return Ok(None) };
            let mut file = tempfile::tempfile().map_err(failed_copy)?;
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk.map_err(failed)?;
                file.write_all(&chunk).map_err(failed_copy)?;
            }
            file.rewind().map_err(failed_copy)?;
            Ok(Some(file))
        }
    }
}
