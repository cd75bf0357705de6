//! The store: where everything is, and reading and writing each kind of object.
//!
//! Layout: `actions/<aa>/<key>.json` manifests, `blobs/<aa>/<digest>.parquet` tables,
//! `memo/<aa>/<recipe>/<blob>.json` parts of row-precise reuse, `checks/<aa>/<key>.json`
//! outcomes of assertions, `runs/<time>-<id>.json` records of runs, `locks/`, `tmp/`.
//! Names are digests that the caller computed; a name that was read from the store is never
//! followed.

use std::fmt;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use serde::Serialize;
use url::Url;

use super::backend::{Backend, FolderBackend, below};
use super::error::{StoreError, StoreErrorKind};
use super::location::{StoreLocation, shown};
use super::manifest::{Manifest, MemoPart};
use super::record::RunRecord;
use crate::digest::Digest;

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
    pub(super) exclusive: Mutex<Weak<File>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.location).finish()
    }
}

impl Store {
    /// Opens the store at a folder's path or a URL (`file://`, `s3://` with the cargo feature
    /// `s3`, `memory://` for tests). Touches nothing: the folder is made by the first write.
    pub async fn open(location: &str) -> Result<Self, StoreError> {
        match StoreLocation::parse(location)? {
            StoreLocation::Folder(path) => Self::open_folder(location, &path),
            StoreLocation::Memory(url) => {
                let objects = Arc::new(object_store::memory::InMemory::new());
                Self::open_bucket(shown(&url), &url, objects)
            }
            StoreLocation::Bucket(url) => {
                open_s3(&url).and_then(|objects| Self::open_bucket(shown(&url), &url, objects))
            }
        }
    }

    fn open_folder(location: &str, path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::at("open", path, error);
        let folder = resolve(&std::path::absolute(path).map_err(failed)?);
        let root = ObjectPath::from_absolute_path(&folder)
            .map_err(|error| StoreError::of("open", folder.display(), error))?;
        let url = Url::parse("file:///")
            .map_err(|error| StoreError::of("open", folder.display(), error))?;
        let objects: Arc<dyn ObjectStore> = Arc::new(object_store::local::LocalFileSystem::new());
        let backend = Backend::Folder(Arc::new(FolderBackend::new(folder)));
        Ok(Self::new(location.to_string(), backend, objects, root, url))
    }

    fn open_bucket(
        location: String,
        url: &Url,
        objects: Arc<dyn ObjectStore>,
    ) -> Result<Self, StoreError> {
        let root = ObjectPath::from_url_path(url.path())
            .map_err(|error| StoreError::of("open", &location, error))?;
        let mut base = url.clone();
        base.set_path("");
        base.set_query(None);
        base.set_fragment(None);
        let backend = Backend::Bucket { objects: Arc::clone(&objects), root: root.clone() };
        Ok(Self::new(location, backend, objects, root, base))
    }

    fn new(
        location: String,
        backend: Backend,
        objects: Arc<dyn ObjectStore>,
        root: ObjectPath,
        url: Url,
    ) -> Self {
        let exclusive = Mutex::new(Weak::new());
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
    /// in another format. Whether its blobs are there says [`Store::missing_blobs`].
    pub async fn manifest(&self, key: &Digest) -> Result<Option<Manifest>, StoreError> {
        let bytes = self.inner.backend.read(&manifest_name(key)).await?;
        let manifest = bytes.and_then(|bytes| Manifest::parse(&bytes).ok());
        Ok(manifest.filter(|manifest| manifest.key == *key))
    }

    /// Stores a manifest. Its blobs must have been committed before.
    pub async fn put_manifest(&self, manifest: &Manifest) -> Result<(), StoreError> {
        self.write_json(&manifest_name(&manifest.key), manifest).await
    }

    /// The blobs of a manifest that are not there, or that have another size.
    pub async fn missing_blobs(&self, manifest: &Manifest) -> Vec<Digest> {
        let mut missing = Vec::new();
        for port in &manifest.ports {
            let size = self.inner.backend.size(&blob_name(&port.blob)).await;
            if size != Some(port.bytes) && !missing.contains(&port.blob) {
                missing.push(port.blob);
            }
        }
        missing
    }

    /// Removes a manifest, if there is one. Its blobs stay until they are collected.
    pub async fn forget(&self, key: &Digest) -> Result<(), StoreError> {
        self.inner.backend.remove(&manifest_name(key)).await.map(|_| ())
    }

    /// The finished parts of a recipe whose blobs are there, sorted by blob.
    pub async fn memo_parts(&self, recipe: &Digest) -> Result<Vec<MemoPart>, StoreError> {
        let backend = &self.inner.backend;
        let entries = backend.read_all(&memo_folder(recipe)).await?;
        let parts = entries.into_iter().filter_map(|(entry, bytes)| {
            let part: MemoPart = serde_json::from_slice(&bytes).ok()?;
            (memo_name(recipe, &part) == entry.name).then_some(part)
        });
        let mut parts: Vec<MemoPart> = futures::stream::iter(parts)
            .filter_map(async |part| {
                let size = backend.size(&blob_name(&part.blob)).await;
                (size == Some(part.bytes)).then_some(part)
            })
            .collect()
            .await;
        parts.sort_by_key(|part| part.blob);
        Ok(parts)
    }

    /// Adds a finished part to a recipe. Its blob must have been committed before.
    pub async fn put_memo_part(&self, recipe: &Digest, part: &MemoPart) -> Result<(), StoreError> {
        self.write_json(&memo_name(recipe, part), part).await
    }

    /// Stores the record of a run, replacing the one with the same id.
    pub async fn put_run(&self, run: &RunRecord) -> Result<(), StoreError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
        if run.id.is_empty() || run.id.starts_with('.') || !run.id.bytes().all(plain) {
            let cause = "the run's id is not a plain name";
            return Err(StoreError::new(StoreErrorKind::Corrupt, "write", "the run", cause));
        }
        self.write_json(&format!("runs/{}.json", run.id), run).await
    }

    /// The newest runs, newest first. Records that cannot be read are left out.
    pub async fn recent_runs(&self, limit: usize) -> Result<Vec<RunRecord>, StoreError> {
        let backend = &self.inner.backend;
        let entries = backend.list("runs").await?;
        let runs = futures::stream::iter(entries.into_iter().rev())
            .map(|entry| async move { backend.read(&entry.name).await })
            .buffered(8)
            .try_filter_map(async |bytes| Ok(bytes.and_then(|b| serde_json::from_slice(&b).ok())));
        runs.take(limit).try_collect().await
    }

    /// The remembered outcome of a check; `None` if there is none or it cannot be read.
    pub async fn check_result(&self, key: &Digest) -> Option<serde_json::Value> {
        let bytes = self.inner.backend.read(&check_name(key)).await.ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    /// Remembers the outcome of a check under the digest of what was checked.
    pub async fn put_check_result(
        &self,
        key: &Digest,
        value: &serde_json::Value,
    ) -> Result<(), StoreError> {
        self.write_json(&check_name(key), value).await
    }

    async fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        let mut bytes = serde_json::to_vec_pretty(value)
            .map_err(|error| StoreError::of("write", name, error))?;
        bytes.push(b'\n');
        self.inner.backend.write(name, bytes).await
    }
}

pub(super) fn manifest_name(key: &Digest) -> String {
    format!("actions/{}/{key}.json", key.shard())
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

fn check_name(key: &Digest) -> String {
    format!("checks/{}/{key}.json", key.shard())
}

#[cfg(feature = "s3")]
fn open_s3(url: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let builder = object_store::aws::AmazonS3Builder::from_env().with_url(url.as_str());
    let store = builder.build().map_err(|error| StoreError::of("open", url, error))?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "s3"))]
fn open_s3(url: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
    Err(StoreError::new(StoreErrorKind::Unsupported, "open", url, "this build has no S3"))
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
