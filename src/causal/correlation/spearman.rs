//! Spearman's rank correlation: Pearson's of the average ranks.

use super::super::{compensated, rank, refusal::Refusal};
use super::{Correlation, pearson};

/// Spearman's correlation of two checked columns.
pub(super) fn correlation(x: &[f64], y: &[f64], alpha: f64) -> Result<Correlation, Refusal> {
    // Ranks would turn differences by rounding into a perfect order of rows.
    compensated::centred(x, "x")?;
    compensated::centred(y, "y")?;
    let coefficient =
        pearson::of_columns(&rank::average_ranks(x).ranks, &rank::average_ranks(y).ranks)?;
    let n = x.len() as f64;
    let variance = (1.0 + coefficient.value * coefficient.value / 2.0) / (n - 3.0);
    Ok(Correlation {
        coefficient: coefficient.value,
        interval: coefficient.interval(variance, alpha),
        p_value: coefficient.p_value(n - 2.0),
        n: x.len(),
    })
}
