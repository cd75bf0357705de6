//! Effects through the propensity score: its logistic model, and the estimators that use it.
//!
//! Matching, stratification and weighting use the score alone; augmented weighting and the
//! cross-fitted estimators add a linear outcome model. Intervals are normal (the degrees of freedom
//! of an [`Estimate`](super::Estimate) are infinite), or Student's t with clusters. They need many
//! rows and clusters, except those of `leave_one_out`.

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
