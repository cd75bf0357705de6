//! Manifests as they are stored, byte by byte, and the signatures of them.
//!
//! What is signed are the bytes of a manifest: the key, the pre-image, and every digest in it. So a
//! signature cannot be put beside another result, and `ssh-keygen -Y verify` checks one with nothing but
//! the two files. Signatures of a result are in one file beside the manifests,
//! `signatures/<aa>/<key>.sig`.

use std::collections::HashSet;
use std::future::Future;

use galeras_signatures::{SignatureFile, SignerKey};

use super::content_store::{Store, manifest_name, signature_name};
use super::error::StoreError;
use super::manifest::{Manifest, Unreadable};
use super::object::ObjectEntry;
use super::sealed::seal;
use galeras_base::digest::Digest;

/// What signatures of manifests are made for.
pub const SIGNATURE_NAMESPACE: &str = "galeras-manifest";

const FOLDER: &str = "signatures";

/// A manifest with the bytes that it is stored as.
#[derive(Clone, Debug)]
pub struct StoredManifest {
    manifest: Manifest,
    bytes: Vec<u8>,
}

impl StoredManifest {
    /// The manifest as this program stores it.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn of(manifest: Manifest) -> Result<Self, StoreError> {
        let name = manifest_name(&manifest.key);
        let bytes = seal(&manifest).map_err(|error| StoreError::of("write", name, error))?;
        Ok(Self { manifest, bytes })
    }

    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, Unreadable> {
        Manifest::parse(&bytes).map(|manifest| Self { manifest, bytes })
    }

    /// What it says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The same without its bytes.
    pub fn into_manifest(self) -> Manifest {
        self.manifest
    }

    /// What is signed.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether another manifest says the same of the same result: only names for people and the times
    /// of the computation may be others, and neither says anything that this program does not know.
    pub fn is_same_result(&self, other: &Self) -> bool {
        let known = |own: &Self| seal(&own.manifest).is_ok_and(|bytes| bytes == own.bytes);
        let alike = Manifest {
            labels: other.manifest.labels.clone(),
            created: other.manifest.created.clone(),
            seconds: other.manifest.seconds,
            computed_rows: other.manifest.computed_rows,
            reused_rows: other.manifest.reused_rows,
            ..self.manifest.clone()
        };
        alike == other.manifest && known(self) && known(other)
    }
}

/// Who signed a stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureState {
    /// Nobody.
    Unsigned,
    /// The holders of these keys, sorted.
    Signed(Vec<SignerKey>),
    /// There is a signature that is not of this manifest, or cannot be read.
    Wrong,
}

impl Store {
    /// The signatures that are stored beside a manifest. Nothing is known of them yet.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn signatures(&self, key: &Digest) -> Result<SignatureFile, StoreError> {
        let bytes = self.inner.backend.read(&signature_name(key)).await?.unwrap_or_default();
        Ok(SignatureFile::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Who signed the result that is stored under a key.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn signature_state(&self, key: &Digest) -> Result<SignatureState, StoreError> {
        let file = self.signatures(key).await?;
        let manifest = self.inner.backend.read(&manifest_name(key)).await?;
        let (Some(manifest), false) = (manifest, file.is_empty()) else {
            return Ok(SignatureState::Unsigned);
        };
        let of = |signature: &galeras_signatures::Signature| {
            signature.is_of(SIGNATURE_NAMESPACE, &manifest)
        };
        Ok(match !file.is_damaged() && file.signatures().iter().all(of) {
            true => SignatureState::Signed(file.signers(SIGNATURE_NAMESPACE, &manifest)),
            false => SignatureState::Wrong,
        })
    }

    /// Stores a manifest as it is, with those of the signatures that are of its bytes. Its blobs must
    /// have been committed before. What is there already is not written again.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn put_signed(
        &self,
        manifest: &StoredManifest,
        signatures: SignatureFile,
    ) -> Result<(), StoreError> {
        let backend = &self.inner.backend;
        let key = &manifest.manifest.key;
        let signatures = signatures.only_of(SIGNATURE_NAMESPACE, &manifest.bytes);
        let text = signatures.render().into_bytes();
        let name = signature_name(key);
        let there = backend.read(&name).await?;
        // First: who finds the manifest finds it signed.
        match there {
            Some(_) if signatures.is_empty() => {
                backend.remove(&name).await?;
            }
            None if signatures.is_empty() => {}
            Some(there) if there == text => {}
            Some(_) | None => backend.write(&name, text).await?,
        }
        self.write_changed(&manifest_name(key), &manifest.bytes).await
    }

    /// The signatures beside these manifests that are not of them, each with the step of the result.
    pub(super) async fn wrong_signatures(
        &self,
        manifests: &[Manifest],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let there = self.inner.backend.list(FOLDER).await?;
        let there: HashSet<String> = there.into_iter().map(|entry| entry.name).collect();
        let mut wrong = Vec::new();
        for manifest in manifests {
            let name = signature_name(&manifest.key);
            if there.contains(&name)
                && self.signature_state(&manifest.key).await? == SignatureState::Wrong
            {
                wrong.push((name, manifest.labels.step.clone()));
            }
        }
        Ok(wrong)
    }

    /// The signatures beside none of the manifests `kept`.
    pub(super) async fn loose_signatures<'a>(
        &self,
        kept: impl Iterator<Item = &'a Digest>,
    ) -> Result<Vec<ObjectEntry>, StoreError> {
        let kept: HashSet<String> = kept.map(signature_name).collect();
        let mut loose = self.inner.backend.list(FOLDER).await?;
        loose.retain(|entry| !kept.contains(&entry.name));
        Ok(loose)
    }

    /// Writes an object that does not have this content yet.
    pub(super) fn write_changed(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> impl Future<Output = Result<(), StoreError>> {
        let backend = &self.inner.backend;
        async move {
            if backend.read(name).await?.is_some_and(|there| there == bytes) {
                return Ok(());
            }
            backend.write(name, bytes.to_vec()).await
        }
    }
}
