//! Bundles unpacked for the current command and removed at its end.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::exit::Exit;
use super::screen::{fail, note};
use galeras_base::scratch::ScratchFolder;
use galeras_base::terminal_escape::escape;
use galeras_display::count;
use galeras_study::sharing::{FileProblem, OpenedBundle, ShareError};

static FOLDERS: Mutex<Vec<ScratchFolder>> = Mutex::new(Vec::new());

/// The most problems shown when a bundle is used; `verify` shows all.
const NAMED: usize = 5;

pub(super) fn fail_share(error: &ShareError) -> Exit {
    let exit = if error.blames_disk() { Exit::Disk } else { Exit::Invalid };
    match error {
        ShareError::Run(error) if !error.blames_disk() => fail(&error.explained(), Exit::Failed),
        ShareError::Run(error) => fail(&error.explained(), exit),
        ShareError::Refused(why) | ShareError::Disk(why) => fail(&escape(why), exit),
    }
}

/// A new folder that lives as long as the program.
pub(super) fn folder() -> Result<PathBuf, Exit> {
    let scratch = ScratchFolder::create().map_err(|error| {
        fail(&format!("cannot make a folder for temporary files: {error}"), Exit::Disk)
    })?;
    let folder = scratch.path().join("unpacked");
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    Ok(folder)
}

/// Unpacks the wanted files of an undamaged bundle.
pub(super) fn unpack(
    bundle: &mut OpenedBundle,
    folder: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<(u64, Vec<FileProblem>), Exit> {
    bundle.check(folder, wanted).map_err(|error| fail_share(&error))
}

/// The store in an unpacked bundle. Damaged files are left out and reported.
pub(super) fn unpacked_store(path: &Path) -> Result<String, Exit> {
    let mut bundle = OpenedBundle::open(path).map_err(|error| fail_share(&error))?;
    bundle.record().map_err(|error| fail_share(&error))?;
    let folder = folder()?;
    let (_, problems) = unpack(&mut bundle, &folder, |name| name.starts_with("cache/"))?;
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
