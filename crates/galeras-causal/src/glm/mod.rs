//! Generalised linear models of an outcome on a treatment and covariates: logistic for yes and no,
//! Poisson and negative binomial for counts.
//!
//! `newton` finds the maximum of a likelihood with a logarithmic link, `dispersion` that of the
//! negative binomial's dispersion; the logistic fit is the one of propensity scores. `logistic` and
//! `counts` make effects of the fits. All standard errors are those of `linear`, on the weighted
//! design of the last step.

mod counts;
mod logistic;
mod newton;
#[cfg(test)]
mod tests;

pub(crate) use counts::of_treatment;
pub use counts::{CountEffect, negative_binomial, poisson};
pub(crate) use logistic::check_binary;
pub use logistic::{LogisticEffects, logistic};
