//! Objects by name, in a folder or in a bucket.
//!
//! Files are written with fsync and rename, objects of a bucket with a put, which is atomic.
//! Objects that two processes may put at a time are put under a condition, where the server
//! supports that: only if the name is free, or only if the object is still the version that was
//! read.

use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use rustix::io::Errno;
use tokio::task::JoinHandle;

use super::blob_check::VerifiedFiles;
use super::error::{Result, StoreError, StoreErrorKind};
use super::local_files::{VERIFIED, place};
use super::object_name::is_own;
use super::server_error::ServerError;
use galeras_base::error_chain;
use galeras_base::scratch::{WholeFile, make_folder};

/// The most bytes of a small object: a manifest that names a million tables. Of a larger one only
/// the beginning is read, which does not match its digest.
pub(super) const MAX_SMALL: u64 = 64 << 20;

/// How many small objects are read, or files removed, at once.
const PARALLEL: usize = 16;

/// A stored object in a listing.
#[derive(Clone, Debug)]
pub(super) struct ObjectEntry {
    /// Its name within the store, with `/`.
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
}

/// Errors of a single damaged file, as opposed to a system that is short of something.
const DAMAGE: [Errno; 4] = [Errno::IO, Errno::BADMSG, Errno::UCLEAN, Errno::LOOP];

#[derive(Clone)]
pub(super) enum Backend {
    Folder(Arc<FolderBackend>),
    Bucket(Arc<BucketBackend>),
}

pub(super) struct FolderBackend {
    pub(super) root: PathBuf,
    pub(super) verified: VerifiedFiles,
}

impl FolderBackend {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { verified: VerifiedFiles::new(root.join(VERIFIED)), root }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A new temporary file. Those that killed processes left are removed.
    pub(super) fn temp(&self) -> Result<WholeFile> {
        let folder = self.root.join("tmp");
        make_folder(&folder)
            .and_then(|()| WholeFile::create_in(&folder))
            .map_err(|error| StoreError::at("write", &self.root, error))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let temp = self.temp()?;
        let path = self.path(name);
        temp.file()
            .write_all(bytes)
            .and_then(|()| place(temp, &path))
            .map_err(|error| StoreError::at("write", &path, error))
    }

    /// The content of a file; `None` if it does not exist or cannot be read.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, PermissionDenied};
        let path = self.path(name);
        let read = || {
            let about = fs::metadata(&path)?;
            if !about.is_file() {
                return Err(io::Error::from(IsADirectory));
            }
            let mut bytes = Vec::with_capacity(about.len().min(MAX_SMALL) as usize);
            fs::File::open(&path)?.take(MAX_SMALL).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let error = match read() {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(error) => error,
        };
        match error.kind() {
            NotFound | NotADirectory | IsADirectory | PermissionDenied | InvalidData => Ok(None),
            // The disk cannot return this one file.
            _ if DAMAGE.iter().any(|known| Some(known.raw_os_error()) == error.raw_os_error()) => {
                tracing::warn!("cannot read {}: {error}; it counts as damaged", path.display());
                Ok(None)
            }
            _ => Err(StoreError::at("read", &path, error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
        let top = self.path(prefix);
        let mut entries = Vec::new();
        for entry in walkdir::WalkDir::new(&top) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => match error.io_error().map(io::Error::kind) {
                    Some(NotFound | NotADirectory | PermissionDenied) => continue,
                    _ => return Err(StoreError::of("list", top.display(), error)),
                },
            };
            // Follows links, so that a store whose blobs are links works.
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

    /// The content of an object; `None` if it does not exist or cannot be read.
    pub(super) async fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Folder(folder) => {
                let (folder, name) = (Arc::clone(folder), name.to_string());
                blocking(move || folder.read(&name)).await
            }
            Self::Bucket(bucket) => bucket.read(name).await,
        }
    }

    /// Writes an object, or replaces it: whole or not at all.
    pub(super) async fn write(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        match self {
            Self::Folder(folder) => {
                let (folder, name) = (Arc::clone(folder), name.to_string());
                blocking(move || folder.write(&name, &bytes)).await
            }
            Self::Bucket(bucket) => bucket.write(name, bytes).await,
        }
    }

    /// The size of an object; `None` if it does not exist.
    pub(super) async fn size(&self, name: &str) -> Result<Option<u64>> {
        match self {
            Self::Folder(folder) => {
                let about = tokio::fs::metadata(folder.path(name)).await.ok();
                Ok(about.filter(fs::Metadata::is_file).map(|about| about.len()))
            }
            Self::Bucket(bucket) => bucket.size(name).await,
        }
    }

    /// Removes an object; returns true if it existed.
    pub(super) async fn remove(&self, name: &str) -> Result<bool> {
        match self {
            Self::Folder(folder) => {
                use io::ErrorKind::{NotADirectory, NotFound};
                let path = folder.path(name);
                let removed = match tokio::fs::symlink_metadata(&path).await {
                    // Damage put a folder where a file belongs.
                    Ok(about) if about.is_dir() => tokio::fs::remove_dir_all(&path).await,
                    _ => tokio::fs::remove_file(&path).await,
                };
                match removed {
                    Ok(()) => Ok(true),
                    Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(false),
                    Err(error) => Err(StoreError::at("remove", &path, error)),
                }
            }
            Self::Bucket(bucket) => bucket.remove(name).await,
        }
    }

    /// Removes objects; returns how many existed.
    pub(super) async fn remove_all(&self, names: impl IntoIterator<Item = String>) -> Result<u64> {
        if let Self::Bucket(bucket) = self {
            return bucket.remove_all(names.into_iter().collect()).await;
        }
        futures::stream::iter(names)
            .map(|name| async move { self.remove(&name).await })
            .buffer_unordered(PARALLEL)
            .try_fold(0, async |count, there| Ok(count + u64::from(there)))
            .await
    }

    /// The objects below `prefix`, sorted by name, without files of the user.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
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

    /// As [`Self::read_all`], for optional objects: none in a bucket that may not be listed.
    pub(super) async fn read_listable(&self, prefix: &str) -> Result<Vec<(ObjectEntry, Vec<u8>)>> {
        match self.read_all(prefix).await {
            Err(error) if error.is_forbidden() => {
                tracing::warn!("{error}");
                Ok(Vec::new())
            }
            entries => entries,
        }
    }

    /// The objects below `prefix` with their contents, sorted by name. An unreadable object is
    /// empty.
    pub(super) async fn read_all(&self, prefix: &str) -> Result<Vec<(ObjectEntry, Vec<u8>)>> {
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

/// A bucket, a web server, or memory.
pub(super) struct BucketBackend {
    pub(super) objects: Arc<dyn ObjectStore>,
    root: ObjectPath,
    /// The location of the store, for messages.
    place: String,
    /// The tasks that release leases.
    pub(super) releases: Mutex<Vec<JoinHandle<()>>>,
}

/// The result of a put under a condition.
pub(super) enum ConditionalPut {
    /// It is stored, in this version.
    Done(UpdateVersion),
    /// The condition did not hold.
    Refused,
    /// The server does not support such puts.
    Unsupported,
}

impl BucketBackend {
    pub(super) fn new(objects: Arc<dyn ObjectStore>, root: ObjectPath, location: &str) -> Self {
        let place = location.trim_end_matches('/').to_string();
        Self { objects, root, place, releases: Mutex::default() }
    }

    /// Where an object is in [`Self::objects`].
    pub(super) fn path(&self, name: &str) -> ObjectPath {
        below(&self.root, name)
    }

    /// The error of an operation on an object, or on all of them.
    pub(super) fn failed(&self, operation: &str, name: &str, error: Error) -> StoreError {
        let place = format!("{}/{name}", self.place);
        StoreError::of(operation, place.trim_end_matches('/'), error)
    }

    /// The content of an object; `None` if it does not exist.
    pub(super) async fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.read_version(name).await?.map(|(bytes, _)| bytes))
    }

    /// The content of an object and which version of it that is.
    pub(super) async fn read_version(
        &self,
        name: &str,
    ) -> Result<Option<(Vec<u8>, UpdateVersion)>> {
        let failed = |error| self.failed("read", name, error);
        let object = match self.objects.get(&self.path(name)).await {
            Ok(object) => object,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let about = &object.meta;
        let version = UpdateVersion { e_tag: about.e_tag.clone(), version: about.version.clone() };
        // The stated size is not trusted: no memory is reserved for it.
        let (mut bytes, mut chunks) = (Vec::new(), object.into_stream());
        while bytes.len() as u64 <= MAX_SMALL
            && let Some(chunk) = chunks.try_next().await.map_err(failed)?
        {
            bytes.extend_from_slice(&chunk);
        }
        bytes.truncate(MAX_SMALL as usize);
        Ok(Some((bytes, version)))
    }

    /// Writes an object, or replaces it: whole or not at all.
    pub(super) async fn write(&self, name: &str, bytes: impl Into<PutPayload>) -> Result<()> {
        let put = self.objects.put(&self.path(name), bytes.into()).await;
        put.map(|_| ()).map_err(|error| self.failed("write", name, error))
    }

    /// Writes an object if the name is free (`PutMode::Create`), or if the object is still this
    /// version (`PutMode::Update`).
    pub(super) async fn write_if(
        &self,
        name: &str,
        bytes: impl Into<PutPayload>,
        condition: PutMode,
    ) -> Result<ConditionalPut> {
        let replaces = matches!(condition, PutMode::Update(_));
        let put = self.objects.put_opts(&self.path(name), bytes.into(), condition.into()).await;
        match put {
            Ok(put) => Ok(ConditionalPut::Done(put.into())),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                Ok(ConditionalPut::Refused)
            }
            // The object to replace was removed.
            Err(Error::NotFound { .. }) if replaces => Ok(ConditionalPut::Refused),
            Err(error) if is_unsupported(&error) => Ok(ConditionalPut::Unsupported),
            Err(error) => Err(self.failed("write", name, error)),
        }
    }

    /// The size of an object; `None` if it does not exist.
    pub(super) async fn size(&self, name: &str) -> Result<Option<u64>> {
        match self.objects.head(&self.path(name)).await {
            Ok(about) => Ok(Some(about.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", name, error)),
        }
    }

    /// Removes an object; returns true if it existed. Looks first, so that a user without the right
    /// to remove objects gets no error if there is nothing to remove.
    pub(super) async fn remove(&self, name: &str) -> Result<bool> {
        Ok(self.size(name).await?.is_some() && self.delete(name).await?)
    }

    /// Removes an object that most likely exists; returns false if the server reports that it did
    /// not.
    pub(super) async fn delete(&self, name: &str) -> Result<bool> {
        match self.objects.delete(&self.path(name)).await {
            Ok(()) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("remove", name, error)),
        }
    }

    /// Removes objects that were listed, many with one request where the server supports that.
    /// Returns the number of removed objects.
    pub(super) async fn remove_all(&self, names: Vec<String>) -> Result<u64> {
        let paths: Vec<_> = names.iter().map(|name| Ok(self.path(name))).collect();
        let mut removed = self.objects.delete_stream(futures::stream::iter(paths).boxed());
        let mut count = 0;
        while let Some(result) = removed.next().await {
            match result {
                Ok(_) => count += 1,
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("remove", "", error)),
            }
        }
        Ok(count)
    }

    /// The objects below `prefix`, in no order.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        let listing = self.objects.list(Some(&self.path(prefix))).map_ok(|about| ObjectEntry {
            name: inside(&self.root, &about.location),
            bytes: about.size,
            modified: about.last_modified.into(),
        });
        let listing: Result<Vec<_>, _> = listing.try_collect().await;
        listing.map_err(|error| self.failed("list", prefix, error))
    }
}

fn is_unsupported(error: &Error) -> bool {
    let server = error_chain::chain(error).find_map(|error| error.downcast_ref::<ServerError>());
    matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. })
        || server.is_some_and(|error| error.is_unsupported)
}

/// The object called `name` below `root`.
pub(super) fn below(root: &ObjectPath, name: &str) -> ObjectPath {
    name.split('/').filter(|part| !part.is_empty()).fold(root.clone(), ObjectPath::join)
}

fn inside(root: &ObjectPath, path: &ObjectPath) -> String {
    path.as_ref()
        .strip_prefix(root.as_ref())
        .unwrap_or(path.as_ref())
        .trim_start_matches('/')
        .to_string()
}

/// Runs blocking work on a thread for it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let cause = error.to_string();
        Err(StoreError::new(StoreErrorKind::Io, "finish", "an operation of the store", cause))
    })
}
