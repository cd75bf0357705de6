//! Work that blocks, on threads of its own: Git over a network, mining.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::git::{GitError, GitErrorKind};

/// A flag that stops the threads which work for a future, set when that future is dropped: at
/// its end, or when the run is cancelled.
#[derive(Default)]
pub(super) struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    /// The flag, for a thread.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    let panicked = |_| GitError::new(GitErrorKind::Other, "a defect: the thread panicked");
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}
