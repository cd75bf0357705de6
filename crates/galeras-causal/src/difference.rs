//! Differences in means: of two independent arms, after Welch, and of pairs.

#[cfg(test)]
mod tests;

use crate::column::{ROWS, arm_sizes, of_arm};
use crate::refusal::{at_least, require};
use crate::{Estimate, Refusal};

/// A difference in means of two arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanDifference {
    /// Treated mean minus control mean, with the degrees of freedom of Welch & Satterthwaite.
    pub estimate: Estimate,
    /// The treated rows.
    pub treated: usize,
    /// The control rows.
    pub control: usize,
    /// The mean of the treated rows.
    pub treated_mean: f64,
    /// The mean of the control rows.
    pub control_mean: f64,
}

/// Welch's difference in means, without assuming equal variances (Welch 1947, Biometrika 34:28;
/// equals `scipy.stats.ttest_ind(equal_var=False)`). Refuses an outcome that is constant in both
/// arms.
pub fn difference_in_means(treated: &[bool], outcome: &[f64]) -> Result<MeanDifference, Refusal> {
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
    Ok(MeanDifference {
        estimate: Estimate { value: one.mean - zero.mean, standard_error, degrees },
        treated: ones,
        control: zeros,
        treated_mean: one.mean,
        control_mean: zero.mean,
    })
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

/// The mean of paired differences, with the correlation of the arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifference {
    /// The mean of treatment minus control, with Student's t on pairs - 1 degrees of freedom.
    pub estimate: Estimate,
    /// The number of pairs.
    pub pairs: usize,
    /// The standard deviation of the differences (n - 1).
    pub sd_difference: f64,
    /// Pearson's correlation of the arms over pairs; `None` if an arm is constant.
    pub correlation: Option<f64>,
    /// Pairs in which the treatment's outcome is larger.
    pub positive: usize,
    /// Pairs in which it is smaller.
    pub negative: usize,
    /// Pairs without a difference.
    pub zero: usize,
}

/// The paired t analysis of `treatment` minus `control`, the outcomes of each of n pairs (Student
/// 1908; equals `scipy.stats.ttest_rel`). Refuses differences that are all equal.
pub fn paired(treatment: &[f64], control: &[f64]) -> Result<PairedDifference, Refusal> {
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
    let count = |is: fn(&f64) -> bool| differences.iter().filter(|d| is(d)).count();
    Ok(PairedDifference {
        estimate: Estimate {
            value: moments.mean,
            standard_error: moments.deviation / (pairs as f64).sqrt(),
            degrees: (pairs - 1) as f64,
        },
        pairs,
        sd_difference: moments.deviation,
        correlation: correlation(treatment, &treated, control, &untreated),
        positive: count(|d| *d > 0.0),
        negative: count(|d| *d < 0.0),
        zero: count(|d| *d == 0.0),
    })
}

fn correlation(left: &[f64], a: &Moments, right: &[f64], b: &Moments) -> Option<f64> {
    if a.is_constant() || b.is_constant() {
        return None;
    }
    let rows = left.iter().zip(right);
    let products = rows.map(|(x, y)| (x - a.mean) / a.deviation * ((y - b.mean) / b.deviation));
    let sum: f64 = products.sum();
    Some((sum / (left.len() - 1) as f64).clamp(-1.0, 1.0))
}
