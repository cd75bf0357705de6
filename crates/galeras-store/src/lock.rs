//! Locks between runs, tasks and processes that share a store.
//!
//! They are locks of the operating system on files in `locks/`, which end with their process. Runs
//! and verbs that read results hold the store's lock shared, `cache gc` and repairs hold it alone.
//!
//! A bucket has leases instead, and no shared lock: objects younger than a day are not collected
//! there, as a run may be about to name them. A lease is an object that is put only if its name is
//! free, so that one of several processes succeeds. Its holder rewrites it regularly with another
//! content, which waiting processes see. A lease that does not change for a while belongs to a
//! killed process. It is taken over by a put under the condition that it is still the same, so that
//! again one process succeeds. No clocks are compared. A lease only avoids duplicate work: if a
//! server does not support or allow such puts, there are no leases.

use std::any::Any;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use object_store::{PutMode, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::debug;

use super::backend::{Backend, BucketBackend, ConditionalPut};
use super::content_store::Store;
use super::error::{Result, StoreError, StoreErrorKind};
use super::local_files::{open_or_create, without_links};
use super::run_record::random;
use galeras_base::digest::Digest;
use galeras_base::scratch::make_folder;

/// How often a lock is tried while another holds it.
const POLL: Duration = Duration::from_millis(50);

/// The time limit for the release of leases.
const RELEASE: Duration = Duration::from_secs(5);

/// The name of the lock that runs share. No other lock can have it.
const STORE: &str = "store";

/// A file or a lease that is locked until it is dropped.
pub(super) type HeldLock = dyn Any + Send + Sync;

/// Holds a lock until it is dropped.
#[derive(Debug)]
#[must_use = "the lock ends when the guard is dropped"]
pub struct LockGuard {
    /// `None` if there was nothing to lock: in a read-only folder, or a bucket without leases.
    pub(super) held: Option<Arc<HeldLock>>,
}

/// A process that is being started has the file open too, until its program is loaded. Closing the
/// file would leave the lock to that process for this time; unlocking it does not.
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl LockGuard {
    const NOTHING: Self = Self { held: None };

    fn of(lock: impl Any + Send + Sync) -> Self {
        Self { held: Some(Arc::new(lock)) }
    }
}

impl Store {
    /// Takes the lock called `name` alone, and waits while another task or process has it.
    /// `on_wait` is called once, if it has to wait. Dropping the future ends the wait.
    pub async fn lock(&self, name: &str, on_wait: impl FnOnce()) -> Result<LockGuard> {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let name = if plain && name != STORE && !name.is_empty() && name.len() <= 100 {
            name.to_string()
        } else {
            Digest::of(name.as_bytes()).to_string()
        };
        if let Backend::Bucket(bucket) = &self.inner.backend {
            let lease = Lease::take(bucket, &lease_name(&name), WaitPolicy::Wait, on_wait).await?;
            return Ok(lease.map_or(LockGuard::NOTHING, LockGuard::of));
        }
        self.wait_for(&name, File::try_lock, on_wait).await
    }

    /// While this guard lives, nothing is collected. Waits while another process cleans the store.
    pub async fn shared_lock(&self) -> Result<LockGuard> {
        self.wait_for(STORE, File::try_lock_shared, || {}).await
    }

    /// As [`shared_lock`](Self::shared_lock), for readers: it creates no file in a new store.
    pub async fn reading_lock(&self) -> Result<LockGuard> {
        let folder = self.inner.backend.folder();
        match folder.map(|folder| folder.path("locks").join(STORE)) {
            Some(path) if path.is_file() => self.shared_lock().await,
            _ => Ok(LockGuard::NOTHING),
        }
    }

    /// Takes the whole store, to clean it. Does not wait: if a run or a reader holds the store, the
    /// error has the kind [`StoreErrorKind::Busy`]. A process can take it several times.
    pub async fn exclusive_lock(&self) -> Result<LockGuard> {
        // It is held here, so that the second of two tasks gets the lock of the first.
        let mut known = self.inner.exclusive.lock().await;
        if let Some(held) = known.as_ref().and_then(Weak::upgrade) {
            return Ok(LockGuard { held: Some(held) });
        }
        let guard = match &self.inner.backend {
            Backend::Folder(_) => self.exclusive_file()?,
            Backend::Bucket(bucket) => {
                let name = lease_name(STORE);
                let lease = Lease::take(bucket, &name, WaitPolicy::GiveUp, || {}).await;
                let lease = lease.map_err(|error| match error.kind() {
                    StoreErrorKind::Busy => self.busy("another process is cleaning it"),
                    _ => error,
                })?;
                lease.map_or(LockGuard::NOTHING, LockGuard::of)
            }
        };
        *known = guard.held.as_ref().map(Arc::downgrade);
        Ok(guard)
    }

    fn exclusive_file(&self) -> Result<LockGuard> {
        let Some(file) = self.lock_file(STORE)? else { return Ok(LockGuard::NOTHING) };
        match file.try_lock() {
            Ok(()) => Ok(LockGuard::of(LockedFile(file))),
            Err(TryLockError::WouldBlock) => {
                Err(self.busy("a run, or a command that reads it, is using it"))
            }
            Err(TryLockError::Error(error)) => Err(StoreError::of("lock", self.location(), error)),
        }
    }

    fn busy(&self, cause: &str) -> StoreError {
        StoreError::new(StoreErrorKind::Busy, "clean", self.location(), cause)
    }

    /// Waits, with a time limit, until the leases of dropped guards are released: that takes a
    /// request each.
    pub async fn settle(&self) {
        let Backend::Bucket(bucket) = &self.inner.backend else { return };
        let releases =
            std::mem::take(&mut *bucket.releases.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = tokio::time::timeout(RELEASE, futures::future::join_all(releases)).await;
    }

    async fn wait_for(
        &self,
        name: &str,
        attempt: fn(&File) -> Result<(), TryLockError>,
        on_wait: impl FnOnce(),
    ) -> Result<LockGuard> {
        let Some(file) = self.lock_file(name)? else { return Ok(LockGuard::NOTHING) };
        let mut on_wait = Some(on_wait);
        loop {
            match attempt(&file) {
                Ok(()) => return Ok(LockGuard::of(LockedFile(file))),
                Err(TryLockError::WouldBlock) => {}
                // A file system without locks: results stay correct, as everything is written
                // atomically under its digest. Only work may be done twice.
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

    /// The file to lock; `None` if it does not exist and cannot be created.
    fn lock_file(&self, name: &str) -> Result<Option<File>> {
        let Some(folder) = self.inner.backend.folder() else { return Ok(None) };
        let path = folder.path("locks").join(name);
        match open_lock(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) => {
                let error = StoreError::at("write", &path, error);
                if error.kind() != StoreErrorKind::ReadOnly {
                    return Err(error);
                }
                // A reader of a read-only store can still prevent its cleaning.
                Ok(without_links().read(true).open(&path).ok())
            }
        }
    }
}

fn lease_name(name: &str) -> String {
    format!("locks/{name}")
}

fn open_lock(path: &Path) -> io::Result<File> {
    let problem = match open_or_create(path) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    match (problem.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(folder)) => make_folder(folder)?,
        // Damage put a folder there, on which no process can hold a lock.
        (io::ErrorKind::IsADirectory, _) => fs::remove_dir_all(path)?,
        _ => return Err(problem),
    }
    open_or_create(path)
}

/// How often a holder rewrites its lease.
const BEAT: Duration = Duration::from_secs(5);

/// How long a lease may stay the same before its holder counts as killed.
const STALE: Duration = Duration::from_secs(20);

/// How often a waiting process reads the lease.
const LEASE_POLL: Duration = Duration::from_millis(500);

/// The content of the object.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeaseContent {
    /// A new number for each request of a lease.
    holder: String,
    /// A digest of the machine.
    machine: Option<String>,
    process: u32,
    /// The start of the process, in units of the machine.
    started: Option<u64>,
    /// Grows while the holder lives.
    beat: u64,
}

impl LeaseContent {
    fn new() -> Self {
        let (process, holder) = (std::process::id(), format!("{:016x}", random()));
        Self { holder, machine: machine(), process, started: start_of(process), beat: 0 }
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns true if the holder was a process of this machine that has ended.
    fn is_abandoned(&self) -> bool {
        let here = self.machine.is_some() && self.machine == machine();
        here && self.started.is_some() && start_of(self.process) != self.started
    }
}

/// Identifies this machine and the process ids that are visible here.
fn machine() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let processes = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let text = format!("{} {}", boot.trim(), processes.display());
    Some(Digest::of(text.as_bytes()).to_string())
}

/// The start of a process; `None` if it does not exist, or the system does not expose it.
fn start_of(process: u32) -> Option<u64> {
    let stat = Path::new("/proc").join(process.to_string()).join("stat");
    let text = std::fs::read_to_string(stat).ok()?;
    // The second field is a name in brackets, with any characters.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// The reaction to a lease that another process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitPolicy {
    /// Waits until it is free.
    Wait,
    /// Gives up when the holder rewrites it.
    GiveUp,
}

/// A lease, until it is dropped.
struct Lease {
    bucket: Arc<BucketBackend>,
    /// Dropped, it ends the task.
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Lease {
    /// Takes the lease called `name`; `None` if the server has no leases. `on_wait` is called once
    /// if another process has it. Fails if the bucket cannot be reached. The kind is
    /// [`StoreErrorKind::Busy`] after [`WaitPolicy::GiveUp`].
    async fn take(
        bucket: &Arc<BucketBackend>,
        name: &str,
        policy: WaitPolicy,
        on_wait: impl FnOnce(),
    ) -> Result<Option<Self>> {
        let own = LeaseContent::new();
        let mut on_wait = Some(on_wait);
        let mut seen: Option<(Vec<u8>, Instant)> = None;
        let mut condition = Some(PutMode::Create);
        loop {
            if let Some(condition) = condition.take() {
                match bucket.write_if(name, own.bytes(), condition).await {
                    Ok(ConditionalPut::Done(version)) => {
                        return Ok(Some(Self::held(bucket, name, own, version)));
                    }
                    Ok(ConditionalPut::Refused) => {}
                    Ok(ConditionalPut::Unsupported) => return Ok(None),
                    Err(error) if error.is_forbidden() => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            let Some((bytes, version)) = bucket.read_version(name).await? else {
                condition = Some(PutMode::Create);
                tokio::time::sleep(LEASE_POLL / 10).await;
                continue;
            };
            let holder: Option<LeaseContent> = serde_json::from_slice(&bytes).ok();
            if holder.as_ref().is_some_and(|holder| holder.holder == own.holder) {
                // The answer to a put that succeeded was lost.
                return Ok(Some(Self::held(bucket, name, own, version)));
            }
            let unchanged = seen.as_ref().filter(|(before, _)| *before == bytes);
            let is_stale = unchanged.is_some_and(|(_, since)| since.elapsed() >= STALE);
            if is_stale || holder.is_some_and(|holder| holder.is_abandoned()) {
                debug!(lease = name, "takes over the lease of a killed process");
                condition = Some(PutMode::Update(version));
                seen = None;
                continue;
            }
            if unchanged.is_none() {
                if seen.is_some() && policy == WaitPolicy::GiveUp {
                    let cause = "another process holds it";
                    return Err(StoreError::new(StoreErrorKind::Busy, "take", name, cause));
                }
                seen = Some((bytes, Instant::now()));
            }
            if let Some(on_wait) = on_wait.take() {
                on_wait();
            }
            tokio::time::sleep(LEASE_POLL).await;
        }
    }

    fn held(
        bucket: &Arc<BucketBackend>,
        name: &str,
        content: LeaseContent,
        version: UpdateVersion,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let keeping = keep(Arc::clone(bucket), name.to_string(), content, version, stopped);
        let task = Some(tokio::spawn(keeping));
        Self { bucket: Arc::clone(bucket), stop: Some(stop), task }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        let mut releases = self.bucket.releases.lock().unwrap_or_else(PoisonError::into_inner);
        releases.retain(|release| !release.is_finished());
        releases.extend(self.task.take());
    }
}

/// Rewrites a lease while it is held, and removes it then.
async fn keep(
    bucket: Arc<BucketBackend>,
    name: String,
    mut content: LeaseContent,
    mut version: UpdateVersion,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut renewed = Instant::now();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            () = tokio::time::sleep(BEAT) => {}
        }
        content.beat += 1;
        match bucket.write_if(&name, content.bytes(), PutMode::Update(version.clone())).await {
            Ok(ConditionalPut::Done(newer)) => (version, renewed) = (newer, Instant::now()),
            // Either another process took it over, or the answer to the last put was lost.
            Ok(_) => match bucket.read_version(&name).await {
                Ok(Some((bytes, there))) if is_of(&bytes, &content) => version = there,
                Ok(_) => return,
                Err(error) => debug!(lease = name, "the lease cannot be read: {error}"),
            },
            Err(error) => debug!(lease = name, "the lease cannot be renewed: {error}"),
        }
    }
    let remove = async {
        // Another process may have taken it over while this one was stopped.
        let is_own = renewed.elapsed() < STALE / 2
            || bucket.read(&name).await?.is_some_and(|bytes| is_of(&bytes, &content));
        if is_own { bucket.delete(&name).await } else { Ok(false) }
    };
    if let Err(error) = remove.await {
        debug!(lease = name, "the lease stays until it is taken over: {error}");
    }
}

fn is_of(bytes: &[u8], content: &LeaseContent) -> bool {
    let there: Option<LeaseContent> = serde_json::from_slice(bytes).ok();
    there.is_some_and(|there| there.holder == content.holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_lease_is_abandoned_if_its_process_has_ended_or_is_another() {
        let alive = LeaseContent::new();
        assert!(alive.machine.is_some() && alive.started.is_some());
        assert!(!alive.is_abandoned());
        let replaced = LeaseContent { started: alive.started.map(|start| start + 1), ..alive };
        assert!(replaced.is_abandoned());
        let elsewhere = LeaseContent { machine: Some("elsewhere".into()), ..replaced };
        assert!(!elsewhere.is_abandoned());
    }
}
