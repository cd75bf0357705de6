//! `--engine`: selects where the work of a run is done.

use std::sync::Arc;

use clap::Args;

use super::context::{Exit, Failure, fail};
use galeras_engine::runner::{Embedded, Engine, Placement};
use galeras_operator::BoundStep;
use galeras_store::StoreLocation;

/// Options that select the engine.
#[derive(Args, Clone, Debug)]
pub(super) struct EngineArgs {
    /// Have the work done by the cluster at this address, df://HOST:PORT, whose executors use the
    /// same store (default: by this process).
    #[arg(long, value_name = "URL", env = "GALERAS_ENGINE")]
    engine: Option<String>,
}

impl EngineArgs {
    pub(super) fn address(&self) -> Option<&str> {
        self.engine.as_deref()
    }

    /// The place where a step would run, if work is sent to executors.
    pub(super) fn place(&self, step: &dyn BoundStep) -> Option<String> {
        self.engine.as_ref().map(|_| Placement::of(step).describe())
    }

    /// The engine for a run on this store; shows the error if it cannot be used.
    pub(super) fn open(&self, cache: &str) -> Result<Arc<dyn Engine>, Failure> {
        let Some(address) = &self.engine else { return Ok(Arc::new(Embedded)) };
        if let Ok(StoreLocation::Memory(_)) = StoreLocation::parse(cache) {
            let message = "a store in memory cannot be shared with executors; give --cache a folder \
                           that they see, or a bucket";
            return Err(fail(message, Exit::Invalid));
        }
        cluster(address)
    }
}

#[cfg(feature = "cluster")]
fn cluster(address: &str) -> Result<Arc<dyn Engine>, Failure> {
    use crate::registry::REGISTRY;
    use galeras_cluster::ClusterEngine;
    let engine = ClusterEngine::new(address, &REGISTRY);
    Ok(Arc::new(engine.map_err(|error| fail(error.to_string(), Exit::Invalid))?))
}

#[cfg(not(feature = "cluster"))]
fn cluster(_: &str) -> Result<Arc<dyn Engine>, Failure> {
    let message =
        "this build of galeras knows no clusters\nhelp: build it with `--features cluster`";
    Err(fail(message, Exit::Invalid))
}
