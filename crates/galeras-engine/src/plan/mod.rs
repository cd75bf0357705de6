//! Plans a workflow file: resolves parameters, expands embedded workflows and matrices, binds
//! operators, determines the columns of every table, and orders the steps.
//!
//! [`plan`] is the entry point. It finds all mistakes of a workflow at once and runs nothing.

mod args;
mod bind;
mod cell;
mod checks;
mod choices;
mod expand;
mod expander;
mod graph;
mod limits;
mod load;
mod lockfile;
mod mistake;
mod model;
mod other_names;
mod outline;
mod outputs;
mod params;
mod reference;
mod registration;
mod repair;

pub use cell::{Cell, cell_columns, cell_suffix};
pub use load::{Locking, PlanSettings, plan};
pub use lockfile::{LockFile, LockedFile, LockedProgram, LockedSnapshot, LockedVersion, lock_path};
pub use mistake::preflight;
pub use model::{
    Check, CheckKind, Input, OutputFormat, PictureFormat, Plan, PlannedLimit, PlannedOutput,
    PlannedPart, PlannedRemote, PlannedReport, PlannedReportFile, PlannedSection, PlannedSigners,
    PlannedStep, TableRef,
};
pub use other_names::instead_of;
pub use registration::{LockedAnalysis, LockedStep};
