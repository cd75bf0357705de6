//! The files that a commit changed, against its first parent.
//!
//! Files are told apart by their path alone here; which of them were renamed is found in
//! `renames`.

use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use gix::objs::{Kind, TreeRefIter};
use gix_diff::tree::recorder::Change;
use gix_diff::tree::{Recorder, State};
use globset::GlobSet;

use super::error::GitError;
use super::repository::Objects;

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct File {
    /// Its path from the root of the repository, as text (see [`path_text`]).
    pub(super) path: Arc<str>,
    /// Its content.
    pub(super) blob: ObjectId,
}

/// What a commit did to the files of interest, each list in the order of the paths.
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
}

/// Compares trees, keeping its buffers from one comparison to the next.
#[derive(Default)]
pub(super) struct TreeDiff {
    state: State,
}

impl TreeDiff {
    /// The files that `include` matches and that differ between the trees. Links, submodules
    /// and folders are not files.
    pub(super) fn changes(
        &mut self,
        objects: &mut Objects,
        before: Option<ObjectId>,
        after: ObjectId,
        include: &GlobSet,
    ) -> Result<TreeChanges, GitError> {
        let mut changes = TreeChanges::default();
        if before == Some(after) {
            return Ok(changes);
        }
        let old = match before {
            Some(tree) => objects.bytes(tree, Kind::Tree)?.to_vec(),
            None => Vec::new(),
        };
        let new = objects.bytes(after, Kind::Tree)?.to_vec();
        // A recorder keeps the path it ended at, so each comparison needs its own.
        let mut recorder = Recorder::default();
        gix_diff::tree(
            TreeRefIter::from_bytes(&old, after.kind()),
            TreeRefIter::from_bytes(&new, after.kind()),
            &mut self.state,
            &objects.handle,
            &mut recorder,
        )
        .map_err(|error| GitError::damaged(&format!("tree {after}: {error}")))?;
        for change in recorder.records {
            match change {
                Change::Addition { entry_mode, oid, path, .. } if entry_mode.is_blob() => {
                    changes.add(path.as_bstr(), oid, include);
                }
                Change::Deletion { entry_mode, oid, path, .. } if entry_mode.is_blob() => {
                    changes.delete(path.as_bstr(), oid, include);
                }
                Change::Modification {
                    previous_entry_mode,
                    previous_oid,
                    entry_mode,
                    oid,
                    path,
                } => match (previous_entry_mode.is_blob(), entry_mode.is_blob()) {
                    (true, true) if previous_oid != oid => {
                        let path = path_text(path.as_bstr());
                        if include.is_match(&path) {
                            let after = File { path: path.into(), blob: oid };
                            changes.modified.push((previous_oid, after));
                        }
                    }
                    (false, true) => changes.add(path.as_bstr(), oid, include),
                    (true, false) => changes.delete(path.as_bstr(), previous_oid, include),
                    _ => {}
                },
                Change::Addition { .. } | Change::Deletion { .. } => {}
            }
        }
        changes.added.sort_unstable();
        changes.deleted.sort_unstable();
        changes.deleted_others.sort_unstable();
        changes.modified.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        match changes.path_twice() {
            Some(path) => Err(GitError::damaged(&format!("tree {after} lists {path} twice"))),
            None => Ok(changes),
        }
    }
}

impl TreeChanges {
    fn add(&mut self, path: &BStr, blob: ObjectId, include: &GlobSet) {
        let path = path_text(path);
        if include.is_match(&path) {
            self.added.push(File { path: path.into(), blob });
        }
    }

    /// A path that was changed in two ways, which no sound tree does.
    fn path_twice(&self) -> Option<&str> {
        let after = self.modified.iter().map(|(_, after)| after);
        let mut paths: Vec<&str> = self.added.iter().chain(after).map(|f| &*f.path).collect();
        paths.sort_unstable();
        paths.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    fn delete(&mut self, path: &BStr, blob: ObjectId, include: &GlobSet) {
        let text = path_text(path);
        let name = text.rsplit('/').next().unwrap_or(&text);
        let script = !name.contains('.');
        let python = script || name.ends_with(".py") || include.is_match(&text);
        let list = if python { &mut self.deleted } else { &mut self.deleted_others };
        list.push(File { path: text.into(), blob });
    }
}

/// A path as text. Bytes that are not UTF-8 are written `\xNN`, and backslashes beside them
/// twice. A path that looks as if it was written like this is, too, so that different paths
/// stay different.
pub(super) fn path_text(path: &BStr) -> String {
    if let Ok(text) = path.to_str()
        && !text.contains(r"\\")
        && !text.contains(r"\x")
    {
        return text.to_string();
    }
    let mut text = String::with_capacity(path.len() + 8);
    for chunk in path.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_utf8_stay_different() {
        assert_eq!(path_text("a b/é.py".into()), "a b/é.py");
        assert_eq!(path_text(b"a\\b/\xE9.py".as_bstr()), "a\\\\b/\\xE9.py");
        assert_ne!(path_text(b"\xE9.py".as_bstr()), path_text("\\xE9.py".into()));
        assert_ne!(path_text(b"\xE9.py".as_bstr()), path_text(b"\xE8.py".as_bstr()));
    }
}
