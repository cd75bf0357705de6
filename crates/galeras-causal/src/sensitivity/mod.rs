//! The strength that an unmeasured confounder would need to explain an effect away.

mod evalue;
mod robustness;
mod rosenbaum;
#[cfg(test)]
mod tests;

pub use evalue::{
    EValue, RiskRatio, evalue_difference, evalue_ratio, pooled_deviation, standardised_risks,
};
pub use robustness::{
    Benchmarks, ConfounderStrength, InstrumentRobustness, Robustness, instrument_robustness,
    robustness, with_confounder,
};
pub use rosenbaum::SignedRanks;
