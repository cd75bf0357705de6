//! The files that a commit changed, against its first parent.
//!
//! A file is identified by its path alone here; `renames` finds those that were renamed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::Kind;
use globset::GlobSet;

use super::error::{GitError, Result};
use super::limits::{PATH_BYTES, TreeLimits};
use super::repository::Objects;
use super::tree::{Entry, EntryKind, TreeReader, order, path_text};

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct File {
    /// Its path from the root of the repository, as text (see [`path_text`]).
    pub(super) path: Arc<str>,
    /// Its content.
    pub(super) blob: ObjectId,
}

/// Changes of a commit to the files of interest, each list in the order of the paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeChanges {
    /// Paths that exist after it only.
    pub(super) added: Vec<File>,
    /// Paths that existed before it only, where an added file may come from: those that may
    /// hold Python. Their contents are compared.
    pub(super) deleted: Vec<File>,
    /// The other ones. They count only if their content is the same.
    pub(super) deleted_others: Vec<File>,
    /// Paths with another content: before and after.
    pub(super) modified: Vec<(ObjectId, File)>,
    /// How many files are added or modified that `include` does not match, by suffix.
    pub(super) passed_over: BTreeMap<Box<str>, u64>,
}

/// Suffixes that are counted; what a commit has beyond them is not.
const MAX_SUFFIXES: usize = 64;

/// `.py` of `a/b.py`; empty for a name without one.
fn suffix(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rfind('.').filter(|at| *at > 0).map_or("", |at| &name[at..])
}

impl TreeChanges {
    /// Nothing to be mined.
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty()
    }

    /// The contents that are needed to mine it.
    pub(super) fn blobs(&self) -> impl Iterator<Item = ObjectId> {
        let sources = if self.added.is_empty() { &[][..] } else { &self.deleted };
        let whole = self.added.iter().chain(sources).map(|file| file.blob);
        whole.chain(self.modified.iter().flat_map(|(before, after)| [*before, after.blob]))
    }

    /// How many files of interest differ.
    fn files(&self) -> usize {
        let deleted = self.deleted.len() + self.deleted_others.len();
        self.added.len() + self.modified.len() + deleted
    }

    /// About how much memory it takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let deleted = self.deleted.iter().chain(&self.deleted_others);
        let modified = self.modified.iter().map(|(_, after)| after);
        let files = self.added.iter().chain(deleted).chain(modified);
        files.map(|file| file.path.len() as u64 + 80).sum()
    }

    /// A file that is added, or modified from `old`.
    fn change(&mut self, path: String, old: Option<ObjectId>, blob: ObjectId, include: &GlobSet) {
        if !include.is_match(&path) {
            let suffix = suffix(&path);
            if let Some(files) = self.passed_over.get_mut(suffix) {
                *files += 1;
            } else if self.passed_over.len() < MAX_SUFFIXES {
                self.passed_over.insert(suffix.into(), 1);
            }
            return;
        }
        let file = File { path: path.into(), blob };
        match old {
            Some(old) => self.modified.push((old, file)),
            None => self.added.push(file),
        }
    }

    fn delete(&mut self, path: String, blob: ObjectId, include: &GlobSet) {
        let name = path.rsplit('/').next().unwrap_or(&path);
        let script = !name.contains('.');
        let python = script || name.ends_with(".py") || include.is_match(&path);
        let list = if python { &mut self.deleted } else { &mut self.deleted_others };
        list.push(File { path: path.into(), blob });
    }
}

/// The files that `include` matches and that differ between the trees of two commits. Links,
/// submodules and folders are not files. Folders that are the same are not looked into. The error
/// is `Damaged` if a tree is missing or damaged, `Malformed` if one is not what git writes, `Limit`
/// if there is more than `limits` allow. No more than these limits is in memory.
pub(super) fn tree_changes(
    objects: &mut Objects,
    before: Option<ObjectId>,
    after: ObjectId,
    include: &GlobSet,
    limits: &TreeLimits,
) -> Result<TreeChanges> {
    let mut changes = TreeChanges::default();
    if before == Some(after) {
        return Ok(changes);
    }
    let mut walk =
        Walk { objects, limits, entries: 0, bytes: 0, path: Vec::new(), pairs: Vec::new() };
    walk.enter(before, Some(after))?;
    while let Some((old, new)) = &walk.step()? {
        let kind = |entry: &Option<Entry>| entry.as_ref().map(|entry| entry.kind);
        let id = |entry: &Option<Entry>| entry.as_ref().map(|entry| entry.id);
        if id(old) == id(new) && kind(old) == kind(new) {
            continue;
        }
        let tree =
            |entry: &Option<Entry>| id(entry).filter(|_| kind(entry) == Some(EntryKind::Tree));
        let file =
            |entry: &Option<Entry>| id(entry).filter(|_| kind(entry) == Some(EntryKind::File));
        match (file(old), file(new)) {
            (old, Some(new)) => changes.change(walk.path(), old, new, include),
            (Some(old), None) => changes.delete(walk.path(), old, include),
            // Both are folders, or there is one only.
            (None, None) if tree(old).is_some() || tree(new).is_some() => {
                walk.enter(tree(old), tree(new))?;
            }
            (None, None) => {}
        }
        if changes.files() > limits.files {
            let most = limits.files;
            return Err(GitError::limit(format!("the commit changes more than {most} files")));
        }
    }
    if changes.added.is_empty() {
        // Nothing can come from them.
        (changes.deleted, changes.deleted_others) = (Vec::new(), Vec::new());
    }
    changes.added.sort_unstable();
    changes.deleted.sort_unstable();
    changes.deleted_others.sort_unstable();
    changes.modified.sort_unstable_by(|a, b| a.1.cmp(&b.1));
    Ok(changes)
}

/// Goes through two trees side by side, into the depth.
struct Walk<'a> {
    objects: &'a mut Objects,
    limits: &'a TreeLimits,
    entries: u64,
    bytes: u64,
    /// Of the entry that was last read.
    path: Vec<u8>,
    /// The folders on the way to it.
    pairs: Vec<FolderPair>,
}

/// A folder before and after.
struct FolderPair {
    old: Option<TreeReader>,
    new: Option<TreeReader>,
    /// How much of the path is the folder's.
    path: usize,
}

/// Entries of one name and of the same sort: folders, or anything else.
type EntryPair = (Option<Entry>, Option<Entry>);

impl Walk<'_> {
    /// Reads the folders, whose entries come next.
    fn enter(&mut self, old: Option<ObjectId>, new: Option<ObjectId>) -> Result<()> {
        let mut open = |tree: Option<ObjectId>| -> Result<Option<TreeReader>> {
            let Some(tree) = tree else { return Ok(None) };
            let bytes = self.objects.bytes(tree, Kind::Tree)?.to_vec();
            self.bytes += bytes.len() as u64;
            if self.bytes > self.limits.bytes {
                let most = self.limits.bytes >> 20;
                let message =
                    format!("comparing it with its parent takes more than {most} MB of trees");
                return Err(GitError::limit(message));
            }
            TreeReader::new(tree, bytes).map(Some)
        };
        let (old, new) = (open(old)?, open(new)?);
        self.pairs.push(FolderPair { old, new, path: self.path.len() });
        Ok(())
    }

    /// The next entries, whose path is `path` then.
    fn step(&mut self) -> Result<Option<EntryPair>> {
        while let Some(pair) = self.pairs.last_mut() {
            self.path.truncate(pair.path);
            let side = pair.earlier();
            let named = match side {
                Ordering::Greater => &pair.new,
                _ => &pair.old,
            };
            let named = named.as_ref().and_then(|folder| Some(folder.name(folder.head.as_ref()?)));
            let Some(name) = named else {
                self.pairs.pop();
                continue;
            };
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            if self.path.len() > PATH_BYTES {
                let message = format!("it has a path of more than {PATH_BYTES} bytes");
                return Err(GitError::limit(message));
            }
            let old = pair.old.as_mut().filter(|_| side.is_le());
            let old = old.map_or(Ok(None), TreeReader::next)?;
            let new = pair.new.as_mut().filter(|_| side.is_ge());
            let new = new.map_or(Ok(None), TreeReader::next)?;
            self.entries += u64::from(old.is_some()) + u64::from(new.is_some());
            if self.entries > self.limits.entries {
                let most = self.limits.entries;
                return Err(GitError::limit(format!(
                    "comparing it with its parent takes more than {most} entries of trees"
                )));
            }
            return Ok(Some((old, new)));
        }
        Ok(None)
    }

    fn path(&self) -> String {
        path_text(self.path.as_bstr())
    }
}

impl FolderPair {
    /// Compares the next entries: the older folder, both, or the newer one has the next name.
    fn earlier(&self) -> Ordering {
        let [one, other] = [&self.old, &self.new].map(|folder| folder.as_ref()?.head.as_ref());
        match (&self.old, one, &self.new, other) {
            (Some(a), Some(one), Some(b), Some(other)) => order(a, one, b, other),
            (_, _, _, Some(_)) => Ordering::Greater,
            _ => Ordering::Less,
        }
    }
}
