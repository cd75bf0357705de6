//! Yes-or-no outcomes of two arms, without covariates: differences and ratios of proportions by
//! score intervals, and McNemar's test of pairs.

mod mcnemar;
mod proportions;
#[cfg(test)]
mod tests;

pub use mcnemar::{McNemar, mcnemar};
pub use proportions::{FourfoldTable, RiskMeasure};
