//! Estimates with their uncertainty: by a standard error, or by inverting a test.

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
        if self.degrees.is_finite() {
            tail::t_two_sided(self.statistic(), self.degrees)
        } else {
            tail::normal_two_sided(self.statistic())
        }
    }

    /// The ends, in units of the outcome, of Wald's interval that covers the truth with probability
    /// `1 - alpha`. NaN or infinite unless 0 < `alpha` < 1.
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

/// A point estimate with the interval of the values that a test does not reject, and the p-value of
/// that test. The interval may be asymmetric.
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

/// The root of a function that falls from `low` to `high`, to about the last digit. Returns an end
/// if the sign does not change between them.
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
