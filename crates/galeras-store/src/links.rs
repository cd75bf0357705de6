//! Links in the folders of a store are refused: a cloned repository can bring a store whose
//! folders lead to the user's files, which would then be written and removed.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::error::{StoreError, StoreErrorKind};
use super::location::STORE_FOLDERS;

/// The file of `VerifiedFiles`.
pub(super) const VERIFIED: &str = "verified.log";

/// Checks that no folder of the store at `root` is a link. A link to a single table is allowed: the
/// table is compared with its digest when it is read, and a write replaces the link.
///
/// # Errors
/// [`StoreErrorKind::Linked`], with the name of the link.
pub fn refuse_links(root: &Path) -> Result<(), StoreError> {
    for name in STORE_FOLDERS.iter().chain([&VERIFIED]) {
        // Downloads and parts have folders within their folders.
        let depth = if matches!(*name, "downloads" | "memo") { 2 } else { 1 };
        let entries = walkdir::WalkDir::new(root.join(name)).max_depth(depth);
        for entry in entries.follow_root_links(false).into_iter().flatten() {
            if entry.path_is_symlink() {
                return Err(linked(entry.path()));
            }
        }
    }
    Ok(())
}

/// Checks that a path is not a link. For paths that the user did not name.
///
/// # Errors
/// [`StoreErrorKind::Linked`].
pub fn refuse_link(path: &Path) -> Result<(), StoreError> {
    match path.is_symlink() {
        true => Err(linked(path)),
        false => Ok(()),
    }
}

fn linked(path: &Path) -> StoreError {
    let to = fs::read_link(path).unwrap_or_default();
    let cause =
        format!("it is a link to {}", galeras_base::terminal_escape::escape(&to.to_string_lossy()));
    StoreError::new(StoreErrorKind::Linked, "use", path.display(), cause)
}

/// Options to open a file of a store. Opening a link fails.
pub(super) fn without_links() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}
