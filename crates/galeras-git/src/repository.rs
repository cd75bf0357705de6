//! A local repository: opening it, its head, and the objects in it.

use std::path::Path;

use gix::ObjectId;
use gix::objs::{FindExt, FindHeader, Kind};
use gix::odb::pack::cache::lru::MemoryCappedHashmap as DeltaCache;
use gix::odb::pack::cache::object::MemoryCappedHashmap as ObjectCache;

use super::error::{GitError, GitErrorKind};
use super::net::Head;

/// Memory for bases of deltas, per thread and in bytes.
const DELTA_CACHE: usize = 48 << 20;
/// Memory for trees, per thread and in bytes. Neighbouring commits share most of them.
const TREE_CACHE: usize = 24 << 20;

/// An open repository, shared by threads.
pub struct Repository(gix::ThreadSafeRepository);

/// One thread's access to the objects.
pub struct Objects {
    pub(super) handle: gix::OdbHandle,
    buffer: Vec<u8>,
}

impl Repository {
    /// Opens the repository in `dir`, bare or with a work tree. No configuration but its own
    /// is read, and no program is run.
    ///
    /// # Errors
    /// [`GitErrorKind::NotFound`] if there is none, [`GitErrorKind::Damaged`] if it cannot be
    /// read.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        let options = gix::open::Options::isolated().bail_if_untrusted(false);
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
        handle.set_object_cache(|| Box::new(ObjectCache::new(TREE_CACHE)));
        handle.refresh_never();
        Objects { handle, buffer: Vec::new() }
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

    /// The bytes of an object of this kind.
    pub(super) fn bytes(&mut self, id: ObjectId, kind: Kind) -> Result<&[u8], GitError> {
        let data = self
            .handle
            .find(&id, &mut self.buffer)
            .map_err(|error| GitError::damaged(&format!("object {id}: {error}")))?;
        if data.kind != kind {
            return Err(GitError::damaged(&format!("object {id} is a {}", data.kind)));
        }
        Ok(data.data)
    }
}
