//! Differences in means: of two independent arms, after Welch, and of pairs.

#[cfg(test)]
mod tests;

use crate::column::{ROWS, arm_sizes, of_arm};
use crate::refusal::{at_least, require};
use crate::{Estimate, Refusal};

/// Treated mean minus control mean, without assuming equal variances (Welch 1947, Biometrika 34:28;
/// equals `scipy.stats.ttest_ind(equal_var=False)`). Refuses an outcome that is constant in both
/// arms.
pub fn difference_in_means(treated: &[bool], outcome: &[f64]) -> Result<Estimate, Refusal> {
    same_rows(treated, outcome.len())?;
    let [ones, zeros] = arm_sizes(treated, ROWS, 2)?;
    let [one, zero] = [true, false].map(|arm| Moments::of(&of_arm(arm, treated, outcome)));
    let (one, zero) = (one?, zero?);
    let reason = "the outcome is constant in both arms: the standard error would be zero";
    require(!(one.is_constant() && zero.is_constant()), reason)?;
    let (n1, n0) = (ones as f64, zeros as f64);
    let (e1, e0) = (one.deviation / n1.sqrt(), zero.deviation / n0.sqrt());
    let standard_error = e1.hypot(e0);
    // Shares of the variance, so that no fourth power overflows.
    let (s1, s0) = ((e1 / standard_error).powi(2), (e0 / standard_error).powi(2));
    let degrees = 1.0 / (s1 * s1 / (n1 - 1.0) + s0 * s0 / (n0 - 1.0));
    Ok(Estimate { value: one.mean - zero.mean, standard_error, degrees })
}

/// Refuses a treatment with another number of rows than the outcome.
pub(super) fn same_rows(treated: &[bool], rows: usize) -> Result<(), Refusal> {
    let found = treated.len();
    require(found == rows, format!("the treatment has {found} rows and the outcome {rows}"))
}

/// Refuses arms with different numbers of outcomes of pairs.
pub(super) fn same_pairs(treatment: &[f64], control: &[f64]) -> Result<(), Refusal> {
    let (one, zero) = (treatment.len(), control.len());
    require(one == zero, format!("{one} outcomes under the treatment, {zero} under the control"))
}

pub(super) struct Moments {
    pub(super) mean: f64,
    /// The standard deviation (n - 1); zero for one row.
    pub(super) deviation: f64,
    pub(super) range: f64,
    pub(super) largest: f64,
}

impl Moments {
    pub(super) fn of(column: &[f64]) -> Result<Moments, Refusal> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in column {
            // Beyond this, differences and sums would overflow.
            require(value.abs() <= 1e290, "an outcome is not finite, or beyond 1e290")?;
            low = low.min(*value);
            high = high.max(*value);
        }
        let largest = low.abs().max(high.abs());
        let range = high - low;
        if range <= 0.0 || !range.is_finite() {
            return Ok(Moments { mean: low, deviation: 0.0, range: 0.0, largest });
        }
        let rows = column.len() as f64;
        // Distances from a value within the range keep their digits if the column is far from zero.
        let origin = low + 0.5 * range;
        let shift = column.iter().map(|value| (value - origin) / range).sum::<f64>() / rows;
        let mean = origin + shift * range;
        let square: f64 = column.iter().map(|value| ((value - mean) / range).powi(2)).sum();
        Ok(Moments { mean, deviation: (square / (rows - 1.0)).sqrt() * range, range, largest })
    }

    /// True if the values differ by rounding only.
    pub(super) fn is_constant(&self) -> bool {
        self.range <= 4.0 * f64::EPSILON * self.largest
    }
}

/// The paired t analysis of `treatment` minus `control`, the outcomes of each of n pairs (Student
/// 1908; equals `scipy.stats.ttest_rel`). Refuses differences that are all equal.
pub fn paired(treatment: &[f64], control: &[f64]) -> Result<Estimate, Refusal> {
    let pairs = treatment.len();
    same_pairs(treatment, control)?;
    at_least("pairs", pairs, 2)?;
    let differences: Vec<f64> = treatment.iter().zip(control).map(|(t, c)| t - c).collect();
    let (treated, untreated) = (Moments::of(treatment)?, Moments::of(control)?);
    let moments = Moments::of(&differences)?;
    // Differences carry the rounding errors of the outcomes.
    let rounding = f64::EPSILON * treated.largest.max(untreated.largest);
    let reason = format!(
        "all {pairs} pairs differ by the same amount, {}: the standard error would be zero",
        moments.mean
    );
    require(moments.range > 4.0 * rounding, reason)?;
    Ok(Estimate {
        value: moments.mean,
        standard_error: moments.deviation / (pairs as f64).sqrt(),
        degrees: (pairs - 1) as f64,
    })
}
