//! The memory guard: one limit for the process, instead of estimates of what each query, template or
//! file may allocate.
//!
//! A thread measures the process every `EVERY`, and the allocator looks at requests that are larger
//! than the whole limit, and at those that the system refuses, where Rust would abort. Beyond the limit, a
//! function of the program ends it: an allocation in the middle of a library cannot be cancelled.
//! Stored results are whole or absent at any instant, so the next run continues with them.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The time between two measurements. Memory fills by some gigabytes per second and thread, so that
/// the process exceeds its limit by a few hundred megabytes at most.
const EVERY: Duration = Duration::from_millis(50);

/// The bytes that the process may have.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Ends the program.
static END: OnceLock<fn(&MemoryExcess) -> !> = OnceLock::new();

/// Ends the program when the system refuses memory. It must need none.
static REFUSED: OnceLock<fn() -> !> = OnceLock::new();

/// Set by the first thread that ends the program.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The work in progress, in the order in which it was begun.
static ACTIVE: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());

/// How far the process is beyond its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryExcess {
    /// The bytes that the process has, or would have after an allocation.
    pub used: u64,
    /// The bytes that it may have.
    pub limit: u64,
    /// The names of the work in progress.
    pub active: Vec<String>,
}

/// Starts the guard: when the process has more than `limit` bytes, `end` is called, and when the system
/// gives no more, `refused`, which must not need any. The first call counts.
///
/// # Errors
/// If no thread can be started.
pub fn start(limit: u64, end: fn(&MemoryExcess) -> !, refused: fn() -> !) -> io::Result<()> {
    if END.set(end).is_err() {
        return Ok(());
    }
    // Unset until now, as `END` was.
    let _ = REFUSED.set(refused);
    LIMIT.store(usize::try_from(limit).unwrap_or(usize::MAX), Ordering::Relaxed);
    let watch = move || {
        // Other systems do not expose this.
        while let Some(used) = resident() {
            if used > limit {
                exceeded(used);
            }
            std::thread::sleep(EVERY);
        }
    };
    std::thread::Builder::new().name("memory guard".into()).spawn(watch).map(drop)
}

fn exceeded(used: u64) {
    let Some(end) = END.get() else { return };
    if ENDING.swap(true, Ordering::SeqCst) {
        // Another thread prints the message.
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let active = active.iter().map(|(_, name)| name.clone()).collect();
    end(&MemoryExcess { used, limit: LIMIT.load(Ordering::Relaxed) as u64, active })
}

/// Work in progress until it is dropped; the message of the guard names it.
#[derive(Debug)]
pub struct ActiveWork(usize);

/// Notes that `name` is in progress.
pub fn active(name: impl Into<String>) -> ActiveWork {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner).push((id, name.into()));
    ActiveWork(id)
}

impl Drop for ActiveWork {
    fn drop(&mut self) {
        ACTIVE.lock().unwrap_or_else(PoisonError::into_inner).retain(|(id, _)| *id != self.0);
    }
}

/// The bytes of memory that the process has for itself, in swap too. Mapped files do not count: the
/// system takes their memory back when it needs it.
pub fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some((kilobytes("RssAnon:")? + kilobytes("VmSwap:").unwrap_or(0)) * 1024)
}

/// The allocator of the system, except for requests that are larger than the limit of the guard.
#[derive(Debug)]
pub struct GuardedAllocator;

#[inline]
fn admit(bytes: usize) {
    if bytes > LIMIT.load(Ordering::Relaxed) {
        exceeded((bytes as u64).saturating_add(resident().unwrap_or(0)));
    }
}

/// Ends the program if the system has refused memory.
#[inline]
fn granted(block: *mut u8) -> *mut u8 {
    if block.is_null()
        && let Some(refused) = REFUSED.get()
    {
        refused();
    }
    block
}

// SAFETY: every call is passed on to the allocator of the system as it is.
unsafe impl GlobalAlloc for GuardedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        admit(layout.size());
        // SAFETY: the caller keeps the contract.
        granted(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        admit(layout.size());
        // SAFETY: the caller keeps the contract.
        granted(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        admit(size);
        // SAFETY: the caller keeps the contract.
        granted(unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_in_use_is_measured() {
        let before = resident().unwrap();
        let block = vec![1_u8; 64 << 20];
        assert!(resident().unwrap() > before + (32 << 20), "{}", std::hint::black_box(block).len());
    }

    #[test]
    fn work_is_active_until_it_is_dropped() {
        let names = || ACTIVE.lock().unwrap().iter().map(|(_, n)| n.clone()).collect::<Vec<_>>();
        let (a, b) = (active("guard a"), active("guard b"));
        drop(a);
        assert!(!names().contains(&"guard a".into()) && names().contains(&"guard b".into()));
        drop(b);
        assert!(!names().contains(&"guard b".into()));
    }
}
