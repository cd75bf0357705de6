//! Linear regression of an outcome on a treatment and covariates, with standard errors by HC and CR
//! kinds.
//!
//! `fit` is least squares, `sandwich` and `cluster` compute variances, `adjusted` has the plain and
//! the interacted regression, `two_stage` and `anderson_rubin` use instruments, and `weighted` is
//! the last step of a weighted regression.

mod adjusted;
mod anderson_rubin;
mod cluster;
mod fit;
mod sandwich;
mod symmetric;
#[cfg(test)]
mod tests;
mod two_stage;
mod weighted;

pub(crate) use adjusted::treatment_column;
pub use adjusted::{AdjustedEffect, adjusted, interacted};
pub use anderson_rubin::{AndersonRubin, anderson_rubin};
pub(crate) use cluster::ClusterRows;
pub use fit::LinearFit;
pub use sandwich::Covariance;
pub use two_stage::{Overidentification, TwoStage, two_stage};
