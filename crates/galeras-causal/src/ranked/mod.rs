//! Shifts by Wilcoxon's tests: between two independent samples (rank sum, Mann and Whitney) and
//! within pairs (signed ranks), each with the estimate and the interval that belong to the test.

mod independent;
mod pairs;
#[cfg(test)]
mod tests;

pub use independent::{RankSum, rank_sum};
pub use pairs::{SignedRankShift, signed_rank_shift};
