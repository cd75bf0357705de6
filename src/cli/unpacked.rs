//! Bundles unpacked for the current command and removed at its end.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::exit::{Exit, Failure, fail};
use super::screen::note;
use galeras_base::scratch::ScratchFolder;
use galeras_base::terminal_escape::escape;
use galeras_display::count;
use galeras_study::sharing::OpenedBundle;

static FOLDERS: Mutex<Vec<ScratchFolder>> = Mutex::new(Vec::new());

/// The most problems shown when a bundle is used; `verify` shows all.
const NAMED: usize = 5;

/// A new folder that lives as long as the program.
pub(super) fn folder() -> Result<PathBuf, Failure> {
    let scratch = ScratchFolder::create().map_err(|error| {
        fail(format!("cannot make a folder for temporary files: {error}"), Exit::Disk)
    })?;
    let folder = scratch.path().join("unpacked");
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    Ok(folder)
}

/// The store in an unpacked bundle. Damaged files are left out and reported.
pub(super) fn unpacked_store(path: &Path) -> Result<String, Failure> {
    let mut bundle = OpenedBundle::open(path)?;
    bundle.record()?;
    let folder = folder()?;
    let (_, problems) = bundle.check(&folder, |name| name.starts_with("cache/"))?;
    for problem in problems.iter().take(NAMED) {
        note(&format!("{}: {}", escape(&path.to_string_lossy()), escape(&problem.to_string())));
    }
    if problems.len() > NAMED {
        let more = count((problems.len() - NAMED) as u64);
        note(&format!("and {more} more files are not what they were; `galeras verify` names them"));
    }
    Ok(folder.join("cache").to_string_lossy().into_owned())
}

pub(super) fn remove_unpacked() {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Removes the newest folder.
pub(super) fn remove_last() {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).pop();
}
