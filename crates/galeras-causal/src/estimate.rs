//! An estimated number with its uncertainty, and what follows from both: statistic, p, interval.

use crate::tail;

/// A point estimate, its standard error, and the distribution that both are judged by.
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
    /// The estimate divided by its standard error, without a unit.
    pub fn statistic(&self) -> f64 {
        self.value / self.standard_error
    }

    /// The two-sided p-value of an effect of zero, by Student's t or the normal distribution.
    pub fn p_value(&self) -> f64 {
        if self.degrees.is_finite() {
            tail::t_two_sided(self.statistic(), self.degrees)
        } else {
            tail::normal_two_sided(self.statistic())
        }
    }

    /// The lower and the upper end, in units of the outcome, of the interval that covers the truth
    /// with probability `1 - alpha` (Wald's). NaN or infinite ends unless 0 < `alpha` < 1.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let quantile = if self.degrees.is_finite() {
            tail::t_quantile(1.0 - alpha / 2.0, self.degrees)
        } else {
            tail::normal_quantile(1.0 - alpha / 2.0)
        };
        let half = quantile * self.standard_error;
        (self.value - half, self.value + half)
    }
}

// HEADER inverted.rs
// An estimate whose interval holds the values that a test does not reject: not symmetric, and
// right where a standard error says little.

/// A point estimate with the interval and the p-value of one and the same test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InvertedEstimate {
    /// The point estimate, on the scale of its measure: a ratio is a ratio and not its logarithm.
    pub value: f64,
    /// The ends of the interval, on the same scale.
    pub interval: (f64, f64),
    /// The two-sided p-value of no effect.
    pub p_value: f64,
    /// The statistic of the test, if it has one that is judged by the normal distribution.
    pub statistic: Option<f64>,
    /// The standard error of large samples, if there is one; of the logarithm of a ratio.
    pub standard_error: Option<f64>,
}

/// The root of a function that falls along `low` to `high`, to the last digit or so. The ends are
/// given where the function does not change its sign between them.
pub(super) fn falling_root(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if function(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}
