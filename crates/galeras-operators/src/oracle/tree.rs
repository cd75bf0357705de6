//! The files around a method: those of the bundled corpus, of a folder, or of a commit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use walkdir::WalkDir;

use crate::methods::corpus_files;
use crate::repository_access::{check_consent, open};
use galeras_base::digest::Digest;
use galeras_git::{
    Activity, CommitFile, GitError, GitErrorKind, Network, ObjectId, Repository,
    RepositoryLocation, commit_files, fetch_commit, guarded,
};
use galeras_operator::{Consent, StepError, redirect_check};
use galeras_sandbox::InputFile;

/// The most bytes of a commit's files.
const MOST_COMMIT_BYTES: u64 = 128 << 20;

/// Which files a row's path belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TreeKey {
    /// The corpus in this program.
    Corpus,
    /// The folder of the argument `root`.
    Root,
    /// A commit of a repository.
    Commit { url: String, commit: String },
}

impl TreeKey {
    /// The part of it that identifies the files, for those that never change.
    pub(super) fn identity(&self) -> [&str; 2] {
        match self {
            Self::Corpus => ["corpus", "python-stdlib"],
            Self::Root => ["root", ""],
            Self::Commit { commit, .. } => ["commit", commit],
        }
    }
}

/// The files.
pub(super) enum Tree {
    /// One module, whose neighbours are those of the interpreter.
    Module { path: String, content: Vec<u8> },
    /// A folder, where it is.
    Folder(PathBuf),
    /// Files that are written into the sandbox.
    Files(Vec<CommitFile>),
}

/// The name of a module, and the folder that it starts at, from the root of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModuleName {
    pub(super) name: String,
    pub(super) top: String,
}

/// The folder in the sandbox's working directory that files are written to.
const INSIDE: &str = "tree";

impl Tree {
    /// The root as the programs in the sandbox see it.
    pub(super) fn root(&self) -> String {
        match self {
            Self::Folder(path) => path.to_string_lossy().into_owned(),
            Self::Module { .. } | Self::Files(_) => INSIDE.to_owned(),
        }
    }

    /// The files to write into the sandbox.
    pub(super) fn files(&self) -> Vec<InputFile> {
        let file = |path: &str, bytes: &[u8]| {
            let path = Path::new(INSIDE).join(path);
            InputFile { path, bytes: bytes.to_vec(), executable: false }
        };
        match self {
            Self::Folder(_) => Vec::new(),
            Self::Module { path, content } => vec![file(path, content)],
            Self::Files(files) => files.iter().map(|(path, bytes)| file(path, bytes)).collect(),
        }
    }

    fn contains(&self, path: &str) -> bool {
        match self {
            Self::Folder(root) => root.join(path).is_file(),
            Self::Module { path: only, .. } => only == path,
            Self::Files(files) => files.iter().any(|(name, _)| &**name == path),
        }
    }

    /// The module of the file at this path; `None` if the tree has no such module.
    pub(super) fn module(&self, path: &str) -> Option<ModuleName> {
        if !path.ends_with(".py") || !self.contains(path) {
            return None;
        }
        // The interpreter has the other modules of a package of the corpus.
        let in_package = |folder: &str| match self {
            Self::Module { .. } => true,
            _ => self.contains(&format!("{folder}/__init__.py")),
        };
        Some(module_name(path, in_package))
    }

    /// The paths that match the patterns, in order.
    pub(super) fn matching(&self, patterns: &GlobSet) -> Result<Vec<String>, StepError> {
        let mut found = BTreeSet::new();
        match self {
            Self::Module { .. } => {}
            Self::Files(files) => {
                let paths = files.iter().map(|(path, _)| path.to_string());
                found.extend(paths.filter(|path| patterns.is_match(path)));
            }
            Self::Folder(root) => {
                let entries = WalkDir::new(root).into_iter();
                for entry in entries.filter_entry(|entry| entry.file_name() != ".git") {
                    let entry = entry.map_err(|e| StepError::new(e.to_string()).because(e))?;
                    let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
                    if entry.file_type().is_file() && patterns.is_match(path) {
                        found.insert(path.to_string_lossy().into_owned());
                    }
                }
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// The name of the module at a path below folders of which some are packages.
fn module_name(path: &str, is_package: impl Fn(&str) -> bool) -> ModuleName {
    let (mut top, stem) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = stem.strip_suffix(".py").unwrap_or(stem);
    let mut parts = Vec::new();
    if stem != "__init__" {
        parts.push(stem);
    }
    while !top.is_empty() && is_package(top) {
        let (above, folder) = top.rsplit_once('/').unwrap_or(("", top));
        parts.push(folder);
        top = above;
    }
    if parts.is_empty() {
        parts.push(stem);
    }
    parts.reverse();
    ModuleName { name: parts.join("."), top: top.to_owned() }
}

/// The paths of a glob pattern: `*` ends at a `/`, as in a shell.
pub(super) fn script_patterns(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build()?);
    }
    set.build()
}

/// The file of the corpus at this path.
pub(super) fn corpus_module(path: &str) -> Result<Option<Tree>, StepError> {
    let found = corpus_files()?.into_iter().find(|(name, _)| name == path);
    Ok(found.map(|(path, content)| Tree::Module { path, content }))
}

/// What reading a commit needs besides its name.
pub(super) struct CommitAccess {
    pub(super) base: PathBuf,
    pub(super) downloads: PathBuf,
    pub(super) consent: Arc<dyn Consent>,
    pub(super) stop: Arc<AtomicBool>,
}

impl CommitAccess {
    /// All files of a commit, from the repository in a folder, or fetched to where `mine` does.
    pub(super) fn tree(&self, url: &str, commit: &str) -> Result<Tree, GitError> {
        let other = |message: String| GitError::new(GitErrorKind::Other, message);
        let commit = ObjectId::from_hex(commit.as_bytes())
            .map_err(|_| other(format!("`{commit}` in commit_id is not a commit id")))?;
        let location = RepositoryLocation::parse(url, &self.base)?;
        check_consent(&location, self.consent.as_ref())?;
        let all = script_patterns(&["**".to_owned()]).map_err(|error| other(error.to_string()))?;
        guarded(|| {
            let repository = match &location {
                RepositoryLocation::Folder(folder) => open(folder, self.consent.as_ref())?,
                RepositoryLocation::Remote(url) => {
                    let name = Digest::of(url.as_bytes()).to_string();
                    let folder = self.downloads.join("git").join(name);
                    let redirects = redirect_check(Arc::clone(&self.consent));
                    let network =
                        Network::new(Arc::clone(&self.stop), Arc::new(|_: Activity| {}), redirects);
                    fetch_commit(url, &folder, commit, &all, &network)?;
                    Repository::open(&folder)?
                }
            };
            Ok(Tree::Files(commit_files(&repository, commit, &all, MOST_COMMIT_BYTES)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_the_names_that_imports_use() {
        let packages = ["src/pkg", "src/pkg/sub"];
        for (path, name, top) in [
            ("a.py", "a", ""),
            ("src/a.py", "a", "src"),
            ("src/pkg/a.py", "pkg.a", "src"),
            ("src/pkg/sub/a.py", "pkg.sub.a", "src"),
            ("src/pkg/__init__.py", "pkg", "src"),
            ("other/sub/a.py", "a", "other/sub"),
            ("__init__.py", "__init__", ""),
        ] {
            let found = module_name(path, |folder| packages.contains(&folder));
            assert_eq!(found, ModuleName { name: name.into(), top: top.into() }, "{path}");
        }
    }

    #[test]
    fn modules_of_the_corpus_are_in_the_packages_of_the_interpreter() {
        let tree = corpus_module("json/decoder.py").unwrap().unwrap();
        let name = tree.module("json/decoder.py").unwrap();
        assert_eq!(name, ModuleName { name: "json.decoder".into(), top: String::new() });
        assert!(tree.module("json/encoder.py").is_none());
        assert!(corpus_module("json/none.py").unwrap().is_none());
    }
}
