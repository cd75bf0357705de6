//! The engine: plans a workflow specification and runs the plan.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod plan;
pub mod runner;
pub mod trust;

/// Locks a mutex. A thread that panicked leaves the values of this crate intact.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
