//! Spearman's rank correlation: Pearson's of the average ranks.

use super::super::{column_ref::ColumnRef, compensated, rank, refusal::Refusal};
use super::coefficient::Correlation;
use super::pearson;

/// Spearman's correlation of two checked columns.
pub(super) fn correlation(x: &[f64], y: &[f64], alpha: f64) -> Result<Correlation, Refusal> {
    // Ranks would turn differences by rounding into a perfect order of rows.
    compensated::centred(x, ColumnRef::X)?;
    compensated::centred(y, ColumnRef::Y)?;
    let ranks = rank::average_ranks(x).ranks;
    let coefficient = pearson::of_columns(&ranks, &rank::average_ranks(y).ranks)?;
    let n = x.len() as f64;
    let variance = (1.0 + coefficient.value * coefficient.value / 2.0) / (n - 3.0);
    Ok(Correlation {
        coefficient: coefficient.value,
        interval: coefficient.interval(variance, alpha),
        // There the t approximation ends in 0, for three rows too.
        p_value: if coefficient.complement > 0.0 {
            coefficient.p_value(n - 2.0)
        } else {
            perfect(ranks)
        },
        n: x.len(),
    })
}

/// The probability of a correlation of 1 or -1 if all orders of rows are equally likely: of n!
/// orders those that exchange rows of equal rank, in both directions where both are possible.
fn perfect(mut ranks: Vec<f64>) -> f64 {
    ranks.sort_unstable_by(f64::total_cmp);
    let ties: Vec<usize> = ranks.chunk_by(|a, b| a == b).map(<[f64]>::len).collect();
    let log_factorial = |n: usize| (2..=n).map(|k| (k as f64).ln()).sum::<f64>();
    let exchanges: f64 = ties.iter().map(|n| log_factorial(*n)).sum();
    let directions = if ties.iter().eq(ties.iter().rev()) { 2.0 } else { 1.0 };
    directions * (exchanges - log_factorial(ranks.len())).exp()
}
