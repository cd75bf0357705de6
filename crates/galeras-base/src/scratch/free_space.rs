//! How much may still be written to a disk, for whoever takes files from others: what they send
//! must not fill it.

use std::path::Path;

/// What stays free on the disk.
pub const KEPT_FREE: u64 = 256 << 20;

/// The bytes that may be written to the disk of a folder; all there are if nobody knows.
pub fn free_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}
