//! The commits of a time window.
//!
//! All commits reachable from the head are looked at, because committer dates need not grow along
//! the history: a walk that stops at the first commit before the window, as Git's does, loses what
//! lies behind it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::ObjectId;
use gix::objs::Kind;

use super::commit::CommitText;
use super::error::GitError;
use super::limits::COMMIT_BYTES;
use super::repository::{Objects, Repository};

/// A time window in seconds since 1970 in UTC, from `since` on, before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first second that is in it.
    pub since: i64,
    /// The first second that is not.
    pub until: i64,
}

impl Window {
    fn holds(&self, seconds: i64) -> bool {
        (self.since..self.until).contains(&seconds)
    }
}

/// A commit of the window, and the parent that it is compared to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// Its id.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// The first parent; `None` for a root.
    pub parent: Option<ObjectId>,
    /// The committer's date in seconds since 1970.
    pub committed: i64,
}

/// The result of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// The commits of the window by date, then by id.
    pub commits: Vec<Commit>,
    /// Commits of the window whose parent is not there, because the clone is shallow.
    pub cut_off: Vec<ObjectId>,
    /// Commits whose date cannot be read.
    pub undated: Vec<ObjectId>,
}

/// The commits reachable from `head` whose committer date lies in the window.
///
/// Commits with several parents are left out unless `merges` is set. The error is `Damaged` if a
/// commit is missing or cannot be decoded, `Limit` if one is too large, `Interrupted` if
/// `interrupt` is set.
pub(super) fn history(
    repository: &Repository,
    head: ObjectId,
    window: Window,
    merges: bool,
    interrupt: &AtomicBool,
) -> Result<History, GitError> {
    let mut objects = repository.objects();
    let shallow: HashSet<ObjectId> = repository.shallow()?.into_iter().collect();
    let mut seen = HashSet::from([head]);
    let mut waiting = vec![head];
    let mut history = History::default();
    let mut walked: usize = 0;
    while let Some(id) = waiting.pop() {
        walked += 1;
        if walked.is_multiple_of(256) && interrupt.load(Ordering::Relaxed) {
            return Err(GitError::interrupted());
        }
        let bytes = objects.bytes(id, Kind::Commit)?;
        if bytes.len() > COMMIT_BYTES {
            let (size, most) = (bytes.len() >> 20, COMMIT_BYTES >> 20);
            let message = format!("commit {id} has {size} MB; commits of up to {most} MB are read");
            return Err(GitError::limit(message));
        }
        let CommitText { tree, parents, committed, .. } = CommitText::read(id, bytes)?;
        let cut = shallow.contains(&id);
        match committed {
            None => history.undated.push(id),
            Some(committed) if window.holds(committed) && (merges || parents.len() < 2) => {
                if cut && !parents.is_empty() {
                    history.cut_off.push(id);
                } else {
                    let parent = parents.first().copied();
                    history.commits.push(Commit { id, tree, parent, committed });
                }
            }
            Some(_) => {}
        }
        if !cut {
            waiting.extend(parents.iter().copied().filter(|parent| seen.insert(*parent)));
        }
    }
    history.commits.sort_unstable_by_key(|commit| (commit.committed, commit.id));
    history.cut_off.sort_unstable();
    history.undated.sort_unstable();
    Ok(history)
}

/// The tree of a commit.
pub(super) fn tree_of(objects: &mut Objects, commit: ObjectId) -> Result<ObjectId, GitError> {
    Ok(CommitText::read(commit, objects.bytes(commit, Kind::Commit)?)?.tree)
}
