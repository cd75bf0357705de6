//! Compares a blob with the digest in its name before it is used.
//!
//! A log of verified blobs saves time: it has the digest of each with the inode, the size and the
//! times of its file, and an unchanged file is not hashed again. After a lost or damaged line a
//! blob is hashed again. Damage that leaves inode, size and times as they were is found by
//! `verify`, which does not use the log.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backend::{Backend, FolderBackend, blocking};
use super::content_store::Store;
use super::error::Result;
use super::local_files::without_links;
use super::log_lines;
use super::manifest::{Manifest, RecipeParts};
use super::object_name::{blob_name, memo_name};
use super::table_file::open;
use galeras_base::digest::Digest;
use galeras_base::scratch::WholeFile;

/// The state of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobState {
    /// Its content has the digest in its name.
    Sound,
    /// It does not exist.
    Missing,
    /// It has other content, cannot be read, or is not a file.
    Damaged,
}

/// How thoroughly a blob is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyLevel {
    /// A file is hashed unless it is unchanged since the last time. Of an object in a bucket only
    /// the size is compared, because it would have to be downloaded.
    Usual,
    /// The content is always hashed.
    Hashed,
}

impl Store {
    /// Checks a blob of so many bytes. A file that cannot be read is damaged, not an error.
    pub async fn blob_state(
        &self,
        blob: &Digest,
        bytes: u64,
        level: VerifyLevel,
    ) -> Result<BlobState> {
        match &self.inner.backend {
            Backend::Folder(folder) => {
                let (folder, blob) = (Arc::clone(folder), *blob);
                blocking(move || Ok(state_of_file(&folder, &blob, level))).await
            }
            Backend::Bucket(_) if level == VerifyLevel::Usual => {
                Ok(match self.inner.backend.size(&blob_name(blob)).await? {
                    None => BlobState::Missing,
                    Some(size) if size == bytes => BlobState::Sound,
                    Some(_) => BlobState::Damaged,
                })
            }
            Backend::Bucket(_) => {
                let Some(file) = open(self, &blob_name(blob)).await? else {
                    return Ok(BlobState::Missing);
                };
                let blob = *blob;
                blocking(move || Ok(compared(Digest::of_reader(file), &blob))).await
            }
        }
    }

    /// The missing and damaged blobs of a result, each once.
    pub async fn unsound_blobs(
        &self,
        manifest: &Manifest,
        level: VerifyLevel,
    ) -> Result<Vec<(Digest, BlobState)>> {
        let blobs = manifest.ports.iter().map(|port| (port.blob, port.bytes));
        let blobs: BTreeSet<(Digest, u64)> = blobs.collect();
        let mut states = Vec::with_capacity(blobs.len());
        match &self.inner.backend {
            // All at once: a change of the thread takes longer than the check.
            Backend::Folder(folder) => {
                let folder = Arc::clone(folder);
                let look = move |(blob, _)| (blob, state_of_file(&folder, &blob, level));
                states = blocking(move || Ok(blobs.into_iter().map(look).collect())).await?;
            }
            Backend::Bucket(_) => {
                for (blob, bytes) in blobs {
                    states.push((blob, self.blob_state(&blob, bytes, level).await?));
                }
            }
        }
        states.retain(|(_, state)| *state != BlobState::Sound);
        states.dedup_by_key(|(blob, _)| *blob);
        Ok(states)
    }

    /// The finished parts of a recipe with sound blobs, sorted by blob, and the damaged blobs,
    /// whose parts are forgotten.
    pub async fn memo_parts(&self, recipe: &Digest) -> Result<RecipeParts> {
        let mut parts = self.listed_parts(recipe).await?;
        parts.sort_by_key(|part| part.blob);
        let mut sorted = RecipeParts::default();
        for part in parts {
            match self.blob_state(&part.blob, part.bytes, VerifyLevel::Usual).await? {
                BlobState::Sound => sorted.sound.push(part),
                BlobState::Missing => {}
                BlobState::Damaged => {
                    sorted.damaged.push(part.blob);
                    // A read-only store keeps it, and it is a miss each time.
                    let _ = self.inner.backend.remove(&memo_name(recipe, &part)).await;
                }
            }
        }
        Ok(sorted)
    }
}

fn state_of_file(folder: &FolderBackend, blob: &Digest, level: VerifyLevel) -> BlobState {
    let path = folder.path(&blob_name(blob));
    let about = match fs::metadata(&path) {
        Ok(about) if about.is_file() => about,
        Ok(_) => return BlobState::Damaged,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return BlobState::Missing;
        }
        Err(_) => return BlobState::Damaged,
    };
    if level == VerifyLevel::Usual && folder.verified.knows(blob, &about) {
        return BlobState::Sound;
    }
    let state = compared(File::open(&path).and_then(Digest::of_reader), blob);
    if state == BlobState::Sound {
        // The state before it was hashed: a change since then makes it another file.
        folder.verified.remember(blob, &about);
    }
    state
}

fn compared(hash: io::Result<Digest>, blob: &Digest) -> BlobState {
    match hash {
        Ok(hash) if hash == *blob => BlobState::Sound,
        _ => BlobState::Damaged,
    }
}

/// The state of a file when it was hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileIdentity {
    inode: u64,
    bytes: u64,
    /// In nanoseconds since the epoch, like the next.
    modified: i128,
    changed: i128,
}

impl FileIdentity {
    fn of(about: &Metadata) -> Self {
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

/// The log of a store in a folder. It is read when it is first needed.
pub(super) struct VerifiedFiles {
    log: PathBuf,
    seen: Mutex<Option<HashMap<Digest, FileIdentity>>>,
}

impl VerifiedFiles {
    /// The file `log` need not exist.
    pub(super) fn new(log: PathBuf) -> Self {
        Self { log, seen: Mutex::new(None) }
    }

    /// Returns true if a file in this state was found to be sound.
    pub(super) fn knows(&self, blob: &Digest, about: &Metadata) -> bool {
        self.seen(|seen| seen.get(blob) == Some(&FileIdentity::of(about)))
    }

    /// Remembers that the file in this state is sound.
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

    /// Rewrites the log with only these blobs and other digests of their files. The caller holds
    /// the whole store.
    pub(super) fn keep(&self, blobs: &HashSet<Digest>) -> io::Result<()> {
        self.seen(|seen| {
            let of_blobs = seen.iter().filter(|(known, _)| blobs.contains(known));
            let files: HashSet<FileIdentity> = of_blobs.map(|(_, file)| *file).collect();
            seen.retain(|_, file| files.contains(file));
            if !self.log.exists() {
                return Ok(());
            }
            let text: String = seen.iter().map(|(blob, identity)| line(blob, identity)).collect();
            WholeFile::write(&self.log, text.as_bytes())
        })
    }

    fn seen<T>(&self, work: impl FnOnce(&mut HashMap<Digest, FileIdentity>) -> T) -> T {
        let mut seen: MutexGuard<'_, _> = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        work(seen.get_or_insert_with(|| {
            let is_file = self.log.is_file();
            let text = if is_file { fs::read(&self.log).unwrap_or_default() } else { Vec::new() };
            text.split(|byte| *byte == b'\n').filter_map(entry).collect()
        }))
    }
}

const SUM: usize = 16;

/// `<checksum> <digest> <inode> <bytes> <modified> <changed>`
fn line(blob: &Digest, identity: &FileIdentity) -> String {
    let FileIdentity { inode, bytes, modified, changed } = identity;
    log_lines::line(SUM, &format!("{blob} {inode} {bytes} {modified} {changed}"))
}

fn entry(line: &[u8]) -> Option<(Digest, FileIdentity)> {
    let content = log_lines::content(SUM, line)?;
    let mut words = std::str::from_utf8(content).ok()?.split(' ');
    let mut next = || words.next();
    let blob = next()?.parse().ok()?;
    let (inode, bytes) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let (modified, changed) = (next()?.parse().ok()?, next()?.parse().ok()?);
    Some((blob, FileIdentity { inode, bytes, modified, changed }))
}

#[cfg(test)]
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
    fn damaged_lines_and_lines_of_removed_files_are_forgotten() {
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
