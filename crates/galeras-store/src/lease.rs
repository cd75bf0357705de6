//! Leases: what a bucket has in the place of locks.
//!
//! A lease is an object that is put only if nothing is there, so that one of several succeeds. Its
//! holder puts it again and again, with another content each time; who waits sees that it changes. One
//! that stays as it is for a while belongs to somebody who was killed, and is taken over by a put on the
//! condition that it is still the same, so that again one of several succeeds. No clocks are compared.
//!
//! A lease saves work that two would do at once. What is stored does not depend on it: where a server
//! knows no such puts, or does not allow them, there are no leases.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use object_store::{PutMode, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::debug;

use super::bucket::{BucketBackend, ConditionalPut};
use super::error::{StoreError, StoreErrorKind};
use super::record::random;
use galeras_base::digest::Digest;

/// How often a holder says that it lives.
const BEAT: Duration = Duration::from_secs(5);

/// How long a lease may stay as it is before it counts as that of a killed holder.
const STALE: Duration = Duration::from_secs(20);

/// How often one is looked at by who waits for it.
const POLL: Duration = Duration::from_millis(500);

/// What the object says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeaseContent {
    /// Whose it is: another one each time that a lease is asked for.
    holder: String,
    /// The machine, as a digest that tells machines apart and says nothing else.
    machine: Option<String>,
    process: u32,
    /// When the process started, in the machine's own units.
    started: Option<u64>,
    /// Grows while the holder lives.
    beat: u64,
}

impl LeaseContent {
    fn new() -> Self {
        let process = std::process::id();
        Self {
            holder: format!("{:016x}", random()),
            machine: machine(),
            process,
            started: start_of(process),
            beat: 0,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns true if the holder was a process of this machine that is no more.
    fn is_of_the_dead(&self) -> bool {
        let here = self.machine.is_some() && self.machine == machine();
        here && self.started.is_some() && start_of(self.process) != self.started
    }
}

/// What tells this machine, and the processes that are visible here, from others.
fn machine() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let processes = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let text = format!("{} {}", boot.trim(), processes.display());
    Some(Digest::of(text.as_bytes()).to_string())
}

/// When a process started; nothing if there is none, or the system does not tell.
fn start_of(process: u32) -> Option<u64> {
    let stat = Path::new("/proc").join(process.to_string()).join("stat");
    let text = std::fs::read_to_string(stat).ok()?;
    // The second field is a name in brackets, which may hold anything.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Who asks for a lease that somebody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// Waits until it is free.
    Patient,
    /// Gives up as soon as it is seen that the holder lives.
    Impatient,
}

/// A lease, until it is dropped.
pub(super) struct Lease {
    name: String,
    bucket: Arc<BucketBackend>,
    /// Dropped, it ends the task.
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.name).finish()
    }
}

impl Lease {
    /// The lease called `name`, or `None` where there are none. `on_wait` is called once if somebody
    /// else has it.
    ///
    /// # Errors
    /// If the bucket cannot be reached; of kind [`StoreErrorKind::Busy`] if somebody impatient does not
    /// get it.
    pub(super) async fn take(
        bucket: &Arc<BucketBackend>,
        name: &str,
        asker: Asker,
        on_wait: impl FnOnce(),
    ) -> Result<Option<Self>, StoreError> {
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
                    Ok(ConditionalPut::Unknown) => return Ok(None),
                    Err(error) if error.is_forbidden() => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            let Some((bytes, version)) = bucket.read_version(name).await? else {
                condition = Some(PutMode::Create);
                tokio::time::sleep(POLL / 10).await;
                continue;
            };
            let holder: Option<LeaseContent> = serde_json::from_slice(&bytes).ok();
            if holder.as_ref().is_some_and(|holder| holder.holder == own.holder) {
                // The answer to a put that succeeded was lost.
                return Ok(Some(Self::held(bucket, name, own, version)));
            }
            let (same, since) = match &seen {
                Some((before, since)) if *before == bytes => (true, since.elapsed()),
                Some(_) => (false, Duration::ZERO),
                None => (true, Duration::ZERO),
            };
            if since >= STALE || holder.is_some_and(|holder| holder.is_of_the_dead()) {
                debug!(lease = name, "the lease of somebody who is no more is taken over");
                condition = Some(PutMode::Update(version));
                seen = None;
                continue;
            }
            if !same && asker == Asker::Impatient {
                let cause = "somebody else is at it";
                let place = name.to_string();
                return Err(StoreError::new(StoreErrorKind::Busy, "take", place, cause));
            }
            if !same || seen.is_none() {
                seen = Some((bytes, Instant::now()));
            }
            if let Some(on_wait) = on_wait.take() {
                on_wait();
            }
            tokio::time::sleep(POLL).await;
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
        Self { name: name.to_string(), bucket: Arc::clone(bucket), stop: Some(stop), task }
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

/// Puts a lease anew as long as it is held, and removes it then.
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
            Ok(ConditionalPut::Refused | ConditionalPut::Unknown) => {
                // Either somebody took it for dead, or the answer to the last put was lost.
                match bucket.read_version(&name).await {
                    Ok(Some((bytes, there))) if is_of(&bytes, &content) => version = there,
                    Ok(_) => return,
                    Err(error) => {
                        debug!(lease = name.as_str(), "the lease cannot be looked at: {error}")
                    }
                }
            }
            Err(error) => debug!(lease = name.as_str(), "the lease cannot be renewed: {error}"),
        }
    }
    // Somebody may have taken it over while this process did not run.
    let own = match renewed.elapsed() < STALE / 2 {
        true => Ok(true),
        false => bucket.read(&name).await.map(|bytes| bytes.is_some_and(|b| is_of(&b, &content))),
    };
    let removed = match own {
        Ok(true) => bucket.delete(&name).await.map(|_| ()),
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        debug!(lease = name.as_str(), "the lease stays until it is taken over: {error}");
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
    fn a_holder_is_dead_if_its_process_is_gone_or_another() {
        let living = LeaseContent::new();
        assert!(living.machine.is_some() && living.started.is_some());
        assert!(!living.is_of_the_dead());
        let replaced = LeaseContent { started: living.started.map(|start| start + 1), ..living };
        assert!(replaced.is_of_the_dead());
        let elsewhere = LeaseContent { machine: Some("elsewhere".into()), ..replaced };
        assert!(!elsewhere.is_of_the_dead());
    }
}
