//! Correlations of two columns.
//!
//! The request and its answer live in `methods` and `coefficient`; the coefficients in `pearson`,
//! `spearman`, `kendall` and `partial`.

mod coefficient;
mod kendall;
mod methods;
mod partial;
mod pearson;
mod spearman;
#[cfg(test)]
mod tests;

pub use coefficient::Correlation;
pub(crate) use kendall::tie_corrected_excess;
pub use methods::{CorrelationMethod, correlation};
pub use partial::partial;
