//! The file at the path of an output: none, one that a workflow wrote, one that was changed since,
//! or one of unknown origin. A workflow replaces its own files without asking.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::error::{OVERWRITE_HELP, RunError};
use super::output::{OutputOptions, OutputWriter, origin, shown};
use super::survey::survey;
use crate::locked;
use crate::plan::{Plan, PlannedOutput};
use galeras_base::digest::Digest;
use galeras_sql::session::{read_metadata, read_table_digest};
use galeras_store::{Manifest, OutputOrigin, OutputRecord, Store};
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, Diagnostics, Span, quote};

/// The file at a path, and its origin.
#[derive(Debug)]
pub enum FileOrigin {
    /// Workflows wrote exactly this file.
    Written {
        /// The digest of its bytes.
        content: Digest,
        /// The workflows that wrote it, the latest last.
        origins: Vec<OutputOrigin>,
        /// The store's record of each; empty if only the file has its origin.
        records: Vec<OutputRecord>,
    },
    /// A workflow wrote it, and it has changed since.
    Changed {
        /// The digest of its bytes.
        content: Digest,
        /// The workflow that wrote the previous content.
        origin: OutputOrigin,
    },
    /// Unknown.
    Unknown {
        /// The digest of its bytes.
        content: Digest,
    },
    /// The file is missing.
    Missing,
    /// Not a readable file: a description that follows "which".
    Other(String),
}

/// The origin of the file at `path`, from the store or the file itself.
///
/// # Errors
/// If the store cannot be read.
pub async fn file_origin(path: &Path, store: &Store) -> Result<FileOrigin, RunError> {
    FileOrigin::of(path, store, &Arc::default()).await
}

impl FileOrigin {
    /// Inspects `path`. A Parquet file unknown to the store may contain its origin.
    pub(super) async fn of(
        path: &Path,
        store: &Store,
        digests: &Arc<FileDigests>,
    ) -> Result<Self, RunError> {
        let content = match content_of(path, digests).await {
            Ok(Some(content)) => content,
            Ok(None) => return Ok(Self::Missing),
            Err(why) => return Ok(Self::Other(why)),
        };
        let mut records = store.outputs_of(&content).await?;
        // The same content elsewhere does not make this file the workflow's own.
        let here = place(path);
        if records.iter().any(|record| record.place == here) {
            records.retain(|record| record.place == here);
        }
        if !records.is_empty() {
            let origins = records.iter().map(|record| record.origin.clone()).collect();
            return Ok(Self::Written { content, origins, records });
        }
        if let Some((origin, as_written)) = told_by_itself(path.to_path_buf()).await {
            return Ok(match as_written {
                true => Self::Written { content, origins: vec![origin], records },
                false => Self::Changed { content, origin },
            });
        }
        let before = store.outputs_at(&here).await?.pop();
        Ok(match before {
            Some(record) => Self::Changed { content, origin: record.origin },
            None => Self::Unknown { content },
        })
    }

    pub(super) fn content(&self) -> Option<Digest> {
        match self {
            Self::Written { content, .. }
            | Self::Changed { content, .. }
            | Self::Unknown { content } => Some(*content),
            Self::Missing | Self::Other(_) => None,
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
            Self::Missing => None,
            Self::Written { origins, .. } if origins.iter().any(|by| by.same_workflow(own)) => None,
            Self::Written { origins, .. } => {
                let by = origins.last()?;
                Some(format!("which {} wrote from its step {}", workflow(by), quote(&by.step)))
            }
            Self::Changed { origin: by, .. } if by.same_workflow(own) => {
                Some("which was changed since this workflow wrote it".into())
            }
            Self::Changed { origin: by, .. } => {
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

/// The outputs of these steps that may not be written, each at its place in the workflow. A file
/// that would not change is not a conflict, if the stored results show that.
///
/// # Errors
/// If the store, or a stored table, cannot be read.
pub async fn output_conflicts(
    plan: &Plan,
    store: &Store,
    wanted: &[usize],
    options: &OutputOptions,
) -> Result<Diagnostics, RunError> {
    let mut diagnostics = Diagnostics::default();
    if options.overwrite {
        return Ok(diagnostics);
    }
    let mut runs = vec![false; plan.steps.len()];
    wanted.iter().for_each(|at| runs[*at] = true);
    let mut conflicts = Vec::new();
    for output in &plan.outputs {
        if !output.input.tables.iter().all(|table| runs[table.step]) {
            continue;
        }
        let path = options.folder.join(&output.path);
        let occupant = FileOrigin::of(&path, store, &options.digests).await?;
        // The workflow is the same for any table.
        let own = origin(plan, output, Digest::of(b""));
        if let Some(objection) = occupant.objection(&own) {
            conflicts.push((output, occupant, format!("{}, {objection}", shown(&path))));
        }
    }
    if conflicts.is_empty() {
        return Ok(diagnostics);
    }
    let states = survey(plan, store, None).await?;
    let done: Vec<Option<Arc<Manifest>>> = states.into_iter().map(|state| state.manifest).collect();
    let writer = OutputWriter { plan, store, options, run: "", done: &done };
    for (output, occupant, what) in conflicts {
        let known = output.input.tables.iter().all(|table| done[table.step].is_some());
        // If a table does not fit the format, the run reports it.
        if known && writer.is_right(output, &occupant).await.unwrap_or(false) {
            continue;
        }
        diagnostics.push(diagnostic(output, &what));
    }
    Ok(diagnostics)
}

fn diagnostic(output: &PlannedOutput, what: &str) -> Diagnostic {
    let message = format!("the output {} would replace {what}", quote(&output.name));
    let span = Span::new(output.place.start, output.place.end());
    Diagnostic::error(Code::OverwrittenFile, message, &output.place.source, span)
        .with_help(OVERWRITE_HELP)
}

/// The metadata that changes with a file: device, inode and size, and the times of the last changes
/// of its content and of its metadata.
type FileState = (u64, u64, u64, (i64, i64), (i64, i64));

/// Digests of files, with the state at that time.
#[derive(Debug, Default)]
pub struct FileDigests(Mutex<HashMap<PathBuf, (FileState, Digest)>>);

impl FileDigests {
    /// The digest of the content of a regular file; links are followed.
    pub(super) fn of(&self, path: &Path) -> io::Result<Digest> {
        let about = fs::metadata(path)?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let modified = (about.mtime(), about.mtime_nsec());
        let changed = (about.ctime(), about.ctime_nsec());
        let state = (about.dev(), about.ino(), about.len(), modified, changed);
        let known = || locked(&self.0);
        if let Some((read, digest)) = known().get(path)
            && *read == state
        {
            return Ok(*digest);
        }
        let digest = Digest::of_reader(File::open(path)?)?;
        known().insert(path.to_path_buf(), (state, digest));
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_replaced_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let digests = FileDigests::default();
        assert_eq!(digests.of(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        for text in ["one", "two", "one"] {
            // A different inode, even if the clock of the disk is coarse.
            fs::write(&other, text).unwrap();
            fs::rename(&other, &path).unwrap();
            assert_eq!(digests.of(&path).unwrap(), Digest::of(text.as_bytes()));
            assert_eq!(digests.of(&path).unwrap(), Digest::of(text.as_bytes()));
        }
        assert!(digests.of(folder.path()).is_err());
    }
}
