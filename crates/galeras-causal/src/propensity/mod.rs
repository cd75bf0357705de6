//! Effects through the propensity score: its logistic model, and the estimators that use it.
//!
//! Matching, stratification and weighting use the score alone; augmented weighting and the
//! cross-fitted estimators use a linear outcome model too. Designs that know the pairs of units,
//! and regressions of the outcome without a score, live elsewhere.
//!
//! Intervals are normal (the degrees of freedom of an [`Estimate`] are infinite), or with clusters
//! those of Student's t. They are for many rows and clusters, except those of `leave_one_out`.
//!
//! [`Estimate`]: super::Estimate

mod cross_fit;
pub(crate) mod design;
mod doubly_robust;
mod equations;
pub(crate) mod exponential;
mod jackknife;
mod leave_one_out;
pub(crate) mod logistic;
mod matching;
mod outcome_model;
mod rows;
mod stratification;
#[cfg(test)]
mod tests;
mod weighting;

pub use cross_fit::{CrossFit, PartiallyLinear, cross_fit_aipw, partially_linear};
pub use doubly_robust::{DoublyRobust, RegressionAdjustment, aipw, regression_adjustment};
pub use leave_one_out::{jackknifed_aipw, jackknifed_weighting};
pub use logistic::Propensity;
pub use matching::{Matching, matching};
pub use stratification::{Stratification, stratification};
pub use weighting::{Estimand, Weighting, weighting};
