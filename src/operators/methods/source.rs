//! The files that `methods` reads: a packed corpus or a folder, filtered by glob patterns.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use globset::GlobSet;
use walkdir::WalkDir;

use super::super::patterns::glob_set;
use super::corpus;
use crate::digest::Digest;
use crate::operator::{ArgError, SideFile, StepError};
use crate::small_file;

/// Bytes of source per batch: small enough to spread a small corpus over all cores.
const BATCH_BYTES: usize = 128 * 1024;

/// Where files come from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// The packed standard library.
    Stdlib,
    /// A folder: as written in the workflow, and where it is.
    Folder { name: String, path: PathBuf },
}

/// Files with their filters.
#[derive(Clone, Debug)]
pub(super) struct FileSource {
    pub(super) origin: Origin,
    include: GlobSet,
    exclude: GlobSet,
}

impl FileSource {
    /// Files of `origin` that match one of `include` and none of `exclude`.
    pub(super) fn new(
        origin: Origin,
        include: &[String],
        exclude: &[String],
    ) -> Result<Self, ArgError> {
        Ok(Self {
            origin,
            include: glob_set("include", include)?,
            exclude: glob_set("exclude", exclude)?,
        })
    }

    /// The value of the column `repo`: the corpus' name, or the folder's as written.
    pub(super) fn repo(&self) -> String {
        match &self.origin {
            Origin::Stdlib => "python-stdlib".to_string(),
            Origin::Folder { name, .. } => Path::new(name)
                .components()
                .rev()
                .find_map(|c| match c {
                    Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
                    _ => None,
                })
                .unwrap_or_else(|| "local".to_string()),
        }
    }

    fn keeps(&self, path: &str) -> bool {
        self.include.is_match(path) && !self.exclude.is_match(path)
    }

    /// The files with their contents, in the order of their paths.
    pub(super) fn files(&self) -> Result<Vec<(String, Vec<u8>)>, StepError> {
        match &self.origin {
            Origin::Stdlib => {
                let files = corpus::files()?;
                Ok(files.into_iter().filter(|(path, _)| self.keeps(path)).collect())
            }
            Origin::Folder { path, .. } => self
                .folder_paths(path)?
                .into_iter()
                .map(|(name, path)| Ok((name, read(&path)?)))
                .collect(),
        }
    }

    /// The files below `root`, without links, as paths separated by `/`.
    fn folder_paths(&self, root: &Path) -> Result<Vec<(String, PathBuf)>, StepError> {
        let mut paths = Vec::new();
        for entry in WalkDir::new(root).follow_root_links(true).sort_by_file_name() {
            let entry = entry.map_err(|e| StepError::new(e.to_string()).because(e))?;
            if !entry.file_type().is_file() {
                continue;
            }
            let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
            let parts: Vec<_> =
                relative.components().map(|c| c.as_os_str().to_string_lossy()).collect();
            let name = parts.join("/");
            if self.keeps(&name) {
                paths.push((name, entry.into_path()));
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// The content of all files as one entry of the action key.
    pub(super) fn side_file(&self) -> Result<SideFile, StepError> {
        match &self.origin {
            Origin::Stdlib => {
                Ok(SideFile { name: "corpus python-stdlib".into(), digest: corpus::digest()? })
            }
            Origin::Folder { name, path } => {
                let mut hasher = blake3::Hasher::new();
                for (name, path) in self.folder_paths(path)? {
                    hasher.update(&(name.len() as u64).to_le_bytes());
                    hasher.update(name.as_bytes());
                    hasher.update(blake3::hash(&read(&path)?).as_bytes());
                }
                Ok(SideFile { name: name.clone(), digest: Digest::from(hasher.finalize()) })
            }
        }
    }

    /// The files as a table `repo, path, content`, spread over `partitions`.
    pub(super) fn batches(&self, partitions: usize) -> Result<Vec<Vec<RecordBatch>>, StepError> {
        let repo = self.repo();
        let mut out = vec![Vec::new(); partitions.max(1)];
        let mut next = 0;
        let mut batch = Batch::default();
        for (path, content) in self.files()? {
            batch.repo.append_value(&repo);
            batch.path.append_value(&path);
            batch.bytes += content.len();
            batch.content.append_value(content);
            if batch.bytes >= BATCH_BYTES {
                let slot = next % out.len();
                out[slot].push(std::mem::take(&mut batch).finish()?);
                next += 1;
            }
        }
        let slot = next % out.len();
        out[slot].push(batch.finish()?);
        Ok(out)
    }
}

/// The most bytes of one file: a batch holds it whole, and counts bytes in 31 bits.
const MAX_SOURCE_BYTES: u64 = 1 << 30;

#[derive(Default)]
struct Batch {
    repo: StringBuilder,
    path: StringBuilder,
    content: BinaryBuilder,
    bytes: usize,
}

impl Batch {
    fn finish(mut self) -> Result<RecordBatch, StepError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.repo.finish()),
            Arc::new(self.path.finish()),
            Arc::new(self.content.finish()),
        ];
        Ok(RecordBatch::try_new(schema(), columns)?)
    }
}

/// The columns of the files.
pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("repo", DataType::Utf8, false),
        Field::new("path", DataType::Utf8, false),
        Field::new("content", DataType::Binary, false),
    ]))
}

fn read(path: &Path) -> Result<Vec<u8>, StepError> {
    small_file::read(path, MAX_SOURCE_BYTES)
        .map_err(|e| StepError::new(format!("cannot read {}: {e}", path.display())).because(e))
}
