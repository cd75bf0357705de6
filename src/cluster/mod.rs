//! The engine over a Ballista cluster (cargo feature `cluster`): the coordinator's side, and the two
//! processes that `galeras cluster` starts.
//!
//! Ballista carries numbers of items to executors that have a slot, and takes them elsewhere when an
//! executor is lost. What an item is, and what came of it, is in the store; the output of Ballista's
//! jobs is never fetched.
//!
//! Does not live here: what is handed out, and how often (`runner`).

mod codec;
mod engine;
mod executor;
mod scheduler;
mod work_exec;

pub use engine::ClusterEngine;
pub use executor::{ExecutorOptions, run_executor};
pub use scheduler::run_scheduler;

/// How many seconds an executor may be silent before what it was given is given to others.
const LOST_AFTER: u64 = 15;

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
    /// Ballista gave up.
    #[error("{0}")]
    Ballista(#[from] ballista_core::error::BallistaError),
}
