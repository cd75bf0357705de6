//! Whether a blob has the content that its name says, before it is used.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::backend::{Backend, FolderBackend, blocking};
use super::content_store::{Store, blob_name};
use super::error::StoreError;
use super::manifest::{Manifest, MemoPart, RecipeParts};
use super::tables::open;
use galeras_base::digest::Digest;

/// What is known of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobState {
    /// It has the content that its name says.
    Sound,
    /// It is not there.
    Missing,
    /// It has other content, cannot be read, or is no file.
    Damaged,
}

/// How far a look at a blob goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyLevel {
    /// A file is hashed unless nobody touched it since it was; of an object in a bucket only the
    /// size is compared, because all of it would have to be fetched.
    Usual,
    /// The content is hashed, whatever is known of it.
    Hashed,
}

impl Store {
    /// Returns true if a blob of so many bytes may be used.
    ///
    /// # Errors
    /// If a bucket cannot be reached. A file that cannot be read is damaged, not an error.
    pub async fn blob_state(
        &self,
        blob: &Digest,
        bytes: u64,
        level: VerifyLevel,
    ) -> Result<BlobState, StoreError> {
        match &self.inner.backend {
            Backend::Folder(folder) => {
                let (folder, blob) = (Arc::clone(folder), *blob);
                blocking(move || Ok(state_of_file(&folder, &blob, level))).await
            }
            Backend::Bucket(_) if level == VerifyLevel::Usual => {
                Ok(match self.inner.backend.size(&blob_name(blob)).await? {
                    None => BlobState::Missing,
                    Some(size) if size == bytes => BlobState::Sound,
                    Some(_) => BlobState::Damaged,
                })
            }
            Backend::Bucket(_) => {
                let Some(file) = open(self, &blob_name(blob)).await? else {
                    return Ok(BlobState::Missing);
                };
                let blob = *blob;
                blocking(move || Ok(compared(Digest::of_reader(file), &blob))).await
            }
        }
    }

    /// The blobs that a result needs and that may not be used, each once.
    ///
    /// # Errors
    /// As of [`Store::blob_state`].
    pub async fn unsound_blobs(
        &self,
        manifest: &Manifest,
        level: VerifyLevel,
    ) -> Result<Vec<(Digest, BlobState)>, StoreError> {
        let mut states = Vec::with_capacity(manifest.ports.len());
        match &self.inner.backend {
            // All of them at once: to hand one over to another thread takes longer than to look.
            Backend::Folder(folder) => {
                let folder = Arc::clone(folder);
                let blobs: BTreeSet<Digest> = manifest.ports.iter().map(|port| port.blob).collect();
                let look = move |blob| (blob, state_of_file(&folder, &blob, level));
                states = blocking(move || Ok(blobs.into_iter().map(look).collect())).await?;
            }
            Backend::Bucket(_) => {
                for port in &manifest.ports {
                    let state = self.blob_state(&port.blob, port.bytes, level).await?;
                    states.push((port.blob, state));
                }
            }
        }
        let mut unsound: Vec<(Digest, BlobState)> = Vec::new();
        for (blob, state) in states {
            if state != BlobState::Sound && unsound.iter().all(|(known, _)| *known != blob) {
                unsound.push((blob, state));
            }
        }
        Ok(unsound)
    }

    /// The parts whose blobs may be used. Those whose blobs are damaged are forgotten.
    ///
    /// # Errors
    /// As of [`Store::blob_state`].
    pub(super) async fn sound_parts(
        &self,
        recipe: &Digest,
        parts: Vec<MemoPart>,
    ) -> Result<RecipeParts, StoreError> {
        let mut sorted = RecipeParts::default();
        for part in parts {
            match self.blob_state(&part.blob, part.bytes, VerifyLevel::Usual).await? {
                BlobState::Sound => sorted.sound.push(part),
                BlobState::Missing => {}
                BlobState::Damaged => {
                    sorted.damaged.push(part.blob);
                    // A store that may only be read keeps it, and it is a miss each time.
                    let _ = self.forget_part(recipe, &part).await;
                }
            }
        }
        Ok(sorted)
    }
}

fn state_of_file(folder: &FolderBackend, blob: &Digest, level: VerifyLevel) -> BlobState {
    let path = folder.path(&blob_name(blob));
    let about = match fs::metadata(&path) {
        Ok(about) if about.is_file() => about,
        Ok(_) => return BlobState::Damaged,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return BlobState::Missing;
        }
        Err(_) => return BlobState::Damaged,
    };
    if level == VerifyLevel::Usual && folder.verified.knows(blob, &about) {
        return BlobState::Sound;
    }
    let state = compared(File::open(&path).and_then(Digest::of_reader), blob);
    if state == BlobState::Sound {
        // As it was before it was hashed: a change since then is another file.
        folder.verified.remember(blob, &about);
    }
    state
}

fn compared(hash: io::Result<Digest>, blob: &Digest) -> BlobState {
    match hash {
        Ok(hash) if hash == *blob => BlobState::Sound,
        Ok(_) | Err(_) => BlobState::Damaged,
    }
}
