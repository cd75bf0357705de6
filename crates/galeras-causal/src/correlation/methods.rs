//! The correlation of two columns by one of three methods.

use super::coefficient::Correlation;
use super::{kendall, pearson, spearman};
use crate::column::{check_column, check_level};
use crate::{ColumnRef, Refusal};

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

/// The correlation of `x` and `y`, columns of n rows each, with its p-value and the interval of
/// level `1 - alpha`. Coefficients equal those of `scipy.stats` (`pearsonr`, `spearmanr`,
/// `kendalltau`).
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
/// [`Refusal::UnusableColumn`] if `y` has not as many rows as `x` or a value is not finite;
/// [`Refusal::TooFew`] below 3 rows; [`Refusal::Constant`] if a column has one value only, or
/// values that differ by rounding only; [`Refusal::Other`] if not 0 < `alpha` < 1. Columns are
/// [`ColumnRef::X`] and [`ColumnRef::Y`].
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
