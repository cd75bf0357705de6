//! From a workflow file to a plan: parameters resolved, embedded workflows and matrices
//! expanded, operators bound, every table typed, the steps in topological order.
//!
//! [`plan`] is the way in. It finds everything that is wrong with a workflow at once and runs
//! nothing. Imports go one way: `scalar` → `cell` → `model`, `settings` → `mistake` → `params`,
//! `args`, `resolve`, `united`, `extent`, `embedded` → `expander` → `reference`, `checks`, `outputs`,
//! `places`, `substitution` → `choices`, `bind` → `expand` → `load`.
//!
//! Does not live here: the YAML (`workflow`), the operators (it gets a registry), keys and
//! results (`runner`).

mod args;
mod bind;
mod cell;
mod checks;
mod choices;
mod embedded;
mod expand;
mod expander;
mod extent;
mod file;
mod graph;
mod load;
mod lockfile;
mod mistake;
mod model;
mod outputs;
mod params;
mod places;
mod preflight;
mod reference;
mod resolve;
mod scalar;
mod settings;
mod substitution;
mod united;

pub(crate) use cell::cell_columns;
pub use cell::{Cell, CellKey};
pub use load::plan;
pub use lockfile::{LockFile, LockedFile, LockedSnapshot, LockedVersion, lock_path};
pub use model::{
    Check, CheckKind, Input, OutputFormat, Plan, PlannedOutput, PlannedStep, TableRef,
};
pub use preflight::preflight;
pub use settings::{Locking, PlanSettings};
