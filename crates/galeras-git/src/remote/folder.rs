//! The bare folder that keeps the objects of one repository on a server.
//!
//! It is a Git repository that `gix::open` and git can read. Objects are only in packs. Git runs
//! with another folder below it, which is made before each command: a cache from a stranger must not
//! give git a configuration, a hook or a reference.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::odb::pack::{self, index};

use super::git::{REMOTE, Remote};
use super::network::{Network, POLL};
use crate::error::{GitError, Result};

/// The configuration of an empty repository.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\
                      [gc]\n\tauto = 0\n";

const HEAD: &str = "ref: refs/heads/main\n";

/// How many tips are remembered.
const TIPS: usize = 64;

const TIPS_FILE: &str = "galeras-tips";

/// A folder that belongs to this process as long as this lives.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) packs: Vec<(PathBuf, index::File)>,
    /// The commits whose whole history is there.
    pub(super) tips: Vec<ObjectId>,
    _lock: File,
}

impl Folder {
    /// Opens the folder at `path` or makes it, waits until no other process uses it, and removes
    /// unfinished files of a killed process. The error is `Interrupted` while waiting, `Damaged` if
    /// a pack or an index has changed, or if a link is where a folder should be; else those of the
    /// file system.
    pub(super) fn open(path: &Path, remote: &Remote) -> Result<Self> {
        let objects = path.join("objects");
        for folder in [path, &objects, &objects.join("pack"), &path.join("refs/heads")] {
            fs::create_dir_all(folder).map_err(|error| GitError::io("make", folder, error))?;
            // Behind a link, other files of the user would be removed.
            let about = fs::symlink_metadata(folder);
            if !about.map_err(|error| GitError::io("read", folder, error))?.is_dir() {
                let message = format!("`{}` is a link, not a folder", folder.display());
                return Err(GitError::damaged(message));
            }
        }
        let lock = lock(&path.join("galeras.lock"), remote)?;
        let path = path.to_path_buf();
        let mut folder = Self { path, packs: Vec::new(), tips: Vec::new(), _lock: lock };
        folder.clean()?;
        for (name, text) in [("config", CONFIG), ("HEAD", HEAD)] {
            folder.write(&folder.path.join(name), text)?;
        }
        folder.load(&remote.net)?;
        Ok(folder)
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    fn pack_folder(&self) -> PathBuf {
        self.objects().join("pack")
    }

    /// The folder of git's own files.
    pub(super) fn git_dir(&self) -> PathBuf {
        self.path.join("galeras-git")
    }

    /// Makes a new folder of git's own files. The history of the commits `haves` is complete.
    pub(super) fn reset_git_dir(&self, haves: &[ObjectId]) -> Result<()> {
        let folder = self.git_dir();
        remove_folder(&folder)?;
        let refs = folder.join("refs");
        fs::create_dir_all(&refs).map_err(|error| GitError::io("make", &refs, error))?;
        let haves: String = haves.iter().map(|id| format!("{id} refs/tips/{id}\n")).collect();
        // A server of parts: missing objects are not an error.
        let config = format!(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\
             [extensions]\n\tpartialClone = {REMOTE}\n\
             [remote \"{REMOTE}\"]\n\tpromisor = true\n"
        );
        for (name, text) in [("HEAD", HEAD), ("config", &config), ("packed-refs", &haves)] {
            let file = folder.join(name);
            fs::write(&file, text).map_err(|error| GitError::io("write", &file, error))?;
        }
        Ok(())
    }

    /// Removes unfinished packs, and everything else than packs that git would read.
    fn clean(&self) -> Result<()> {
        self.reset_git_dir(&[])?;
        remove_folder(&self.objects().join("info"))?;
        for file in self.pack_files()? {
            let whole = match file.extension().and_then(|extension| extension.to_str()) {
                Some("pack") => file.with_extension("idx").exists(),
                Some("idx" | "promisor") => file.with_extension("pack").exists(),
                _ => false,
            };
            if !whole && !file.is_dir() {
                fs::remove_file(&file).map_err(|error| GitError::io("remove", &file, error))?;
            }
        }
        Ok(())
    }

    fn load(&mut self, net: &Network) -> Result<()> {
        for file in self.pack_files()?.into_iter().filter(|file| is_index(file)) {
            let index = checked(&file, net)?;
            self.packs.push((file, index));
        }
        let file = self.path.join(TIPS_FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(GitError::io("read", &file, error)),
        };
        let ids = text.lines().filter_map(|line| ObjectId::from_hex(line.as_bytes()).ok());
        // The pack of a tip may be gone.
        self.tips = ids.filter(|id| self.contains(id)).collect();
        Ok(())
    }

    /// The files of the folder of packs, in the order of names.
    fn pack_files(&self) -> Result<Vec<PathBuf>> {
        let packs = self.pack_folder();
        let files = fs::read_dir(&packs)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>());
        let mut files: Vec<PathBuf> = files.map_err(|error| GitError::io("read", &packs, error))?;
        files.sort_unstable();
        Ok(files)
    }

    pub(super) fn contains(&self, id: &gix::oid) -> bool {
        // The newest packs first: objects that are looked for together came together.
        self.packs.iter().rev().any(|(_, pack)| pack.lookup(id).is_some())
    }

    /// Remembers that the history of `tip` is there.
    pub(super) fn add_tip(&mut self, tip: ObjectId) -> Result<()> {
        self.tips.retain(|known| *known != tip);
        self.tips.push(tip);
        self.tips.drain(..self.tips.len().saturating_sub(TIPS));
        let lines: String = self.tips.iter().map(|id| format!("{id}\n")).collect();
        self.write(&self.path.join(TIPS_FILE), &lines)
    }

    /// Opens the packs that git has written, and returns their bytes and objects.
    pub(super) fn adopt(&mut self) -> Result<(u64, u64)> {
        let (mut bytes, mut objects) = (0, 0);
        for file in self.pack_files()?.into_iter().filter(|file| is_index(file)) {
            if self.packs.iter().all(|(known, _)| *known != file) {
                let index = open_index(&file)?;
                bytes += fs::metadata(file.with_extension("pack")).map_or(0, |about| about.len());
                objects += u64::from(index.num_objects());
                self.packs.push((file, index));
            }
        }
        // Not every system can wait until a folder is on the disk.
        let _ = File::open(self.pack_folder()).and_then(|folder| folder.sync_all());
        Ok((bytes, objects))
    }

    /// Writes a small file so that it is there as a whole or as it was.
    fn write(&self, file: &Path, text: &str) -> Result<()> {
        let error = |error| GitError::io("write", file, error);
        let mut temporary = tempfile::NamedTempFile::new_in(self.git_dir()).map_err(error)?;
        temporary.write_all(text.as_bytes()).map_err(error)?;
        temporary.as_file().sync_all().map_err(error)?;
        temporary.persist(file).map_err(|failed| error(failed.error))?;
        Ok(())
    }
}

/// Removes a folder, or a link in its place.
fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(GitError::io("remove", folder, error))
        }
        _ => Ok(()),
    }
}

fn is_index(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "idx")
}

fn open_index(file: &Path) -> Result<index::File> {
    index::File::at(file, gix::hash::Kind::Sha1).map_err(|error| {
        let why = error.probable_cause();
        GitError::damaged(format!("the index `{}` cannot be read: {why}", file.display()))
    })
}

/// Opens an index and reads its pack: both end in a checksum. The error is `Damaged` if one of them
/// has changed, or if they do not belong together.
fn checked(file: &Path, net: &Network) -> Result<index::File> {
    let index = open_index(file)?;
    let pack = file.with_extension("pack");
    let damaged = |file: &Path, why: &dyn std::fmt::Display| {
        net.check()
            .err()
            .unwrap_or_else(|| GitError::damaged(format!("`{}` is damaged: {why}", file.display())))
    };
    let mut progress = gix::progress::Discard;
    let named = index.verify_checksum(&mut progress, &net.interrupt);
    named.map_err(|error| damaged(file, &error.probable_cause()))?;
    let data = pack::data::File::at(&pack, gix::hash::Kind::Sha1);
    let data = data.map_err(|error| damaged(&pack, &error.probable_cause()))?;
    let found = data.verify_checksum(&mut progress, &net.interrupt);
    if found.map_err(|error| damaged(&pack, &error.probable_cause()))? != index.pack_checksum() {
        let index = file.display();
        return Err(GitError::damaged(format!("`{index}` is the index of another pack")));
    }
    Ok(index)
}

/// Takes the lock of the operating system on `path`, which ends with the process at the latest.
fn lock(path: &Path, remote: &Remote) -> Result<File> {
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
            remote.report_other("waiting", "another process fetches the same repository".into());
        }
        remote.net.sleep(POLL)?;
    }
}
