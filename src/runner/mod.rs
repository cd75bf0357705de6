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
mod history;
mod input;
mod key;
mod lookup;
mod output;
mod paid_step;
mod parts;
mod past_work;
mod progress;
mod reason;
mod results;
mod row_step;
mod run;
mod survey;
mod time_left;

pub use context::Resources;
pub use error::RunError;
pub use input::{open, open_port};
pub use key::StepManifests;
pub use run::{RunOptions, RunOutcome, run};
pub use survey::{Forecast, StepState, survey};
