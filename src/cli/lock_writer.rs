//! Only one process at a time may change `galeras.lock`. `lock` and `registrations` write its
//! content.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use super::context::note;

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Until it is dropped, no other process changes the lock file: changes made between reading and
/// writing would be lost. The folder is locked, as the file is replaced; some file systems have no
/// locks.
pub(super) async fn only_writer(lock_file: &Path) -> Option<File> {
    let folder = lock_file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).ok()?;
    let mut said = false;
    loop {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(TryLockError::Error(_)) => return None,
            Err(TryLockError::WouldBlock) if !said => {
                note(&format!("waiting for the process that writes {}", lock_file.display()));
                said = true;
            }
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}
