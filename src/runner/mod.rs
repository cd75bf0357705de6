//! Runs plans: key, hit or not, compute, store, next.
//!
//! Lives here: the scheduling of steps, their action keys, row-precise reuse, the reasons for
//! running, data tests and output files. Does not live here: operators (it gets bound steps),
//! files and names of the store (`cache`), how events are shown (`report`).

mod ask;
mod check;
mod each;
mod error;
mod input;
mod key;
mod output;
mod reason;
mod row;
mod run;
mod step;
mod survey;

pub use error::RunError;
pub use input::{open, open_port};
pub use run::{Outcome, RunOptions, run};
pub use step::Resources;
pub use survey::{State, StepState, survey};
