//! An estimated number with its uncertainty, and what follows from both: statistic, p, interval.

use super::tail;

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
