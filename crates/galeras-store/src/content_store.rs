//! The store: where everything is, and reading and writing each kind of object.
//!
//! Layout: `actions/<aa>/<key>.json` manifests, `blobs/<aa>/<digest>.parquet` tables,
//! `memo/<aa>/<recipe>/<blob>.json` parts of row-precise reuse, `checks/<aa>/<key>.json`
//! outcomes of assertions, `signatures/<aa>/<key>.sig` who vouches for a manifest, `outputs/<aa>/<content>/<id>.json` origins of output files,
//! `runs/<time>-<id>.json` records of runs, `verified.log`, `locks/`, `tmp/`. All JSON ends in a
//! digest of its own (`sealed`).
//! Names are digests that the caller computed; a name that was read from the store is never
//! followed.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use futures::{Stream, StreamExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use serde::Serialize;
use url::Url;

use super::backend::{Backend, FolderBackend};
use super::bucket::{BucketBackend, below};
use super::error::{StoreError, StoreErrorKind};
use super::links::refuse_links;
use super::location::{StoreLocation, shown, web_address};
use super::manifest::{Manifest, MemoPart, RecipeParts};
use super::record::RunRecord;
use super::sealed::{seal, unseal};
use super::server::{RetryPolicy, open_bucket, open_web};
use galeras_base::digest::Digest;

/// What a lock holds until it is dropped.
pub(super) type HeldLock = dyn fmt::Debug + Send + Sync;

/// A content-addressed store in a folder or a bucket. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) inner: Arc<StoreInner>,
}

pub(super) struct StoreInner {
    location: String,
    pub(super) backend: Backend,
    objects: Arc<dyn ObjectStore>,
    /// The store's root within `objects`.
    root: ObjectPath,
    url: Url,
    /// The lock on the whole store, while a guard of this process holds it.
    pub(super) exclusive: Mutex<Option<Weak<HeldLock>>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.location).finish()
    }
}

impl Store {
    /// Opens the store at a folder's path or a URL: `file://`, `s3://` with the cargo feature `s3`,
    /// `gs://` with the cargo feature `gcs`, `memory://` for tests. Touches nothing: the folder is
    /// made by the first write, and no server is asked yet.
    ///
    /// # Errors
    /// If there cannot be such a store.
    pub async fn open(location: &str) -> Result<Self, StoreError> {
        Self::open_with(location, RetryPolicy::Own)
    }

    fn open_with(location: &str, retries: RetryPolicy) -> Result<Self, StoreError> {
        match StoreLocation::parse(location)? {
            StoreLocation::Folder(path) => Self::open_folder(location, &path),
            StoreLocation::Memory(url) => {
                let objects = Arc::new(object_store::memory::InMemory::new());
                Self::open_objects(&url, objects)
            }
            StoreLocation::Bucket(url) => Self::open_objects(&url, open_bucket(&url, retries)?),
        }
    }

    /// Opens a store that results come from: as [`Store::open`] takes it, or the address of any web
    /// server that has a store's files (`https://`), which can only be read.
    ///
    /// # Errors
    /// As of [`Store::open`]; a server is not asked yet.
    pub async fn open_remote(location: &str) -> Result<Self, StoreError> {
        match web_address(location)? {
            None => Self::open_with(location, RetryPolicy::Remote),
            // The address is the root of the objects: paths are within it.
            Some(url) => {
                let (objects, root) = (open_web(&url)?, ObjectPath::default());
                Ok(Self::of_objects(objects, root, &url, url.clone()))
            }
        }
    }

    fn open_folder(location: &str, path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::at("open", path, error);
        let folder = resolve(&std::path::absolute(path).map_err(failed)?);
        refuse_links(&folder)?;
        let root = ObjectPath::from_absolute_path(&folder)
            .map_err(|error| StoreError::of("open", folder.display(), error))?;
        let url = Url::parse("file:///")
            .map_err(|error| StoreError::of("open", folder.display(), error))?;
        let objects: Arc<dyn ObjectStore> = Arc::new(object_store::local::LocalFileSystem::new());
        let backend = Backend::Folder(Arc::new(FolderBackend::new(folder)));
        Ok(Self::new(location.to_string(), backend, objects, root, url))
    }

    fn open_objects(url: &Url, objects: Arc<dyn ObjectStore>) -> Result<Self, StoreError> {
        let root = ObjectPath::from_url_path(url.path())
            .map_err(|error| StoreError::of("open", shown(url), error))?;
        let mut base = url.clone();
        base.set_path("");
        base.set_query(None);
        base.set_fragment(None);
        Ok(Self::of_objects(objects, root, url, base))
    }

    fn of_objects(objects: Arc<dyn ObjectStore>, root: ObjectPath, url: &Url, base: Url) -> Self {
        let location = shown(url);
        let bucket = BucketBackend::new(Arc::clone(&objects), root.clone(), &location);
        Self::new(location, Backend::Bucket(Arc::new(bucket)), objects, root, base)
    }

    fn new(
        location: String,
        backend: Backend,
        objects: Arc<dyn ObjectStore>,
        root: ObjectPath,
        url: Url,
    ) -> Self {
        let exclusive = Mutex::new(None);
        Self { inner: Arc::new(StoreInner { location, backend, objects, root, url, exclusive }) }
    }

    /// The location as it was given to [`Store::open`].
    pub fn location(&self) -> &str {
        &self.inner.location
    }

    /// The object store in which [`Store::blob_path`] is a path.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.inner.objects)
    }

    /// The URL under which a session may register [`Store::object_store`]: `file:///`
    /// for a folder, else the bucket's.
    pub fn url(&self) -> Url {
        self.inner.url.clone()
    }

    /// Where a blob is within [`Store::object_store`].
    pub fn blob_path(&self, digest: &Digest) -> ObjectPath {
        below(&self.inner.root, &blob_name(digest))
    }

    /// A blob's file, if the store is a folder. It need not exist.
    pub fn local_blob(&self, digest: &Digest) -> Option<PathBuf> {
        self.inner.backend.folder().map(|folder| folder.path(&blob_name(digest)))
    }

    /// The manifest of a key; `None` if there is none, if it is damaged, or if it was written
    /// in another format. Whether its blobs may be used says [`Store::unsound_blobs`].
    pub async fn manifest(&self, key: &Digest) -> Result<Option<Manifest>, StoreError> {
        let bytes = self.inner.backend.read(&manifest_name(key)).await?;
        let manifest = bytes.and_then(|bytes| Manifest::parse(&bytes).ok());
        Ok(manifest.filter(|manifest| manifest.key == *key))
    }

    /// Stores a manifest, unsigned. Its blobs must have been committed before.
    pub async fn put_manifest(&self, manifest: &Manifest) -> Result<(), StoreError> {
        // Signatures are of the manifest that was there.
        self.inner.backend.remove(&signature_name(&manifest.key)).await?;
        self.write_sealed(&manifest_name(&manifest.key), manifest).await
    }

    /// Removes a manifest, if there is one. Its blobs stay until they are collected.
    pub async fn forget(&self, key: &Digest) -> Result<(), StoreError> {
        self.inner.backend.remove(&manifest_name(key)).await?;
        self.inner.backend.remove(&signature_name(key)).await.map(|_| ())
    }

    /// The finished parts of a recipe whose blobs may be used, sorted by blob, and the blobs that
    /// are damaged: their parts are forgotten.
    pub async fn memo_parts(&self, recipe: &Digest) -> Result<RecipeParts, StoreError> {
        let listed = self.listed_parts(recipe).await?;
        let mut parts = self.sound_parts(recipe, listed).await?;
        parts.sound.sort_by_key(|part| part.blob);
        Ok(parts)
    }

    /// The finished parts of a recipe, whether or not their blobs may be used.
    pub async fn listed_parts(&self, recipe: &Digest) -> Result<Vec<MemoPart>, StoreError> {
        let entries = self.inner.backend.read_listable(&memo_folder(recipe)).await?;
        let parts = entries.into_iter().filter_map(|(entry, bytes)| {
            let part = MemoPart::parse(&bytes).ok()?;
            (memo_name(recipe, &part) == entry.name).then_some(part)
        });
        Ok(parts.collect())
    }

    /// Removes a part from its recipe. Its blob stays until it is collected.
    pub(super) async fn forget_part(
        &self,
        recipe: &Digest,
        part: &MemoPart,
    ) -> Result<(), StoreError> {
        self.inner.backend.remove(&memo_name(recipe, part)).await.map(|_| ())
    }

    /// Adds a finished part to a recipe. Its blob must have been committed before.
    pub async fn put_memo_part(&self, recipe: &Digest, part: &MemoPart) -> Result<(), StoreError> {
        self.write_sealed(&memo_name(recipe, part), part).await
    }

    /// Stores the record of a run, replacing the one with the same id.
    pub async fn put_run(&self, run: &RunRecord) -> Result<(), StoreError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
        if run.id.is_empty() || run.id.starts_with('.') || !run.id.bytes().all(plain) {
            let cause = "the run's id is not a plain name";
            return Err(StoreError::new(StoreErrorKind::Corrupt, "write", "the run", cause));
        }
        self.write_sealed(&run_name(&run.id), run).await
    }

    /// The newest runs, newest first. Records that cannot be read are left out.
    pub async fn recent_runs(&self, limit: usize) -> Result<Vec<RunRecord>, StoreError> {
        self.runs().await?.take(limit).try_collect().await
    }

    /// The newest run of which this is true.
    pub async fn last_run(
        &self,
        wanted: impl Fn(&RunRecord) -> bool,
    ) -> Result<Option<RunRecord>, StoreError> {
        let runs = self.runs().await?.try_filter(|run| futures::future::ready(wanted(run)));
        std::pin::pin!(runs).try_next().await
    }

    /// The runs, newest first, read as they are asked for.
    async fn runs(&self) -> Result<impl Stream<Item = Result<RunRecord, StoreError>>, StoreError> {
        let backend = &self.inner.backend;
        let entries = backend.list("runs").await?;
        let runs = futures::stream::iter(entries.into_iter().rev())
            .map(move |entry| async move {
                let bytes = backend.read(&entry.name).await?;
                let run: Option<RunRecord> = bytes.and_then(|bytes| unseal(&bytes).ok());
                Ok(run.filter(|run| run_name(&run.id) == entry.name))
            })
            .buffered(8)
            .try_filter_map(async |run| Ok(run));
        Ok(runs)
    }

    /// Stores a small object with a digest of its own.
    pub(super) async fn write_sealed(
        &self,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), StoreError> {
        let bytes = seal(value).map_err(|error| StoreError::of("write", name, error))?;
        self.inner.backend.write(name, bytes).await
    }
}

pub(super) fn manifest_name(key: &Digest) -> String {
    format!("actions/{}/{key}.json", key.shard())
}

pub(super) fn signature_name(key: &Digest) -> String {
    format!("signatures/{}/{key}.sig", key.shard())
}

pub(super) fn blob_name(digest: &Digest) -> String {
    format!("blobs/{}/{digest}.parquet", digest.shard())
}

pub(super) fn memo_name(recipe: &Digest, part: &MemoPart) -> String {
    let plain = |row: &&String| row.bytes().all(|byte| byte.is_ascii_hexdigit());
    match part.row.as_ref().filter(plain) {
        Some(row) => format!("{}/row-{row}.json", memo_folder(recipe)),
        None => format!("{}/{}.json", memo_folder(recipe), part.blob),
    }
}

fn memo_folder(recipe: &Digest) -> String {
    format!("memo/{}/{recipe}", recipe.shard())
}

pub(super) fn run_name(id: &str) -> String {
    format!("runs/{id}.json")
}

pub(super) fn check_name(key: &Digest) -> String {
    format!("checks/{}/{key}.json", key.shard())
}

/// The real path of a folder that need not exist yet: links are followed as far as it does,
/// `..` is resolved in the rest.
fn resolve(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut top = path;
    let real = loop {
        match (std::fs::canonicalize(top), top.parent(), top.components().next_back()) {
            (Ok(real), ..) => break real,
            (Err(_), Some(parent), Some(last)) => {
                rest.push(last);
                top = parent;
            }
            (Err(_), ..) => break top.to_path_buf(),
        }
    };
    rest.into_iter().rev().fold(real, |mut path, part| {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
        path
    })
}
