//! Sensitivity analyses: the strength that an unmeasured confounder would need to explain an effect
//! away.

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
