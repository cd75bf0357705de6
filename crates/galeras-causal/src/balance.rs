//! Covariate balance: the distance between the distributions of one covariate in the two arms,
//! before and after weighting.

#[cfg(test)]
mod tests;

use super::Refusal;

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
    /// Variance of the treated over that of the control units, both with n - 1. `None` if the
    /// control units do not vary.
    pub variance_ratio: Option<f64>,
    /// The ratio of the weighted variances, which are unbiased for reliability weights and so equal
    /// those above if all weights are equal. `None` without weights, or if a variance is undefined
    /// or that of the control units is zero.
    pub variance_ratio_after: Option<f64>,
    /// The two-sample Kolmogorov-Smirnov statistic: the largest distance of the distribution
    /// functions, from 0 to 1.
    pub ks: f64,
    /// The same between the weighted distribution functions. `None` without weights.
    pub ks_after: Option<f64>,
    /// The covariate varies in neither arm. If the means still differ, it separates the arms
    /// without error, and there is no standardised difference.
    pub constant_within_arms: bool,
}

/// Compares a covariate between the arms, with the measures of Austin (2009, Statistics in Medicine
/// 28:3083).
///
/// `column` (in any unit), `treated` and `weights` (with any sum) have one entry for each unit.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm has fewer than two units; [`Refusal::Other`] if the lengths
/// differ, a value or a weight is not finite, a weight is negative, the weights of an arm are all
/// zero, or a sum overflows.
pub fn balance(
    column: &[f64],
    treated: &[bool],
    weights: Option<&[f64]>,
) -> Result<Balance, Refusal> {
    check(column, treated, weights)?;
    for arm in [true, false] {
        let units = treated.iter().filter(|&&unit| unit == arm).count();
        if units < 2 {
            let what = if arm { "treated units" } else { "control units" };
            return Err(Refusal::TooFew { what, found: units, needed: 2 });
        }
    }
    // Relative to the first value, so that a large offset costs no digits.
    let origin = column.first().copied().unwrap_or(0.0);
    let arm =
        |which: bool, weights: Option<&[f64]>| {
            let pairs = column.iter().zip(treated).enumerate();
            moments(pairs.filter(|(_, (_, unit))| **unit == which).map(|(row, (value, _))| {
                (value - origin, weights.map_or(1.0, |weights| weights[row]))
            }))
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
        constant_within_arms: pooled == 0.0,
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
    if numbers.into_iter().chain(optional).all(f64::is_finite) {
        Ok(balance)
    } else {
        Err(Refusal::Other("the values are too large to be added up".to_owned()))
    }
}

/// Refuses columns of different lengths, values that are not finite, and weights that are negative,
/// not finite, or all zero in an arm.
pub(super) fn check(
    column: &[f64],
    treated: &[bool],
    weights: Option<&[f64]>,
) -> Result<(), Refusal> {
    let refuse = |text: &str| Err(Refusal::Other(text.to_owned()));
    if column.len() != treated.len() || weights.is_some_and(|weights| weights.len() != column.len())
    {
        return refuse("the columns differ in length");
    }
    if column.iter().any(|value| !value.is_finite()) {
        return refuse("a value is missing or infinite");
    }
    let Some(weights) = weights else { return Ok(()) };
    if weights.iter().any(|weight| !weight.is_finite() || *weight < 0.0) {
        return refuse("a weight is negative, missing or infinite");
    }
    for arm in [true, false] {
        let mut units = weights.iter().zip(treated).filter(|(_, unit)| **unit == arm).peekable();
        if units.peek().is_some() && units.all(|(weight, _)| *weight == 0.0) {
            return refuse("all weights of an arm are zero");
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedMoments {
    pub(super) count: usize,
    /// Their weighted mean; 0 without values.
    pub(super) mean: f64,
    /// Their standard deviation, unbiased as a variance (n - 1 with equal weights). `None` below
    /// two values.
    pub(super) deviation: Option<f64>,
}

/// Mean and standard deviation of pairs of a value and its weight; pairs with weight 0 are ignored.
///
/// The values are centred at the first and scaled by the range, so that a constant stays exactly
/// constant and squares neither overflow nor vanish.
pub(super) fn moments(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> WeightedMoments {
    let pairs = pairs.filter(|(_, weight)| *weight > 0.0);
    let Some((first, _)) = pairs.clone().next() else {
        return WeightedMoments { count: 0, mean: 0.0, deviation: None };
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
    WeightedMoments { count, mean: first + scale * centre, deviation }
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
