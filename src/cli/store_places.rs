//! The folders derived from a store's location before the store is opened: for fetched files, for
//! answers of interrupted runs, and the folders that belong to the store alone.
//!
//! A folder store keeps them inside itself. A bucket has a private folder in the user's cache
//! folder, and a store in memory one that is removed at the end of the process (or, if that is
//! killed, by the next run): none is shared with another store or another user. Bundles are unpacked
//! into such folders as well.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::exit::{Exit, Failure, fail};
use super::screen::note;
use galeras_base::scratch::{ScratchFolder, make_folder};
use galeras_base::terminal_escape::escape;
use galeras_display::count;
use galeras_engine::trust::StoreMemory;
use galeras_store::{STORE_FOLDERS, StoreError, StoreLocation, private_folder, refuse_links};
use galeras_study::sharing::OpenedBundle;

#[derive(Debug)]
pub(super) struct StorePlaces {
    /// For downloads, and for answers of interrupted runs.
    pub(super) downloads: PathBuf,
    /// Folders that only the store writes to; empty if the store is elsewhere.
    pub(super) guarded: Vec<PathBuf>,
}

/// The folder of a store in memory.
static SCRATCH: Mutex<Option<ScratchFolder>> = Mutex::new(None);

/// Folders of the current command, such as unpacked bundles.
static FOLDERS: Mutex<Vec<ScratchFolder>> = Mutex::new(Vec::new());

/// The most problems shown when a bundle is used; `verify` shows all.
const NAMED: usize = 5;

impl StorePlaces {
    /// The folders of the store at a location as `--cache` takes it. Fails if its private folder
    /// cannot be made or is not private.
    pub(super) fn of(location: &str) -> Result<Self, StoreError> {
        refuse_linked(location)?;
        let location = StoreLocation::parse(location)?;
        let (downloads, guarded) = match &location {
            StoreLocation::Folder(path) => {
                (path.join("downloads"), STORE_FOLDERS.iter().map(|name| path.join(name)).collect())
            }
            StoreLocation::Memory(_) => (scratch()?, Vec::new()),
            StoreLocation::Bucket(_) => (below_caches(&location)?, Vec::new()),
        };
        Ok(Self { downloads, guarded })
    }
}

/// Refuses folders of a store that are links, which a cloned repository can bring.
pub(super) fn refuse_linked(location: &str) -> Result<(), StoreError> {
    match StoreLocation::parse(location)? {
        StoreLocation::Folder(path) => refuse_links(&path),
        StoreLocation::Memory(_) | StoreLocation::Bucket(_) => Ok(()),
    }
}

/// Folders of a store whose files are believed.
const RESULTS: [&str; 2] = ["actions", "memo"];

/// The folder of a store with results; `None` if it is not a folder.
fn results_in(location: &str) -> Option<(PathBuf, bool)> {
    let StoreLocation::Folder(path) = StoreLocation::parse(location).ok()? else { return None };
    let filled = |name: &&str| {
        std::fs::read_dir(path.join(name)).is_ok_and(|mut entries| entries.next().is_some())
    };
    let any = RESULTS.iter().any(filled);
    Some((path, any))
}

/// Warns of results that came with a clone or from another user, as their maker decided what a run
/// will show. With `trusted`, the store is remembered instead.
pub(super) fn check_origin(location: &str, trusted: bool) {
    let Some((path, true)) = results_in(location) else { return };
    let memory = StoreMemory::of_user();
    if memory.knows(&path) {
        return;
    }
    if !trusted {
        note(&format!(
            "warning: the results in {} were not computed by you on this machine, and are used \
             unchecked; another --cache computes them again, --trust-store ends this warning",
            escape(&path.to_string_lossy())
        ));
    } else if let Err(error) = memory.remember(&path) {
        note(&format!("the store is not remembered: {error}"));
    }
}

/// Remembers a store without results, which this user is about to fill.
pub(super) fn claim(location: &str) {
    if let Some((path, false)) = results_in(location)
        && make_folder(&path).is_ok()
    {
        // If it is not remembered, the next run warns of it.
        let _ = StoreMemory::of_user().remember(&path);
    }
}

/// Removes all folders of this process.
pub(super) fn remove_scratch() {
    SCRATCH.lock().unwrap_or_else(PoisonError::into_inner).take();
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// A new folder that lives as long as the program.
pub(super) fn scratch_folder() -> Result<PathBuf, Failure> {
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
    let folder = scratch_folder()?;
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

/// Removes the newest folder.
pub(super) fn remove_last() {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).pop();
}

fn scratch() -> Result<PathBuf, StoreError> {
    let mut scratch = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = scratch.as_ref() {
        return Ok(folder.path().join("downloads"));
    }
    let folder = ScratchFolder::create()
        .map_err(|error| StoreError::of("write", std::env::temp_dir().display(), error))?;
    Ok(scratch.insert(folder).path().join("downloads"))
}

fn below_caches(location: &StoreLocation) -> Result<PathBuf, StoreError> {
    let variable = |name: &&str| std::env::var_os(name);
    let Some(caches) = user_caches(variable(&"XDG_CACHE_HOME"), variable(&"HOME")) else {
        let error = std::io::Error::other("neither HOME nor XDG_CACHE_HOME names a folder");
        return Err(StoreError::of("find", "a folder for downloads", error));
    };
    // A bucket name may exist at several endpoints.
    let names: &[&str] = match location {
        StoreLocation::Bucket(url) if url.scheme() == "gs" => &["GOOGLE_BASE_URL"],
        _ => &["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"],
    };
    let endpoints = names.iter().map(variable);
    let endpoints: Vec<Option<String>> =
        endpoints.map(|value| value.map(|value| value.to_string_lossy().into_owned())).collect();
    private_folder(&caches.join("galeras"), &location.digest(&endpoints).to_string())
}

/// The user's cache folder. Relative paths are ignored, as the XDG specification demands.
fn user_caches(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    xdg.and_then(absolute).or_else(|| home.and_then(absolute).map(|home| home.join(".cache")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_where_the_user_has_them() {
        let caches = |xdg: Option<&str>, home: Option<&str>| {
            user_caches(xdg.map(Into::into), home.map(Into::into))
        };
        assert_eq!(caches(Some("/x"), Some("/h")).unwrap(), Path::new("/x"));
        assert_eq!(caches(Some("x"), Some("/h")).unwrap(), Path::new("/h/.cache"));
        assert_eq!(caches(Some(""), Some("/h")).unwrap(), Path::new("/h/.cache"));
        assert_eq!(caches(None, Some("h")), None);
        assert_eq!(caches(None, None), None);
    }

    #[test]
    fn a_store_in_memory_has_a_folder_that_the_next_run_would_sweep() {
        let downloads = StorePlaces::of("memory://").unwrap().downloads;
        assert_eq!(StorePlaces::of("memory://other").unwrap().downloads, downloads);
        let folder = downloads.parent().unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("galeras-scratch-") && folder.join("lock").exists(), "{name}");
        galeras_base::scratch::sweep();
        assert!(folder.exists(), "its process lives");
        remove_scratch();
        assert!(!folder.exists());
    }

    #[test]
    fn a_url_of_a_folder_is_that_folder() {
        let plain = StorePlaces::of("/a/b").unwrap();
        let url = StorePlaces::of("file:///a/b").unwrap();
        assert_eq!(plain.downloads, Path::new("/a/b/downloads"));
        assert_eq!((url.downloads, url.guarded), (plain.downloads, plain.guarded));
    }
}
