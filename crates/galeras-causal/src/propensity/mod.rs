//! Effects through the propensity score: its logistic model, and the estimators that use it.
//!
//! Matching, stratification and weighting use the score alone; augmented weighting adds a linear
//! outcome model. Intervals are normal (the degrees of freedom of an
//! [`Estimate`](super::Estimate) are infinite), or Student's t with clusters. They need many rows
//! and clusters, except those of the jackknife.

pub(crate) mod design;
mod doubly_robust;
mod jackknife;
pub(crate) mod logistic;
mod matching;
mod rows;
mod stratification;
#[cfg(test)]
mod tests;
mod weighting;

pub use doubly_robust::{CrossFit, aipw, aipw_treated, cross_fit_aipw};
pub use jackknife::{jackknifed_aipw, jackknifed_aipw_treated, jackknifed_weighting};
pub use logistic::Propensity;
pub use matching::{Matching, matching};
pub use stratification::{Stratification, stratification};
pub use weighting::{Estimand, Weighting, weighting};
