//! Locks between runs, tasks and processes that share a store.
//!
//! They are locks of the operating system on files in `locks/`, which end with the process that
//! holds them, however it ends. Runs and verbs that read results hold the store's lock shared,
//! `cache gc` and repairs hold it alone.
//! In a bucket there are leases instead. Nobody holds the store shared there: what is younger than a
//! day is not collected, so that nothing is lost that somebody is about to name.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use super::backend::Backend;
use super::content_store::{HeldLock, Store};
use super::error::{StoreError, StoreErrorKind};
use super::lease::{Asker, Lease};
use super::links::without_links;
use galeras_base::digest::Digest;
use galeras_base::scratch::make_folder;

/// How often a lock is tried while another holds it.
const POLL: Duration = Duration::from_millis(50);

/// How long is waited for leases to be given back.
const GIVING_BACK: Duration = Duration::from_secs(5);

/// The name of the lock that runs share. No other lock can have it.
const STORE: &str = "store";

/// Holds a lock until it is dropped.
#[derive(Debug)]
#[must_use = "the lock ends when the guard is dropped"]
pub struct LockGuard {
    held: Option<Arc<HeldLock>>,
}

impl LockGuard {
    const NOTHING: Self = Self { held: None };

    fn of(lock: impl fmt::Debug + Send + Sync + 'static) -> Self {
        Self { held: Some(Arc::new(lock)) }
    }

    /// False where there was nothing to lock: in a read-only folder, or a bucket without leases.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }
}

impl Store {
    /// Takes the lock called `name` alone, waiting for as long as another task or process
    /// has it. `on_wait` is called once, if it has to wait. Dropping the future ends the
    /// wait.
    pub async fn lock(&self, name: &str, on_wait: impl FnOnce()) -> Result<LockGuard, StoreError> {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let name = if plain && name != STORE && !name.is_empty() && name.len() <= 100 {
            name.to_string()
        } else {
            Digest::of(name.as_bytes()).to_string()
        };
        if let Backend::Bucket(bucket) = &self.inner.backend {
            let lease = Lease::take(bucket, &lease_name(&name), Asker::Patient, on_wait).await?;
            return Ok(lease.map_or(LockGuard::NOTHING, LockGuard::of));
        }
        self.wait_for(&name, File::try_lock, on_wait).await
    }

    /// Takes part in the store: while the guard lives, nothing is collected. Waits while
    /// another process cleans the store.
    pub async fn shared_lock(&self) -> Result<LockGuard, StoreError> {
        self.wait_for(STORE, File::try_lock_shared, || {}).await
    }

    /// As [`shared_lock`](Self::shared_lock), for who only reads: it makes nothing, so that a
    /// store that was never written to stays as it is.
    pub async fn reading_lock(&self) -> Result<LockGuard, StoreError> {
        let folder = self.inner.backend.folder();
        match folder.map(|folder| folder.path("locks").join(STORE)) {
            Some(path) if path.is_file() => self.shared_lock().await,
            _ => Ok(LockGuard::NOTHING),
        }
    }

    /// Takes the store for oneself, to clean it. Does not wait: if a run or a reader holds
    /// the store, that is an error of kind [`StoreErrorKind::Busy`]. Who holds it already gets it again.
    pub async fn exclusive_lock(&self) -> Result<LockGuard, StoreError> {
        let known = || self.inner.exclusive.lock().unwrap_or_else(PoisonError::into_inner);
        let again = |known: &Option<Weak<HeldLock>>| known.as_ref().and_then(Weak::upgrade);
        let bucket = match &self.inner.backend {
            Backend::Bucket(bucket) => bucket,
            Backend::Folder(_) => {
                // Of two tasks at once the second gets what the first one has.
                let mut known = known();
                if let Some(held) = again(&known) {
                    return Ok(LockGuard { held: Some(held) });
                }
                let guard = self.exclusive_file()?;
                *known = guard.held.as_ref().map(Arc::downgrade);
                return Ok(guard);
            }
        };
        if let Some(held) = again(&known()) {
            return Ok(LockGuard { held: Some(held) });
        }
        let lease = Lease::take(bucket, &lease_name(STORE), Asker::Impatient, || {}).await;
        let lease = lease.map_err(|error| match error.kind() {
            StoreErrorKind::Busy => self.busy("somebody else is cleaning it"),
            _ => error,
        });
        let guard = lease?.map_or(LockGuard::NOTHING, LockGuard::of);
        *known() = guard.held.as_ref().map(Arc::downgrade);
        Ok(guard)
    }

    fn exclusive_file(&self) -> Result<LockGuard, StoreError> {
        let Some(file) = self.lock_file(STORE)? else { return Ok(LockGuard::NOTHING) };
        match file.try_lock() {
            Ok(()) => Ok(LockGuard::of(file)),
            Err(TryLockError::WouldBlock) => {
                Err(self.busy("a run, or a command that reads it, is using it"))
            }
            Err(TryLockError::Error(error)) => Err(StoreError::of("lock", self.location(), error)),
        }
    }

    fn busy(&self, cause: &str) -> StoreError {
        StoreError::new(StoreErrorKind::Busy, "clean", self.location(), cause)
    }

    /// Waits until what the guards that were dropped held is free for others, but not for long: in a
    /// bucket that takes a request each.
    pub async fn settle(&self) {
        let Backend::Bucket(bucket) = &self.inner.backend else { return };
        let releases =
            std::mem::take(&mut *bucket.releases.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = tokio::time::timeout(GIVING_BACK, futures::future::join_all(releases)).await;
    }

    async fn wait_for(
        &self,
        name: &str,
        attempt: fn(&File) -> Result<(), TryLockError>,
        on_wait: impl FnOnce(),
    ) -> Result<LockGuard, StoreError> {
        let Some(file) = self.lock_file(name)? else { return Ok(LockGuard::NOTHING) };
        let mut on_wait = Some(on_wait);
        loop {
            match attempt(&file) {
                Ok(()) => return Ok(LockGuard::of(file)),
                Err(TryLockError::WouldBlock) => {}
                // A file system without locks: results stay right, as everything is written
                // atomically under its digest; only work may be done twice.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(LockGuard::NOTHING);
                }
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::of("lock", self.location(), error));
                }
            }
            if let Some(on_wait) = on_wait.take() {
                on_wait();
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The file to lock; `None` where there is none and none can be made.
    fn lock_file(&self, name: &str) -> Result<Option<File>, StoreError> {
        let Some(folder) = self.inner.backend.folder() else { return Ok(None) };
        let path = folder.path("locks").join(name);
        match open_lock(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) => {
                let error = StoreError::at("write", &path, error);
                if error.kind() != StoreErrorKind::ReadOnly {
                    return Err(error);
                }
                // Who may only read can still keep others from cleaning.
                Ok(without_links().read(true).open(&path).ok())
            }
        }
    }
}

fn lease_name(name: &str) -> String {
    format!("locks/{name}")
}

fn open_lock(path: &Path) -> io::Result<File> {
    let open = || without_links().read(true).write(true).create(true).truncate(false).open(path);
    match (open(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            make_folder(folder)?;
            open()
        }
        // Damage put a folder there. Nobody can hold a lock on it.
        (Err(error), _) if error.kind() == io::ErrorKind::IsADirectory => {
            fs::remove_dir_all(path)?;
            open()
        }
        (result, _) => result,
    }
}
