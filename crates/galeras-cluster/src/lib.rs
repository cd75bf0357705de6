//! The engine over a Ballista cluster (cargo feature `cluster`): the coordinator's side, and the two
//! processes that `galeras cluster` starts.
//!
//! Ballista carries numbers of items to executors that have a slot, and takes them elsewhere when an
//! executor is lost. What an item is, and what came of it, is in the store; the output of Ballista's
//! jobs is never fetched.
//!
//! Does not live here: what is handed out, and how often (`runner`).

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

/// How many seconds an executor may be silent before what it was given is given to others.
const LOST_AFTER: u64 = 15;

/// The most bytes of a message.
const MESSAGE: usize = 64 << 20;

/// Why a process of the cluster ended, or a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// An address cannot be used.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The text names no cluster.
    #[error("{0:?} is not the address of a cluster: df://HOST:PORT")]
    Address(String),
    /// The scheduler is of another build than the executor that would join.
    #[error("the scheduler at {address} is {scheduler}, but this executor is {executor}")]
    OtherBuild {
        /// Of the scheduler.
        address: String,
        /// The build of the scheduler.
        scheduler: String,
        /// The build of the executor.
        executor: String,
    },
    /// The scheduler does not answer.
    #[error("the scheduler at {address} does not answer: {cause}")]
    Silent {
        /// Of the scheduler.
        address: String,
        /// What the network says.
        cause: String,
    },
    /// Ballista gave up.
    #[error("{0}")]
    Ballista(#[from] ballista_core::error::BallistaError),
}
