//! Bounds of an effect if some outcomes are missing: worst cases, and trimming.

#[cfg(test)]
mod tests;

use super::difference::Moments;
use super::refusal::{at_least, require};
use super::{Refusal, tail};

/// One arm, in which some outcomes are missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedArm<'a> {
    /// The observed outcomes, in any order.
    pub outcomes: &'a [f64],
    /// The number of rows or units of the arm without an outcome.
    pub absent: usize,
}

impl ObservedArm<'_> {
    fn share(&self) -> f64 {
        self.outcomes.len() as f64 / (self.outcomes.len() + self.absent) as f64
    }
}

/// The lowest and highest effect, treatment minus control, that the data allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttritionBounds {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// The standard errors of both ends, if they are computed.
    pub errors: Option<(f64, f64)>,
}

impl AttritionBounds {
    /// The interval that covers the effect, anywhere between the bounds, with probability `1 -
    /// alpha` (Imbens and Manski 2004, Econometrica 72:1845, by the normal distribution): the
    /// bounds widened by c standard errors, where c is between the one-sided quantile (bounds far
    /// apart) and the two-sided one (no attrition). `None` without standard errors.
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let (low, high) = self.errors?;
        let apart = (self.high - self.low) / low.max(high);
        let missed = |c: f64| tail::normal_upper(c + apart) + tail::normal_upper(c) - alpha;
        let (mut below, mut above) = (0.0, tail::normal_quantile(1.0 - alpha / 2.0));
        for _ in 0..200 {
            let middle = 0.5 * (below + above);
            if missed(middle) > 0.0 { below = middle } else { above = middle }
        }
        Some((self.low - above * low, self.high + above * high))
    }
}

/// Manski's worst-case bounds (1990, American Economic Review 80:319; Horowitz and Manski 2000) of
/// the difference of two independent arms, for outcomes within `range`: every missing outcome is
/// replaced by the lowest or the highest value. Standard errors are Welch's for the completed arms.
/// Refuses a range that is empty or not finite, or does not hold an outcome.
pub fn worst_case(
    treated: ObservedArm<'_>,
    control: ObservedArm<'_>,
    range: (f64, f64),
) -> Result<AttritionBounds, Refusal> {
    check_range(range, treated.outcomes.iter().chain(control.outcomes))?;
    let filled = |arm: ObservedArm<'_>, with: f64| -> Result<(f64, f64), Refusal> {
        at_least("outcomes in an arm", arm.outcomes.len(), 2)?;
        let mut all = arm.outcomes.to_vec();
        all.resize(all.len() + arm.absent, with);
        mean_with_error(&all)
    };
    let (low, high) = range;
    let (worst, best) = (filled(treated, low)?, filled(treated, high)?);
    let (least, most) = (filled(control, low)?, filled(control, high)?);
    Ok(AttritionBounds {
        low: worst.0 - most.0,
        high: best.0 - least.0,
        errors: Some((worst.1.hypot(most.1), best.1.hypot(least.1))),
    })
}

/// As [`worst_case`], for units with an outcome under the treatment and one under control (in this
/// order), either of which may be missing.
pub fn worst_case_pairs(
    units: &[(Option<f64>, Option<f64>)],
    range: (f64, f64),
) -> Result<AttritionBounds, Refusal> {
    at_least("units", units.len(), 2)?;
    let seen: Vec<f64> = units.iter().flat_map(|(t, c)| [*t, *c]).flatten().collect();
    check_range(range, seen.iter())?;
    let filled = |treated: f64, control: f64| -> Result<(f64, f64), Refusal> {
        let differences: Vec<f64> =
            units.iter().map(|(t, c)| t.unwrap_or(treated) - c.unwrap_or(control)).collect();
        mean_with_error(&differences)
    };
    let (low, high) = (filled(range.0, range.1)?, filled(range.1, range.0)?);
    Ok(AttritionBounds { low: low.0, high: high.0, errors: Some((low.1, high.1)) })
}

fn mean_with_error(values: &[f64]) -> Result<(f64, f64), Refusal> {
    let moments = Moments::of(values)?;
    Ok((moments.mean, moments.deviation / (values.len() as f64).sqrt()))
}

/// Lee's trimming bounds (2009, Review of Economic Studies 76:1071) of the effect on units whose
/// outcome would be observed in both arms, if the treatment moves the chance of observation in one
/// direction only: the highest or the lowest outcomes of the arm with the larger observed share are
/// dropped until the shares are equal, a row on the border in part.
pub fn lee_bounds(
    treated: ObservedArm<'_>,
    control: ObservedArm<'_>,
) -> Result<AttritionBounds, Refusal> {
    for arm in [treated, control] {
        at_least("outcomes in an arm", arm.outcomes.len(), 1)?;
        let finite = arm.outcomes.iter().all(|value| value.is_finite());
        require(finite, "an outcome is not finite")?;
    }
    let (one, zero) = (treated.share(), control.share());
    let mean = |values: &[f64]| kept_mean(values.iter().copied(), values.len() as f64);
    let trimmed = |arm: ObservedArm<'_>, share: f64| {
        let mut sorted = arm.outcomes.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mass = share * (sorted.len() + arm.absent) as f64;
        let lowest = kept_mean(sorted.iter().copied(), mass);
        (lowest, kept_mean(sorted.iter().rev().copied(), mass))
    };
    let (low, high) = if one > zero {
        let (low, high) = trimmed(treated, zero);
        let other = mean(control.outcomes);
        (low - other, high - other)
    } else if zero > one {
        let (low, high) = trimmed(control, one);
        let other = mean(treated.outcomes);
        (other - high, other - low)
    } else {
        let effect = mean(treated.outcomes) - mean(control.outcomes);
        (effect, effect)
    };
    Ok(AttritionBounds { low, high, errors: None })
}

/// The mean of the first `mass` values, the last one possibly in part.
fn kept_mean(values: impl Iterator<Item = f64>, mass: f64) -> f64 {
    let mut left = mass;
    let mut sum = 0.0;
    for value in values {
        let part = left.min(1.0);
        if part <= 0.0 {
            break;
        }
        sum += part * value;
        left -= part;
    }
    sum / mass
}

/// Refuses an empty range, or one that an outcome is outside of.
fn check_range<'a>(
    (low, high): (f64, f64),
    mut outcomes: impl Iterator<Item = &'a f64>,
) -> Result<(), Refusal> {
    let holds = low < high && low.is_finite() && high.is_finite();
    require(holds, format!("{low} to {high} is not a range of outcomes"))?;
    let outside = outcomes.find(|value| !(low <= **value && **value <= high));
    outside.map_or(Ok(()), |value| {
        Err(Refusal::Other(format!("{value} lies outside of the range {low} to {high}")))
    })
}
