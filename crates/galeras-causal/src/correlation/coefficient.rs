//! A coefficient of correlation: Student's t of it, and the interval on Fisher's z scale.

use crate::tail;

/// A coefficient of correlation, its p-value and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// The coefficient, in [-1, 1].
    pub coefficient: f64,
    /// The lower and the upper end of the confidence interval of level `1 - alpha`. `None`
    /// where it is not defined: the coefficient is 1 or -1 (infinite on Fisher's scale), or
    /// there are too few rows for its standard error (fewer than 4 for Pearson and Spearman,
    /// 5 for Kendall, 4 + k for a partial correlation given k columns).
    pub interval: Option<(f64, f64)>,
    /// The two-sided p-value of no association.
    pub p_value: f64,
    /// The number of rows.
    pub n: usize,
}

/// A coefficient with what rounding it to a double would lose where it is close to 1 or -1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coefficient {
    /// The coefficient r.
    pub(super) value: f64,
    /// 1 - r^2; zero if r is 1 or -1.
    pub(super) complement: f64,
}

impl Coefficient {
    /// The two-sided p-value of Student's t = r sqrt(df / (1 - r^2)).
    pub(super) fn p_value(self, degrees: f64) -> f64 {
        if self.complement > 0.0 {
            tail::t_two_sided(self.value * (degrees / self.complement).sqrt(), degrees)
        } else {
            0.0
        }
    }

    /// The interval tanh(atanh r +- z se), for the variance se^2 on Fisher's scale; `None` if
    /// the variance is not a finite number above zero or r is 1 or -1.
    pub(super) fn interval(self, variance: f64, alpha: f64) -> Option<(f64, f64)> {
        if !(self.complement > 0.0 && variance > 0.0 && variance.is_finite()) {
            return None;
        }
        // 1 - r^2 is known to more digits than 1 - r; near zero the direct form is the better.
        let centre = if self.value.abs() < 0.5 {
            self.value.atanh()
        } else {
            ((1.0 + self.value.abs()) / self.complement.sqrt()).ln().copysign(self.value)
        };
        let half = tail::normal_quantile(1.0 - alpha / 2.0) * variance.sqrt();
        Some(((centre - half).tanh(), (centre + half).tanh()))
    }
}
