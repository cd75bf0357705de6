//! A local repository: opening it, its head, the objects in it, and panics of its reader.
//!
//! An object is used only if its id matches its bytes. gix does not compare them, and a byte that
//! changed in a pack may give another object.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use gix::ObjectId;
use gix::objs::{FindExt, FindHeader, Kind};
use gix::odb::pack::cache::Object;
use gix::odb::pack::cache::lru::MemoryCappedHashmap as DeltaCache;
use gix::odb::pack::cache::object::MemoryCappedHashmap as ObjectCache;

use super::error::{GitError, GitErrorKind, Result};
use super::layout::{Judge, Layout};
use super::limits::OBJECT_BYTES;
use super::remote::Head;

/// Memory for bases of deltas, per thread and in bytes.
const DELTA_CACHE: usize = 48 << 20;
/// Memory for trees, per thread and in bytes. Neighbouring commits share most of them.
const TREE_CACHE: usize = 24 << 20;

/// How many references are followed, each of which names the next; as many as git follows.
const REFERENCES: usize = 5;

/// How many ids of objects are remembered that are what they should be, per thread.
const CHECKED: usize = 1 << 20;

/// A cache of trees. Contents of files are kept as sources, and would push the trees out.
struct TreeCache(ObjectCache);

impl Object for TreeCache {
    fn put(&mut self, id: ObjectId, kind: Kind, data: &[u8]) {
        if kind == Kind::Tree {
            self.0.put(id, kind, data);
        }
    }

    fn get(&mut self, id: &ObjectId, out: &mut Vec<u8>) -> Option<Kind> {
        self.0.get(id, out)
    }
}

/// An open repository, shared by threads.
pub struct Repository(gix::ThreadSafeRepository);

/// One thread's access to the objects.
pub struct Objects {
    handle: gix::OdbHandle,
    buffer: Vec<u8>,
    /// Objects that are replaced by others (`git help replace`).
    replaced: HashMap<ObjectId, ObjectId>,
    /// Objects that were compared with their ids.
    checked: HashSet<ObjectId>,
}

impl Repository {
    /// Opens the repository in `dir`, bare or with a work tree, also if it leads elsewhere. Only
    /// the repository's configuration is read, and no program is run. The error is
    /// [`GitErrorKind::NotFound`] if there is none, [`GitErrorKind::Damaged`] if it cannot be read,
    /// [`GitErrorKind::Limit`] if something in it is too large, [`GitErrorKind::Other`] if its
    /// objects do not have SHA-1 names or its references are not files.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_judged(dir, &mut |_| Ok(()))
    }

    /// As [`Self::open`], if `judge` lets it: see [`places`](super::places). Nothing is read from
    /// any other place. Errors are those of [`Self::open`] and of `judge`.
    pub fn open_judged(dir: &Path, judge: Judge<'_>) -> Result<Self> {
        let layout = Layout::of(dir, judge)?;
        check_format(&layout.common_dir)?;
        let settings = [
            // Objects may claim sizes up to here.
            format!("gitoxide.objects.allocLimit={OBJECT_BYTES}"),
            // It may name packs in any folder. Each pack also has its own index.
            "core.multiPackIndex=false".to_string(),
            // And these, files in any folder.
            "gitoxide.objects.replaceRefBase=refs/replace/".to_string(),
            "gitoxide.core.shallowFile=shallow".to_string(),
        ];
        let options = gix::open::Options::isolated().bail_if_untrusted(false);
        let options = options.config_overrides(settings).open_path_as_is(true);
        let opened = gix::ThreadSafeRepository::open_opts(&layout.git_dir, options);
        let repository = opened.map_err(|error| match dir.exists() {
            true => {
                let dir = dir.display();
                GitError::damaged(format!("{dir} cannot be opened as a repository: {error}"))
            }
            false => not_found(format!("there is no repository at {}", dir.display())),
        })?;
        layout.check(&repository.to_thread_local())?;
        Ok(Self(repository))
    }

    /// The commit at the tip of `branch` (a name without `refs/heads/`), or of the branch that is
    /// checked out. The error is [`GitErrorKind::NotFound`] if there is no such branch or it has no
    /// commit, [`GitErrorKind::Damaged`] if `HEAD` or the branch cannot be read.
    pub fn head(&self, branch: Option<&str>) -> Result<Head> {
        let repository = self.0.to_thread_local();
        let Some(name) = branch else {
            let head = repository.find_reference("HEAD").map_err(GitError::damaged)?;
            let name = head.target().try_name().map(|name| name.shorten().to_string());
            let tip = tip(&repository, head)?;
            let tip = tip.ok_or_else(|| not_found("the repository has no commits".to_string()))?;
            let header = self.objects().handle.try_header(&tip).map_err(GitError::damaged)?;
            if header.is_none_or(|header| header.kind != Kind::Commit) {
                let text = format!("HEAD is {tip}, which is not a commit of the repository");
                return Err(not_found(text));
            }
            return Ok(Head { branch: name.unwrap_or_else(|| "HEAD".to_string()), commit: tip });
        };
        let no_branch = || not_found(format!("there is no branch `{name}`"));
        let reference = repository.find_reference(&format!("refs/heads/{name}"));
        let commit = tip(&repository, reference.map_err(|_| no_branch())?)?;
        Ok(Head { branch: name.to_string(), commit: commit.ok_or_else(no_branch)? })
    }

    /// The commits whose parents were cut off, if this is a shallow clone. The error is
    /// [`GitErrorKind::Damaged`] if the list cannot be read.
    pub fn shallow(&self) -> Result<Vec<ObjectId>> {
        let repository = self.0.to_thread_local();
        let commits = repository.shallow_commits().map_err(GitError::damaged)?;
        Ok(commits.map(|list| list.iter().copied().collect()).unwrap_or_default())
    }

    /// Access for one thread, with separate caches (72 MB when full).
    pub fn objects(&self) -> Objects {
        let mut handle = self.0.to_thread_local().objects;
        handle.set_pack_cache(|| Box::new(DeltaCache::new(DELTA_CACHE)));
        handle.set_object_cache(|| Box::new(TreeCache(ObjectCache::new(TREE_CACHE))));
        handle.refresh_never();
        let replaced = handle.store_ref().replacements().collect();
        Objects { handle, buffer: Vec::new(), replaced, checked: HashSet::new() }
    }
}

/// Refuses the formats of Git that gix does not read, by their names: its own errors do not give them.
fn check_format(common_dir: &Path) -> Result<()> {
    let file = common_dir.join("config");
    if !common_dir.is_absolute() || !file.is_file() {
        return Ok(());
    }
    let config = gix::config::File::from_path_no_includes(file, gix::config::Source::Local);
    // What is wrong with it is reported when the repository is opened.
    let Ok(config) = config else { return Ok(()) };
    let other = |key: &str, read: &str| config.string(key).filter(|format| *format != read);
    if let Some(format) = other("extensions.objectFormat", "sha1") {
        return Err(GitError::other(format!(
            "the names of its objects are of the kind `{format}`, and only SHA-1 can be read; copy \
             it into a new repository with `git fast-export --all | git fast-import`, which gives \
             its commits other ids"
        )));
    }
    if let Some(format) = other("extensions.refStorage", "files") {
        return Err(GitError::other(format!(
            "its references are in the format `{format}`, and only files can be read; run `git refs \
             migrate --ref-format=files` in it, or name a clone of it"
        )));
    }
    Ok(())
}

fn not_found(message: String) -> GitError {
    GitError::new(GitErrorKind::NotFound, message)
}

/// The object at the end of a reference; `None` for a branch without commits.
///
/// Step by step, as git has it: a reference names another one below `refs` or nothing. gix would go
/// on to any file of the folder.
fn tip(repository: &gix::Repository, reference: gix::Reference<'_>) -> Result<Option<ObjectId>> {
    let mut reference = reference;
    for _ in 0..REFERENCES {
        let Some(name) = reference.target().try_name().map(ToOwned::to_owned) else {
            let id = reference.into_fully_peeled_id().map_err(GitError::damaged)?;
            return Ok(Some(id.detach()));
        };
        if !name.as_bstr().starts_with(b"refs/") {
            let message = format!("a reference names `{name}`, which is not below `refs`");
            return Err(GitError::damaged(message));
        }
        match repository.try_find_reference(name.as_ref()).map_err(GitError::damaged)? {
            Some(next) => reference = next,
            None => return Ok(None),
        }
    }
    Err(GitError::damaged("a reference names another one, and so on without an end"))
}

/// Runs `work` on a repository that may hold anything. The code that takes packs apart is not ours:
/// where it gives up with a panic, the repository is damaged. Errors are those of `work`; `Damaged`
/// if it panics.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(GitError::damaged("the repository cannot be read: its reader panicked"))
    })
}

impl Objects {
    /// The size of an object in bytes, without unpacking it.
    pub(super) fn size(&mut self, id: ObjectId) -> Result<u64> {
        let header = self.handle.try_header(&id).map_err(GitError::damaged)?;
        let header = header.ok_or_else(|| GitError::damaged(format!("object {id} is missing")))?;
        Ok(header.size)
    }

    /// The bytes of an object of this kind, which are those that its id is made of. The error is
    /// `Damaged` if it is missing, of another kind, or has other bytes; `Limit` if it has more than
    /// [`OBJECT_BYTES`].
    pub(super) fn bytes(&mut self, id: ObjectId, kind: Kind) -> Result<&[u8]> {
        let found = match self.handle.find(&id, &mut self.buffer) {
            Ok(data) => data,
            Err(error) => {
                let damaged = GitError::damaged(format!("object {id}: {error}"));
                return Err(too_large(&self.handle, id).unwrap_or(damaged));
            }
        };
        if found.kind != kind {
            return Err(GitError::damaged(format!("object {id} is a {}", found.kind)));
        }
        if !self.checked.contains(&id) {
            let wanted = self.replaced.get(&id).unwrap_or(&id);
            if let Err(error) = found.verify_checksum(wanted) {
                return Err(GitError::damaged(format!("object {id} is damaged: {error}")));
            }
            if self.checked.len() >= CHECKED {
                self.checked.clear();
            }
            self.checked.insert(id);
        }
        Ok(found.data)
    }
}

/// Why an object cannot be read, if that is its size.
fn too_large(handle: &gix::OdbHandle, id: ObjectId) -> Option<GitError> {
    let size = handle.try_header(&id).ok()??.size;
    let (size, most) = (size >> 20, OBJECT_BYTES >> 20);
    let message = format!("object {id} has {size} MB; objects of up to {most} MB are read");
    (size >= most).then(|| GitError::limit(message))
}
