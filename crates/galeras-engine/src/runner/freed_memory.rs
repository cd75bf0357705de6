//! Returns freed memory to the system during a run, and in an executor of a cluster.
//!
//! The allocator of glibc keeps freed memory for later use, in as many arenas as there were
//! threads. With ten million rows, a step allocates and frees gigabytes, and after minutes holds
//! half as much again as it needs. So a process that exceeds its memory returns the free part.

#![allow(unsafe_code)]

use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use galeras_base::memory_guard::resident;

/// The interval between checks of the process's memory.
const EVERY: Duration = Duration::from_millis(500);

/// To give back costs tens of milliseconds. It is done again after the process has grown by one of
/// so many parts of the memory that it was given.
const GROWN: u64 = 8;

/// Returns free memory whenever the process has more than `memory` bytes, until this is dropped.
pub(super) fn give_back(memory: usize) -> AbortOnDropHandle<()> {
    let memory = memory as u64;
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut kept = 0;
        loop {
            tokio::time::sleep(EVERY).await;
            // Other systems do not expose this.
            let Some(held) = resident() else { return };
            if held > memory.max(kept + memory / GROWN) {
                let _ = tokio::task::spawn_blocking(trim).await;
                kept = resident().unwrap_or(held);
                tracing::debug!(held, kept, "freed memory given back");
            }
        }
    }))
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: it touches only memory that is free, and locks what it looks at.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_free_is_given_back() {
        const BYTES: u64 = 256 << 20;
        // Small pieces, the last of which stays: nothing is returned without a trim.
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
