//! Least squares with weights of rows, such as those of a survey.

use super::LinearFit;
use super::symmetric::dot;
use crate::refusal::{require, require_column};
use crate::{ColumnRef, Refusal};

impl LinearFit {
    /// Regresses `outcome` on 1 and `columns` by least squares with a positive weight for each row: the
    /// inverse of the probability that it was drawn, in any unit. Coefficients equal those of
    /// statsmodels' `WLS`, and the HC and CR errors its robust ones (Stata's `pweight`, R's
    /// `svyglm` up to the factor); CR2 takes the variance of a row as inverse to its weight. Errors
    /// are those of [`LinearFit::fit`], and weights that are not above zero.
    pub fn fit_weighted(
        columns: &[&[f64]],
        outcome: &[f64],
        weights: &[f64],
    ) -> Result<LinearFit, Refusal> {
        let rows = outcome.len();
        require(weights.len() == rows, format!("{rows} rows have {} weights", weights.len()))?;
        let usable = weights.iter().all(|weight| *weight > 0.0 && weight.is_finite());
        require(usable, "a weight is missing, infinite or not above zero")?;
        let finite = outcome.iter().all(|y| y.is_finite());
        require_column(ColumnRef::Outcome, finite, "has a value that is not finite")?;
        let mean = weights.iter().sum::<f64>() / rows as f64;
        let weights: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let total: f64 = weights.iter().sum();
        // Relative to one of the values, so that a column far from zero keeps its digits.
        let origin = outcome.first().copied().unwrap_or_default();
        let terms = outcome.iter().zip(&weights).map(|(y, weight)| weight * (y - origin));
        let centre = origin + terms.sum::<f64>() / total;
        let start: Vec<f64> =
            outcome.iter().zip(&weights).map(|(y, w)| (y - centre) * w.sqrt()).collect();
        let spread = (dot(&start, &start) / rows as f64).sqrt();
        let mut fit = LinearFit::weighted(columns, &weights, start, vec![0.0; columns.len() + 1])?;
        // The second pass removes the rounding errors of the first.
        for _ in 0..2 {
            let along = fit.coordinates(&fit.residuals, 1.0);
            let basis = fit.basis.chunks_exact(fit.width);
            for (row, residual) in basis.zip(&mut fit.residuals) {
                *residual -= dot(row, &along);
            }
            let lines = fit.transform.chunks_exact(fit.width);
            for (line, coefficient) in lines.zip(&mut fit.coefficients) {
                *coefficient += dot(line, &along);
            }
        }
        fit.coefficients[0] += centre;
        let largest = outcome.iter().fold(0.0f64, |largest, y| largest.max(y.abs()));
        fit.rounding = (16.0 * f64::EPSILON * largest).max(1e-12 * spread);
        let square = dot(&fit.residuals, &fit.residuals) / rows as f64;
        fit.scale = if square > 0.0 { square.sqrt() } else { 1.0 };
        fit.refuse_perfect()?;
        Ok(fit)
    }
}
