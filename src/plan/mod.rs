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
