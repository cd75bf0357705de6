//! Memory that was freed goes back to the system while a run goes on, or an executor of a cluster.
//!
//! The allocator of glibc keeps what a thread frees for the next thread that asks, in as many places
//! as there were threads at a time. With ten million rows a step frees and asks for gigabytes, and
//! after minutes held half as much again as it needed. So when a process has more than it was given,
//! what is free is given back.
//!
//! Does not live here: how much memory a step takes (`context`).

#![allow(unsafe_code)]

use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

/// How often the memory of the process is looked at.
const EVERY: Duration = Duration::from_millis(500);

/// To give back costs tens of milliseconds. It is done again after the process has grown by one of
/// so many parts of the memory that it was given.
const GROWN: u64 = 8;

/// Gives back what is free whenever the process has more than `memory` bytes, until this is dropped.
pub fn give_back(memory: usize) -> AbortOnDropHandle<()> {
    let memory = memory as u64;
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut kept = 0;
        loop {
            tokio::time::sleep(EVERY).await;
            // Nobody tells it on other systems.
            let Some(held) = resident() else { return };
            if held > memory.max(kept + memory / GROWN) {
                let _ = tokio::task::spawn_blocking(trim).await;
                kept = resident().unwrap_or(held);
                tracing::debug!(held, kept, "freed memory given back");
            }
        }
    }))
}

/// The bytes of memory that the process has.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: it touches only memory that is free, and locks what it looks at.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_free_is_given_back() {
        const BYTES: u64 = 256 << 20;
        // Small pieces, the last of which stays: nothing is given back by itself.
        let mut pieces: Vec<Vec<u8>> = (0..BYTES / 4096).map(|_| vec![1; 4096]).collect();
        let full = resident().unwrap();
        assert!(full > BYTES, "{full}");
        let last = pieces.pop();
        drop(pieces);
        let _back = give_back(64 << 20);
        tokio::time::sleep(3 * EVERY).await;
        let kept = resident().unwrap();
        assert!(kept + BYTES / 2 < full, "{kept} of {full}");
        drop(last);
    }
}
