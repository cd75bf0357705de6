//! The files that tables are read from: their own, and those that hold columns of them.
//!
//! Does not live here: what is in the files (`table_file`), copying them between stores
//! (`exchange`), checking them (`verify`).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::PathBuf;

use futures::StreamExt;

use super::backend::{Backend, blocking};
use super::content_store::{Store, blob_name};
use super::error::StoreError;
use super::manifest::{LayerFile, PortArtifact};
use crate::table_file::{FileSource, TableFile};
use galeras_base::digest::Digest;
use galeras_base::scratch::{WholeFile, clear_place};

/// The folder of copies of tables as single files, for readers outside. Whatever is in it can be
/// made again.
pub(super) const WHOLE_FILES: &str = "whole";

impl Store {
    /// The table whose own file this is, with the files that it refers to; `None` if the store is no
    /// folder.
    ///
    /// # Errors
    /// If one of the files cannot be read.
    pub fn table_file(&self, blob: &Digest) -> parquet::errors::Result<Option<TableFile>> {
        let Some(own) = self.local_blob(blob) else { return Ok(None) };
        let find = |digest: &Digest| {
            let file = self.local_blob(digest).map(FileSource::Path);
            file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        TableFile::open(FileSource::Path(own), find).map(Some)
    }

    /// A blob's file, or a copy of the blob in a nameless file; `None` if it is not there.
    ///
    /// # Errors
    /// If it cannot be opened or fetched.
    pub async fn open_blob(&self, blob: &Digest) -> Result<Option<File>, StoreError> {
        open(self, &blob_name(blob)).await
    }

    /// A file of this folder to which a new table refers.
    ///
    /// # Errors
    /// If it is gone.
    pub fn layer(&self, blob: &Digest) -> Result<LayerFile, StoreError> {
        let name = blob_name(blob);
        let path = self.local_blob(blob).unwrap_or_else(|| PathBuf::from(&name));
        let about = path.metadata().map_err(|error| StoreError::at("read", &path, error))?;
        Ok(LayerFile { blob: *blob, bytes: about.len() })
    }

    /// Whether the store has all files of a table, and they are sound; of a bucket, of these sizes.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn has_table(&self, port: &PortArtifact) -> Result<bool, StoreError> {
        for file in port.files().collect::<Vec<_>>() {
            if !self.has_blob(&file.blob, file.bytes).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The other files of a table, as far as they are there.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub(super) async fn layer_files(
        &self,
        layers: Vec<LayerFile>,
    ) -> Result<HashMap<Digest, File>, StoreError> {
        let mut files = HashMap::new();
        for layer in layers {
            if !files.contains_key(&layer.blob)
                && let Some(file) = open(self, &blob_name(&layer.blob)).await?
            {
                files.insert(layer.blob, file);
            }
        }
        Ok(files)
    }

    /// A copy of the table with this own file as one file, if there is one that nobody touched.
    pub fn whole_copy(&self, blob: &Digest) -> Option<PathBuf> {
        let folder = self.inner.backend.folder()?;
        let prefix = format!("{blob}.");
        for entry in folder.path(WHOLE_FILES).read_dir().ok()?.flatten() {
            let name = entry.file_name();
            let digest = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            let digest = digest.and_then(|rest| rest.strip_suffix(".parquet"));
            let Some(digest) = digest.and_then(|text| text.parse::<Digest>().ok()) else {
                continue;
            };
            let (path, about) = (entry.path(), entry.metadata().ok()?);
            if folder.verified.knows(&digest, &about) {
                return Some(path);
            }
            match File::open(&path).and_then(Digest::of_reader) {
                Ok(found) if found == digest => {
                    folder.verified.remember(&digest, &about);
                    return Some(path);
                }
                Ok(_) | Err(_) => {
                    // Another one is made.
                    let _ = clear_place(&path).and_then(|()| std::fs::remove_file(&path));
                }
            }
        }
        None
    }

    /// Makes what `write` writes the copy of the table with this own file; `None` if the store is no
    /// folder.
    ///
    /// # Errors
    /// If `write` fails, or the disk.
    pub fn keep_whole_copy<E: From<io::Error>>(
        &self,
        blob: &Digest,
        write: impl FnOnce(&File) -> Result<(), E>,
    ) -> Result<Option<PathBuf>, E> {
        let Some(folder) = self.inner.backend.folder() else { return Ok(None) };
        let place = folder.path(WHOLE_FILES);
        std::fs::create_dir_all(&place)?;
        let whole = WholeFile::create_in(&place)?;
        write(whole.file())?;
        let mut written = whole.file();
        written.rewind()?;
        let digest = Digest::of_reader(whole.file().try_clone()?)?;
        let path = place.join(format!("{blob}.{digest}.parquet"));
        clear_place(&path)?;
        whole.finish(&path)?;
        Ok(Some(path))
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
