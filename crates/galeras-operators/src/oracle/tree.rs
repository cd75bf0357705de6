//! The files around a method: those of the bundled corpus, of a folder, or of a commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use walkdir::WalkDir;

use crate::methods::corpus_files;
use crate::repository_access::{check_consent, open};
use galeras_base::digest::Digest;
use galeras_base::small_file;
use galeras_git::{
    Activity, GitError, GitErrorKind, Network, ObjectId, Repository, RepositoryLocation,
    commit_files, fetch_commit, guarded,
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
    /// The corpus, of which a module is run among those of the interpreter.
    Corpus(BTreeMap<String, Vec<u8>>),
    /// A folder, where it is.
    Folder(PathBuf),
    /// Files that are written into the sandbox.
    Files(BTreeMap<String, Vec<u8>>),
}

/// The name of a module, and the folder that it starts at, from the root of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModuleName {
    pub(super) name: String,
    pub(super) top: String,
}

/// The folder in the sandbox's working directory that files are written to.
const INSIDE: &str = "tree";
/// The most bytes of a file that is read.
const MOST_FILE_BYTES: u64 = 16 << 20;
/// Folders that do not belong to the source code of a tree.
const PASSED_OVER: [&str; 3] = [".git", "__pycache__", "site-packages"];

impl Tree {
    /// The corpus in this program.
    pub(super) fn corpus() -> Result<Self, StepError> {
        Ok(Self::Corpus(corpus_files()?.into_iter().collect()))
    }

    /// The root as the programs in the sandbox see it.
    pub(super) fn root(&self) -> String {
        match self {
            Self::Folder(path) => path.to_string_lossy().into_owned(),
            Self::Corpus(_) | Self::Files(_) => INSIDE.to_owned(),
        }
    }

    /// The files to write into the sandbox for the module at a path.
    pub(super) fn files(&self, module: &str) -> Vec<InputFile> {
        let file = |(path, bytes): (&String, &Vec<u8>)| {
            let path = Path::new(INSIDE).join(path);
            InputFile { path, bytes: bytes.clone(), executable: false }
        };
        match self {
            Self::Folder(_) => Vec::new(),
            Self::Corpus(files) => files.get_key_value(module).map(file).into_iter().collect(),
            Self::Files(files) => files.iter().map(file).collect(),
        }
    }

    /// The paths of the files.
    pub(super) fn paths(&self) -> Result<BTreeSet<String>, StepError> {
        let root = match self {
            Self::Corpus(files) | Self::Files(files) => return Ok(files.keys().cloned().collect()),
            Self::Folder(root) => root,
        };
        let mut paths = BTreeSet::new();
        let kept = |entry: &walkdir::DirEntry| {
            let name = entry.file_name().to_str();
            entry.depth() == 0 || !name.is_some_and(|name| PASSED_OVER.contains(&name))
        };
        for entry in WalkDir::new(root).into_iter().filter_entry(kept) {
            let entry = entry.map_err(|e| StepError::new(e.to_string()).because(e))?;
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
            if entry.file_type().is_file() {
                paths.insert(path.to_string_lossy().into_owned());
            }
        }
        Ok(paths)
    }

    /// The content of a file, if there is one that is not large.
    pub(super) fn read(&self, path: &str) -> Option<Vec<u8>> {
        match self {
            Self::Corpus(files) | Self::Files(files) => files.get(path).cloned(),
            Self::Folder(root) => small_file::read(&root.join(path), MOST_FILE_BYTES).ok(),
        }
    }

    /// The digest of a file that may change.
    pub(super) fn digest(&self, path: &str) -> Option<Digest> {
        match self {
            // Its digest is a part of each question.
            Self::Corpus(_) => None,
            Self::Files(files) => files.get(path).map(|bytes| Digest::of(bytes)),
            Self::Folder(root) => {
                small_file::open(&root.join(path)).and_then(Digest::of_reader).ok()
            }
        }
    }

    fn contains(&self, path: &str) -> bool {
        match self {
            Self::Corpus(files) | Self::Files(files) => files.contains_key(path),
            Self::Folder(root) => root.join(path).is_file(),
        }
    }

    /// The module of the file at this path; `None` if the tree has no such module.
    pub(super) fn module(&self, path: &str) -> Option<ModuleName> {
        let is_module = path.ends_with(".py") && self.contains(path);
        is_module.then(|| module_name(path, |folder| self.is_package(folder)))
    }

    /// The names of the modules among these paths, and the folders that the names of packages start at.
    pub(super) fn module_names(&self, paths: &BTreeSet<String>) -> (Vec<String>, BTreeSet<String>) {
        let is_package = |folder: &str| match self {
            Self::Corpus(_) => true,
            _ => paths.contains(&format!("{folder}/__init__.py")),
        };
        let modules = paths.iter().filter(|path| path.ends_with(".py"));
        let (mut names, mut tops) = (BTreeSet::new(), BTreeSet::new());
        for ModuleName { name, top } in modules.map(|path| module_name(path, is_package)) {
            if name.contains('.') {
                tops.insert(top);
            }
            names.insert(name);
        }
        (names.into_iter().collect(), tops)
    }

    fn is_package(&self, folder: &str) -> bool {
        match self {
            // The interpreter has the other modules of a package.
            Self::Corpus(_) => true,
            _ => self.contains(&format!("{folder}/__init__.py")),
        }
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

/// The folders and consents that reading a commit needs.
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
            let files = commit_files(&repository, commit, &all, MOST_COMMIT_BYTES)?.into_iter();
            Ok(Tree::Files(files.map(|(path, bytes)| (path.to_string(), bytes)).collect()))
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
        let corpus = Tree::corpus().unwrap();
        let name = corpus.module("json/decoder.py").unwrap();
        assert_eq!(name, ModuleName { name: "json.decoder".into(), top: String::new() });
        assert!(corpus.module("json/none.py").is_none());
        assert_eq!(corpus.files("json/decoder.py").len(), 1);
        let (names, _) = corpus.module_names(&corpus.paths().unwrap());
        assert!(
            ["json", "json.decoder", "heapq"].iter().all(|name| names.contains(&(*name).into()))
        );
    }
}
