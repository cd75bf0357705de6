//! Linear regression of an outcome on a treatment and covariates, with the standard errors that
//! the literature knows.
//!
//! Least squares itself lives in `fit`, the kinds of standard errors in `covariance`, variances in
//! `sandwich` and `cluster`, the plain regression in `adjusted`, Lin's with interactions in
//! `interacted`, instruments in `two_stage` with the tests of `overidentification` and the intervals
//! of `anderson_rubin`, the last step of a weighted regression in `weighted`.

mod adjusted;
mod anderson_rubin;
mod cluster;
mod covariance;
mod fit;
#[cfg(test)]
mod instrument_tests;
mod interacted;
mod overidentification;
#[cfg(test)]
mod parity_tests;
mod sandwich;
mod symmetric;
#[cfg(test)]
mod tests;
mod two_stage;
mod weighted;

pub(crate) use adjusted::treatment_column;
pub use adjusted::{AdjustedEffect, adjusted};
pub use anderson_rubin::{AndersonRubin, anderson_rubin};
pub use covariance::Covariance;
pub use fit::LinearFit;
pub use interacted::interacted;
pub use overidentification::Overidentification;
pub use two_stage::{TwoStage, two_stage};
