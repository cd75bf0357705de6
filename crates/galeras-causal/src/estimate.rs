//! Estimates with their uncertainty, by a standard error or by inverting a test, and their tests
//! against bounds.

#[cfg(test)]
mod tests;

use crate::tail;

/// A point estimate with its standard error and reference distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The point estimate, in units of the outcome.
    pub value: f64,
    /// Its standard error, above zero.
    pub standard_error: f64,
    /// The degrees of freedom of Student's t; infinite for the normal distribution.
    pub degrees: f64,
}

impl Estimate {
    /// The estimate divided by its standard error.
    pub fn statistic(&self) -> f64 {
        self.value / self.standard_error
    }

    /// The two-sided p-value of an effect of zero, by Student's t or the normal distribution.
    pub fn p_value(&self) -> f64 {
        tail::t_two_sided(self.statistic(), self.degrees)
    }

    /// The ends, in units of the outcome, of Wald's interval that covers the truth with probability
    /// `1 - alpha`. NaN or infinite unless 0 < `alpha` < 1.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = tail::t_quantile(1.0 - alpha / 2.0, self.degrees) * self.standard_error;
        (self.value - half, self.value + half)
    }
}

/// A point estimate with the p-value of a test and the interval of values that it does not reject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InvertedEstimate {
    /// The point estimate, on the scale of its measure (a ratio is not logarithmic).
    pub value: f64,
    /// The ends of the interval, on the same scale.
    pub interval: (f64, f64),
    /// The two-sided p-value of no effect.
    pub p_value: f64,
    /// The statistic of the test, if its reference distribution is normal.
    pub statistic: Option<f64>,
    /// The large-sample standard error, if there is one; that of the logarithm for a ratio.
    pub standard_error: Option<f64>,
}

/// An estimate that can be tested against any value from either side. Two one-sided tests show that
/// an effect is within bounds (TOST; Schuirmann 1987, Journal of Pharmacokinetics and
/// Biopharmaceutics 15): at the level alpha it is if its `1 - 2 alpha` interval is.
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
