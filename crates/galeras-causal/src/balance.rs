//! Covariate balance: the distance between the distributions of one covariate in the two arms,
//! before and after weighting; and the overlap of the propensity scores of both arms.

#[cfg(test)]
mod tests;

use super::Refusal;
use super::column::{UNITS, arm_sizes};
use super::rank::{ascending, quantile};
use super::refusal::require;

/// The distributions of one covariate in the treated and in the control arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// The unweighted mean of the treated units, in units of the covariate.
    pub mean_treated: f64,
    /// The unweighted mean of the control units, in units of the covariate.
    pub mean_control: f64,
    /// The standardised mean difference without weights: treated minus control, divided by the root
    /// of the mean of both variances. `None` if neither arm varies and the means differ.
    pub smd_before: Option<f64>,
    /// The same with weighted means and the unweighted standard deviations, so that only the means
    /// can change it. `None` without weights, and as above.
    pub smd_after: Option<f64>,
    /// Variance of the treated over that of the control units (n - 1), if the latter vary.
    pub variance_ratio: Option<f64>,
    /// The ratio of the weighted variances, unbiased for reliability weights. `None` without
    /// weights, or if a variance is undefined or that of the control units is zero.
    pub variance_ratio_after: Option<f64>,
    /// The two-sample Kolmogorov-Smirnov statistic, from 0 to 1.
    pub ks: f64,
    /// The same between the weighted distribution functions. `None` without weights.
    pub ks_after: Option<f64>,
}

/// Compares a covariate between the arms, with the measures of Austin (2009, Statistics in Medicine
/// 28:3083). `weights` have any sum. Refuses a negative weight, an arm without weight, or sums that
/// overflow.
pub fn balance(
    column: &[f64],
    treated: &[bool],
    weights: Option<&[f64]>,
) -> Result<Balance, Refusal> {
    check(column, treated, weights)?;
    arm_sizes(treated, UNITS, 2)?;
    // Relative to the first value, so that a large offset costs no digits.
    let origin = column.first().copied().unwrap_or(0.0);
    let arm = |which: bool, weights: Option<&[f64]>| {
        let rows = (0..column.len()).filter(|row| treated[*row] == which);
        moments(rows.map(|row| (column[row] - origin, weights.map_or(1.0, |all| all[row]))))
    };
    let (one, zero) = (arm(true, None), arm(false, None));
    let (sd_one, sd_zero) = (one.deviation.unwrap_or(0.0), zero.deviation.unwrap_or(0.0));
    let pooled = sd_one.hypot(sd_zero) / std::f64::consts::SQRT_2;
    let mut balance = Balance {
        mean_treated: origin + one.mean,
        mean_control: origin + zero.mean,
        smd_before: standardised(one.mean - zero.mean, pooled),
        smd_after: None,
        variance_ratio: ratio(one.deviation, zero.deviation),
        variance_ratio_after: None,
        ks: 0.0,
        ks_after: None,
    };
    if let Some(weights) = weights {
        let (one, zero) = (arm(true, Some(weights)), arm(false, Some(weights)));
        balance.smd_after = standardised(one.mean - zero.mean, pooled);
        balance.variance_ratio_after = ratio(one.deviation, zero.deviation);
    }
    (balance.ks, balance.ks_after) = kolmogorov_smirnov(column, treated, weights);
    let after = [balance.smd_before, balance.smd_after, balance.variance_ratio];
    let rest = [balance.variance_ratio_after, balance.ks_after];
    let numbers = [balance.mean_treated, balance.mean_control, balance.ks, pooled];
    let optional = after.into_iter().chain(rest).flatten();
    let finite = numbers.into_iter().chain(optional).all(f64::is_finite);
    require(finite, "the values are too large to be added up")?;
    Ok(balance)
}

/// Refuses columns of different lengths, values that are not finite, and weights that are negative,
/// not finite, or all zero in an arm.
pub(super) fn check(
    column: &[f64],
    treated: &[bool],
    weights: Option<&[f64]>,
) -> Result<(), Refusal> {
    let rows = column.len();
    let same = rows == treated.len() && weights.is_none_or(|weights| weights.len() == rows);
    require(same, "the columns differ in length")?;
    require(column.iter().all(|value| value.is_finite()), "a value is missing or infinite")?;
    let Some(weights) = weights else { return Ok(()) };
    let usable = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
    require(usable, "a weight is negative, missing or infinite")?;
    for arm in [true, false] {
        let mut units = weights.iter().zip(treated).filter(|(_, unit)| **unit == arm).peekable();
        let empty = units.peek().is_none();
        require(
            empty || units.any(|(weight, _)| *weight != 0.0),
            "all weights of an arm are zero",
        )?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedMoments {
    /// The weighted mean; 0 without values.
    pub(super) mean: f64,
    /// The standard deviation, unbiased as a variance; `None` below two values.
    pub(super) deviation: Option<f64>,
}

/// Mean and standard deviation of pairs of a value and its weight; pairs with weight 0 are ignored.
/// The values are centred at the first and scaled by the range, so that a constant stays exactly
/// constant and squares neither overflow nor vanish.
pub(super) fn moments(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> WeightedMoments {
    let pairs = pairs.filter(|(_, weight)| *weight > 0.0);
    let Some((first, _)) = pairs.clone().next() else {
        return WeightedMoments { mean: 0.0, deviation: None };
    };
    let (mut count, mut heaviest, mut widest) = (0, 0.0_f64, 0.0_f64);
    for (value, weight) in pairs.clone() {
        count += 1;
        heaviest = heaviest.max(weight);
        widest = widest.max((value - first).abs());
    }
    let (mut total, mut squares, mut sum) = (0.0, 0.0, 0.0);
    let scale = if widest > 0.0 { widest } else { 1.0 };
    for (value, weight) in pairs.clone() {
        let weight = weight / heaviest;
        total += weight;
        squares += weight * weight;
        sum += weight * ((value - first) / scale);
    }
    let centre = sum / total;
    let mut spread = 0.0;
    for (value, weight) in pairs {
        let distance = (value - first) / scale - centre;
        spread += weight / heaviest * (distance * distance);
    }
    // n - 1 with equal weights. It has no correct digits if one unit has all the weight.
    let degrees = total - squares / total;
    let deviation = (count > 1 && degrees > 1e-12 * total)
        .then(|| if widest > 0.0 { scale * (spread / degrees).sqrt() } else { 0.0 });
    WeightedMoments { mean: first + scale * centre, deviation }
}

/// A difference in units of a standard deviation: 0 if both are zero, `None` if it is infinite. The
/// same values in another order have means that differ by rounding, which counts as no difference.
fn standardised(difference: f64, deviation: f64) -> Option<f64> {
    if deviation > 0.0 {
        let share = difference / deviation;
        Some(if share.abs() < ROUNDING { 0.0 } else { share })
    } else {
        (difference == 0.0).then_some(0.0)
    }
}

/// A smaller share of a standard deviation is rounding.
const ROUNDING: f64 = 1e-11;

fn ratio(treated: Option<f64>, control: Option<f64>) -> Option<f64> {
    let (treated, control) = (treated?, control?);
    (control > 0.0).then(|| (treated / control).powi(2))
}

/// The largest distance of the distribution functions of both arms, without and with weights. Both
/// arms must have rows, and the values must be finite.
fn kolmogorov_smirnov(
    column: &[f64],
    treated: &[bool],
    weights: Option<&[f64]>,
) -> (f64, Option<f64>) {
    let mut order: Vec<(f64, usize)> =
        column.iter().enumerate().map(|(row, value)| (*value, row)).collect();
    // Equal values stay in the order of the rows, which fixes the last digit.
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let (mut counts, mut totals) = ([0_usize; 2], [0.0_f64; 2]);
    for (row, unit) in treated.iter().enumerate() {
        counts[usize::from(*unit)] += 1;
        totals[usize::from(*unit)] += weight(row);
    }
    let (mut passed, mut weighed) = ([0_usize; 2], [0.0_f64; 2]);
    let (mut plain, mut weighted) = (0.0_f64, 0.0_f64);
    for (position, &(value, row)) in order.iter().enumerate() {
        let arm = usize::from(treated[row]);
        passed[arm] += 1;
        weighed[arm] += weight(row);
        if order.get(position + 1).is_some_and(|next| next.0 == value) {
            continue;
        }
        let share = |arm: usize| passed[arm] as f64 / counts[arm] as f64;
        plain = plain.max((share(1) - share(0)).abs());
        if position + 1 < order.len() {
            weighted = weighted.max((weighed[1] / totals[1] - weighed[0] / totals[0]).abs());
        }
    }
    (plain, weights.map(|_| weighted.min(1.0)))
}

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
    /// The number of units with a score outside the common support, which reaches from the higher
    /// of both minima to the lower of both maxima.
    pub outside: usize,
    /// The number of distinct scores.
    pub distinct: usize,
    /// The probability that a treated unit scores higher than a control unit, ties counted half:
    /// the area under the receiver operating characteristic.
    pub auc: f64,
    /// Kish's effective sample size of the treated units under the weights.
    pub effective_treated: f64,
    /// Kish's effective sample size of the control units under the weights.
    pub effective_control: f64,
    /// The number of scores below the lower clip limit.
    pub below_clip: usize,
    /// The number of scores above the upper clip limit.
    pub above_clip: usize,
    /// The quantiles of the scores at 1, 25, 50, 75 and 99 %, interpolated linearly.
    pub quantiles: [f64; 5],
}

/// Compares the propensity scores of the arms. `clip` holds the limits to which scores were clipped
/// for the weights. Effective sizes are Kish's (1965, Survey Sampling).
pub fn overlap(
    scores: &[f64],
    treated: &[bool],
    weights: Option<&[f64]>,
    clip: (f64, f64),
) -> Result<Overlap, Refusal> {
    check(scores, treated, weights)?;
    let [number_treated, number_control] = arm_sizes(treated, UNITS, 1)?;
    let (min_treated, max_treated) = range(scores, treated, true);
    let (min_control, max_control) = range(scores, treated, false);
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
    let sorted = ascending(scores);
    let effective = |arm: bool, number: usize| {
        weights.map_or(number as f64, |weights| effective_size(weights, treated, arm))
    };
    let count = |outside: &dyn Fn(f64) -> bool| scores.iter().filter(|s| outside(**s)).count();
    Ok(Overlap {
        min_treated,
        max_treated,
        min_control,
        max_control,
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

/// The range of scores with overlap, by the rule of thumb of Crump et al. (2009, Biometrika
/// 96:187).
pub const CRUMP: (f64, f64) = (0.1, 0.9);

/// The positions of the scores within a range, including its ends, in ascending order.
pub fn in_overlap(scores: &[f64], (low, high): (f64, f64)) -> Vec<u32> {
    (0..).zip(scores).filter(|(_, s)| low <= **s && **s <= high).map(|(at, _)| at).collect()
}

/// The lowest and the highest score of an arm.
fn range(scores: &[f64], treated: &[bool], arm: bool) -> (f64, f64) {
    let units = scores.iter().zip(treated).filter(|(_, unit)| **unit == arm);
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    units.fold(none, |(low, high), (score, _)| (low.min(*score), high.max(*score)))
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
