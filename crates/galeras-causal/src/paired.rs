//! Paired differences: each unit is seen under the treatment and under the control.

use super::difference::Moments;
use super::{Estimate, Refusal};

/// The mean of paired differences, and what the pairing gained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifference {
    /// The mean of treatment less control, with Student's t on pairs - 1 degrees of freedom.
    pub estimate: Estimate,
    /// The pairs there are.
    pub pairs: usize,
    /// The standard deviation of the differences (n - 1).
    pub sd_difference: f64,
    /// Pearson's correlation of the arms over pairs; none where an arm is constant.
    pub correlation: Option<f64>,
    /// Pairs in which the treatment's outcome is larger.
    pub positive: usize,
    /// Pairs in which it is smaller.
    pub negative: usize,
    /// Pairs without a difference.
    pub zero: usize,
}

/// The paired t analysis of `treatment` less `control`, the outcomes of each of n pairs in the same
/// order and unit (Student 1908; equals `scipy.stats.ttest_rel`).
///
/// # Errors
///
/// [`Refusal::TooFew`] below two pairs, [`Refusal::Other`] where all differences are equal (the
/// standard error would be zero), where lengths differ, or where a value is not
/// finite or beyond 1e290.
pub fn paired(treatment: &[f64], control: &[f64]) -> Result<PairedDifference, Refusal> {
    let pairs = treatment.len();
    if control.len() != pairs {
        return Err(Refusal::Other(format!(
            "{pairs} outcomes under the treatment, {} under the control",
            control.len()
        )));
    }
    if pairs < 2 {
        return Err(Refusal::TooFew { what: "pairs", found: pairs, needed: 2 });
    }
    let differences: Vec<f64> = treatment.iter().zip(control).map(|(t, c)| t - c).collect();
    let (treated, untreated) = (Moments::of(treatment)?, Moments::of(control)?);
    let moments = Moments::of(&differences)?;
    // Differences carry the rounding of the outcomes that they were taken from.
    let rounding = f64::EPSILON * treated.largest.max(untreated.largest);
    if moments.range <= 4.0 * rounding {
        return Err(Refusal::Other(format!(
            "all {pairs} pairs differ by the same amount, {}: the standard error would be zero",
            moments.mean
        )));
    }
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
    let sum: f64 = left
        .iter()
        .zip(right)
        .map(|(x, y)| (x - a.mean) / a.deviation * ((y - b.mean) / b.deviation))
        .sum();
    Some((sum / (left.len() - 1) as f64).clamp(-1.0, 1.0))
}
