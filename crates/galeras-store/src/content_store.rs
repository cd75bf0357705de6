//! The store: opening it, and reading and writing each kind of object.
//!
//! Layout: `actions/<aa>/<key>.json` manifests, `blobs/<aa>/<digest>.parquet` tables,
//! `memo/<aa>/<recipe>/<blob>.json` parts of row-precise reuse, `checks/<aa>/<key>.json` outcomes
//! of assertions, `signatures/<aa>/<key>.sig` signatures of manifests,
//! `outputs/<aa>/<content>/<id>.json` origins of output files, `runs/<time>-<id>.json` records of
//! runs, `verified.log`, `locks/`, `tmp/`. All JSON ends in its digest (`integrity`).

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Weak};

use futures::{Stream, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, RetryConfig};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::backend::{Backend, BucketBackend, FolderBackend, ObjectEntry, below};
use super::error::{Result, StoreError, StoreErrorKind};
use super::integrity::{seal, unseal};
use super::local_files::refuse_links;
use super::location::{StoreLocation, shown, web_address};
use super::lock::HeldLock;
use super::manifest::{Manifest, ManifestError, MemoPart};
use super::object_name::{
    blob_name, check_name, manifest_name, memo_folder, memo_name, run_name, signature_name,
};
use super::run_record::RunRecord;
use super::server::{OWN_STORE, REMOTE, open_bucket, open_web};
use galeras_base::digest::Digest;

/// A content-addressed store in a folder or a bucket. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) inner: Arc<StoreInner>,
}

pub(super) struct StoreInner {
    location: String,
    pub(super) backend: Backend,
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The store's root within `objects`.
    pub(super) root: ObjectPath,
    url: Url,
    /// The lock on the whole store, while a guard of this process holds it.
    pub(super) exclusive: tokio::sync::Mutex<Option<Weak<HeldLock>>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.location).finish()
    }
}

impl Store {
    /// Opens the store at a folder's path or a URL: `file://`, `s3://` with the cargo feature `s3`,
    /// `gs://` with the cargo feature `gcs`, `memory://` for tests. The folder is created by the
    /// first write, and no request is sent yet. Fails if the location is not one of a store, or a
    /// folder of the store is a link.
    pub async fn open(location: &str) -> Result<Self> {
        Self::open_with(location, OWN_STORE)
    }

    fn open_with(location: &str, retries: RetryConfig) -> Result<Self> {
        match StoreLocation::parse(location)? {
            StoreLocation::Folder(path) => Self::open_folder(location, &path),
            StoreLocation::Memory(url) => Self::open_objects(&url, Arc::new(InMemory::new())),
            StoreLocation::Bucket(url) => Self::open_objects(&url, open_bucket(&url, retries)?),
        }
    }

    /// Opens a store that results come from: as [`Store::open`], or the address of any web server
    /// with a store's files (`https://`), which can only be read. Errors are those of
    /// [`Store::open`].
    pub async fn open_remote(location: &str) -> Result<Self> {
        match web_address(location)? {
            None => Self::open_with(location, REMOTE),
            // The address is the root of the objects: paths are within it.
            Some(url) => {
                let (objects, root) = (open_web(&url)?, ObjectPath::default());
                Ok(Self::of_objects(objects, root, &url, url.clone()))
            }
        }
    }

    fn open_folder(location: &str, path: &Path) -> Result<Self> {
        let failed = |error| StoreError::at("open", path, error);
        let folder = resolve(&std::path::absolute(path).map_err(failed)?);
        refuse_links(&folder)?;
        let root = ObjectPath::from_absolute_path(&folder)
            .map_err(|error| StoreError::of("open", folder.display(), error))?;
        let url =
            Url::parse("file:///").map_err(|error| StoreError::of("open", location, error))?;
        let backend = Backend::Folder(Arc::new(FolderBackend::new(folder)));
        let (location, objects) = (location.to_string(), Arc::new(LocalFileSystem::new()));
        let exclusive = Default::default();
        let inner = StoreInner { location, backend, objects, root, url, exclusive };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn open_objects(url: &Url, objects: Arc<dyn ObjectStore>) -> Result<Self> {
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
        let (backend, exclusive) = (Backend::Bucket(Arc::new(bucket)), Default::default());
        let inner = StoreInner { location, backend, objects, root, url: base, exclusive };
        Self { inner: Arc::new(inner) }
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

    /// The path of a blob in [`Store::object_store`].
    pub fn blob_path(&self, digest: &Digest) -> ObjectPath {
        below(&self.inner.root, &blob_name(digest))
    }

    /// A blob's file, if the store is a folder. It need not exist.
    pub fn local_blob(&self, digest: &Digest) -> Option<PathBuf> {
        self.inner.backend.folder().map(|folder| folder.path(&blob_name(digest)))
    }

    /// The manifest of a key; `None` if there is none, if it is damaged, or if it has another
    /// format. Its blobs are checked by [`Store::unsound_blobs`].
    pub async fn manifest(&self, key: &Digest) -> Result<Option<Manifest>> {
        let bytes = self.inner.backend.read(&manifest_name(key)).await?;
        let manifest = bytes.and_then(|bytes| Manifest::parse(&bytes).ok());
        Ok(manifest.filter(|manifest| manifest.key == *key))
    }

    /// Stores a manifest, unsigned. Its blobs must have been committed before.
    pub async fn put_manifest(&self, manifest: &Manifest) -> Result<()> {
        // The signatures are of the earlier manifest.
        self.inner.backend.remove(&signature_name(&manifest.key)).await?;
        self.write_sealed(&manifest_name(&manifest.key), manifest).await
    }

    /// Removes a manifest, if there is one. Its blobs stay until they are collected.
    pub async fn forget(&self, key: &Digest) -> Result<()> {
        self.inner.backend.remove(&manifest_name(key)).await?;
        self.inner.backend.remove(&signature_name(key)).await.map(|_| ())
    }

    /// The finished parts of a recipe. Their blobs are not checked.
    pub async fn listed_parts(&self, recipe: &Digest) -> Result<Vec<MemoPart>> {
        let entries = self.inner.backend.read_listable(&memo_folder(recipe)).await?;
        let parts = entries.into_iter().filter_map(|(entry, bytes)| {
            let part = MemoPart::parse(&bytes).ok()?;
            (memo_name(recipe, &part) == entry.name).then_some(part)
        });
        Ok(parts.collect())
    }

    /// Adds a finished part to a recipe. Its blob must have been committed before.
    pub async fn put_memo_part(&self, recipe: &Digest, part: &MemoPart) -> Result<()> {
        self.write_sealed(&memo_name(recipe, part), part).await
    }

    /// Stores the record of a run, replacing the one with the same id.
    pub async fn put_run(&self, run: &RunRecord) -> Result<()> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
        if run.id.is_empty() || run.id.starts_with('.') || !run.id.bytes().all(plain) {
            let cause = "the run's id is not a plain name";
            return Err(StoreError::new(StoreErrorKind::Corrupt, "write", "the run", cause));
        }
        self.write_sealed(&run_name(&run.id), run).await
    }

    /// The newest runs, newest first. Records that cannot be read are left out.
    pub async fn recent_runs(&self, limit: usize) -> Result<Vec<RunRecord>> {
        self.runs().await?.take(limit).try_collect().await
    }

    /// The newest run that satisfies a condition.
    pub async fn last_run(&self, wanted: impl Fn(&RunRecord) -> bool) -> Result<Option<RunRecord>> {
        let runs = self.runs().await?.try_filter(|run| futures::future::ready(wanted(run)));
        std::pin::pin!(runs).try_next().await
    }

    /// The runs, newest first, read on demand.
    async fn runs(&self) -> Result<impl Stream<Item = Result<RunRecord>>> {
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

    /// The remembered outcome of a check; `None` if there is none or it is damaged.
    pub async fn check_result(&self, key: &Digest) -> Option<Value> {
        let bytes = self.inner.backend.read(&check_name(key)).await.ok()??;
        let outcome = unseal::<StoredOutcome>(&bytes).ok()?;
        (outcome.key == *key).then_some(outcome.value)
    }

    /// Remembers the outcome of a check under its digest; `reads` are the blobs that it read.
    pub async fn put_check_result(
        &self,
        key: &Digest,
        value: &Value,
        reads: Vec<Digest>,
    ) -> Result<()> {
        let outcome = StoredOutcome { key: *key, reads, value: value.clone() };
        self.write_sealed(&check_name(key), &outcome).await
    }

    /// Every stored result, newest first.
    pub async fn list(&self) -> Result<Vec<Manifest>> {
        let entries = self.inner.backend.read_all("actions").await?;
        let mut manifests: Vec<Manifest> = entries
            .into_iter()
            .filter_map(|(entry, bytes)| {
                let manifest = Manifest::parse(&bytes).ok()?;
                (manifest_name(&manifest.key) == entry.name).then_some(manifest)
            })
            .collect();
        manifests.sort_by(|a, b| b.created.cmp(&a.created).then(a.key.cmp(&b.key)));
        Ok(manifests)
    }

    /// The size of the store.
    pub async fn usage(&self) -> Result<StoreUsage> {
        let backend = &self.inner.backend;
        let blobs = backend.list("blobs").await?;
        Ok(StoreUsage {
            manifests: backend.list("actions").await?.len() as u64,
            blobs: blobs.len() as u64,
            blob_bytes: blobs.iter().map(|blob| blob.bytes).sum(),
            parts: backend.list("memo").await?.len() as u64,
            runs: backend.list("runs").await?.len() as u64,
        })
    }

    /// Stores a small object with its digest.
    pub(super) async fn write_sealed(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let bytes = seal(value).map_err(|error| StoreError::of("write", name, error))?;
        self.inner.backend.write(name, bytes).await
    }
}

/// The size of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreUsage {
    /// Stored results.
    pub manifests: u64,
    /// Stored tables.
    pub blobs: u64,
    /// The size of the tables in bytes.
    pub blob_bytes: u64,
    /// Finished parts of row-precise reuse.
    pub parts: u64,
    /// Records of runs.
    pub runs: u64,
}

/// A remembered outcome, as it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredOutcome {
    /// The digest of the check, so that the outcome of another check is not used.
    pub(super) key: Digest,
    /// The stored files that were read.
    pub(super) reads: Vec<Digest>,
    pub(super) value: Value,
}

/// The manifests, parts and blobs of a store, read at once.
#[derive(Default)]
pub(super) struct StoreContents {
    pub(super) manifests: Vec<Manifest>,
    /// The name of the object, and the problem.
    pub(super) damaged_manifests: Vec<(String, String)>,
    /// The name of the object, and its format version.
    pub(super) other_formats: Vec<(String, u32)>,
    /// By recipe.
    pub(super) parts: Vec<(Digest, MemoPart)>,
    pub(super) damaged_parts: Vec<(String, String)>,
    pub(super) blobs: Vec<(Digest, ObjectEntry)>,
    /// Blobs in the folder of another shard.
    pub(super) strangers: Vec<ObjectEntry>,
}

impl StoreContents {
    pub(super) async fn of(store: &Store) -> Result<Self> {
        let backend = &store.inner.backend;
        let mut contents = Self::default();
        for (ObjectEntry { name, .. }, bytes) in backend.read_all("actions").await? {
            match Manifest::parse(&bytes) {
                Ok(manifest) if manifest_name(&manifest.key) == name => {
                    contents.manifests.push(manifest);
                }
                Ok(_) => contents.damaged_manifests.push((name, "it has another's key".into())),
                Err(ManifestError::OtherFormat(format)) => {
                    contents.other_formats.push((name, format))
                }
                Err(ManifestError::Damaged(cause)) => {
                    contents.damaged_manifests.push((name, cause))
                }
            }
        }
        for (ObjectEntry { name, .. }, bytes) in backend.read_all("memo").await? {
            let recipe = name.split('/').nth(2).and_then(|text| text.parse().ok());
            match (recipe, MemoPart::parse(&bytes)) {
                (Some(recipe), Ok(part)) if memo_name(&recipe, &part) == name => {
                    contents.parts.push((recipe, part));
                }
                (_, Ok(_)) => contents.damaged_parts.push((name, "it has another's name".into())),
                (_, Err(cause)) => contents.damaged_parts.push((name, cause)),
            }
        }
        for entry in backend.list("blobs").await? {
            let file = entry.name.rsplit('/').next().unwrap_or_default();
            let digest = file.strip_suffix(".parquet").and_then(|digest| digest.parse().ok());
            match digest.filter(|digest| blob_name(digest) == entry.name) {
                Some(digest) => contents.blobs.push((digest, entry)),
                None => contents.strangers.push(entry),
            }
        }
        Ok(contents)
    }
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
