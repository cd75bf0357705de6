//! Files that are either whole or absent after a crash.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

const PREFIX: &str = ".galeras-";
const SUFFIX: &str = ".part";

/// A file that gets its name when all of it is on disk. Dropping it before removes it. Files left
/// by a killed process are removed when the next file is written to the same folder.
#[derive(Debug)]
pub struct WholeFile {
    temp: NamedTempFile,
}

impl WholeFile {
    /// Creates an empty file, to become another file in `folder`, which exists.
    ///
    /// # Errors
    /// If the folder does not accept files.
    pub fn create_in(folder: &Path) -> io::Result<Self> {
        sweep_unfinished(folder, false);
        loop {
            let temp = tempfile::Builder::new()
                .prefix(PREFIX)
                .suffix(SUFFIX)
                .permissions(Permissions::from_mode(0o644))
                .tempfile_in(folder)?;
            // Before it is locked it looks abandoned, and may be swept.
            match temp.as_file().try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            if temp.path().exists() {
                return Ok(Self { temp });
            }
        }
    }

    /// Creates an empty file that will become `to`.
    ///
    /// # Errors
    /// If its folder does not accept files.
    pub fn beside(to: &Path) -> io::Result<Self> {
        Self::create_in(folder_of(to))
    }

    /// Writes a file and replaces `to` with it.
    ///
    /// # Errors
    /// If it cannot be written; then nothing has changed.
    pub fn write(to: &Path, content: &[u8]) -> io::Result<()> {
        let whole = Self::beside(to)?;
        whole.file().write_all(content)?;
        whole.finish(to)
    }

    /// The file, for writing.
    pub fn file(&self) -> &File {
        self.temp.as_file()
    }

    /// The temporary path of the file.
    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    /// Makes the content durable and gives the file its name, replacing an existing file.
    ///
    /// # Errors
    /// If the disk fails; then an existing file stays.
    pub fn finish(self, to: &Path) -> io::Result<()> {
        self.temp.as_file().sync_all()?;
        // Not by `persist`, which bypasses the C library: a simulated disk failure
        // (`tests/scripts/faults.py`) would not see it. The file is locked until it has its name.
        let (_locked, mut path) = self.temp.into_parts();
        fs::rename(&path, to)?;
        path.disable_cleanup(true);
        sync_folder(folder_of(to))
    }

    /// Like [`WholeFile::finish`], but replaces nothing.
    ///
    /// # Errors
    /// Of the kind [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the name is taken.
    pub fn finish_new(self, to: &Path) -> io::Result<()> {
        self.temp.as_file().sync_all()?;
        match fs::hard_link(self.temp.path(), to) {
            // Dropping this removes the other name.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // File systems without hard links.
            Err(_) => drop(self.temp.persist_noclobber(to).map_err(|error| error.error)?),
        }
        sync_folder(folder_of(to))
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes, or only counts, the unfinished files in the folder that no running process writes.
pub fn sweep_unfinished(folder: &Path, dry_run: bool) -> u64 {
    let mut count = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let unfinished = name.starts_with(PREFIX.as_bytes())
            && name.ends_with(SUFFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_file());
        if unfinished
            && let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            // While the lock is held, so that its creator does not begin to use it. If it stays, it
            // does no harm.
            count += u64::from(dry_run || fs::remove_file(entry.path()).is_ok());
        }
    }
    count
}

/// Makes room for one of our files: a folder in its place is damage, as only we write here, and the
/// file's content can be restored.
///
/// # Errors
/// If the folder cannot be removed.
pub fn clear_place(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { Ok(()) }
}

/// Creates a folder and missing parents, durably: a crash cannot remove the folder's name and with
/// it later durable content.
///
/// # Errors
/// If the folder cannot be created, or the disk fails.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|folder| !folder.exists()).count();
    fs::create_dir_all(folder)?;
    name_durably(folder, missing)
}

/// As [`make_folder`], for paid content. The names of the nearest folders are made durable even if
/// they exist: another process may just have created them.
///
/// # Errors
/// As for [`make_folder`].
pub fn make_lasting_folder(folder: &Path) -> io::Result<()> {
    make_folder(folder)?;
    // The folder, `downloads`, and the store.
    name_durably(folder, 3)
}

fn name_durably(folder: &Path, folders: usize) -> io::Result<()> {
    let named = folder.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    named.take(folders).try_for_each(|folder| sync_folder(folder_of(folder)))
}

/// Makes the names in a folder durable, if the system supports it.
///
/// # Errors
/// If the disk fails.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::InvalidInput
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("a.csv");
        let whole = WholeFile::beside(&to).unwrap();
        whole.file().write_all(b"one").unwrap();
        assert!(!to.exists());
        drop(whole);
        assert!(names(folder.path()).is_empty());
        WholeFile::write(&to, b"one").unwrap();
        WholeFile::write(&to, b"two").unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"two");
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o600, 0o600);
        let other = WholeFile::beside(&to).unwrap();
        assert_eq!(other.finish_new(&to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn a_folder_is_made_with_those_above_it() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("a/b/c");
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        make_lasting_folder(&folder.join("d")).unwrap();
        assert!(folder.join("d").is_dir());
        fs::write(folder.join("file"), "").unwrap();
        assert!(make_folder(&folder.join("file")).is_err());
        assert!(make_lasting_folder(&folder.join("file/e")).is_err());
    }

    #[test]
    fn unfinished_files_of_the_dead_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".galeras-dead00.part"), "half").unwrap();
        fs::write(folder.path().join(".galeras-notes"), "mine").unwrap();
        assert_eq!(sweep_unfinished(folder.path(), true), 1);
        let alive = WholeFile::create_in(folder.path()).unwrap();
        assert_eq!(sweep_unfinished(folder.path(), true), 0);
        let other = WholeFile::create_in(folder.path()).unwrap();
        alive.finish(&folder.path().join("a")).unwrap();
        other.finish(&folder.path().join("b")).unwrap();
        assert_eq!(names(folder.path()), [".galeras-notes", "a", "b"]);
    }
}
