//! The partial correlation of two columns given others: Pearson's of the residuals.

use super::super::{
    column::{check_column, check_level},
    column_ref::ColumnRef,
    compensated,
    refusal::Refusal,
};
use super::coefficient::Correlation;
use super::pearson;

/// A column whose part that the others do not explain is below this share of its norm is a
/// linear combination of them.
const COLLINEAR: f64 = 1e-10;

/// The correlation of what is left of `x` and of `y` after the least squares regressions on the
/// columns `given` and an intercept; with no column given, Pearson's. All columns have n rows;
/// `given` holds k columns. The p-value is that of
/// Student's t with n - 2 - k degrees of freedom for k columns, the interval Fisher's with the
/// standard error 1 / sqrt(n - k - 3) (R. A. Fisher, "The distribution of the partial
/// correlation coefficient", Metron 3, 1924). O(n k^2).
///
/// # Errors
/// [`Refusal::TooFew`] below 3 + k rows; [`Refusal::UnusableColumn`] if a column has another length
/// than `x` or a value that is not finite; [`Refusal::Constant`] if one has one value only;
/// [`Refusal::Collinear`] if one is a linear combination of those given before it;
/// [`Refusal::Other`] if not 0 < `alpha` < 1. [`ColumnRef::Covariate`] counts in `given`.
pub fn partial(x: &[f64], y: &[f64], given: &[&[f64]], alpha: f64) -> Result<Correlation, Refusal> {
    check_level(alpha)?;
    check_column(x, ColumnRef::X, x.len())?;
    check_column(y, ColumnRef::Y, x.len())?;
    for (position, column) in given.iter().enumerate() {
        check_column(column, ColumnRef::Covariate(position), x.len())?;
    }
    let (rows, needed) = (x.len(), 3 + given.len());
    if rows < needed {
        return Err(Refusal::TooFew { what: "rows", found: rows, needed });
    }
    let mut basis: Vec<(Vec<f64>, f64)> = Vec::with_capacity(given.len());
    for (position, column) in given.iter().enumerate() {
        let rest = residual(column, ColumnRef::Covariate(position), &basis)?;
        let square = compensated::dot(&rest, &rest).high;
        basis.push((rest, square));
    }
    let rest = [residual(x, ColumnRef::X, &basis)?, residual(y, ColumnRef::Y, &basis)?];
    let coefficient = pearson::of_centred(&rest[0], &rest[1])?;
    let left = (rows - given.len()) as f64;
    Ok(Correlation {
        coefficient: coefficient.value,
        interval: coefficient.interval(1.0 / (left - 3.0), alpha),
        p_value: coefficient.p_value(left - 2.0),
        n: rows,
    })
}

/// What is left of a centred column after its projections on an orthogonal basis, each with
/// its squared norm: modified Gram-Schmidt with inner products in twofold precision. Where a
/// round takes away most of the column, what rounding left of the basis weighs more in the
/// rest, and another round removes it; two are always enough (L. Giraud, J. Langou &
/// M. Rozloznik, Computers & Mathematics with Applications 50, 2005).
fn residual(
    values: &[f64],
    column: ColumnRef,
    basis: &[(Vec<f64>, f64)],
) -> Result<Vec<f64>, Refusal> {
    let mut rest = compensated::centred(values, column)?;
    let whole = compensated::dot(&rest, &rest).high;
    let mut before = whole;
    for _ in 0..2 {
        for (direction, square) in basis {
            let share = compensated::dot(&rest, direction).high / square;
            for (value, along) in rest.iter_mut().zip(direction) {
                *value -= share * along;
            }
        }
        let after = compensated::dot(&rest, &rest).high;
        if after.is_nan() || after <= whole * COLLINEAR * COLLINEAR {
            return Err(Refusal::Collinear { column });
        }
        if after > before / 2.0 {
            break;
        }
        before = after;
    }
    Ok(rest)
}
