//! From a workflow file to a plan: parameters resolved, embedded workflows and matrices
//! expanded, operators bound, every table typed, the steps in topological order.
//!
//! [`plan`] is the way in. It finds everything that is wrong with a workflow at once and runs
//! nothing. Does not live here: the YAML (`workflow`), the operators (it gets a registry), keys
//! and results (`exec`).

mod args;
mod bind;
mod expand;
mod graph;
mod load;
mod lockfile;
mod model;
mod outputs;
mod preflight;
mod reference;

pub use load::{Locking, Settings, plan};
pub use lockfile::{LockFile, LockedFile, LockedSnapshot, LockedVersion, lock_path};
pub use model::{
    Cell, Check, CheckKind, Input, OutputFormat, Plan, PlannedOutput, PlannedStep, TableRef,
};
pub use preflight::preflight;

/// Codes of the diagnostics that planning adds to those of `workflow::code`.
pub mod code {
    /// `op:` names no operator.
    pub const UNKNOWN_OPERATOR: &str = "unknown-operator";
    /// `with:` has a key that the operator does not know.
    pub const UNKNOWN_ARGUMENT: &str = "unknown-argument";
    /// A required argument is absent.
    pub const MISSING_ARGUMENT: &str = "missing-argument";
    /// `from:` names no step.
    pub const UNKNOWN_STEP: &str = "unknown-step";
    /// `from:` names a port that the step does not have.
    pub const UNKNOWN_PORT: &str = "unknown-port";
    /// `from:` selects a cell that the matrix does not have.
    pub const UNKNOWN_CELL: &str = "unknown-cell";
    /// A column does not exist.
    pub const UNKNOWN_COLUMN: &str = "unknown-column";
    /// Steps need each other's results.
    pub const CYCLE: &str = "cycle";
    /// The operator takes other inputs than `from:` gives.
    pub const WRONG_INPUTS: &str = "wrong-inputs";
    /// The table does not keep its `schema:` contract.
    pub const BROKEN_CONTRACT: &str = "broken-contract";
    /// A file that the workflow names cannot be read.
    pub const MISSING_FILE: &str = "missing-file";
    /// The run is frozen, and a fact about the world is not pinned or is another one.
    pub const NOT_LOCKED: &str = "not-locked";
    /// The lock file cannot be used.
    pub const BAD_LOCK: &str = "bad-lock";
    /// `--set`, `--select` or `--force` names nothing in the workflow.
    pub const UNKNOWN_OPTION: &str = "unknown-option";
}
