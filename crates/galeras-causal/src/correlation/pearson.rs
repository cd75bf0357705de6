//! Pearson's correlation, and the product-moment coefficient that others take of their ranks
//! or residuals.

use super::super::{
    column_ref::ColumnRef,
    compensated::{self, Twofold},
    refusal::Refusal,
};
use super::coefficient::{Coefficient, Correlation};

/// Pearson's correlation of two checked columns.
pub(super) fn correlation(x: &[f64], y: &[f64], alpha: f64) -> Result<Correlation, Refusal> {
    let coefficient = of_columns(x, y)?;
    let n = x.len() as f64;
    Ok(Correlation {
        coefficient: coefficient.value,
        interval: coefficient.interval(1.0 / (n - 3.0), alpha),
        p_value: coefficient.p_value(n - 2.0),
        n: x.len(),
    })
}

/// The product-moment coefficient of two columns.
pub(super) fn of_columns(x: &[f64], y: &[f64]) -> Result<Coefficient, Refusal> {
    of_centred(&compensated::centred(x, ColumnRef::X)?, &compensated::centred(y, ColumnRef::Y)?)
}

/// The product-moment coefficient of two columns whose means are zero and whose magnitudes
/// are moderate. 1 - r^2 comes from the twofold sums, so that it keeps its digits where r is
/// close to 1; both are exact 1 and 0 where r rounds to 1.
///
/// # Errors
/// [`Refusal::Constant`] if a column has no variance after all.
pub(super) fn of_centred(x: &[f64], y: &[f64]) -> Result<Coefficient, Refusal> {
    let (xx, yy) = (compensated::dot(x, x), compensated::dot(y, y));
    let xy = compensated::dot(x, y);
    let product = xx.times(yy);
    if product.high.is_nan() || product.high <= 0.0 {
        let column = if xx.high > 0.0 { ColumnRef::Y } else { ColumnRef::X };
        return Err(Refusal::Constant(column));
    }
    let value = xy.over(product.root()).high;
    if value.abs() >= 1.0 {
        return Ok(Coefficient { value: value.signum(), complement: 0.0 });
    }
    let rest: Twofold = product.plus(xy.times(xy).negated());
    Ok(Coefficient { value, complement: rest.over(product).high.clamp(f64::MIN_POSITIVE, 1.0) })
}
