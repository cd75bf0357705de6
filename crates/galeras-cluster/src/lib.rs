//! The engine over a Ballista cluster (cargo feature `cluster`): the coordinator's side, and the
//! two processes that `galeras cluster` starts.
//!
//! Ballista carries item numbers to executors with a free slot, and to other executors when one is
//! lost. Items and their results are in the store; the output of Ballista's jobs is never fetched.
//! The engine's `runner` decides what to hand out, and how often.

#![cfg(feature = "ballista")]

mod build_check;
mod codec;
mod engine;
mod executor;
mod scheduler;
mod work_exec;

#[cfg(test)]
mod tests;

pub use engine::ClusterEngine;
pub use executor::{ExecutorOptions, run_executor};
pub use scheduler::run_scheduler;

/// The seconds of silence after which an executor's items go to others.
const LOST_AFTER: u64 = 15;

/// The maximum size of a message.
const MESSAGE: usize = 64 << 20;

/// The reason why a process of the cluster ended, or why a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// An address is not usable.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is not the address of a cluster.
    #[error("{0:?} is not the address of a cluster: df://HOST:PORT")]
    Address(String),
    /// The scheduler has another build than the executor.
    #[error("the scheduler at {address} is {scheduler}, but this executor is {executor}")]
    OtherBuild {
        /// The scheduler's address.
        address: String,
        /// The scheduler's build.
        scheduler: String,
        /// The executor's build.
        executor: String,
    },
    /// The scheduler does not answer.
    #[error("the scheduler at {address} does not answer: {cause}")]
    Silent {
        /// The scheduler's address.
        address: String,
        /// The network's error.
        cause: String,
    },
    /// Ballista failed.
    #[error("{0}")]
    Ballista(#[from] ballista_core::error::BallistaError),
}
