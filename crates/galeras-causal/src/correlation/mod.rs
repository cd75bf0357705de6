//! Correlations of two columns: the request, its answer, and what the coefficients share.
//!
//! Here: [`correlation()`], [`Correlation`], Student's t of a coefficient and the interval on
//! Fisher's z scale. The coefficients are in `pearson`, `spearman`, `kendall` and `partial`.

mod kendall;
mod partial;
mod pearson;
mod spearman;
#[cfg(test)]
mod tests;

use super::{
    column::{check_column, check_level},
    column_ref::ColumnRef,
    refusal::Refusal,
    tail,
};

pub use partial::partial;

/// The coefficient of correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrelationMethod {
    /// Pearson's product-moment correlation: linear association.
    Pearson,
    /// Spearman's rank correlation, ties by average ranks: monotone association.
    Spearman,
    /// Kendall's tau-b: pairs of rows in the same order against those in the opposite order.
    Kendall,
}

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
struct Coefficient {
    /// The coefficient r.
    value: f64,
    /// 1 - r^2; zero if r is 1 or -1.
    complement: f64,
}

/// The correlation of two columns of the same n rows, with its p-value and the interval of
/// level `1 - alpha`.
///
/// - Pearson: p from Student's t with n - 2 degrees of freedom, exact for normal data; the
///   interval is Fisher's, atanh r +- z / sqrt(n - 3) (R. A. Fisher 1921).
/// - Spearman: p from the same t, an approximation (for a coefficient of 1 or -1, where t is
///   infinite, the exact probability of the order); the standard error on Fisher's scale is
///   sqrt((1 + r^2 / 2) / (n - 3)) (D. G. Bonett & T. A. Wright, "Sample size requirements for
///   estimating Pearson, Kendall and Spearman correlations", Psychometrika 65, 2000).
/// - Kendall: p from the exact distribution where no column has ties and there are at most 33
///   rows (or at most one pair out of order), else from the normal distribution with the
///   variance corrected for ties; the standard error on Fisher's scale is sqrt(0.437 / (n - 4))
///   (E. C. Fieller, H. O. Hartley & E. S. Pearson, "Tests for rank correlation coefficients",
///   Biometrika 44, 1957), good for |tau| < 0.8 and meant for data with few ties.
///
/// The order of the rows does not matter: ranks and pairs are counted in integers, and the sums
/// of Pearson's coefficient are taken in twofold precision before they are rounded.
///
/// # Errors
/// Columns of unequal length, fewer than 3 rows, a value that is not finite, a column with one
/// value only (or with values that differ by rounding only), named `x` or `y`; an `alpha`
/// outside of (0, 1).
pub fn correlation(
    x: &[f64],
    y: &[f64],
    method: CorrelationMethod,
    alpha: f64,
) -> Result<Correlation, Refusal> {
    check_level(alpha)?;
    check_column(y, ColumnRef::Y, x.len())?;
    check_column(x, ColumnRef::X, x.len())?;
    if x.len() < 3 {
        return Err(Refusal::TooFew { what: "rows", found: x.len(), needed: 3 });
    }
    match method {
        CorrelationMethod::Pearson => pearson::correlation(x, y, alpha),
        CorrelationMethod::Spearman => spearman::correlation(x, y, alpha),
        CorrelationMethod::Kendall => kendall::correlation(x, y, alpha),
    }
}

impl Coefficient {
    /// The two-sided p-value of Student's t = r sqrt(df / (1 - r^2)).
    fn p_value(self, degrees: f64) -> f64 {
        if self.complement > 0.0 {
            tail::t_two_sided(self.value * (degrees / self.complement).sqrt(), degrees)
        } else {
            0.0
        }
    }

    /// The interval tanh(atanh r +- z se), for the variance se^2 on Fisher's scale; `None` if
    /// the variance is not a finite number above zero or r is 1 or -1.
    fn interval(self, variance: f64, alpha: f64) -> Option<(f64, f64)> {
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
