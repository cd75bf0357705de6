//! The bytes of a commit, taken apart.
//!
//! Commits of long ago, or made by odd programs, have lines that no standard knows. Only the
//! needed ones are read, and one bad line spoils nothing else.

use gix::ObjectId;
use gix::actor::SignatureRef;
use gix::bstr::ByteSlice;

use super::error::GitError;

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
    pub(super) fn read(id: ObjectId, bytes: &'a [u8]) -> Result<Self, GitError> {
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

    fn read(text: &str) -> Result<CommitText<'_>, GitError> {
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
