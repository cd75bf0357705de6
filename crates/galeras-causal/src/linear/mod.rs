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
mod fit;
#[cfg(test)]
mod sandwich;
mod symmetric;
#[cfg(test)]
mod tests;
mod two_stage;
mod weighted;

pub(crate) use adjusted::treatment_column;
pub use adjusted::{AdjustedEffect, adjusted, interacted};
pub use anderson_rubin::{AndersonRubin, anderson_rubin};
pub use fit::LinearFit;
pub use sandwich::Covariance;
pub use two_stage::{Overidentification, TwoStage, two_stage};
