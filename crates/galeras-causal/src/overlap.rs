//! Overlap of the propensity scores of both arms: ranges, common support, discrimination, and
//! effective sample sizes. The estimators refuse too little overlap.

#[cfg(test)]
mod tests;

use super::Refusal;
use super::balance::check;
use super::rank::quantile;

/// Comparison of the propensity scores of the treated and the control units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlap {
    /// The lowest score of a treated unit.
    pub min_treated: f64,
    /// The highest score of a treated unit.
    pub max_treated: f64,
    /// The lowest score of a control unit.
    pub min_control: f64,
    /// The highest score of a control unit.
    pub max_control: f64,
    /// The start of the common support: the higher of both minima.
    pub common_low: f64,
    /// Its end: the lower of both maxima, which is below the start if there is no common support.
    pub common_high: f64,
    /// The number of units with a score outside the common support.
    pub outside: usize,
    /// The number of distinct scores.
    pub distinct: usize,
    /// The probability that a treated unit scores higher than a control unit, ties counted half:
    /// the area under the receiver operating characteristic, 0.5 if the scores do not predict the
    /// treatment.
    pub auc: f64,
    /// Kish's effective sample size of the treated units under the weights.
    pub effective_treated: f64,
    /// Kish's effective sample size of the control units under the weights.
    pub effective_control: f64,
    /// The number of scores below the lower clip limit.
    pub below_clip: usize,
    /// The number of scores above the upper clip limit.
    pub above_clip: usize,
    /// The quantiles of all scores at 1, 25, 50, 75 and 99 %, interpolated linearly.
    pub quantiles: [f64; 5],
}

/// Compares the propensity scores of the arms.
///
/// `scores` (probabilities), `treated` and `weights` have one entry for each unit; without weights
/// every unit counts 1. `clip` holds the limits to which scores were clipped for the weights.
/// Effective sizes are Kish's (1965, Survey Sampling), the quantiles those of numpy.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty; [`Refusal::Other`] if the lengths differ, a score or a
/// weight is not finite, a weight is negative, or the weights of an arm are all zero.
pub fn overlap(
    scores: &[f64],
    treated: &[bool],
    weights: Option<&[f64]>,
    clip: (f64, f64),
) -> Result<Overlap, Refusal> {
    check(scores, treated, weights)?;
    let (min_treated, max_treated, number_treated) = range(scores, treated, true);
    let (min_control, max_control, number_control) = range(scores, treated, false);
    for (what, units) in [("treated units", number_treated), ("control units", number_control)] {
        if units == 0 {
            return Err(Refusal::TooFew { what, found: 0, needed: 1 });
        }
    }
    let (common_low, common_high) = (min_treated.max(min_control), max_treated.min(max_control));
    let mut order: Vec<(f64, bool)> = scores.iter().copied().zip(treated.iter().copied()).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut distinct, mut wins, mut controls) = (0, 0.0, 0_usize);
    for group in order.chunk_by(|a, b| a.0 == b.0) {
        let here = group.iter().filter(|(_, unit)| *unit).count();
        let others = group.len() - here;
        wins += here as f64 * (controls as f64 + others as f64 / 2.0);
        controls += others;
        distinct += 1;
    }
    let sorted: Vec<f64> = order.into_iter().map(|(score, _)| score).collect();
    let effective = |arm: bool, number: usize| {
        weights.map_or(number as f64, |weights| effective_size(weights, treated, arm))
    };
    let count = |outside: &dyn Fn(f64) -> bool| scores.iter().filter(|s| outside(**s)).count();
    Ok(Overlap {
        min_treated,
        max_treated,
        min_control,
        max_control,
        common_low,
        common_high,
        outside: count(&|score| score < common_low || score > common_high),
        distinct,
        auc: wins / (number_treated as f64 * number_control as f64),
        effective_treated: effective(true, number_treated),
        effective_control: effective(false, number_control),
        below_clip: count(&|score| score < clip.0),
        above_clip: count(&|score| score > clip.1),
        quantiles: [1, 25, 50, 75, 99].map(|percent| quantile(&sorted, percent, 100)),
    })
}

/// The range of scores with overlap, by the rule of thumb of Crump, Hotz, Imbens and Mitnik (2009,
/// Biometrika 96:187).
pub const CRUMP: (f64, f64) = (0.1, 0.9);

/// The positions of the scores within a range, including its ends, in ascending order.
pub fn in_overlap(scores: &[f64], (low, high): (f64, f64)) -> Vec<u32> {
    (0..).zip(scores).filter(|(_, s)| low <= **s && **s <= high).map(|(at, _)| at).collect()
}

/// The lowest and the highest score of an arm, and its number of units.
fn range(scores: &[f64], treated: &[bool], arm: bool) -> (f64, f64, usize) {
    let units = scores.iter().zip(treated).filter(|(_, unit)| **unit == arm);
    units.fold((f64::INFINITY, f64::NEG_INFINITY, 0), |(low, high, number), (score, _)| {
        (low.min(*score), high.max(*score), number + 1)
    })
}

/// Kish's effective sample size of an arm: the square of the sum of the weights over the sum of
/// their squares. Weights are taken relative to the heaviest, which must be above zero.
fn effective_size(weights: &[f64], treated: &[bool], arm: bool) -> f64 {
    let units = weights.iter().zip(treated).filter(|(_, unit)| **unit == arm);
    let heaviest = units.clone().fold(0.0_f64, |heaviest, (weight, _)| heaviest.max(*weight));
    let (sum, squares) = units.fold((0.0, 0.0), |(sum, squares), (weight, _)| {
        let weight = weight / heaviest;
        (sum + weight, squares + weight * weight)
    });
    sum * sum / squares
}
