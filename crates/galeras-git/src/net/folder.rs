//! The bare folder that keeps what was fetched from one repository.
//!
//! Its making, its lock, its packs and what is known to be complete. The folder is a git
//! repository that `gix::open` and git can read. Objects are only in packs, and a pack is there as
//! a whole or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix_pack::bundle::write::Outcome;
use gix_pack::index;

use super::wire::{POLL, Wire};
use crate::error::{GitError, GitErrorKind};

/// A repository without anything; nothing in it is ever collected by git.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\
                      [gc]\n\tauto = 0\n";

/// The bytes of a checksum.
const HASH: usize = 20;

/// How many tips are remembered of each kind.
const TIPS: usize = 64;

/// How much of the history of a tip is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All commits.
    Commits,
    /// All commits, trees and files.
    Everything,
}

impl Extent {
    fn word(self) -> &'static str {
        match self {
            Self::Commits => "commits",
            Self::Everything => "everything",
        }
    }
}

/// A folder that is ours as long as this lives.
pub(super) struct Folder {
    path: PathBuf,
    packs: Vec<index::File>,
    tips: Vec<(Extent, ObjectId)>,
    _lock: File,
}

impl Folder {
    /// Opens the folder at `path` or makes it, waits until no other process uses it, and removes
    /// what a killed process has left.
    ///
    /// # Errors
    /// `Interrupted` while waiting, `Damaged` if a pack or an index is not what was written, else
    /// those of the file system.
    pub(super) fn open(path: &Path, wire: &Wire) -> Result<Self, GitError> {
        let packs = path.join("objects").join("pack");
        for folder in [&packs, &path.join("objects/info"), &path.join("refs/heads")] {
            fs::create_dir_all(folder).map_err(|error| GitError::io("make", folder, error))?;
        }
        let lock = lock(&path.join("galeras.lock"), wire)?;
        let mut folder =
            Self { path: path.to_path_buf(), packs: Vec::new(), tips: Vec::new(), _lock: lock };
        folder.clean()?;
        for (name, text) in [("config", CONFIG), ("HEAD", "ref: refs/heads/main\n")] {
            let file = path.join(name);
            if !file.exists() {
                folder.write(&file, text)?;
            }
        }
        folder.load(wire)?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where packs are written before they are whole: on the same file system.
    fn incoming(&self) -> PathBuf {
        self.path.join("galeras-incoming")
    }

    fn tips_file(&self) -> PathBuf {
        self.path.join("galeras-tips")
    }

    /// Removes temporary files and packs without an index.
    fn clean(&self) -> Result<(), GitError> {
        let packs = self.path.join("objects").join("pack");
        self.empty_incoming()?;
        let error = |error| GitError::io("read", &packs, error);
        for entry in fs::read_dir(&packs).map_err(error)? {
            let file = entry.map_err(error)?.path();
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
            let temporary = |name: &String| name.starts_with(".tmp") || name.starts_with("tmp_");
            let whole = match file.extension().and_then(|extension| extension.to_str()) {
                Some("pack") => file.with_extension("idx").exists(),
                Some("idx") => file.with_extension("pack").exists(),
                _ => !name.as_ref().is_some_and(temporary),
            };
            if !whole && file.is_file() {
                fs::remove_file(&file).map_err(|error| GitError::io("remove", &file, error))?;
            }
        }
        Ok(())
    }

    /// Makes a new, empty folder for packs that are being written.
    pub(super) fn empty_incoming(&self) -> Result<PathBuf, GitError> {
        let folder = self.incoming();
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(GitError::io("remove", &folder, error));
            }
            _ => {}
        }
        fs::create_dir_all(&folder).map_err(|error| GitError::io("make", &folder, error))?;
        Ok(folder)
    }

    fn load(&mut self, wire: &Wire) -> Result<(), GitError> {
        let packs = self.path.join("objects").join("pack");
        let error = |error| GitError::io("read", &packs, error);
        for entry in fs::read_dir(&packs).map_err(error)? {
            let file = entry.map_err(error)?.path();
            if file.extension().is_some_and(|extension| extension == "idx") {
                check(&file, wire)?;
                self.packs.push(open_index(&file)?);
            }
        }
        let file = self.tips_file();
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(GitError::io("read", &file, error)),
        };
        for (word, id) in text.lines().filter_map(|line| line.split_once(' ')) {
            let extents = [Extent::Commits, Extent::Everything];
            let extent = extents.into_iter().find(|extent| extent.word() == word);
            let id = ObjectId::from_hex(id.as_bytes()).ok();
            // A tip whose pack somebody has removed is not complete.
            let tip = extent.zip(id).filter(|(_, id)| self.contains(id));
            self.tips.extend(tip);
        }
        Ok(())
    }

    /// Something has been fetched.
    pub(super) fn has_packs(&self) -> bool {
        !self.packs.is_empty()
    }

    /// The object is there.
    pub(super) fn contains(&self, id: &gix::oid) -> bool {
        // The newest packs are asked first: what is looked for together came together.
        self.packs.iter().rev().any(|pack| pack.lookup(id).is_some())
    }

    /// The history of `tip` is there, to this extent.
    pub(super) fn has_tip(&self, extent: Extent, tip: &gix::oid) -> bool {
        self.tips(extent).iter().any(|known| *known == tip)
    }

    /// The tips whose history is there to this extent or further.
    pub(super) fn tips(&self, extent: Extent) -> Vec<ObjectId> {
        let fits = |known: Extent| known == extent || known == Extent::Everything;
        let mut tips = Vec::new();
        for (_, id) in self.tips.iter().filter(|(known, _)| fits(*known)) {
            if !tips.contains(id) {
                tips.push(*id);
            }
        }
        tips
    }

    /// Remembers that the history of `tip` is there.
    pub(super) fn add_tip(&mut self, extent: Extent, tip: ObjectId) -> Result<(), GitError> {
        self.tips.retain(|known| *known != (extent, tip));
        self.tips.push((extent, tip));
        while self.tips.iter().filter(|(known, _)| *known == extent).count() > TIPS {
            let oldest = self.tips.iter().position(|(known, _)| *known == extent);
            oldest.map(|oldest| self.tips.remove(oldest));
        }
        let lines: String =
            self.tips.iter().map(|(extent, id)| format!("{} {id}\n", extent.word())).collect();
        self.write(&self.tips_file(), &lines)
    }

    /// Takes over a pack from the incoming folder. It is durable afterwards.
    pub(super) fn adopt(&mut self, outcome: &Outcome) -> Result<(), GitError> {
        let (Some(pack), Some(idx)) = (&outcome.data_path, &outcome.index_path) else {
            return Ok(());
        };
        let packs = self.path.join("objects").join("pack");
        // The index last: without it, nobody sees the pack.
        for from in [pack, idx] {
            let Some(name) = from.file_name() else { continue };
            sync(from)?;
            let to = packs.join(name);
            fs::rename(from, &to).map_err(|error| GitError::io("write", &to, error))?;
        }
        sync(&packs)?;
        if let Some(keep) = &outcome.keep_path {
            fs::remove_file(keep).map_err(|error| GitError::io("remove", keep, error))?;
        }
        if let Some(name) = idx.file_name() {
            self.packs.push(open_index(&packs.join(name))?);
        }
        Ok(())
    }

    /// Writes a small file so that it is there as a whole or as it was.
    fn write(&self, file: &Path, text: &str) -> Result<(), GitError> {
        let error = |error| GitError::io("write", file, error);
        let mut temporary = tempfile::NamedTempFile::new_in(self.incoming()).map_err(error)?;
        temporary.write_all(text.as_bytes()).map_err(error)?;
        temporary.as_file().sync_all().map_err(error)?;
        let mut temporary = temporary.into_temp_path();
        fs::rename(&temporary, file).map_err(error)?;
        temporary.disable_cleanup(true);
        Ok(())
    }
}

fn open_index(file: &Path) -> Result<index::File, GitError> {
    index::File::at(file, gix::hash::Kind::Sha1).map_err(|error| {
        let why = error.probable_cause();
        let message = format!("the index `{}` cannot be read: {why}", file.display());
        GitError::new(GitErrorKind::Damaged, message)
    })
}

/// Reads an index and its pack, which both end in the checksum of what is before it.
///
/// # Errors
/// `Damaged` if one of them is not what was written, or if they do not belong together.
fn check(index: &Path, wire: &Wire) -> Result<(), GitError> {
    let pack = index.with_extension("pack");
    let (of_pack, _) = checksums(&pack, wire)?;
    let (_, named) = checksums(index, wire)?;
    if named == of_pack {
        return Ok(());
    }
    let message = format!("`{}` is the index of another pack", index.display());
    Err(GitError::new(GitErrorKind::Damaged, message))
}

/// The checksum at the end of a file, which is right, and the 20 bytes before it.
fn checksums(file: &Path, wire: &Wire) -> Result<([u8; HASH], [u8; HASH]), GitError> {
    let error = |error| GitError::io("read", file, error);
    let mut reader = File::open(file).map_err(error)?;
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    // The last bytes that were read, which are not hashed yet.
    let mut held: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        wire.check()?;
        let read = reader.read(&mut chunk).map_err(error)?;
        if read == 0 {
            break;
        }
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let known = held.len().saturating_sub(2 * HASH);
        hasher.update(&held[..known]);
        held.drain(..known);
    }
    let whole = held.split_at_checked(HASH).and_then(|(before, last)| {
        hasher.update(before);
        let found = hasher.try_finalize().ok()?;
        let last = last.try_into().ok()?;
        (found.as_bytes() == last).then_some((last, before.try_into().ok()?))
    });
    whole.ok_or_else(|| {
        let message = format!("`{}` is damaged: its checksum is another one", file.display());
        GitError::new(GitErrorKind::Damaged, message)
    })
}

/// Waits until a file or folder is on the disk. Folders cannot be waited for everywhere.
fn sync(path: &Path) -> Result<(), GitError> {
    match File::open(path).and_then(|file| file.sync_all()) {
        Err(error) if path.is_file() => Err(GitError::io("write", path, error)),
        _ => Ok(()),
    }
}

/// Takes the lock of the operating system on `path`, which ends with the process at the latest.
fn lock(path: &Path, wire: &Wire) -> Result<File, GitError> {
    let error = |error: io::Error| GitError::io("lock", path, error);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(error)?;
    let mut reported = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            // A file system without locks: packs are still written atomically.
            Err(TryLockError::Error(failed)) if failed.kind() == io::ErrorKind::Unsupported => {
                return Ok(file);
            }
            Err(TryLockError::Error(failed)) => return Err(error(failed)),
        }
        if !reported {
            reported = true;
            wire.report_waiting("another process fetches the same repository".to_string());
        }
        wire.sleep(POLL)?;
    }
}
