//! Who does the work of a run: this process alone, or others as well.
//!
//! Does not live here: what is handed out (`order`), and by what rules (`placement`); the engine
//! over a cluster (`cluster`).

use std::fmt;

use futures::future::BoxFuture;

/// Hands items of work out to whoever does them.
///
/// An item leaves what it computes, and a word on how it ended, in the store; nothing comes back by
/// another way, so that whatever happens to those who do the work, and to the engine, the store tells
/// what is done.
pub trait Engine: Send + Sync + fmt::Debug {
    /// As the user names it: `df://host:port`; nothing for the process itself.
    fn address(&self) -> Option<&str>;
    /// The build of this process, which whoever does the work must have.
    fn build(&self) -> &str;
    /// Has these items of a job done, in any order, each at least once or not at all. Ends when the
    /// engine does no more for them, whatever came of them; when this is dropped, the rest may be
    /// left.
    ///
    /// # Errors
    /// If the engine cannot be reached, or refuses.
    fn scatter<'a>(
        &'a self,
        job: &'a str,
        items: &'a [u32],
    ) -> BoxFuture<'a, Result<(), EngineError>>;
}

/// Why an engine did nothing, or gave up.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum EngineError {
    /// It cannot be reached now.
    #[error("{0}")]
    Unreachable(String),
    /// It will not do it.
    #[error("{0}")]
    Refused(String),
}

/// The process itself: every step is done where it is scheduled, and nothing is handed out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Embedded;

impl Engine for Embedded {
    fn address(&self) -> Option<&str> {
        None
    }

    fn build(&self) -> &str {
        ""
    }

    fn scatter<'a>(&'a self, _: &'a str, _: &'a [u32]) -> BoxFuture<'a, Result<(), EngineError>> {
        let none = EngineError::Refused("nothing is handed out by the embedded engine".into());
        Box::pin(async { Err(none) })
    }
}
