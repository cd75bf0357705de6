//! Long computations on separate threads that can be stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use crate::StepError;

/// Sets a flag that stops worker threads when the future that owns it is dropped: at its end, or
/// when the run is cancelled.
#[derive(Default)]
pub struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    /// The flag, for a thread.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread that it may keep busy.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StepError> + Send + 'static,
) -> Result<T, StepError> {
    // Not on the runtime's blocking threads: those are limited, and reading files, which `work` may
    // wait for, needs them.
    let (send, done) = oneshot::channel();
    let thread = std::thread::Builder::new().spawn(move || drop(send.send(work())))?;
    let result = done.await.map_err(|_| StepError::new("a defect: the thread panicked"));
    // It has nothing left to do: this does not wait.
    drop(thread.join());
    result?
}

/// Threads for parallel iterators: `jobs` of them, at least one.
pub fn pool(jobs: usize) -> Result<rayon::ThreadPool, StepError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build();
    pool.map_err(|error| StepError::new(error.to_string()))
}
