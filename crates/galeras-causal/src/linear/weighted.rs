//! The last step of an iteratively reweighted regression, with the standard errors of least
//! squares.

use super::fit::{LinearFit, Location, SMALLEST_PIVOT, locate, transform};
use super::sandwich::Covariance;
use super::symmetric::{divide_rows, gram, multiply_upper};
use crate::cholesky::Cholesky;
use crate::{ColumnRef, Estimate, Refusal};

impl LinearFit {
    /// A regression on 1 and `columns` with weights, at given coefficients (the intercept first)
    /// and residuals. Residuals are those of a unit of weight: the score of row i is the root of
    /// its weight times its residual times its row.
    ///
    /// The rows of the basis are those of the design times the roots of the weights, so leverages
    /// and all kinds of standard errors follow as for least squares (for generalised linear models:
    /// McCaffrey & Bell 2006, Statistics in Medicine 25:4081; Pustejovsky & Tipton 2018).
    ///
    /// # Errors
    /// [`Refusal::Collinear`] with [`ColumnRef::Covariate`] if a weighted column is a linear
    /// combination of earlier ones; those of least squares for the columns.
    pub(crate) fn weighted(
        columns: &[&[f64]],
        weights: &[f64],
        residuals: Vec<f64>,
        coefficients: Vec<f64>,
    ) -> Result<LinearFit, Refusal> {
        let rows = weights.len();
        let width = columns.len() + 1;
        if rows <= width {
            return Err(Refusal::TooFew { what: "rows", found: rows, needed: width + 1 });
        }
        let locations: Vec<Location> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| locate(column, ColumnRef::Covariate(index)))
            .collect::<Result<_, _>>()?;
        let (basis, factor) = weighted_basis(columns, weights, &locations)?;
        let transform = transform(&factor, &locations, rows);
        let leverages: Vec<f64> = basis
            .chunks_exact(width)
            .map(|row| row.iter().map(|cell| cell * cell).sum::<f64>().min(1.0))
            .collect();
        let mean = residuals.iter().map(|residual| residual * residual).sum::<f64>() / rows as f64;
        let scale = if mean > 0.0 { mean.sqrt() } else { 1.0 };
        Ok(LinearFit {
            basis,
            width,
            transform,
            scale,
            residuals,
            leverages,
            coefficients,
            rounding: 0.0,
        })
    }

    /// A function of the coefficients with its standard error by the delta method, where the model
    /// sets the variance of a residual to 1: from its value and its derivative by each coefficient,
    /// the intercept first.
    ///
    /// The degrees of freedom are infinite for independent rows; with clusters they are those of
    /// [`LinearFit::estimate`].
    ///
    /// # Errors
    /// As [`LinearFit::estimate`].
    pub(crate) fn likelihood_function(
        &self,
        value: f64,
        gradient: &[f64],
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<Estimate, Refusal> {
        let contrast = self.contrast(gradient);
        if kind == Covariance::Classic {
            let standard_error = contrast.iter().map(|cell| cell * cell).sum::<f64>().sqrt();
            return Ok(Estimate { value, standard_error, degrees: f64::INFINITY });
        }
        let estimate = self.contrast_estimate(value, &contrast, kind, clusters)?;
        let degrees = if kind.is_clustered() { estimate.degrees } else { f64::INFINITY };
        Ok(Estimate { degrees, ..estimate })
    }
}

/// An orthonormal basis of the weighted columns, and the factor that maps it back to them.
fn weighted_basis(
    columns: &[&[f64]],
    weights: &[f64],
    locations: &[Location],
) -> Result<(Vec<f64>, Vec<f64>), Refusal> {
    let width = locations.len() + 1;
    let root = (weights.len() as f64).sqrt();
    let mut basis = Vec::with_capacity(weights.len() * width);
    for (row, weight) in weights.iter().enumerate() {
        let weight = weight.sqrt() / root;
        basis.push(weight);
        for (column, location) in columns.iter().zip(locations) {
            basis.push((column[row] - location.mean) / location.spread * weight);
        }
    }
    let collinear = |column: usize| Refusal::Collinear {
        column: ColumnRef::Covariate(column.saturating_sub(1)),
    };
    // Weights may have any size, so a pivot is compared with its own column.
    let mut factor = |smallest: f64| {
        let gram = gram(&basis, width, |_| 1.0);
        let factor = Cholesky::of_lower(&gram, width, smallest).map_err(collinear)?.upper();
        divide_rows(&mut basis, &factor, width);
        Ok::<_, Refusal>(factor)
    };
    let first = factor(SMALLEST_PIVOT)?;
    let second = factor(0.5)?;
    Ok((basis, multiply_upper(&second, &first, width)))
}
