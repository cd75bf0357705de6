//! Small objects by name, in a folder or in a bucket.
//!
//! They are read, written, listed and removed. Files are written with fsync and rename, objects
//! of a bucket with a put, which is atomic. Names are made by `store` from digests, never taken
//! from what is stored.

use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::SystemTime;

use futures::{StreamExt, TryStreamExt};
use rustix::io::Errno;

use super::bucket::BucketBackend;
use super::error::{StoreError, StoreErrorKind};
use super::links::VERIFIED;
use super::local::{TempFile, sweep};
use super::object::{MAX_SMALL, ObjectEntry};
use super::own_name::is_own;
use super::verified::VerifiedFiles;
use galeras_base::scratch::make_folder;

/// How many small objects are read, or files removed, at once.
const PARALLEL: usize = 16;

#[derive(Clone)]
pub(super) enum Backend {
    Folder(Arc<FolderBackend>),
    Bucket(Arc<BucketBackend>),
}

pub(super) struct FolderBackend {
    pub(super) root: PathBuf,
    pub(super) verified: VerifiedFiles,
    swept: Once,
}

impl FolderBackend {
    pub(super) fn new(root: PathBuf) -> Self {
        let verified = VerifiedFiles::new(root.join(VERIFIED));
        Self { root, verified, swept: Once::new() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A new temporary file. The first one also clears what dead processes left.
    pub(super) fn temp(&self) -> Result<TempFile, StoreError> {
        let folder = self.root.join("tmp");
        let create = || {
            if !folder.is_dir() {
                make_folder(&folder)?;
            }
            self.swept.call_once(|| {
                sweep(&folder, false);
            });
            TempFile::create(&folder)
        };
        create().map_err(|error| StoreError::at("write", &self.root, error))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut temp = self.temp()?;
        let path = self.path(name);
        temp.file
            .write_all(bytes)
            .and_then(|()| temp.persist(&path))
            .map_err(|error| StoreError::at("write", &path, error))
    }

    /// The content of a file; what is not there or cannot be read is a miss.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, PermissionDenied};
        let path = self.path(name);
        let read = match fs::metadata(&path) {
            Ok(about) if about.is_file() => read_small(&path, about.len()),
            Ok(_) => return Ok(None),
            Err(error) => Err(error),
        };
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match error.kind() {
                NotFound | NotADirectory | IsADirectory | PermissionDenied | InvalidData => {
                    Ok(None)
                }
                // One bad spot of the disk is damage of one file.
                _ if is_damage(&error) => {
                    tracing::warn!("cannot read {}: {error}; it counts as damaged", path.display());
                    Ok(None)
                }
                _ => Err(StoreError::at("read", &path, error)),
            },
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        let top = self.path(prefix);
        let mut entries = Vec::new();
        for entry in walkdir::WalkDir::new(&top) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => match error.io_error().map(io::Error::kind) {
                    Some(
                        io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::PermissionDenied,
                    ) => continue,
                    _ => return Err(StoreError::of("list", top.display(), error)),
                },
            };
            // Through links, so that a store whose blobs are links works.
            let Ok(about) = fs::metadata(entry.path()) else { continue };
            let inside = entry.path().strip_prefix(&self.root).ok().and_then(Path::to_str);
            if let (true, Some(name)) = (about.is_file(), inside) {
                entries.push(ObjectEntry {
                    name: name.replace(std::path::MAIN_SEPARATOR, "/"),
                    bytes: about.len(),
                    modified: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                });
            }
        }
        Ok(entries)
    }
}

impl Backend {
    pub(super) fn folder(&self) -> Option<&Arc<FolderBackend>> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Bucket(_) => None,
        }
    }

    /// The content of an object; `None` if it is not there or cannot be read.
    pub(super) async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Self::Folder(folder) => {
                let (folder, name) = (Arc::clone(folder), name.to_string());
                blocking(move || folder.read(&name)).await
            }
            Self::Bucket(bucket) => bucket.read(name).await,
        }
    }

    /// Writes an object, or replaces it: whole or not at all.
    pub(super) async fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => {
                let (folder, name) = (Arc::clone(folder), name.to_string());
                blocking(move || folder.write(&name, &bytes)).await
            }
            Self::Bucket(bucket) => bucket.write(name, bytes).await,
        }
    }

    /// The size of an object; `None` if it is not there.
    pub(super) async fn size(&self, name: &str) -> Result<Option<u64>, StoreError> {
        match self {
            Self::Folder(folder) => {
                let about = tokio::fs::metadata(folder.path(name)).await.ok();
                Ok(about.filter(fs::Metadata::is_file).map(|about| about.len()))
            }
            Self::Bucket(bucket) => bucket.size(name).await,
        }
    }

    /// Removes an object; says whether it was there.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.path(name);
                let removed = match tokio::fs::symlink_metadata(&path).await {
                    // Damage put a folder where a file belongs.
                    Ok(about) if about.is_dir() => tokio::fs::remove_dir_all(&path).await,
                    Ok(_) | Err(_) => tokio::fs::remove_file(&path).await,
                };
                match removed {
                    Ok(()) => Ok(true),
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                        ) =>
                    {
                        Ok(false)
                    }
                    Err(error) => Err(StoreError::at("remove", &path, error)),
                }
            }
            Self::Bucket(bucket) => bucket.remove(name).await,
        }
    }

    /// Removes objects; the number of those that were there.
    pub(super) async fn remove_all(
        &self,
        names: impl IntoIterator<Item = String>,
    ) -> Result<u64, StoreError> {
        if let Self::Bucket(bucket) = self {
            return bucket.remove_all(names.into_iter().collect()).await;
        }
        futures::stream::iter(names)
            .map(|name| async move { self.remove(&name).await })
            .buffer_unordered(PARALLEL)
            .try_fold(0, async |count, there| Ok(count + u64::from(there)))
            .await
    }

    /// The objects below `prefix`, sorted by name. Files with other names than a store gives are
    /// left out.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        let mut entries = match self {
            Self::Folder(folder) => {
                let (folder, prefix) = (Arc::clone(folder), prefix.to_string());
                blocking(move || folder.list(&prefix)).await?
            }
            Self::Bucket(bucket) => bucket.list(prefix).await?,
        };
        entries.retain(|entry| is_own(&entry.name));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// As [`Self::read_all`] for what helps, but is not needed: nothing in a bucket that may not be
    /// listed.
    pub(super) async fn read_listable(
        &self,
        prefix: &str,
    ) -> Result<Vec<(ObjectEntry, Vec<u8>)>, StoreError> {
        match self.read_all(prefix).await {
            Err(error) if error.is_forbidden() => {
                tracing::warn!("{error}");
                Ok(Vec::new())
            }
            entries => entries,
        }
    }

    /// The objects below `prefix` with their contents, sorted by name. What cannot be read
    /// is empty.
    pub(super) async fn read_all(
        &self,
        prefix: &str,
    ) -> Result<Vec<(ObjectEntry, Vec<u8>)>, StoreError> {
        futures::stream::iter(self.list(prefix).await?)
            .map(|entry| async move {
                let bytes = self.read(&entry.name).await?.unwrap_or_default();
                Ok((entry, bytes))
            })
            .buffered(PARALLEL)
            .try_collect()
            .await
    }
}

/// Whether the disk cannot give what it holds of this one file, as opposed to a system that is short
/// of something.
fn is_damage(error: &io::Error) -> bool {
    let damage = [Errno::IO, Errno::BADMSG, Errno::UCLEAN, Errno::LOOP];
    error.raw_os_error().is_some_and(|code| damage.iter().any(|known| known.raw_os_error() == code))
}

/// The content of a small file of about this size.
fn read_small(path: &Path, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size.min(MAX_SMALL) as usize);
    fs::File::open(path)?.take(MAX_SMALL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Runs what blocks on a thread where it may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let cause = error.to_string();
        Err(StoreError::new(StoreErrorKind::Io, "finish", "an operation of the store", cause))
    })
}
