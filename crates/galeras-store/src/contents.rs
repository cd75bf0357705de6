//! Everything that a store holds, read at once: for listing, checking and cleaning.

use serde::{Deserialize, Serialize};

use super::content_store::{Store, blob_name, manifest_name, memo_name};
use super::error::StoreError;
use super::manifest::{Manifest, MemoPart, Unreadable};
use super::object::ObjectEntry;
use galeras_base::digest::Digest;

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreUsage {
    /// Stored results.
    pub manifests: u64,
    /// Stored tables.
    pub blobs: u64,
    /// Their size in bytes.
    pub blob_bytes: u64,
    /// Finished parts of row-precise reuse.
    pub parts: u64,
    /// Records of runs.
    pub runs: u64,
}

/// The manifests, parts and blobs of a store.
pub(super) struct StoreContents {
    pub(super) manifests: Vec<Manifest>,
    /// Name of the object, and what is wrong with it.
    pub(super) damaged_manifests: Vec<(String, String)>,
    /// Name of the object, and its format version.
    pub(super) other_formats: Vec<(String, u32)>,
    /// Recipe and part.
    pub(super) parts: Vec<(Digest, MemoPart)>,
    pub(super) damaged_parts: Vec<(String, String)>,
    pub(super) blobs: Vec<(Digest, ObjectEntry)>,
    /// Files among the blobs that are in the folder of another.
    pub(super) strangers: Vec<ObjectEntry>,
}

impl StoreContents {
    pub(super) async fn of(store: &Store) -> Result<Self, StoreError> {
        let backend = &store.inner.backend;
        let mut contents = Self {
            manifests: Vec::new(),
            damaged_manifests: Vec::new(),
            other_formats: Vec::new(),
            parts: Vec::new(),
            damaged_parts: Vec::new(),
            blobs: Vec::new(),
            strangers: Vec::new(),
        };
        for (ObjectEntry { name, .. }, bytes) in backend.read_all("actions").await? {
            match Manifest::parse(&bytes) {
                Ok(manifest) if manifest_name(&manifest.key) == name => {
                    contents.manifests.push(manifest);
                }
                Ok(_) => contents.damaged_manifests.push((name, "it has another's key".into())),
                Err(Unreadable::OtherFormat(format)) => contents.other_formats.push((name, format)),
                Err(Unreadable::Damaged(cause)) => contents.damaged_manifests.push((name, cause)),
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
            match digest_in(&entry.name).filter(|digest| blob_name(digest) == entry.name) {
                Some(digest) => contents.blobs.push((digest, entry)),
                None => contents.strangers.push(entry),
            }
        }
        Ok(contents)
    }
}

impl Store {
    /// Every stored result, newest first.
    pub async fn list(&self) -> Result<Vec<Manifest>, StoreError> {
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

    /// How much the store holds.
    pub async fn usage(&self) -> Result<StoreUsage, StoreError> {
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
}

fn digest_in(name: &str) -> Option<Digest> {
    name.rsplit('/').next()?.strip_suffix(".parquet")?.parse().ok()
}
