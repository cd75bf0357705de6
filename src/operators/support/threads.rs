//! Work that blocks or is long, on threads of its own: Git over a network, mining, joins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use crate::operator::StepError;
use galeras_git::{GitError, GitErrorKind};

/// A flag that stops the threads which work for a future, set when that future is dropped: at
/// its end, or when the run is cancelled.
#[derive(Default)]
pub(in crate::operators) struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    /// The flag, for a thread.
    pub(in crate::operators) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread that it may keep busy.
pub(in crate::operators) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StepError> + Send + 'static,
) -> Result<T, StepError> {
    // A thread of its own: those of the runtime are limited in number, and reading files, which
    // such work may wait for, needs them.
    let (send, done) = oneshot::channel();
    std::thread::Builder::new().spawn(move || drop(send.send(work())))?;
    done.await.map_err(|_| StepError::new("a defect: the thread panicked"))?
}

/// Threads for parallel iterators: `jobs` of them, at least one.
pub(in crate::operators) fn pool(jobs: usize) -> Result<rayon::ThreadPool, StepError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build();
    pool.map_err(|error| StepError::new(error.to_string()))
}

/// Runs `work` where it may block.
pub(in crate::operators) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    let panicked = |_| GitError::new(GitErrorKind::Other, "a defect: the thread panicked");
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}
