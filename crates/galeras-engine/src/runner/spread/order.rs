//! The messages between the coordinator and executors, in the store.
//!
//! An order has names, arguments and digests, but never a row or the value of a variable.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::input::StoredInput;
use galeras_base::digest::Digest;
use galeras_operator::Registry;
use galeras_store::PortArtifact;

pub(super) const ORDER: &str = "order";
/// The folder of outcomes.
pub(super) const DONE: &str = "done";
/// The folder of started items, with the names of their executors.
pub(super) const BEGUN: &str = "begun";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum WorkItem {
    /// Rows of a row step: the position of the table in its input, of the first row, and the number
    /// of rows.
    Rows { table: usize, start: u64, len: u64 },
    /// A share of one row of a fan-out: the pieces with `number % of == share`.
    Share { row: String, label: String, share: u32, of: u32 },
    /// The whole step, of which some rows may be stored.
    Whole,
}

impl WorkItem {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Rows { start, len, .. } => format!("rows {start} to {}", start + len),
            Self::Share { label, share, of, .. } => format!("{label}, share {} of {of}", share + 1),
            Self::Whole => "the step as a whole".into(),
        }
    }
}

/// A job: a step and its items.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobOrder {
    /// The build of the coordinator; other builds do not compute its items.
    pub(super) build: String,
    pub(super) step: StepOrder,
    pub(super) items: Vec<WorkItem>,
    /// Earlier results of rows may not be used, or there are none.
    pub(super) fresh: bool,
}

/// A step with everything needed to compute it elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepOrder {
    pub(super) name: String,
    pub(super) operator: String,
    pub(super) version: u32,
    /// As written, with expressions replaced.
    pub(super) arguments: Value,
    /// With every default, as in the key: binding elsewhere must give the same.
    pub(super) bound_args: Value,
    pub(super) recipe: Digest,
    pub(super) base: String,
    pub(super) inputs: Vec<StoredInput>,
}

/// The outcome of an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) executor: String,
    pub(super) seconds: f64,
    /// The computed work in the unit of the step; for a share, its pieces.
    pub(super) computed: u64,
    pub(super) reused: u64,
    /// Rows that the next run tries again.
    pub(super) retry: u64,
    pub(super) warnings: Vec<String>,
    pub(super) failure: Option<Failure>,
    /// The tables of the step, if the item was the whole step.
    pub(super) tables: Option<Vec<PortArtifact>>,
    /// The stored files that were read.
    pub(super) reads: Vec<Digest>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// Another attempt may succeed, for example after a full disk.
    pub(super) again: bool,
    /// The cause may exist only there, for example a network that does not reach a repository.
    pub(super) only_there: bool,
}

/// The build of this process: two processes of one build compute equal results. It names the
/// program's version, the target machine, and the version of every operator.
pub fn build_stamp(registry: &Registry) -> String {
    let versions: BTreeMap<&str, u32> = registry
        .iter()
        .map(|operator| (operator.descriptor().name, operator.descriptor().version))
        .collect();
    let operators = Digest::of_json(&serde_json::json!(versions));
    let (version, machine) = (env!("CARGO_PKG_VERSION"), env!("GALERAS_TARGET"));
    format!("galeras {version} for {machine}, operators {}", operators.short())
}
