//! Plans a workflow file: resolves parameters, expands embedded workflows and matrices, binds
//! operators, determines the columns of every table, and orders the steps.
//!
//! [`plan`] is the entry point. It finds all mistakes of a workflow at once and runs nothing.
//! Imports go one way: `scalar` → `cell` → `input` → `planned_report` → `model`, `settings`,
//! `param_paths` → `mistake` → `params`, `args`, `resolve`, `united`, `extent`, `embedded`,
//! `locked_analysis` → `expander` → `registration`, `reference`, `checks`, `limits`, `report` →
//! `outputs`, `places`, `substitution` → `choices`, `bind` → `expand` → `load`. `named` uses
//! `reference` to find tables in a finished plan.

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
mod input;
mod limits;
mod load;
mod locked_analysis;
mod lockfile;
mod mistake;
mod model;
mod named;
mod outline;
mod outputs;
mod param_paths;
mod params;
mod places;
mod planned_report;
mod preflight;
mod reference;
mod registration;
mod repair;
mod report;
mod resolve;
mod scalar;
mod settings;
mod substitution;
mod united;

pub use cell::{Cell, CellKey};
pub use cell::{cell_columns, cell_suffix};
pub use input::{Input, TableRef};
pub use load::plan;
pub use locked_analysis::{LockedAnalysis, LockedStep};
pub use lockfile::{LockFile, LockedFile, LockedProgram, LockedSnapshot, LockedVersion, lock_path};
pub use model::{
    Check, CheckKind, OutputFormat, PictureFormat, Plan, PlannedLimit, PlannedOutput,
    PlannedRemote, PlannedSigners, PlannedStep,
};
pub use planned_report::{PlannedPart, PlannedReport, PlannedReportFile, PlannedSection};
pub use preflight::preflight;
pub use settings::{Locking, PlanSettings};
