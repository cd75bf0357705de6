//! Sensitivity analyses: how strong an unmeasured confounder would have to be to explain an
//! effect away. Numbers only; which of them belong to an analysis is up to the caller.

mod contours;
mod evalue;
mod risk_ratio;
mod robustness;
mod rosenbaum;
#[cfg(test)]
mod tests;

pub use contours::{Benchmarks, ConfounderStrength, with_confounder};
pub use evalue::{EValue, evalue_difference, evalue_ratio, pooled_deviation};
pub use risk_ratio::{RiskRatio, standardised_risks};
pub use robustness::{InstrumentRobustness, Robustness, instrument_robustness, robustness};
pub use rosenbaum::SignedRanks;
