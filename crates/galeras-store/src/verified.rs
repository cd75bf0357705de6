//! Which blobs were found to have the content that their names say, so that a file that nobody
//! touched since is not hashed again: a log of digests with the inode, the size and the times
//! that each file had then.
//!
//! The log only saves time: a line that is lost, damaged or of another file means that a blob is
//! hashed once more. It says nothing of damage that leaves inode, size and times as they were;
//! that is for `verify`, which believes no record.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::links::without_links;
use galeras_base::digest::Digest;
use galeras_base::scratch::WholeFile;

/// What a file was when it was hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileIdentity {
    inode: u64,
    bytes: u64,
    /// In nanoseconds since the epoch, as is the next.
    modified: i128,
    changed: i128,
}

impl FileIdentity {
    #[cfg(unix)]
    fn of(about: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            inode: about.ino(),
            bytes: about.len(),
            modified: nanoseconds(about.mtime(), about.mtime_nsec()),
            changed: nanoseconds(about.ctime(), about.ctime_nsec()),
        }
    }
}

/// The record of a store in a folder. It is read when it is first asked.
pub(super) struct VerifiedFiles {
    log: PathBuf,
    seen: Mutex<Option<HashMap<Digest, FileIdentity>>>,
}

impl VerifiedFiles {
    /// The record in the file `log`, which need not exist.
    pub(super) fn new(log: PathBuf) -> Self {
        Self { log, seen: Mutex::new(None) }
    }

    /// Returns true if a file that looks like this was found to be sound.
    pub(super) fn knows(&self, blob: &Digest, about: &Metadata) -> bool {
        self.seen(|seen| seen.get(blob) == Some(&FileIdentity::of(about)))
    }

    /// Remembers that the file that looks like this is sound.
    pub(super) fn remember(&self, blob: &Digest, about: &Metadata) {
        let identity = FileIdentity::of(about);
        self.seen(|seen| {
            if seen.insert(*blob, identity) == Some(identity) {
                return;
            }
            // One write, so that the lines of two processes do not mix. If it fails, as in a
            // store that may only be read, the blob is hashed again next time.
            let opened = without_links().append(true).create(true).open(&self.log);
            if let Ok(mut log) = opened {
                let _ = log.write_all(line(blob, &identity).as_bytes());
            }
        });
    }

    /// Writes the record anew with only these blobs, and what else is known of their files. Nobody
    /// else may use the store.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn keep(&self, blobs: &HashSet<Digest>) -> io::Result<()> {
        self.seen(|seen| {
            let of_blobs = seen.iter().filter(|(known, _)| blobs.contains(known));
            let files: HashSet<FileIdentity> = of_blobs.map(|(_, file)| *file).collect();
            seen.retain(|_, file| files.contains(file));
            if !self.log.exists() {
                return Ok(());
            }
            let text: String = seen.iter().map(|(blob, identity)| line(blob, identity)).collect();
            let folder = self.log.parent().ok_or(io::ErrorKind::InvalidInput)?;
            let whole = WholeFile::create_in(folder)?;
            whole.file().write_all(text.as_bytes())?;
            whole.finish(&self.log)
        })
    }

    fn seen<T>(&self, work: impl FnOnce(&mut HashMap<Digest, FileIdentity>) -> T) -> T {
        let mut seen: MutexGuard<'_, _> = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        work(seen.get_or_insert_with(|| {
            let about = fs::metadata(&self.log);
            let text = match about {
                Ok(about) if about.is_file() => fs::read(&self.log).unwrap_or_default(),
                Ok(_) | Err(_) => Vec::new(),
            };
            text.split(|byte| *byte == b'\n').filter_map(entry).collect()
        }))
    }
}

const SUM: usize = 16;

/// `<checksum> <digest> <inode> <bytes> <modified> <changed>`
fn line(blob: &Digest, identity: &FileIdentity) -> String {
    let FileIdentity { inode, bytes, modified, changed } = identity;
    let content = format!("{blob} {inode} {bytes} {modified} {changed}");
    format!("{} {content}\n", checksum(content.as_bytes()))
}

fn checksum(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..SUM].to_string()
}

fn entry(line: &[u8]) -> Option<(Digest, FileIdentity)> {
    let (sum, content) = (line.get(..SUM)?, line.get(SUM + 1..)?);
    if line.get(SUM) != Some(&b' ') || sum != checksum(content).as_bytes() {
        return None;
    }
    let mut words = std::str::from_utf8(content).ok()?.split(' ');
    let mut next = || words.next();
    let blob = next()?.parse().ok()?;
    let (inode, bytes) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let (modified, changed) = (next()?.parse().ok()?, next()?.parse().ok()?);
    Some((blob, FileIdentity { inode, bytes, modified, changed }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_file_is_known_until_it_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (file, log) = (folder.path().join("blob"), folder.path().join("verified.log"));
        fs::write(&file, b"content").unwrap();
        let blob = Digest::of(b"content");
        let about = || fs::metadata(&file).unwrap();
        let record = VerifiedFiles::new(log.clone());
        assert!(!record.knows(&blob, &about()));
        record.remember(&blob, &about());
        record.remember(&blob, &about());
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
        let reopened = VerifiedFiles::new(log.clone());
        assert!(reopened.knows(&blob, &about()));
        assert!(!reopened.knows(&Digest::of(b"other"), &about()));
        // Other content of the same size, with the old time of change put back.
        let old = about().modified().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&file, b"damaged").unwrap();
        let opened = OpenOptions::new().write(true).open(&file).unwrap();
        opened.set_modified(old).unwrap();
        assert_eq!(about().modified().unwrap(), old);
        assert!(!reopened.knows(&blob, &about()));
    }

    #[test]
    fn damaged_lines_are_forgotten_and_lines_of_files_that_are_gone_go() {
        let folder = tempfile::tempdir().unwrap();
        let (file, log) = (folder.path().join("blob"), folder.path().join("verified.log"));
        fs::write(&file, b"content").unwrap();
        fs::write(folder.path().join("other"), b"content").unwrap();
        let about = fs::metadata(&file).unwrap();
        let other = fs::metadata(folder.path().join("other")).unwrap();
        let [one, two, shape] = [b"1", b"2", b"3"].map(|name| Digest::of(name));
        let record = VerifiedFiles::new(log.clone());
        record.remember(&one, &about);
        record.remember(&shape, &about);
        record.remember(&two, &other);
        let whole = fs::read(&log).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
        for at in 0..first {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            fs::write(&log, &damaged).unwrap();
            let read = VerifiedFiles::new(log.clone());
            assert!(!read.knows(&one, &about), "byte {at}");
        }
        fs::write(&log, &whole[..whole.len() - 2]).unwrap();
        let read = VerifiedFiles::new(log.clone());
        assert!(read.knows(&one, &about) && !read.knows(&two, &other));
        read.keep(&HashSet::from([one])).unwrap();
        assert!(read.knows(&one, &about) && read.knows(&shape, &about));
        read.keep(&HashSet::from([two])).unwrap();
        assert_eq!(fs::read(&log).unwrap(), b"");
    }
}
