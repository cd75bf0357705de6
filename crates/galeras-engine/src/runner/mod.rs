//! Runs plans: key, hit or not, compute, store, next.
//!
//! Lives here: the scheduling of steps, their action keys, row-precise reuse, the reasons for
//! running, data tests and output files. Does not live here: operators (it gets bound steps),
//! files and names of the store (`store`), how events are shown (`report`).

mod check;
mod compute;
mod context;
mod error;
mod fan_out_step;
mod file_digests;
mod freed_memory;
mod history;
mod input;
mod key;
mod lookup;
mod lost_rows;
mod output;
mod output_conflicts;
mod output_origin;
mod output_place;
mod output_table;
mod paid_step;
mod parts;
mod past_work;
mod progress;
mod reason;
mod recompute;
mod recompute_rows;
mod remote;
mod repair;
mod results;
mod row_step;
mod run;
mod silent_rows;
mod spending;
mod spread;
mod statement;
mod step_work;
mod stored;
mod stored_rows;
mod survey;
mod time_left;
mod transfer;
mod wave;

pub use check::{TestOutcome, test_outcomes};
pub use context::Resources;
pub use error::RunError;
pub use file_digests::FileDigests;
pub use input::{open, open_port};
pub use key::StepManifests;
pub use output::OutputOptions;
pub use output_conflicts::output_conflicts;
pub use output_origin::{FileOrigin, file_origin};
pub use output_table::{ExportedTable, export_table};
pub use past_work::stored_rows_of;
pub use recompute::{Recomputation, drawn};
pub use recompute_rows::{DrawnRows, RowsAgain};
pub use remote::{Fetched, Remote, SignatureDemand};
pub use run::{RunOptions, RunOutcome, run};
pub use spending::{limit_states, step_requests};
pub use spread::{Embedded, Engine, EngineError, Placement, Worker, build_stamp};
pub use stored::{StoredResult, stored_results};
pub use survey::{Forecast, StepState, survey};
pub use transfer::{Transfer, Transferred};
