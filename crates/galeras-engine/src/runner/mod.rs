//! Runs plans: schedules steps, finds or computes their results, tests them, and writes output
//! files.

mod check;
mod compute;
mod context;
mod error;
mod fan_out_step;
mod freed_memory;
mod history;
mod input;
mod key;
mod lookup;
mod lost_rows;
mod output;
mod output_place;
mod paid_step;
mod progress;
mod recompute;
mod remote;
mod row_step;
mod run;
mod spending;
mod spread;
mod survey;
mod transfer;
mod wave;

pub use check::{TestOutcome, test_outcomes};
pub use error::RunError;
pub use history::stored_rows_of;
pub use input::{open, open_port};
pub use key::StepManifests;
pub use output::{ExportedTable, OutputOptions, export_table};
pub use output_place::{FileDigests, FileOrigin, file_origin, output_conflicts};
pub use recompute::{DrawnRows, Recomputation, RowsAgain, drawn};
pub use remote::{Fetched, Remote, SignatureDemand};
pub use run::{RunOptions, RunOutcome, run};
pub use spending::{limit_states, step_requests};
pub use spread::{Embedded, Engine, EngineError, Placement, Worker, build_stamp};
pub use survey::{Forecast, StepState, StoredResult, stored_results, survey};
pub use transfer::{Transfer, Transferred};
