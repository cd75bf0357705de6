//! Linear regression of an outcome on a treatment and covariates, with the standard errors that
//! the literature knows.
//!
//! Least squares itself lives in `fit`, the kinds of standard errors in `covariance`, variances in
//! `sandwich` and `cluster`, the plain regression in `adjusted`, Lin's with interactions in
//! `interacted`, instruments in `two_stage`, the last step of a weighted regression in `weighted`.

mod adjusted;
mod cluster;
mod covariance;
mod fit;
mod interacted;
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
pub use covariance::Covariance;
pub use fit::LinearFit;
pub use interacted::interacted;
pub use two_stage::{Sargan, TwoStage, two_stage};
