//! The remaining room on a disk: files from others must not fill it.

use std::path::Path;

/// This much stays free on the disk.
pub const KEPT_FREE: u64 = 256 << 20;

/// The bytes that may be written to the disk of a folder; unlimited if unknown.
pub fn free_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}
