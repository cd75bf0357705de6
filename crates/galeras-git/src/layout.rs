//! The places on this machine that a repository in a folder leads to, found before it is opened.
//!
//! A `.git` file, `commondir`, `objects/info/alternates` and links may lead anywhere. So each such
//! place is found here, behind all links, and judged before anything in it is read. gix reads files
//! to their end and waits for named pipes, so the files that it reads as a whole are checked first.

use std::collections::HashSet;
use std::fs::{self, FileType, Metadata};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::error::{GitError, Result};
use super::limits::{ALTERNATES, CONFIG_BYTES, ENTRIES, LISTED_BYTES, PLACES, POINTER_BYTES};

/// Decides if a place that a repository leads to may be read.
pub type Judge<'a> = &'a mut dyn FnMut(&Path) -> Result<()>;

/// Where the parts of a repository are, behind all links.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The folder with `HEAD`.
    pub(super) git_dir: PathBuf,
    /// The folder with `config` and other files that all work trees share.
    pub(super) common_dir: PathBuf,
    /// The folders of objects, the repository's own first.
    objects: Vec<PathBuf>,
}

/// Finds the places outside of the folder `dir` that the repository in it leads to. `judge` is
/// asked about each, as a path behind all links, before anything in it is read. Errors are those of
/// `judge`; `Damaged` if something is not a file that should be one, `Limit` if a file is too large
/// or if there is too much. A folder without a repository is not an error.
pub fn places(dir: &Path, judge: Judge<'_>) -> Result<()> {
    Layout::of(dir, judge).map(drop)
}

impl Layout {
    /// The parts of the repository in the folder `dir`, bare or with a work tree.
    pub(super) fn of(dir: &Path, judge: Judge<'_>) -> Result<Self> {
        let root = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
        let mut survey =
            Survey { root, judge, outside: Vec::new(), entries: 0, seen: HashSet::new() };
        // As gix chooses.
        let below = dir.join(".git");
        if !dir.ends_with(".git")
            && let Some(layout) = survey.layout(&below)?
            && gix::discover::is_git(&below).is_ok()
        {
            return Ok(layout);
        }
        let layout = survey.layout(dir)?;
        Ok(layout.unwrap_or_else(|| Self { git_dir: dir.to_path_buf(), ..Self::default() }))
    }

    /// Checks that a repository that was opened is made of just these parts.
    pub(super) fn check(&self, opened: &gix::Repository) -> Result<()> {
        let is = |path: &Path, place: &Path| path.canonicalize().is_ok_and(|path| path == place);
        let store = opened.objects.store_ref();
        let same = is(opened.git_dir(), &self.git_dir)
            && is(opened.common_dir(), &self.common_dir)
            && self.objects.first().is_some_and(|objects| is(store.path(), objects));
        let others = store.alternate_db_paths().map_err(GitError::damaged)?;
        let known = |other: &PathBuf| self.objects.iter().any(|place| is(other, place));
        if same && others.iter().all(known) {
            return Ok(());
        }
        let message = format!("{} changed while it was opened", self.git_dir.display());
        Err(GitError::damaged(message))
    }
}

/// A repository that is being looked at.
struct Survey<'a> {
    /// The folder that was named, behind all links.
    root: PathBuf,
    judge: Judge<'a>,
    /// The places outside of it that may be read.
    outside: Vec<PathBuf>,
    /// Files and folders that were looked at.
    entries: u64,
    /// Folders that were looked at.
    seen: HashSet<PathBuf>,
}

impl Survey<'_> {
    /// The parts of the repository that a folder with `HEAD` belongs to, or the folder that a
    /// `.git` file names; `None` if there is neither.
    fn layout(&mut self, path: &Path) -> Result<Option<Layout>> {
        let Some((place, about)) = self.place(path)? else { return Ok(None) };
        let mut git_dir = place;
        if about.is_file() {
            check_file(path, &about, POINTER_BYTES)?;
            let Ok(named) = gix::discover::path::from_gitdir_file(path) else { return Ok(None) };
            match self.place(&named)? {
                Some((named, about)) if about.is_dir() => git_dir = named,
                _ => return Ok(None),
            }
        }
        let file = |name: &str| git_dir.join(name);
        if self.file(&file("HEAD"), POINTER_BYTES)?.is_none() {
            return Ok(None);
        }
        self.file(&file("gitdir"), POINTER_BYTES)?;
        self.file(&file("config.worktree"), CONFIG_BYTES)?;
        self.refs(&file("refs"))?;
        let mut common_dir = git_dir.clone();
        if let Some(named) = self.file(&file("commondir"), POINTER_BYTES)? {
            let named = gix::discover::path::from_plain_file(&named).and_then(Result::ok);
            let named = named.map(|named| git_dir.join(named));
            match named.map(|named| self.place(&named)).transpose()?.flatten() {
                Some((named, about)) if about.is_dir() => common_dir = named,
                _ => return Ok(None),
            }
        }
        self.file(&common_dir.join("config"), CONFIG_BYTES)?;
        for name in ["packed-refs", "shallow"] {
            self.file(&common_dir.join(name), LISTED_BYTES)?;
        }
        self.refs(&common_dir.join("refs"))?;
        let objects = self.objects(&common_dir.join("objects"))?;
        for folder in [&git_dir, &common_dir] {
            check_spelling(folder)?;
        }
        Ok(Some(Layout { git_dir, common_dir, objects }))
    }

    /// The place behind all links, if it may be read, and its metadata; `None` if it does not exist.
    fn place(&mut self, path: &Path) -> Result<Option<(PathBuf, Metadata)>> {
        // A path that cannot be followed cannot be read either.
        let Ok(place) = path.canonicalize() else { return Ok(None) };
        let known = |folder: &PathBuf| place.starts_with(folder);
        if !known(&self.root) && !self.outside.iter().any(known) {
            if self.outside.len() >= PLACES {
                let what = format!("leads to more than {PLACES} places outside of it");
                return Err(self.too_much(&what));
            }
            (self.judge)(&place)?;
            self.outside.push(place.clone());
        }
        let about = fs::metadata(&place).map_err(|error| GitError::io("read", path, error))?;
        Ok(Some((place, about)))
    }

    /// Where a file is that gix reads as a whole; `None` if there is none.
    fn file(&mut self, path: &Path, most: u64) -> Result<Option<PathBuf>> {
        match self.place(path)? {
            Some((place, about)) if !about.is_dir() => {
                check_file(path, &about, most)?;
                Ok(Some(place))
            }
            _ => Ok(None),
        }
    }

    /// Looks at all references in a folder and the folders in it.
    fn refs(&mut self, path: &Path) -> Result<()> {
        let mut waiting = vec![path.to_path_buf()];
        while let Some(folder) = waiting.pop() {
            for (path, _) in self.entries(&folder, POINTER_BYTES)? {
                match self.place(&path)? {
                    Some((place, about)) if about.is_dir() => waiting.push(place),
                    Some((_, about)) => check_file(&path, &about, POINTER_BYTES)?,
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// The folder of objects, with those that it borrows from.
    fn objects(&mut self, path: &Path) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut waiting = vec![path.to_path_buf()];
        while let Some(folder) = waiting.pop() {
            let Some((place, _)) = self.place(&folder)? else { continue };
            if found.contains(&place) {
                continue;
            }
            if found.len() > ALTERNATES {
                let what = format!("borrows objects from more than {ALTERNATES} folders");
                return Err(self.too_much(&what));
            }
            self.object_files(&place)?;
            if let Some(list) = self.file(&place.join("info/alternates"), POINTER_BYTES)? {
                let text = fs::read(&list).map_err(|error| GitError::io("read", &list, error))?;
                let others = gix::odb::alternate::parse(&text).map_err(GitError::damaged)?;
                // Relative to the first folder, as in gix.
                waiting.extend(others.into_iter().map(|other| path.join(other)));
            }
            found.push(place);
        }
        Ok(found)
    }

    /// Looks at packs and single objects, which are not read as a whole.
    fn object_files(&mut self, objects: &Path) -> Result<()> {
        for path in self.entries(objects, u64::MAX)?.into_iter().map(|(path, _)| path) {
            let name = path.file_name().map(|name| name.as_encoded_bytes()).unwrap_or_default();
            let single = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
            if !single && name != b"pack" {
                continue;
            }
            let Some((folder, _)) = self.place(&path)? else { continue };
            for (path, kind) in self.entries(&folder, u64::MAX)? {
                match self.place(&path)? {
                    Some((_, about)) if !kind.is_dir() => check_file(&path, &about, u64::MAX)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The entries of a folder except plain files, which must have at most `most` bytes; none if
    /// the folder was listed before. They are sorted, so that `judge` always sees the same order.
    fn entries(&mut self, folder: &Path, most: u64) -> Result<Vec<(PathBuf, FileType)>> {
        let Some((place, about)) = self.place(folder)? else { return Ok(Vec::new()) };
        if !about.is_dir() || !self.seen.insert(place.clone()) {
            return Ok(Vec::new());
        }
        let error = |error| GitError::io("list", folder, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&place).map_err(error)? {
            let entry = entry.map_err(error)?;
            self.entries += 1;
            if self.entries > ENTRIES {
                return Err(self.too_much(&format!("has more than {ENTRIES} files in it")));
            }
            let kind = entry.file_type().map_err(error)?;
            if !kind.is_file() {
                found.push((entry.path(), kind));
            } else if most < u64::MAX {
                // One that is gone meanwhile is not read either.
                let about = entry.metadata().ok();
                about.map_or(Ok(()), |about| check_file(&entry.path(), &about, most))?;
            }
        }
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found)
    }

    fn too_much(&self, what: &str) -> GitError {
        GitError::limit(format!("{} {what}", self.root.display()))
    }
}

/// Checks that gix can read a file as a whole. The error is `Damaged` if it is not a file, `Limit`
/// if it has more bytes than `most`.
fn check_file(path: &Path, about: &Metadata, most: u64) -> Result<()> {
    let kind = about.file_type();
    if !kind.is_file() {
        let what = match kind {
            _ if kind.is_dir() => "a folder",
            _ if kind.is_fifo() => "a named pipe",
            _ if kind.is_socket() => "a socket",
            _ => "a device",
        };
        let message = format!("`{}` is {what}, not a file", path.display());
        return Err(GitError::damaged(message));
    }
    if about.len() > most {
        let (has, most) = (about.len().div_ceil(1024), most >> 10);
        let message =
            format!("`{}` has {has} KB; such files of up to {most} KB are read", path.display());
        return Err(GitError::limit(message));
    }
    Ok(())
}

/// Refuses a folder whose name can be spelt in two ways if both are there: a setting of the
/// repository (`core.precomposeUnicode`) has gix take the other one.
fn check_spelling(folder: &Path) -> Result<()> {
    let other = gix::utils::str::precompose_path(folder.into());
    if *other == *folder || !other.exists() {
        return Ok(());
    }
    let message = format!("there are two folders whose names look like `{}`", folder.display());
    Err(GitError::damaged(message))
}
