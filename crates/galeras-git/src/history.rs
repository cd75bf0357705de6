//! The commits of a time window, and the bytes of a commit, taken apart.
//!
//! All commits reachable from the head are looked at, because committer dates need not grow along
//! the history: a walk that stops at the first commit before the window, as Git's does, loses what
//! lies behind it.
//!
//! Commits of long ago, or made by odd programs, have lines that no standard knows. Only the needed
//! ones are read, and one bad line spoils nothing else.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::ObjectId;
use gix::actor::SignatureRef;
use gix::bstr::ByteSlice;
use gix::objs::Kind;

use super::error::{GitError, Result};
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
) -> Result<History> {
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
pub(super) fn tree_of(objects: &mut Objects, commit: ObjectId) -> Result<ObjectId> {
    Ok(CommitText::read(commit, objects.bytes(commit, Kind::Commit)?)?.tree)
}

/// A commit's head and message.
pub(super) struct CommitText<'a> {
    /// The tree.
    pub(super) tree: ObjectId,
    /// The parents in order.
    pub(super) parents: Vec<ObjectId>,
    /// When it was written, in seconds since 1970, if that can be read.
    pub(super) authored: Option<i64>,
    /// When it was committed.
    pub(super) committed: Option<i64>,
    encoding: Option<&'a [u8]>,
    message: &'a [u8],
}

impl<'a> CommitText<'a> {
    /// Reads the commit `id`.
    pub(super) fn read(id: ObjectId, bytes: &'a [u8]) -> Result<Self> {
        let (head, message) = match bytes.find(b"\n\n") {
            Some(end) => (&bytes[..end], &bytes[end + 2..]),
            None => (bytes.strip_suffix(b"\n").unwrap_or(bytes), &b""[..]),
        };
        let bad = || GitError::damaged(format!("commit {id} cannot be decoded"));
        let mut tree = None;
        let mut parents = Vec::new();
        let (mut authored, mut committed, mut encoding) = (None, None, None);
        for line in head.split(|byte| *byte == b'\n') {
            let Some((word, value)) = line.split_once_str(" ") else { continue };
            match word {
                b"tree" if tree.is_none() => {
                    tree = Some(ObjectId::from_hex(value).map_err(|_| bad())?);
                }
                b"parent" => parents.push(ObjectId::from_hex(value).map_err(|_| bad())?),
                b"author" if authored.is_none() => authored = seconds(value),
                b"committer" if committed.is_none() => committed = seconds(value),
                b"encoding" => encoding = Some(value),
                // Signatures and the like, and their further lines.
                _ => {}
            }
        }
        let tree = tree.ok_or_else(bad)?;
        Ok(Self { tree, parents, authored, committed, encoding, message })
    }

    /// The message in its encoding, without white space around it.
    pub(super) fn message(&self) -> String {
        let encoding = self.encoding.and_then(encoding_rs::Encoding::for_label);
        let encoding = encoding.unwrap_or(encoding_rs::UTF_8);
        let (message, _) = encoding.decode_without_bom_handling(self.message);
        message.trim().to_string()
    }
}

/// The date of a signature, if it is one of the years 0 to 9999, which every calendar and
/// reader knows.
fn seconds(signature: &[u8]) -> Option<i64> {
    let time = SignatureRef::from_bytes(signature).ok()?.time().ok()?;
    Some(time.seconds).filter(|seconds| (-62_167_219_200..253_402_300_800).contains(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1111111111111111111111111111111111111111";

    fn read(text: &str) -> Result<CommitText<'_>> {
        CommitText::read(ObjectId::from_hex(ID.as_bytes()).unwrap(), text.as_bytes())
    }

    #[test]
    fn a_bad_line_spoils_nothing_else() {
        let text = format!(
            "tree {ID}\nparent {ID}\nauthor A <a> never +0000\ncommitter C <c> 7 +0100\n\
             gpgsig -----BEGIN\n parent of nothing\n\nencoding is not a header here\n\nmore\n"
        );
        let commit = read(&text).unwrap();
        assert_eq!((commit.parents.len(), commit.authored, commit.committed), (1, None, Some(7)));
        assert_eq!(commit.message(), "encoding is not a header here\n\nmore");
        assert!(read("author A <a> 1 +0000\n\nno tree").is_err());
        assert!(read("tree 12\n\n").is_err());
    }

    #[test]
    fn messages_are_decoded_and_dates_without_a_calendar_are_none() {
        let head =
            format!("tree {ID}\ncommitter C <c> 9000000000000 +0000\nencoding ISO-8859-1\n\n");
        let bytes = [head.as_bytes(), b"caf\xe9\n"].concat();
        let commit = CommitText::read(ObjectId::from_hex(ID.as_bytes()).unwrap(), &bytes).unwrap();
        assert_eq!(commit.message(), "café");
        assert_eq!(commit.committed, None);
        assert_eq!(read(&format!("tree {ID}\nauthor A <a> -5 +0000")).unwrap().authored, Some(-5));
    }
}
