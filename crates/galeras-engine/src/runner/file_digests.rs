//! The digests of files outside of the store. Each file is read once before a run, and again only
//! if it has changed since.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use galeras_base::digest::Digest;

/// The metadata that changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

/// Digests of files, with the state at that time.
#[derive(Debug, Default)]
pub struct FileDigests(Mutex<HashMap<PathBuf, (FileState, Digest)>>);

impl FileDigests {
    /// The digest of the content of a regular file; links are followed.
    ///
    /// # Errors
    /// If it cannot be read, or is not a regular file.
    pub(super) fn of(&self, path: &Path) -> io::Result<Digest> {
        let about = fs::metadata(path)?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let state = FileState::of(&about);
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, digest)) = known().get(path)
            && *read == state
        {
            return Ok(*digest);
        }
        let digest = Digest::of_reader(File::open(path)?)?;
        known().insert(path.to_path_buf(), (state, digest));
        Ok(digest)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_replaced_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let digests = FileDigests::default();
        assert_eq!(digests.of(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        for text in ["one", "two", "one"] {
            // A different inode, even if the clock of the disk is coarse.
            fs::write(&other, text).unwrap();
            fs::rename(&other, &path).unwrap();
            assert_eq!(digests.of(&path).unwrap(), Digest::of(text.as_bytes()));
            assert_eq!(digests.of(&path).unwrap(), Digest::of(text.as_bytes()));
        }
        assert!(digests.of(folder.path()).is_err());
    }
}
