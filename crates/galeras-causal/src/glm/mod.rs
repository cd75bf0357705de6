//! Generalised linear models of an outcome on a treatment and covariates: logistic for binary
//! outcomes, Poisson and negative binomial for counts.
//!
//! The logistic fit is that of propensity scores; `newton` fits models with a logarithmic link. All
//! standard errors are those of `linear`, on the weighted design of the last step.

mod counts;
mod logistic;
mod newton;
#[cfg(test)]
mod tests;

pub(crate) use counts::of_treatment;
pub use counts::{CountEffect, negative_binomial, poisson};
pub(crate) use logistic::check_binary;
pub use logistic::{LogisticEffects, logistic};
