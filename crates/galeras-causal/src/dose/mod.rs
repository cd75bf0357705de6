//! Treatments that are doses: how the outcome changes along them, and whether it does so in one
//! direction.
//!
//! `spline` is the basis of natural cubic splines, `curve` the regression on it with pointwise
//! intervals, `trend` the tests of a monotone trend.

mod curve;
mod spline;
#[cfg(test)]
mod tests;
mod trend;

pub use curve::{DoseCurve, DosePoint, JointTest, dose_curve};
pub use spline::natural_knots;
pub use trend::{TrendTest, cochran_armitage, jonckheere_terpstra};
