//! A local repository: opening it, its head, and the objects in it.
//!
//! An object is what its id says, or it is not used: gix does not compare them, and a byte that
//! changed in a pack may give another object as well as none.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gix::ObjectId;
use gix::objs::{FindExt, FindHeader, Kind};
use gix::odb::pack::cache::Object;
use gix::odb::pack::cache::lru::MemoryCappedHashmap as DeltaCache;
use gix::odb::pack::cache::object::MemoryCappedHashmap as ObjectCache;

use super::error::{GitError, GitErrorKind};
use super::limits::OBJECT_BYTES;
use super::net::Head;

/// Memory for bases of deltas, per thread and in bytes.
const DELTA_CACHE: usize = 48 << 20;
/// Memory for trees, per thread and in bytes. Neighbouring commits share most of them.
const TREE_CACHE: usize = 24 << 20;

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
    /// Objects that others take the place of (`git help replace`).
    replaced: HashMap<ObjectId, ObjectId>,
    /// Objects that were compared with their ids.
    checked: HashSet<ObjectId>,
}

impl Repository {
    /// Opens the repository in `dir`, bare or with a work tree. No configuration but its own
    /// is read, and no program is run.
    ///
    /// # Errors
    /// [`GitErrorKind::NotFound`] if there is none, [`GitErrorKind::Damaged`] if it cannot be
    /// read.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        // What an object says of its size is believed up to here.
        let limit = format!("gitoxide.objects.allocLimit={OBJECT_BYTES}");
        let options = gix::open::Options::isolated().bail_if_untrusted(false);
        let options = options.config_overrides([limit]);
        match gix::ThreadSafeRepository::open_opts(dir, options) {
            Ok(repository) => Ok(Self(repository)),
            Err(error) if dir.exists() => {
                let text = format!("{} cannot be opened as a repository: {error}", dir.display());
                Err(GitError::new(GitErrorKind::Damaged, text))
            }
            Err(_) => {
                let text = format!("there is no repository at {}", dir.display());
                Err(GitError::new(GitErrorKind::NotFound, text))
            }
        }
    }

    /// The commit at the tip of `branch` (a name without `refs/heads/`), or of the branch that is
    /// checked out.
    ///
    /// # Errors
    /// [`GitErrorKind::NotFound`] if there is no such branch or it has no commit,
    /// [`GitErrorKind::Damaged`] if `HEAD` or the branch cannot be read.
    pub fn head(&self, branch: Option<&str>) -> Result<Head, GitError> {
        let repository = self.0.to_thread_local();
        let missing = |text: String| GitError::new(GitErrorKind::NotFound, text);
        let Some(name) = branch else {
            let head = repository.head().map_err(|e| GitError::damaged(&e.to_string()))?;
            let name =
                head.referent_name().map_or("HEAD".to_string(), |name| name.shorten().to_string());
            let commit = repository
                .head_id()
                .map_err(|_| missing("the repository has no commits".to_string()))?;
            return Ok(Head { branch: name, commit: self.commit_of(commit.detach())? });
        };
        let reference = repository
            .find_reference(&format!("refs/heads/{name}"))
            .map_err(|_| missing(format!("there is no branch `{name}`")))?;
        let id = reference
            .into_fully_peeled_id()
            .map_err(|e| GitError::damaged(&e.to_string()))?
            .detach();
        Ok(Head { branch: name.to_string(), commit: id })
    }

    fn commit_of(&self, id: ObjectId) -> Result<ObjectId, GitError> {
        let mut objects = self.objects();
        match objects.kind(id)? {
            Some(Kind::Commit) => Ok(id),
            _ => {
                let text = format!("HEAD is {id}, which is no commit of the repository");
                Err(GitError::new(GitErrorKind::NotFound, text))
            }
        }
    }

    /// The commits whose parents were cut off, if this is a shallow clone.
    ///
    /// # Errors
    /// [`GitErrorKind::Damaged`] if the list cannot be read.
    pub fn shallow(&self) -> Result<Vec<ObjectId>, GitError> {
        let repository = self.0.to_thread_local();
        let commits =
            repository.shallow_commits().map_err(|e| GitError::damaged(&e.to_string()))?;
        Ok(commits.map(|list| list.iter().copied().collect()).unwrap_or_default())
    }

    /// Access for one thread, with caches of its own (72 MB when full).
    pub fn objects(&self) -> Objects {
        let mut handle = self.0.to_thread_local().objects;
        handle.set_pack_cache(|| Box::new(DeltaCache::new(DELTA_CACHE)));
        handle.set_object_cache(|| Box::new(TreeCache(ObjectCache::new(TREE_CACHE))));
        handle.refresh_never();
        let replaced = handle.store_ref().replacements().collect();
        Objects { handle, buffer: Vec::new(), replaced, checked: HashSet::new() }
    }
}

impl Objects {
    /// The kind of an object; `None` if there is none.
    pub(super) fn kind(&mut self, id: ObjectId) -> Result<Option<Kind>, GitError> {
        let header = self.handle.try_header(&id).map_err(|e| GitError::damaged(&e.to_string()))?;
        Ok(header.map(|header| header.kind))
    }

    /// The size of an object in bytes, without unpacking it.
    pub(super) fn size(&mut self, id: ObjectId) -> Result<u64, GitError> {
        match self.handle.try_header(&id) {
            Ok(Some(header)) => Ok(header.size),
            Ok(None) => Err(GitError::damaged(&format!("object {id} is missing"))),
            Err(error) => Err(GitError::damaged(&error.to_string())),
        }
    }

    /// The bytes of an object of this kind, which are those that its id is made of.
    ///
    /// # Errors
    /// `Damaged` if it is missing, of another kind, or has other bytes; `Limit` if it has more
    /// than [`OBJECT_BYTES`].
    pub(super) fn bytes(&mut self, id: ObjectId, kind: Kind) -> Result<&[u8], GitError> {
        let found = match self.handle.find(&id, &mut self.buffer) {
            Ok(data) => data,
            Err(error) => {
                let damaged = GitError::damaged(&format!("object {id}: {error}"));
                return Err(too_large(&self.handle, id).unwrap_or(damaged));
            }
        };
        if found.kind != kind {
            return Err(GitError::damaged(&format!("object {id} is a {}", found.kind)));
        }
        if !self.checked.contains(&id) {
            let wanted = self.replaced.get(&id).unwrap_or(&id);
            if let Err(error) = found.verify_checksum(wanted) {
                return Err(GitError::damaged(&format!("object {id} is damaged: {error}")));
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
