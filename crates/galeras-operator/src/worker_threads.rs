//! Long computations on separate threads that can be stopped.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galeras_base::{error_chain, system_limits};
use tokio::sync::oneshot;

use crate::StepError;

/// The stack of a thread, as large as that of the program's other threads. Memory is only used on
/// demand.
const STACK_BYTES: usize = 64 << 20;

/// How many threads are at work.
static WORKING: AtomicUsize = AtomicUsize::new(0);

/// A thread that is at work until this is dropped.
struct Working;

impl Working {
    fn begin() -> Self {
        WORKING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until no thread is at work, but not longer than `most`: at the end of the program, so that
/// threads which were asked to stop remove their files.
pub fn settle(most: Duration) {
    let begun = Instant::now();
    while WORKING.load(Ordering::SeqCst) > 0 && begun.elapsed() < most {
        std::thread::sleep(Duration::from_millis(2));
    }
}

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

/// Runs `work` on a thread that it may keep busy, or that waits for other work.
///
/// # Errors
/// Those of `work`; if it panics, or if the system starts no more threads.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StepError> + Send + 'static,
) -> Result<T, StepError> {
    // Not on the runtime's blocking threads: if the system refuses one, its work waits for the
    // others, which may be waiting for this work. Reading files needs them as well.
    let (send, done) = oneshot::channel();
    let working = Working::begin();
    let body = move || {
        drop(send.send(work()));
        drop(working);
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
    let thread = thread.map_err(refused)?;
    let result = done.await.map_err(|_| StepError::new("a defect: the thread panicked"));
    // It has nothing left to do: this does not wait.
    drop(thread.join());
    result?
}

/// Threads for parallel iterators: `jobs` of them, at least one.
pub fn pool(jobs: usize) -> Result<rayon::ThreadPool, StepError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build();
    pool.map_err(refused)
}

/// The error when the system refuses a thread.
fn refused(error: impl Error + Send + Sync + 'static) -> StepError {
    let cause = error_chain::io_cause(&error);
    let message = cause.map_or_else(|| error.to_string(), system_limits::no_thread);
    StepError::new(message).because(error).help(system_limits::ADVICE)
}
