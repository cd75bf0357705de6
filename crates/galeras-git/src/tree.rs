//! The entries of a tree, one after the other, checked as `git fsck` checks them.
//!
//! A name with a slash in it would put a file where another one is; entries out of order hide
//! each other when two trees are compared. So a tree with a fault that git does not write is not
//! used at all.

use std::cmp::Ordering;
use std::ops::Range;

use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};

use super::error::{GitError, GitErrorKind, Result};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Tree,
    File,
    /// A link or a submodule.
    Other,
}

/// An entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: EntryKind,
    /// Where its name is among the bytes of the tree.
    name: Range<usize>,
    pub(super) id: ObjectId,
}

/// A tree that is being read.
pub(super) struct TreeReader {
    id: ObjectId,
    bytes: Vec<u8>,
    at: usize,
    /// The next entry.
    pub(super) head: Option<Entry>,
    /// Names of files that a folder of the same name may still follow: `a`, `a.b`, `a/`.
    open: Vec<Range<usize>>,
}

impl TreeReader {
    /// Reads the first entry of the tree `id` with that content.
    pub(super) fn new(id: ObjectId, bytes: Vec<u8>) -> Result<Self> {
        let mut reader = Self { id, bytes, at: 0, head: None, open: Vec::new() };
        reader.head = reader.read()?;
        Ok(reader)
    }

    /// The name of an entry of this tree.
    pub(super) fn name(&self, entry: &Entry) -> &[u8] {
        self.bytes.get(entry.name.clone()).unwrap_or_default()
    }

    /// Takes the next entry, and reads the one after it. The error is `Malformed` if that breaks a
    /// rule of git: a word of `git fsck` is in the message.
    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        let after = self.read()?;
        Ok(std::mem::replace(&mut self.head, after))
    }

    fn read(&mut self) -> Result<Option<Entry>> {
        let Some(rest) = self.bytes.get(self.at..).filter(|rest| !rest.is_empty()) else {
            return Ok(None);
        };
        let cut = || self.malformed("breaks off (badTree)");
        let space = rest.find_byte(b' ').ok_or_else(cut)?;
        let end = rest.find_byte(0).filter(|end| space < *end).ok_or_else(cut)?;
        let id = rest.get(end + 1..end + 21).ok_or_else(cut)?;
        let id = ObjectId::try_from(id).map_err(|_| cut())?;
        let name = self.at + space + 1..self.at + end;
        let kind = kind(&rest[..space]).ok_or_else(|| self.bad(&name, "mode", "badFilemode"))?;
        let next = self.at + end + 21;
        let entry = Entry { kind, name, id };
        self.check_name(&entry)?;
        self.check_place(&entry)?;
        self.at = next;
        Ok(Some(entry))
    }

    fn check_name(&self, entry: &Entry) -> Result<()> {
        let bytes = self.name(entry);
        let word = match bytes {
            b"" => "emptyName",
            b"." => "hasDot",
            b".." => "hasDotdot",
            _ if bytes.eq_ignore_ascii_case(b".git") => "hasDotgit",
            _ if bytes.contains(&b'/') => "fullPathname",
            _ => return Ok(()),
        };
        Err(self.bad(&entry.name, "name", word))
    }

    fn check_place(&mut self, entry: &Entry) -> Result<()> {
        match self.head.as_ref().map_or(Ordering::Less, |last| order(self, last, self, entry)) {
            Ordering::Less => {}
            Ordering::Equal => return Err(self.bad(&entry.name, "name", "duplicateEntries")),
            Ordering::Greater => return Err(self.bad(&entry.name, "place", "treeNotSorted")),
        }
        let name = self.name(entry);
        let follows = |file: &Range<usize>| {
            self.bytes.get(file.clone()).is_some_and(|file| name.starts_with(file))
        };
        let kept = self.open.iter().rposition(follows).map_or(0, |at| at + 1);
        self.open.truncate(kept);
        let same = self.open.last().is_some_and(|file| file.len() == entry.name.len());
        if same {
            return Err(self.bad(&entry.name, "name", "duplicateEntries"));
        }
        if entry.kind != EntryKind::Tree {
            self.open.push(entry.name.clone());
        }
        Ok(())
    }

    fn bad(&self, name: &Range<usize>, part: &str, word: &str) -> GitError {
        let name = self.bytes.get(name.clone()).unwrap_or_default();
        let shown: String = path_text(name.as_bstr()).chars().take(100).collect();
        self.malformed(&format!("has an entry {shown:?} whose {part} git does not allow ({word})"))
    }

    fn malformed(&self, what: &str) -> GitError {
        GitError::new(GitErrorKind::Malformed, format!("tree {} {what}", self.id))
    }
}

/// The order of git: by the bytes of the names, where those of folders end in a slash.
pub(super) fn order(a: &TreeReader, one: &Entry, b: &TreeReader, other: &Entry) -> Ordering {
    let (name, other_name) = (a.name(one), b.name(other));
    let common = name.len().min(other_name.len());
    let end = |name: &[u8], kind: EntryKind| match (name.get(common), kind) {
        (Some(byte), _) => *byte,
        (None, EntryKind::Tree) => b'/',
        // No name has this byte.
        (None, _) => 0,
    };
    name[..common]
        .cmp(&other_name[..common])
        .then_with(|| end(name, one.kind).cmp(&end(other_name, other.kind)))
}

/// The kind of entry that a mode means. Files have any permissions: old programs wrote them unchanged.
fn kind(mode: &[u8]) -> Option<EntryKind> {
    if mode.is_empty() || mode.len() > 7 {
        return None;
    }
    let mut digits = mode.iter().map(|digit| digit.checked_sub(b'0').filter(|value| *value < 8));
    let mode = digits.try_fold(0, |mode, digit| Some(mode << 3 | u32::from(digit?)))?;
    match mode & 0o170_000 {
        _ if mode > 0o177_777 => None,
        0o040_000 => Some(EntryKind::Tree),
        0o100_000 => Some(EntryKind::File),
        0o120_000 | 0o160_000 => Some(EntryKind::Other),
        _ => None,
    }
}

/// A path as text. Bytes that are not UTF-8 are written `\xNN`, and backslashes next to
/// them twice. A path that looks like such a text is also rewritten, so that different paths stay
/// different.
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

    const ID: [u8; 20] = [7; 20];

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        let one = |(mode, name): &(&str, &str)| {
            [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &ID].concat()
        };
        entries.iter().flat_map(one).collect()
    }

    fn read(bytes: Vec<u8>) -> Result<Vec<(EntryKind, String)>> {
        let mut reader = TreeReader::new(ObjectId::null(gix::hash::Kind::Sha1), bytes)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next()? {
            entries.push((entry.kind, reader.name(&entry).to_str_lossy().into_owned()));
        }
        Ok(entries)
    }

    #[test]
    fn sound_trees_are_read() {
        let modes = [
            ("100644", "a"),
            ("100755", "a-b"),
            ("100664", "a.b"),
            ("40000", "a.d"),
            ("120000", "b"),
            ("40000", "b-"),
            ("040000", "c"),
            ("100600", "c0"),
            ("160000", "d"),
        ];
        let names: Vec<String> =
            read(tree(&modes)).unwrap().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["a", "a-b", "a.b", "a.d", "b", "b-", "c", "c0", "d"]);
        assert!(read(Vec::new()).unwrap().is_empty());
        // A folder comes where its name with a slash would.
        assert!(read(tree(&[("100644", "a.py"), ("40000", "a"), ("100644", "a0")])).is_ok());
    }

    #[test]
    fn what_git_does_not_write_is_malformed() {
        let file = |name: &'static str| ("100644", name);
        let folder = |name: &'static str| ("40000", name);
        for (entries, word) in [
            (vec![file("")], "emptyName"),
            (vec![file(".")], "hasDot)"),
            (vec![folder("..")], "hasDotdot"),
            (vec![folder(".GIT")], "hasDotgit"),
            (vec![file("pkg/m.py")], "fullPathname"),
            (vec![file("/")], "fullPathname"),
            (vec![file("b"), file("a")], "treeNotSorted"),
            (vec![folder("a"), file("a.py")], "treeNotSorted"),
            (vec![file("a"), file("a")], "duplicateEntries"),
            (vec![folder("a"), folder("a")], "duplicateEntries"),
            (vec![file("a"), folder("a")], "duplicateEntries"),
            (vec![file("a"), file("a-"), file("a-b"), file("a.py"), folder("a")], "duplicate"),
            (vec![("0", "a")], "badFilemode"),
            (vec![("", "a")], "badFilemode"),
            (vec![("17777777777777777777100644", "a")], "badFilemode"),
            (vec![("200644", "a")], "badFilemode"),
            (vec![("777", "a")], "badFilemode"),
            (vec![("10064x", "a")], "badFilemode"),
        ] {
            let error = read(tree(&entries)).unwrap_err();
            assert!(error.message.contains(word), "{entries:?}: {error}");
        }
        let whole = tree(&[file("a"), file("b")]);
        for length in 1..whole.len() {
            let part = read(whole[..length].to_vec());
            assert!(length == whole.len() / 2 || part.is_err(), "{length}");
        }
    }

    #[test]
    fn paths_that_are_not_utf8_stay_different() {
        assert_eq!(path_text("a b/é.py".into()), "a b/é.py");
        assert_eq!(path_text(b"a\\b/\xE9.py".as_bstr()), "a\\\\b/\\xE9.py");
        assert_ne!(path_text(b"\xE9.py".as_bstr()), path_text("\\xE9.py".into()));
        assert_ne!(path_text(b"\xE9.py".as_bstr()), path_text(b"\xE8.py".as_bstr()));
    }
}
