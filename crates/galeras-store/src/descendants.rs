//! What was computed from a damaged blob, directly or through other results, is forgotten: the
//! damage may be older than the results.
//!
//! Parts of row-precise reuse stay unless their own blob is one of those: each of their rows is
//! found by a digest of what it was computed from, which for damaged rows nobody asks for.

use std::collections::HashSet;

use super::content_store::{Store, check_name, manifest_name, memo_name};
use super::contents::StoreContents;
use super::error::StoreError;
use super::sealed::unseal;
use galeras_base::digest::Digest;

/// A remembered outcome, as it is stored.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct StoredOutcome {
    /// The digest of what was checked, so that no other's outcome is believed in its place.
    pub(super) key: Digest,
    /// The stored files that it was found out from.
    pub(super) reads: Vec<Digest>,
    pub(super) value: serde_json::Value,
}

/// What was forgotten because it was computed from damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// The names of the steps, as the labels of their results have them, sorted.
    pub steps: Vec<String>,
    /// Results, parts and outcomes.
    pub objects: u64,
}

impl Store {
    /// Forgets every result and every outcome that was computed from one of these blobs, and all
    /// that was computed from those.
    ///
    /// # Errors
    /// If the store cannot be read, or if what has to go cannot be removed.
    pub async fn forget_descendants(&self, damaged: &[Digest]) -> Result<Forgotten, StoreError> {
        let mut tainted: HashSet<Digest> = damaged.iter().copied().collect();
        let contents = StoreContents::of(self).await?;
        let mut manifests = contents.manifests;
        let (mut steps, mut names) = (Vec::new(), Vec::new());
        loop {
            let (gone, stay): (Vec<_>, Vec<_>) = manifests
                .into_iter()
                .partition(|manifest| manifest.reads.iter().any(|blob| tainted.contains(blob)));
            manifests = stay;
            if gone.is_empty() {
                break;
            }
            for manifest in gone {
                tainted.extend(manifest.ports.iter().map(|port| port.blob));
                names.push(manifest_name(&manifest.key));
                steps.push(manifest.labels.step);
            }
        }
        let parts = contents.parts.iter().filter(|(_, part)| tainted.contains(&part.blob));
        names.extend(parts.map(|(recipe, part)| memo_name(recipe, part)));
        for (entry, bytes) in self.inner.backend.read_all("checks").await? {
            match unseal::<StoredOutcome>(&bytes) {
                Ok(outcome)
                    if check_name(&outcome.key) == entry.name
                        && !outcome.reads.iter().any(|blob| tainted.contains(blob)) => {}
                Ok(_) | Err(_) => names.push(entry.name),
            }
        }
        if !names.is_empty() {
            tracing::warn!(
                count = names.len(),
                "what was computed from damaged files is forgotten"
            );
        }
        let objects = self.inner.backend.remove_all(names).await?;
        steps.sort();
        steps.dedup();
        Ok(Forgotten { steps, objects })
    }

    /// The remembered outcome of a check; `None` if there is none or it is damaged.
    pub async fn check_result(&self, key: &Digest) -> Option<serde_json::Value> {
        let bytes = self.inner.backend.read(&check_name(key)).await.ok()??;
        let outcome = unseal::<StoredOutcome>(&bytes).ok()?;
        (outcome.key == *key).then_some(outcome.value)
    }

    /// Remembers the outcome of a check under the digest of what was checked; `reads` are the
    /// blobs that were looked at.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn put_check_result(
        &self,
        key: &Digest,
        value: &serde_json::Value,
        reads: Vec<Digest>,
    ) -> Result<(), StoreError> {
        let outcome = StoredOutcome { key: *key, reads, value: value.clone() };
        self.write_sealed(&check_name(key), &outcome).await
    }
}
