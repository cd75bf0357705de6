//! The files that `methods` reads: a packed corpus or a folder, filtered by glob patterns.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use globset::GlobSet;
use walkdir::WalkDir;

use super::super::patterns::{glob_set, listed, other_languages, suffix_of, suffixes};
use galeras_base::digest::Digest;
use galeras_base::small_file::{self, bytes_text};
use galeras_operator::{ArgError, SideFile, StepError};
use galeras_workflow::quote;

/// Bytes of source per batch: small enough to spread a small corpus over all cores.
const BATCH_BYTES: usize = 128 * 1024;

#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// The packed standard library.
    Stdlib,
    /// A folder: as written in the workflow, and where it is.
    Folder { name: String, path: PathBuf },
}

#[derive(Clone, Debug)]
pub(super) struct FileSource {
    pub(super) origin: Origin,
    include: GlobSet,
    exclude: GlobSet,
    /// The patterns of `include` as written.
    patterns: String,
}

impl FileSource {
    /// Files of `origin` that match one of `include` and none of `exclude`.
    pub(super) fn new(
        origin: Origin,
        include: &[String],
        exclude: &[String],
    ) -> Result<Self, Vec<ArgError>> {
        let (included, excluded) = (glob_set("include", include), glob_set("exclude", exclude));
        let mut errors = other_languages("include", include, "methods");
        match (included, excluded) {
            (Ok(include_set), Ok(exclude)) if errors.is_empty() => {
                let patterns = listed(include);
                Ok(Self { origin, include: include_set, exclude, patterns })
            }
            (included, excluded) => {
                errors.extend(included.err());
                errors.extend(excluded.err());
                Err(errors)
            }
        }
    }

    /// The value of the column `repo`: the name of the corpus, or the folder as written.
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

    /// The warning that no files matched, for a source of which no file is kept.
    pub(super) fn nothing_matched(&self) -> Result<String, StepError> {
        let (place, paths): (String, Vec<String>) = match &self.origin {
            Origin::Stdlib => {
                let files = corpus_files()?.into_iter();
                ("the corpus python-stdlib".to_string(), files.map(|(path, _)| path).collect())
            }
            Origin::Folder { name, path } => {
                let files = self.paths_below(path)?.into_iter();
                (format!("the folder {}", quote(name)), files.map(|(path, _)| path).collect())
            }
        };
        if paths.is_empty() {
            return Ok(format!("there are no methods: {place} has no files"));
        }
        let included = paths.iter().filter(|path| self.include.is_match(path)).count();
        if included > 0 {
            let files = if included == 1 { "file" } else { "files" };
            return Ok(format!(
                "there are no methods: {place} has {included} {files} that `include` ({}) matches, \
                 and `exclude` leaves out all of them",
                self.patterns
            ));
        }
        let mut there: BTreeMap<Box<str>, u64> = BTreeMap::new();
        paths.iter().for_each(|path| *there.entry(suffix_of(path).into()).or_default() += 1);
        Ok(format!(
            "there are no methods: `include` ({}) matches none of the files of {place}, which has {}",
            self.patterns,
            suffixes(&there)
        ))
    }

    /// The files with their contents, in the order of their paths. Files of a folder are read
    /// lazily.
    pub(super) fn files(&self) -> Result<Vec<(String, Content)>, StepError> {
        match &self.origin {
            Origin::Stdlib => {
                let files = corpus_files()?.into_iter().filter(|(path, _)| self.keeps(path));
                Ok(files.map(|(path, content)| (path, Content::Bytes(content))).collect())
            }
            Origin::Folder { path, .. } => {
                let files = self.sized_paths(path)?.into_iter();
                Ok(files.map(|(name, path)| (name, Content::File(path))).collect())
            }
        }
    }

    /// The kept files below `root`, if they fit into memory.
    fn sized_paths(&self, root: &Path) -> Result<Vec<(String, PathBuf)>, StepError> {
        let files = self.folder_paths(root)?;
        let sizes = files.iter().filter_map(|(_, path)| path.metadata().ok());
        let all = sizes.fold(0_u64, |all, about| all.saturating_add(about.len()));
        if all > MAX_SOURCES_BYTES { Err(self.too_large(&bytes_text(all))) } else { Ok(files) }
    }

    fn too_large(&self, size: &str) -> StepError {
        let most = bytes_text(MAX_SOURCES_BYTES);
        let message = format!("the files of `{}` have {size}, and {most} are read", self.repo());
        StepError::new(message)
            .help("`include` and `exclude` select the files to read; use more steps")
    }

    /// The files of this machine that are read.
    pub(super) fn local_files(&self) -> Result<Vec<PathBuf>, StepError> {
        let Origin::Folder { path, .. } = &self.origin else { return Ok(Vec::new()) };
        Ok(self.folder_paths(path)?.into_iter().map(|(_, path)| path).collect())
    }

    fn folder_paths(&self, root: &Path) -> Result<Vec<(String, PathBuf)>, StepError> {
        let mut paths = self.paths_below(root)?;
        paths.retain(|(name, _)| self.keeps(name));
        Ok(paths)
    }

    /// The files below `root`, without links, with `/` in their paths.
    fn paths_below(&self, root: &Path) -> Result<Vec<(String, PathBuf)>, StepError> {
        let mut paths = Vec::new();
        for entry in WalkDir::new(root).follow_root_links(true).sort_by_file_name() {
            let entry = entry.map_err(|e| StepError::new(e.to_string()).because(e))?;
            if !entry.file_type().is_file() {
                continue;
            }
            let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
            let parts: Vec<_> =
                relative.components().map(|c| c.as_os_str().to_string_lossy()).collect();
            paths.push((parts.join("/"), entry.into_path()));
        }
        paths.sort();
        Ok(paths)
    }

    /// The content of all files as one entry of the action key.
    pub(super) fn side_file(&self) -> Result<SideFile, StepError> {
        match &self.origin {
            Origin::Stdlib => {
                Ok(SideFile { name: "corpus python-stdlib".into(), digest: corpus_digest()? })
            }
            Origin::Folder { name, path } => {
                let mut hasher = blake3::Hasher::new();
                for (name, path) in self.sized_paths(path)? {
                    hasher.update(&(name.len() as u64).to_le_bytes());
                    hasher.update(name.as_bytes());
                    hasher.update(blake3::hash(&read(&path)?).as_bytes());
                }
                Ok(SideFile { name: name.clone(), digest: Digest::from(hasher.finalize()) })
            }
        }
    }

    /// Files as a table `repo, path, content`, spread over `partitions`.
    pub(super) fn batches(
        &self,
        files: Vec<(String, Content)>,
        partitions: usize,
    ) -> Result<Vec<Vec<RecordBatch>>, StepError> {
        let repo = self.repo();
        let mut out = vec![Vec::new(); partitions.max(1)];
        let mut next = 0;
        let mut batch = Batch::default();
        let mut all = 0_u64;
        for (path, content) in files {
            let content = match content {
                Content::Bytes(content) => content,
                Content::File(path) => read(&path)?,
            };
            all += content.len() as u64;
            if all > MAX_SOURCES_BYTES {
                return Err(self.too_large("more"));
            }
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

#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// The most bytes of all files of a step, since they are in memory.
const MAX_SOURCES_BYTES: u64 = 2 << 30;

/// The most bytes of one file: a batch contains it whole, with 31-bit offsets.
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

const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python-stdlib.zst"));
const BYTES: &str = env!("GALERAS_STDLIB_BYTES");
const DIGEST: &str = env!("GALERAS_STDLIB_DIGEST");

pub(crate) fn corpus_digest() -> Result<Digest, StepError> {
    DIGEST.parse().map_err(|_| StepError::new("the packed corpus has no digest"))
}

/// The corpus that the binary carries: CPython's standard library, packed by `build.rs`. Its files
/// are in the order of their paths.
pub(crate) fn corpus_files() -> Result<Vec<(String, Vec<u8>)>, StepError> {
    let damaged = || StepError::new("the packed corpus is damaged");
    let bytes = BYTES.parse().map_err(|_| damaged())?;
    let packed = zstd::bulk::decompress(PACKED, bytes)?;
    let mut rest = packed.as_slice();
    let mut next = || -> Option<&[u8]> {
        let (length, tail) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (part, tail) = tail.split_at_checked(length)?;
        rest = tail;
        Some(part)
    };
    let mut files = Vec::new();
    while let Some(path) = next() {
        let content = next().ok_or_else(damaged)?;
        files.push((String::from_utf8_lossy(path).into_owned(), content.to_vec()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_would_fill_the_memory_are_refused_before_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.py", "b.py", "c.py"] {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_len(900 << 20).unwrap();
        }
        let source = |exclude: &str| {
            let origin = Origin::Folder { name: "src".into(), path: folder.path().into() };
            FileSource::new(origin, &["*.py".into()], &[exclude.into()]).unwrap()
        };
        let error = source("none").side_file().unwrap_err().to_string();
        assert!(error.contains("`src` have 2700 MiB, and 2048 MiB are read"), "{error}");
        assert!(source("none").files().is_err());
        assert_eq!(source("c.py").files().unwrap().len(), 2);
    }

    #[test]
    fn the_corpus_is_complete_and_sorted() {
        let files = corpus_files().unwrap();
        assert_eq!(files.len(), 718);
        assert!(files.is_sorted_by(|a, b| a.0 < b.0));
        assert!(files.iter().any(|(path, _)| path == "json/decoder.py"));
    }
}
