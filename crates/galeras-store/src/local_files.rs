//! Files of a store that is a folder. Links in its folders are refused: a cloned repository can
//! bring a store whose folders lead to the user's files, which would then be written and removed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::error::{Result, StoreError, StoreErrorKind};
use super::location::STORE_FOLDERS;
use galeras_base::scratch::{WholeFile, clear_place, make_folder};

/// The file of `VerifiedFiles`.
pub(super) const VERIFIED: &str = "verified.log";

/// Returns an error of kind [`StoreErrorKind::Linked`] if a folder of the store at `root` is a
/// link. A link to a single table is allowed: the table is compared with its digest when it is
/// read, and a write replaces the link.
pub fn refuse_links(root: &Path) -> Result<()> {
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

/// Returns an error of kind [`StoreErrorKind::Linked`] if a path, which the user did not name, is a
/// link.
pub fn refuse_link(path: &Path) -> Result<()> {
    if path.is_symlink() { Err(linked(path)) } else { Ok(()) }
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

/// Opens a file of a store for reading and writing, or creates it.
pub(super) fn open_or_create(path: &Path) -> io::Result<File> {
    without_links().read(true).write(true).create(true).truncate(false).open(path)
}

/// Makes the content durable and gives the file its name, replacing an existing file or, after
/// damage, a folder.
pub(super) fn place(temp: WholeFile, to: &Path) -> io::Result<()> {
    let folder = to.parent().ok_or(io::ErrorKind::InvalidInput)?;
    if folder.symlink_metadata().is_ok_and(|about| about.is_file()) {
        fs::remove_file(folder)?;
    }
    make_folder(folder)?;
    clear_place(to)?;
    temp.finish(to)
}
