//! Files of a store that is a folder: temporary files that die with their process, and
//! writes that are either whole or absent after a crash.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::links::without_links;
use super::own_name::is_temporary;
use super::record::random;
use galeras_base::scratch::{make_folder, sync_folder};

/// A file in a store's `tmp/`. While it is open it is locked, so that no other process takes it
/// for the remains of a dead process; dropping it removes it.
#[derive(Debug)]
pub(super) struct TempFile {
    pub(super) file: File,
    path: PathBuf,
    persisted: bool,
}

impl TempFile {
    /// A new, empty file in `folder`, which must exist.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        loop {
            let path = folder.join(format!("{:016x}", random()));
            let file = match without_links().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // Between its creation and its lock the file looks like remains, and another
            // process may remove it: then start over.
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // A file system without locks: `dead` keeps off such files.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            if path.exists() {
                return Ok(Self { file, path, persisted: false });
            }
        }
    }

    /// Makes the content durable and gives the file its name, replacing what had it, be it a
    /// folder that damage put there.
    pub(super) fn persist(mut self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let folder = to.parent().ok_or(io::ErrorKind::InvalidInput)?;
        if !folder.is_dir() {
            if folder.symlink_metadata().is_ok_and(|about| about.is_file()) {
                fs::remove_file(folder)?;
            }
            make_folder(folder)?;
        }
        fs::rename(&self.path, to).or_else(|error| {
            if !to.symlink_metadata().is_ok_and(|about| about.is_dir()) {
                return Err(error);
            }
            fs::remove_dir_all(to)?;
            fs::rename(&self.path, to)
        })?;
        self.persisted = true;
        sync_folder(folder)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.persisted {
            // If it cannot be removed now, the next process to open the store does it.
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Removes the temporary files in `folder` that no living process holds, or only counts
/// them. Files with other names stay.
pub(super) fn sweep(folder: &Path, dry_run: bool) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let mut count = 0;
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_str().is_some_and(is_temporary);
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = without_links().read(true).write(true).open(&path) else { continue };
        // Removed while the lock is held, so that its creator cannot start to use it.
        if file.try_lock().is_ok() && (dry_run || fs::remove_file(&path).is_ok()) {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_dropped_temporary_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut temp = TempFile::create(folder.path()).unwrap();
        temp.file.write_all(b"x").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(temp);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_files_of_dead_processes_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let alive = TempFile::create(folder.path()).unwrap();
        let [dead, thesis] = ["0123456789abcdef", "thesis.tex"].map(|n| folder.path().join(n));
        fs::write(&dead, b"half a blob").unwrap();
        fs::write(&thesis, b"mine").unwrap();
        assert_eq!(sweep(folder.path(), true), 1);
        assert_eq!(sweep(folder.path(), false), 1);
        assert!(alive.path.exists() && thesis.exists());
        assert!(!dead.exists());
    }

    #[test]
    fn a_file_gets_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("aa/name");
        let mut temp = TempFile::create(folder.path()).unwrap();
        temp.file.write_all(b"whole").unwrap();
        assert!(!to.exists());
        temp.persist(&to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
