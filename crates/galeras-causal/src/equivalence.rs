//! Tests against bounds: equivalence, non-inferiority, and the smallest effect that is excluded.

#[cfg(test)]
mod tests;

use super::estimate::Estimate;
use super::refusal::Refusal;
use super::tail;

/// An estimate that can be tested against any value from either side.
pub trait OneSided {
    /// The two-sided interval that covers the truth with probability `1 - alpha`.
    fn interval(&self, alpha: f64) -> (f64, f64);
    /// The p-value of "the truth is at most `bound`": small if the estimate is well above it.
    fn p_above(&self, bound: f64) -> f64;
    /// The p-value of "the truth is at least `bound`": small if the estimate is well below it.
    fn p_below(&self, bound: f64) -> f64;
}

impl OneSided for Estimate {
    fn interval(&self, alpha: f64) -> (f64, f64) {
        Estimate::interval(self, alpha)
    }

    fn p_above(&self, bound: f64) -> f64 {
        tail::t_upper((self.value - bound) / self.standard_error, self.degrees)
    }

    fn p_below(&self, bound: f64) -> f64 {
        tail::t_upper((bound - self.value) / self.standard_error, self.degrees)
    }
}

/// Two one-sided tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equivalence {
    /// The p-value of "the effect is at the lower bound or below".
    pub p_low: f64,
    /// The p-value of "the effect is at the upper bound or above".
    pub p_high: f64,
}

impl Equivalence {
    /// The p-value of "the effect is outside the bounds": the larger one.
    pub fn p_value(&self) -> f64 {
        self.p_low.max(self.p_high)
    }
}

/// Two one-sided tests of an effect within `low` and `high`, in units of the estimate (TOST; D. J.
/// Schuirmann, "A comparison of the two one-sided tests procedure", Journal of Pharmacokinetics and
/// Biopharmaceutics 15, 1987). At the level alpha the effect is within the bounds if the `1 - 2
/// alpha` interval is. Equals statsmodels' `ttost_paired` and `ttost_ind`.
///
/// # Errors
/// [`Refusal::Other`] unless `low` < `high` and both are finite.
pub fn equivalence(estimate: &impl OneSided, low: f64, high: f64) -> Result<Equivalence, Refusal> {
    if !(low < high && low.is_finite() && high.is_finite()) {
        let text = format!("{low} to {high} are not bounds: the lower must be below the upper");
        return Err(Refusal::Other(text));
    }
    Ok(Equivalence { p_low: estimate.p_above(low), p_high: estimate.p_below(high) })
}

/// The smallest margin m for which [`equivalence`] within -m and m holds at the level `alpha`: the
/// end of the `1 - 2 alpha` interval that is farther from zero.
pub fn excluded_beyond(estimate: &impl OneSided, alpha: f64) -> f64 {
    let (low, high) = estimate.interval(2.0 * alpha);
    low.abs().max(high.abs())
}
