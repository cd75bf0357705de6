//! Ordinary least squares with an intercept, on an orthonormal basis of standardised columns.

use super::symmetric::{divide_rows, dot, gram, invert_upper, multiply_upper, upper_factor};
use crate::cholesky::{Cholesky, DEPENDENT, collinear};
use crate::refusal::{at_least, require, require_column};
use crate::{ColumnRef, Refusal};

/// A linear regression with an intercept, which is the first coefficient.
///
/// The design D is Q R S: Q has orthonormal columns, the first of them constant, R is upper
/// triangular, and S standardises. All standard errors are computed in terms of Q, so the scales of
/// the columns do not matter.
pub struct LinearFit {
    /// Q, row by row.
    pub(crate) basis: Vec<f64>,
    /// The number of coefficients, including the intercept.
    pub(crate) width: usize,
    /// Row j maps coordinates in Q to coefficient j.
    pub(crate) transform: Vec<f64>,
    /// The unit of residuals before they are squared, so that nothing overflows.
    pub(super) scale: f64,
    /// Outcome minus fitted value, one for each row.
    pub residuals: Vec<f64>,
    pub(crate) leverages: Vec<f64>,
    /// The intercept, then the slopes, in units of the outcome per unit of the column.
    pub coefficients: Vec<f64>,
    /// The root mean square of residuals that are only rounding.
    pub(super) rounding: f64,
}

struct Location {
    mean: f64,
    /// The root mean square distance from the mean.
    spread: f64,
    largest: f64,
}

impl LinearFit {
    /// Regresses `outcome` on 1 and `columns`, all of the same length n, by ordinary least squares.
    /// Coefficients equal those of statsmodels' `OLS`. Refuses a perfect fit;
    /// [`ColumnRef::Covariate`] is a position in `columns`.
    pub fn fit(columns: &[&[f64]], outcome: &[f64]) -> Result<LinearFit, Refusal> {
        let fit = Self::without_check(columns, outcome)?;
        fit.refuse_perfect()?;
        Ok(fit)
    }

    /// As `fit`, but residuals may be zero.
    pub(super) fn without_check(columns: &[&[f64]], outcome: &[f64]) -> Result<LinearFit, Refusal> {
        let rows = outcome.len();
        let width = columns.len() + 1;
        for length in columns.iter().map(|column| column.len()) {
            let reason = format!("a covariate has {length} rows and the outcome {rows}");
            require(length == rows, reason)?;
        }
        at_least("rows", rows, width + 1)?;
        let target = locate(outcome, ColumnRef::Outcome)?;
        let locations = locate_all(columns)?;
        let root = (rows as f64).sqrt();
        let mut basis = Vec::with_capacity(rows * width);
        for row in 0..rows {
            basis.push(1.0 / root);
            for (column, location) in columns.iter().zip(&locations) {
                basis.push((column[row] - location.mean) / location.spread / root);
            }
        }
        // Columns far from zero have the rounding errors of their storage.
        let stored = locations
            .iter()
            .map(|location| f64::EPSILON * location.largest / location.spread)
            .fold(0.0, f64::max);
        let smallest = DEPENDENT.max(16.0 * stored * stored);
        let factor = orthonormal(&mut basis, width, |gram, again| {
            upper_factor(gram, width, if again { 0.5 } else { smallest })
        })?;
        let transform = transform(&factor, &locations, rows);

        let mut residuals: Vec<f64> =
            outcome.iter().map(|y| (y - target.mean) / target.spread).collect();
        let mut coordinates = vec![0.0; width];
        // The second pass removes the rounding errors of the first.
        for _ in 0..2 {
            let projection = project(&basis, &residuals, width);
            for (row, residual) in basis.chunks_exact(width).zip(&mut residuals) {
                *residual -= dot(row, &projection);
            }
            coordinates.iter_mut().zip(&projection).for_each(|(sum, part)| *sum += part);
        }
        residuals.iter_mut().for_each(|residual| *residual *= target.spread);
        let mut coefficients: Vec<f64> = transform
            .chunks_exact(width)
            .map(|row| dot(row, &coordinates) * target.spread)
            .collect();
        coefficients[0] += target.mean;
        let noise: f64 = coefficients[1..]
            .iter()
            .zip(&locations)
            .map(|(coefficient, location)| (coefficient * location.largest).abs())
            .sum();
        let rounding = (16.0 * f64::EPSILON * (target.largest + noise)).max(1e-12 * target.spread);
        Ok(LinearFit {
            leverages: leverages(&basis, width),
            basis,
            width,
            transform,
            scale: target.spread,
            residuals,
            coefficients,
            rounding,
        })
    }

    /// The last step of an iteratively reweighted regression on 1 and `columns`, at given
    /// coefficients (the intercept first) and residuals. Residuals are those of a unit of weight:
    /// the score of row i is the root of its weight times its residual times its row.
    ///
    /// The rows of the basis are those of the design times the roots of the weights, so leverages
    /// and all kinds of standard errors follow as for least squares (for generalised linear models:
    /// McCaffrey & Bell 2006, Statistics in Medicine 25:4081; Pustejovsky & Tipton 2018).
    pub(crate) fn weighted(
        columns: &[&[f64]],
        weights: &[f64],
        residuals: Vec<f64>,
        coefficients: Vec<f64>,
    ) -> Result<LinearFit, Refusal> {
        let (rows, width) = (weights.len(), columns.len() + 1);
        at_least("rows", rows, width + 1)?;
        let locations = locate_all(columns)?;
        let root = (rows as f64).sqrt();
        let mut basis = Vec::with_capacity(rows * width);
        for (row, weight) in weights.iter().enumerate() {
            let weight = weight.sqrt() / root;
            basis.push(weight);
            for (column, location) in columns.iter().zip(&locations) {
                basis.push((column[row] - location.mean) / location.spread * weight);
            }
        }
        // Weights may have any size, so a pivot is compared with its own column.
        let factor = orthonormal(&mut basis, width, |gram, again| {
            let smallest = if again { 0.5 } else { DEPENDENT };
            Ok(Cholesky::of_lower(gram, width, smallest)?.upper())
        })?;
        let mean = residuals.iter().map(|residual| residual * residual).sum::<f64>() / rows as f64;
        Ok(LinearFit {
            leverages: leverages(&basis, width),
            basis,
            width,
            transform: transform(&factor, &locations, rows),
            scale: if mean > 0.0 { mean.sqrt() } else { 1.0 },
            residuals,
            coefficients,
            rounding: 0.0,
        })
    }

    /// Rows minus coefficients, including the intercept.
    pub fn residual_degrees(&self) -> usize {
        self.residuals.len() - self.width
    }

    /// The sum of squared residuals in units of `scale` squared.
    pub(super) fn residual_sum(&self) -> f64 {
        self.residuals.iter().map(|residual| (residual / self.scale).powi(2)).sum()
    }

    /// The coordinates of `column / unit` in the basis.
    pub(super) fn coordinates(&self, column: &[f64], unit: f64) -> Vec<f64> {
        let scaled: Vec<f64> = column.iter().map(|value| value / unit).collect();
        project(&self.basis, &scaled, self.width)
    }

    /// The contribution of each row to the error of a coefficient.
    pub(super) fn influence(&self, coefficient: usize) -> Vec<f64> {
        let contrast = &self.transform[coefficient * self.width..(coefficient + 1) * self.width];
        let rows = self.basis.chunks_exact(self.width).zip(&self.residuals);
        rows.map(|(row, residual)| dot(row, contrast) * residual).collect()
    }

    /// Refuses residuals that are only rounding: every standard error would be zero.
    pub(super) fn refuse_perfect(&self) -> Result<(), Refusal> {
        let mean = self.residual_sum() / self.residuals.len() as f64;
        let perfect = mean.sqrt() * self.scale <= self.rounding;
        let reason = "the fit is perfect: no residual is left to estimate a standard error from";
        require(!perfect, reason)
    }
}

fn leverages(basis: &[f64], width: usize) -> Vec<f64> {
    basis.chunks_exact(width).map(|row| dot(row, row).min(1.0)).collect()
}

fn locate_all(columns: &[&[f64]]) -> Result<Vec<Location>, Refusal> {
    let columns = columns.iter().enumerate();
    columns.map(|(at, column)| locate(column, ColumnRef::Covariate(at))).collect()
}

/// Mean and spread of a column, in two passes; a column of one value is refused.
fn locate(column: &[f64], reference: ColumnRef) -> Result<Location, Refusal> {
    let finite = column.iter().all(|value| value.is_finite());
    require_column(reference, finite, "has a value that is not finite")?;
    let rows = column.len() as f64;
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in column {
        low = low.min(*value);
        high = high.max(*value);
    }
    let largest = low.abs().max(high.abs());
    let range = high - low;
    // A range of a few rounding errors is a computed constant.
    if range <= 4.0 * f64::EPSILON * largest || range < f64::MIN_POSITIVE {
        return Err(Refusal::Constant(reference));
    }
    require_column(reference, largest <= 1e290, "has values beyond 1e290")?;
    // Distances from a value within the range keep their digits if the column is far from zero.
    let origin = low + 0.5 * range;
    let mean =
        origin + column.iter().map(|value| (value - origin) / range).sum::<f64>() / rows * range;
    let square = column.iter().map(|value| ((value - mean) / range).powi(2)).sum::<f64>() / rows;
    Ok(Location { mean, spread: square.sqrt() * range, largest })
}

/// Makes the columns of `basis` orthonormal; returns the factor that maps them back. Cholesky's QR,
/// twice (Yamamoto et al. 2015), is as exact as Householder's while no pivot is below the square
/// root of the rounding error. `factor` gets a Gram matrix, and true for the second time.
fn orthonormal(
    basis: &mut [f64],
    width: usize,
    factor: impl Fn(&[f64], bool) -> Result<Vec<f64>, usize>,
) -> Result<Vec<f64>, Refusal> {
    let mut pass = |again: bool| {
        let factor = factor(&gram(basis, width, |_| 1.0), again).map_err(collinear)?;
        divide_rows(basis, &factor, width);
        Ok::<_, Refusal>(factor)
    };
    let (first, second) = (pass(false)?, pass(true)?);
    Ok(multiply_upper(&second, &first, width))
}

/// The matrix from coordinates in the basis to coefficients of the original columns.
fn transform(factor: &[f64], locations: &[Location], rows: usize) -> Vec<f64> {
    let width = locations.len() + 1;
    let root = (rows as f64).sqrt();
    let mut transform = invert_upper(factor, width);
    for value in &mut transform {
        *value /= root;
    }
    let (intercept, slopes) = transform.split_at_mut(width);
    for (row, location) in slopes.chunks_exact_mut(width).zip(locations) {
        for (cell, constant) in row.iter_mut().zip(intercept.iter_mut()) {
            *cell /= location.spread;
            *constant -= location.mean * *cell;
        }
    }
    transform
}

/// Q' times a column, in blocks that reduce rounding errors.
fn project(basis: &[f64], column: &[f64], width: usize) -> Vec<f64> {
    const BLOCK: usize = 512;
    let mut total = vec![0.0; width];
    let mut part = vec![0.0; width];
    for (rows, values) in basis.chunks(BLOCK * width).zip(column.chunks(BLOCK)) {
        part.fill(0.0);
        for (row, value) in rows.chunks_exact(width).zip(values) {
            for (sum, cell) in part.iter_mut().zip(row) {
                *sum += cell * value;
            }
        }
        for (sum, add) in total.iter_mut().zip(&part) {
            *sum += add;
        }
    }
    total
}
