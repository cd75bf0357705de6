//! Manifests with their stored bytes, and their signatures.
//!
//! The bytes of a manifest are signed: the key, the pre-image, and every digest in it. So a
//! signature cannot be moved to another result, and `ssh-keygen -Y verify` needs only the two
//! files. The signatures of a result are in one file, `signatures/<aa>/<key>.sig`.

use std::collections::HashSet;

use futures::{StreamExt as _, TryStreamExt as _};

use super::backend::{ObjectEntry, blocking};
use super::content_store::Store;
use super::error::{Result, StoreError, StoreErrorKind};
use super::integrity::seal;
use super::manifest::{Manifest, ManifestError};
use super::object_name::{manifest_name, signature_name};
use super::ssh_keygen::{
    AllowedSigners, SignatureError, SignatureFile, SignatureRefusal, SignerKey, SshKeygenError,
};
use galeras_base::digest::Digest;

const FOLDER: &str = "signatures";

/// How many results are checked at a time.
const PARALLEL: usize = 8;

/// A manifest with the bytes that it is stored as.
#[derive(Clone, Debug)]
pub struct StoredManifest {
    /// The content.
    pub manifest: Manifest,
    /// The bytes, which are signed.
    pub bytes: Vec<u8>,
}

impl StoredManifest {
    /// The manifest as this program stores it.
    pub fn of(manifest: Manifest) -> Result<Self> {
        let name = manifest_name(&manifest.key);
        let bytes = seal(&manifest).map_err(|error| StoreError::of("write", name, error))?;
        Ok(Self { manifest, bytes })
    }

    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, ManifestError> {
        Manifest::parse(&bytes).map(|manifest| Self { manifest, bytes })
    }

    /// Keeps the good signatures of this manifest, the first of each key. They are checked with
    /// `ssh-keygen`.
    pub async fn own(&self, signatures: SignatureFile) -> Result<SignatureFile> {
        if signatures.signatures.is_empty() {
            return Ok(SignatureFile::default());
        }
        let bytes = self.bytes.clone();
        blocking(move || signatures.only_of(&bytes).map_err(|error| unchecked(&error))).await
    }

    /// Returns true if another manifest describes the same result: only labels, times and counts of
    /// the computation differ, and neither has a field that this program does not know.
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

/// The signers of a stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureState {
    /// It has no signature.
    Unsigned,
    /// All signatures are good: the keys, sorted, with the principals of those that may sign.
    Signed(Vec<(SignerKey, Option<String>)>),
    /// There is a signature that is not of this manifest, or cannot be read.
    Wrong,
}

impl Store {
    /// Reads the signatures of a result. None of them is checked.
    pub async fn signatures(&self, key: &Digest) -> Result<SignatureFile> {
        let bytes = self.inner.backend.read(&signature_name(key)).await?.unwrap_or_default();
        Ok(SignatureFile::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Checks the signatures of a result with `ssh-keygen`, and looks the keys up in a list of
    /// allowed signers.
    pub async fn signature_state(
        &self,
        key: &Digest,
        allowed: Option<&AllowedSigners>,
    ) -> Result<SignatureState> {
        let file = self.signatures(key).await?;
        let manifest = self.inner.backend.read(&manifest_name(key)).await?;
        let (Some(manifest), false) = (manifest, file.is_empty()) else {
            return Ok(SignatureState::Unsigned);
        };
        let allowed = allowed.cloned();
        blocking(move || match signature_state(&file, &manifest, allowed.as_ref()) {
            Ok(signers) => Ok(SignatureState::Signed(signers)),
            Err(SignatureError::Refused(_)) => Ok(SignatureState::Wrong),
            Err(SignatureError::Unchecked(error)) => Err(unchecked(&error)),
        })
        .await
    }

    /// Checks the signatures of many results, several at a time. The states are in the order of
    /// `keys`.
    pub async fn signature_states(
        &self,
        keys: impl IntoIterator<Item = Digest>,
        allowed: Option<&AllowedSigners>,
    ) -> Result<Vec<(Digest, SignatureState)>> {
        let state = |key| async move { Ok((key, self.signature_state(&key, allowed).await?)) };
        futures::stream::iter(keys).map(state).buffered(PARALLEL).try_collect().await
    }

    /// Stores a manifest with its good signatures. Its blobs must have been committed before. A
    /// file with the same content is not written again.
    pub async fn put_signed(
        &self,
        manifest: &StoredManifest,
        signatures: SignatureFile,
    ) -> Result<()> {
        let key = &manifest.manifest.key;
        let signatures = manifest.own(signatures).await?;
        // Before the manifest, so that a reader of the manifest finds its signatures.
        let name = signature_name(key);
        if signatures.is_empty() {
            self.inner.backend.remove(&name).await?;
        } else {
            self.write_changed(&name, signatures.render().as_bytes()).await?;
        }
        self.write_changed(&manifest_name(key), &manifest.bytes).await
    }

    /// The signature files that are not of their manifests, each with the step of the result.
    pub(super) async fn wrong_signatures(
        &self,
        manifests: &[Manifest],
    ) -> Result<Vec<(String, String)>> {
        let there = self.inner.backend.list(FOLDER).await?;
        let there: HashSet<String> = there.into_iter().map(|entry| entry.name).collect();
        let signed: Vec<&Manifest> =
            manifests.iter().filter(|m| there.contains(&signature_name(&m.key))).collect();
        // Collected, as a closure held across an await would keep the future from being `Send`.
        let keys: Vec<Digest> = signed.iter().map(|manifest| manifest.key).collect();
        let states = self.signature_states(keys, None).await?;
        let wrong = signed.iter().zip(states).filter(|(_, (_, s))| *s == SignatureState::Wrong);
        let named = |m: &Manifest| (signature_name(&m.key), m.labels.step.clone());
        Ok(wrong.map(|(manifest, _)| named(manifest)).collect())
    }

    /// The signature files without a manifest in `kept`.
    pub(super) async fn loose_signatures<'a>(
        &self,
        kept: impl Iterator<Item = &'a Digest>,
    ) -> Result<Vec<ObjectEntry>> {
        let kept: HashSet<String> = kept.map(signature_name).collect();
        let mut loose = self.inner.backend.list(FOLDER).await?;
        loose.retain(|entry| !kept.contains(&entry.name));
        Ok(loose)
    }

    /// Writes an object unless it has this content.
    pub(super) async fn write_changed(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let backend = &self.inner.backend;
        if backend.read(name).await?.is_some_and(|there| there == bytes) {
            return Ok(());
        }
        backend.write(name, bytes.to_vec()).await
    }
}

/// The keys of the signatures, which must be good.
fn signature_state(
    file: &SignatureFile,
    manifest: &[u8],
    allowed: Option<&AllowedSigners>,
) -> Result<Vec<(SignerKey, Option<String>)>, SignatureError> {
    if file.damaged {
        return Err(SignatureRefusal::Unreadable.into());
    }
    let mut signers = Vec::new();
    for signature in &file.signatures {
        let key = signature.check(manifest)?;
        let name = match allowed.map(|list| list.principals(&key, signature, manifest)) {
            Some(Ok(name)) => Some(name),
            Some(Err(error @ SignatureError::Unchecked(_))) => return Err(error),
            Some(Err(SignatureError::Refused(_))) | None => None,
        };
        signers.push((key, name));
    }
    signers.sort();
    signers.dedup();
    Ok(signers)
}

fn unchecked(error: &SshKeygenError) -> StoreError {
    StoreError::new(StoreErrorKind::Io, "check", "signatures", error.to_string())
}
