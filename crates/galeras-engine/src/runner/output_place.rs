//! The file at the path of an output: none, one that a workflow wrote, one that was changed since,
//! or one of unknown origin. A workflow replaces its own files without asking.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::RunError;
use super::file_digests::FileDigests;
use galeras_base::digest::Digest;
use galeras_sql::session::{read_metadata, read_table_digest};
use galeras_store::{OutputOrigin, Store};
use galeras_workflow::quote;

/// The file at the path of an output.
#[derive(Debug)]
pub(super) enum Occupant {
    /// No file.
    Nothing,
    /// A file that workflows wrote exactly so; several if they wrote the same.
    Written {
        content: Digest,
        /// The workflows that wrote it.
        origins: Vec<OutputOrigin>,
    },
    /// A file that a workflow wrote and that has changed since.
    Changed {
        content: Digest,
        /// The workflow that wrote the previous content.
        by: OutputOrigin,
    },
    /// A file of unknown origin.
    Unknown { content: Digest },
    /// Something else, in words that follow "which".
    Other(String),
}

impl Occupant {
    /// Inspects `path`. A Parquet file unknown to the store may contain its origin.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn of(
        path: &Path,
        store: &Store,
        digests: &Arc<FileDigests>,
    ) -> Result<Self, RunError> {
        let content = match content_of(path, digests).await {
            Ok(Some(content)) => content,
            Ok(None) => return Ok(Self::Nothing),
            Err(why) => return Ok(Self::Other(why)),
        };
        let mut records = store.outputs_of(&content).await?;
        // The same content elsewhere does not make this file the workflow's own.
        let here = place(path);
        if records.iter().any(|record| record.place == here) {
            records.retain(|record| record.place == here);
        }
        if !records.is_empty() {
            let origins = records.into_iter().map(|record| record.origin).collect();
            return Ok(Self::Written { content, origins });
        }
        if let Some((origin, as_written)) = told_by_itself(path.to_path_buf()).await {
            return Ok(match as_written {
                true => Self::Written { content, origins: vec![origin] },
                false => Self::Changed { content, by: origin },
            });
        }
        let before = store.outputs_at(&here).await?.pop();
        Ok(match before {
            Some(record) => Self::Changed { content, by: record.origin },
            None => Self::Unknown { content },
        })
    }

    pub(super) fn content(&self) -> Option<Digest> {
        match self {
            Self::Written { content, .. }
            | Self::Changed { content, .. }
            | Self::Unknown { content } => Some(*content),
            Self::Nothing | Self::Other(_) => None,
        }
    }

    /// True if a workflow wrote this table there and the file is unchanged.
    pub(super) fn has_table(&self, table: &Digest) -> bool {
        match self {
            Self::Written { origins, .. } => origins.iter().any(|origin| origin.table == *table),
            _ => false,
        }
    }

    /// The reason why the workflow of `own` may not replace it, in words that follow the file's
    /// name; `None` if it may.
    pub(super) fn objection(&self, own: &OutputOrigin) -> Option<String> {
        let workflow = |by: &OutputOrigin| {
            format!("the workflow {} ({})", quote(&by.workflow), quote(&by.file))
        };
        match self {
            Self::Nothing => None,
            Self::Written { origins, .. } if origins.iter().any(|by| by.same_workflow(own)) => None,
            Self::Written { origins, .. } => {
                let by = origins.last()?;
                Some(format!("which {} wrote from its step {}", workflow(by), quote(&by.step)))
            }
            Self::Changed { by, .. } if by.same_workflow(own) => {
                Some("which was changed since this workflow wrote it".into())
            }
            Self::Changed { by, .. } => {
                Some(format!("which {} wrote, and which was changed since", workflow(by)))
            }
            Self::Unknown { .. } => Some("which no workflow is known to have written".into()),
            Self::Other(what) => Some(format!("which {what}")),
        }
    }
}

/// The digest of the file at `path`, if there is one.
async fn content_of(path: &Path, digests: &Arc<FileDigests>) -> Result<Option<Digest>, String> {
    match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(format!("cannot be looked at: {error}")),
        Ok(_) => {}
    }
    match fs::metadata(path) {
        Err(_) => return Err("is a link that leads to nothing".into()),
        Ok(about) if about.is_dir() => return Err("is a folder".into()),
        Ok(about) if !about.is_file() => return Err("is not a regular file".into()),
        Ok(_) => {}
    }
    let (path, digests) = (path.to_path_buf(), Arc::clone(digests));
    let hashed = tokio::task::spawn_blocking(move || digests.of(&path)).await;
    let unread = |why: String| format!("cannot be read: {why}");
    hashed.map_err(|e| unread(e.to_string()))?.map(Some).map_err(|e| unread(e.to_string()))
}

/// The origin in a Parquet file; true if the file still has that table.
async fn told_by_itself(path: PathBuf) -> Option<(OutputOrigin, bool)> {
    if path.extension()? != "parquet" {
        return None;
    }
    // A file that makes the reader panic has no origin.
    let told = tokio::task::spawn_blocking(move || {
        let origin = OutputOrigin::from_pairs(&read_metadata(&path).ok()?)?;
        let as_written = read_table_digest(&path).is_ok_and(|table| table == origin.table);
        Some((origin, as_written))
    });
    told.await.ok()?
}

/// The digest of a file's path, with the links among its folders resolved.
pub(super) fn place(path: &Path) -> Digest {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let real = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
    Digest::of(real.unwrap_or(path).as_os_str().as_encoded_bytes())
}
