//! Temporary folders for a running step: inputs and outputs of programs, sorted parts of tables.
//! Also hidden folders elsewhere, for files on their way to their final place.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;

use tempfile::TempDir;

const PREFIX: &str = "galeras-scratch-";

const HIDDEN_PREFIX: &str = ".galeras-export-";

/// The file in each folder that its process has locked.
const LOCK: &str = "lock";

/// A temporary folder, readable only by its owner. Dropping it removes it with its content.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    /// The lock ends with the process in every case. It is released after the folder is removed.
    _lock: File,
}

impl ScratchFolder {
    /// Creates an empty folder below the system's folder for temporary files (`TMPDIR`).
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), PREFIX)
    }

    /// Creates a hidden folder in `parent`, for content that will be moved to a place near it.
    /// Removes such folders of killed processes there.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_hidden(parent: &Path) -> io::Result<Self> {
        sweep_in(parent, HIDDEN_PREFIX);
        Self::create_in(parent, HIDDEN_PREFIX)
    }

    fn create_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new()
                .prefix(prefix)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(parent)?;
            let path = folder.path().join(LOCK);
            let lock = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(lock) => lock,
                // Another process is about to sweep it, because it had no lock yet.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists
                    ) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // A file system without locks: then nothing is ever swept there.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            if path.exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Its path. The name `lock` in it is taken.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A scratch folder that is created on demand: most steps keep nothing on disk.
#[derive(Debug, Default)]
pub struct LazyScratch(OnceLock<ScratchFolder>);

impl LazyScratch {
    /// Its path.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn path(&self) -> io::Result<&Path> {
        if let Some(folder) = self.0.get() {
            return Ok(folder.path());
        }
        let folder = ScratchFolder::create()?;
        Ok(self.0.get_or_init(|| folder).path())
    }
}

/// Removes the folders that processes of this user have left behind, and counts them. Folders of
/// running processes, including this one, stay.
pub fn sweep() -> u64 {
    sweep_in(&std::env::temp_dir(), PREFIX)
}

fn sweep_in(parent: &Path, prefix: &str) -> u64 {
    let Ok(entries) = fs::read_dir(parent) else { return 0 };
    let owner = rustix::process::geteuid().as_raw();
    let mut count = 0;
    for entry in entries.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        // Links are not followed. Folders of other users are left to them.
        let ours = entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == owner);
        count += u64::from(ours && remove_if_dead(&entry.path()));
    }
    count
}

fn remove_if_dead(folder: &Path) -> bool {
    // Without its lock its process was killed right after creating it, or while sweeping it.
    let lock = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join(LOCK));
    lock.is_ok_and(|lock| lock.try_lock().is_ok() && fs::remove_dir_all(folder).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_swept_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let alive = ScratchFolder::create_in(parent.path(), PREFIX).unwrap();
        fs::write(alive.path().join("input"), "1").unwrap();
        let names = ["galeras-scratch-dead", "galeras-scratch-unborn", "galeras-downloads"];
        let [dead, unborn, other] = names.map(|name| parent.path().join(name));
        for folder in [&dead, &unborn, &other] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(dead.join(LOCK), "").unwrap();
        fs::create_dir(dead.join("datafusion-x")).unwrap();
        fs::write(dead.join("datafusion-x/spilled"), "1").unwrap();
        fs::write(parent.path().join("galeras-scratch-file"), "1").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("precious"), "1").unwrap();
        let link = parent.path().join("galeras-scratch-link");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        assert_eq!(sweep_in(parent.path(), PREFIX), 2);
        assert!(!dead.exists() && !unborn.exists());
        assert!(alive.path().join("input").exists() && other.exists() && link.exists());
        assert!(elsewhere.path().join("precious").exists());
        let path = alive.path().to_path_buf();
        drop(alive);
        assert!(!path.exists());
        assert_eq!(sweep_in(parent.path(), PREFIX), 0);
    }

    #[test]
    fn a_hidden_folder_takes_the_place_of_those_that_killed_processes_left() {
        let parent = tempfile::tempdir().unwrap();
        let [dead, other] = [".galeras-export-dead", "galeras-scratch-1"];
        for folder in [dead, other] {
            fs::create_dir_all(parent.path().join(folder).join("files/data")).unwrap();
        }
        fs::write(parent.path().join(dead).join(LOCK), "").unwrap();
        let one = ScratchFolder::create_hidden(parent.path()).unwrap();
        let two = ScratchFolder::create_hidden(parent.path()).unwrap();
        assert!(one.path().exists() && two.path().exists());
        assert!(!parent.path().join(dead).exists() && parent.path().join(other).exists());
    }

    #[test]
    fn sweeping_and_making_do_not_disturb_each_other() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let sweeper =
                scope.spawn(|| (0..500).map(|_| sweep_in(parent.path(), PREFIX)).sum::<u64>());
            for _ in 0..500 {
                let folder = ScratchFolder::create_in(parent.path(), PREFIX).unwrap();
                fs::write(folder.path().join("input"), "1").unwrap();
                assert!(folder.path().join(LOCK).exists());
            }
            sweeper.join().unwrap();
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
