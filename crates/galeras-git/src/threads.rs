//! Threads that read repositories, and panics in them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::GitError;

/// A pool of `threads` threads, at least one.
pub(super) fn pool(threads: usize) -> Result<rayon::ThreadPool, GitError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
    pool.map_err(|error| GitError::other(format!("cannot start threads: {error}")))
}

/// Runs `work` on a repository that may hold anything. The code that takes packs apart is not
/// ours: where it gives up with a panic, the repository is damaged.
///
/// # Errors
/// Those of `work`; `Damaged` if it panics.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(GitError::damaged("the repository cannot be read: its reader panicked"))
    })
}
