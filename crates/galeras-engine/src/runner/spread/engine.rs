//! The interface to engines, which compute the work of a run in other processes.

use std::fmt;

use async_trait::async_trait;

/// Hands out items of work.
///
/// An item's results and its outcome are written only to the store. So the store shows the
/// completed work, even if workers or the engine fail.
#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    /// Its name on the command line, `df://host:port`; `None` for this process.
    fn address(&self) -> Option<&str>;
    /// The build of this process; workers must have the same.
    fn build(&self) -> &str;
    /// Has these items of a job computed, in any order, each at least once or not at all. Ends when
    /// the engine stops working on them, for any reason. If this is dropped, the rest may be left.
    ///
    /// # Errors
    /// If the engine cannot be reached, or refuses.
    async fn scatter(&self, job: &str, items: &[u32]) -> Result<(), EngineError>;
}

/// The reason why an engine stopped.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum EngineError {
    /// It cannot be reached at the moment.
    #[error("{0}")]
    Unreachable(String),
    /// It refuses.
    #[error("{0}")]
    Refused(String),
}

/// This process: every step is computed where it is scheduled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Embedded;

#[async_trait]
impl Engine for Embedded {
    fn address(&self) -> Option<&str> {
        None
    }

    fn build(&self) -> &str {
        ""
    }

    async fn scatter(&self, _: &str, _: &[u32]) -> Result<(), EngineError> {
        Err(EngineError::Refused("nothing is handed out by the embedded engine".into()))
    }
}
