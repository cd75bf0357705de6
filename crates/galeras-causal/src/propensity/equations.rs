//! Estimating equations of regressions: their solution without some rows, and the effect of
//! estimated scores on an estimator's error.

use crate::Refusal;
use crate::cholesky::Cholesky;
use crate::column::indicator;
use crate::propensity::design::{StandardisedDesign, dot};
use crate::propensity::logistic::{Propensity, penalties};
use crate::propensity::rows::same_length;

/// The share of a pivot below which a regression without some rows has no solution.
pub(super) const DEPENDENT: f64 = 1e-9;

/// Estimating equations sum(x r) = 0 with the derivative -sum(w x x'), at the solution of a
/// logistic or a linear regression.
pub(super) struct Equations<'a> {
    design: &'a StandardisedDesign<'a>,
    /// The lower triangle of the derivative, including a penalty.
    matrix: Vec<f64>,
    factor: Cholesky,
    weights: Vec<f64>,
    residual: Vec<f64>,
}

impl<'a> Equations<'a> {
    pub(super) fn new(
        design: &'a StandardisedDesign<'a>,
        matrix: Vec<f64>,
        weights: Vec<f64>,
        residual: Vec<f64>,
    ) -> Result<Self, Refusal> {
        let factor = Cholesky::of_lower(&matrix, design.width(), f64::EPSILON)
            .map_err(|_| Refusal::NoOverlap("nearly every propensity score is 0 or 1".into()))?;
        Ok(Self { design, matrix, factor, weights, residual })
    }

    /// The change of the coefficients, by one Newton step, if these rows are left out; `None` if
    /// there is no solution without them. `x` is a buffer.
    pub(super) fn without(&self, members: &[usize], x: &mut [f64]) -> Option<Vec<f64>> {
        let mut right = vec![0.0; self.design.width()];
        for row in members {
            self.design.row(*row, x);
            right.iter_mut().zip(&*x).for_each(|(sum, x)| *sum -= x * self.residual[*row]);
        }
        self.solve_without(members, &right, x)
    }

    /// The solution for this right-hand side with the derivative of the other rows; `None` if that
    /// is singular. `x` is a buffer.
    pub(super) fn solve_without(
        &self,
        members: &[usize],
        right: &[f64],
        x: &mut [f64],
    ) -> Option<Vec<f64>> {
        if let [row] = members {
            let weight = self.weights[*row];
            let mut solution = self.factor.solve(right);
            if weight == 0.0 {
                return Some(solution);
            }
            // The Sherman-Morrison formula.
            self.design.row(*row, x);
            let along = self.factor.solve(x);
            let left = 1.0 - weight * dot(x, &along);
            let scale = weight * dot(x, &solution) / left;
            solution.iter_mut().zip(along).for_each(|(value, along)| *value += scale * along);
            return (left > DEPENDENT).then_some(solution);
        }
        let width = self.design.width();
        let mut matrix = self.matrix.clone();
        for row in members {
            self.design.row(*row, x);
            let weight = self.weights[*row];
            for (at, value) in x.iter().enumerate() {
                for (cell, other) in matrix[at * width..=at * width + at].iter_mut().zip(&*x) {
                    *cell -= weight * value * other;
                }
            }
        }
        let pivot = |at: usize, pivot: f64| pivot > DEPENDENT * self.matrix[at * width + at];
        let entry = |row: usize, column: usize| matrix[row * width + column];
        Some(Cholesky::new(width, entry, pivot).ok()?.solve(right))
    }

    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        self.factor.solve(right)
    }
}

pub(super) fn score_equations<'a>(
    design: &'a StandardisedDesign<'a>,
    covariates: &[&[f64]],
    treated: &[bool],
    propensity: &Propensity,
) -> Result<Equations<'a>, Refusal> {
    same_length("scores", propensity.scores.len(), treated.len())?;
    if covariates.len() != propensity.coefficients.len() {
        return Err(Refusal::Other("the score was fitted on other covariates".into()));
    }
    let weights: Vec<f64> = propensity.scores.iter().map(|e| e * (1.0 - e)).collect();
    let mut matrix = design.gram(&weights);
    let width = design.width();
    for (at, value) in penalties(design, propensity.c)?.iter().enumerate() {
        matrix[at * width + at] += value;
    }
    let residual = indicator(treated).iter().zip(&propensity.scores).map(|(t, e)| t - e).collect();
    Equations::new(design, matrix, weights, residual)
}

/// The estimating equations of the logistic coefficients, at their solution, which an estimator
/// with estimated scores solves together with its own equation.
///
/// Writing the sandwich of the whole stack by rows gives each row's influence: its own part, plus
/// the derivative of the estimate by the logistic coefficients times the row's part in these
/// (Stefanski & Boos 2002; Lunceford & Davidian 2004). The sum of squared influence equals the
/// sandwich A⁻¹BA⁻ᵀ of the stack, without forming it.
pub(super) struct ScoreEquations<'a> {
    design: StandardisedDesign<'a>,
    factor: Cholesky,
    residual: Vec<f64>,
    /// Each row's share of the penalty's gradient; zeros without a penalty.
    drift: Vec<f64>,
}

impl<'a> ScoreEquations<'a> {
    /// The equations at the end of the propensity's fit.
    ///
    /// # Errors
    /// Covariates that differ from those of the fit, or a singular Hessian because nearly every
    /// score is 0 or 1.
    pub(super) fn new(
        covariates: &[&'a [f64]],
        treatment: &[f64],
        propensity: &Propensity,
    ) -> Result<Self, Refusal> {
        let rows = treatment.len();
        same_length("scores", propensity.scores.len(), rows)?;
        if covariates.len() != propensity.coefficients.len() {
            return Err(Refusal::Other(format!(
                "the score was fitted on {} covariates, not {}",
                propensity.coefficients.len(),
                covariates.len()
            )));
        }
        let design = StandardisedDesign::new(covariates, rows)?;
        let penalty = penalties(&design, propensity.c)?;
        let scores = &propensity.scores;
        let weights: Vec<f64> = scores.iter().map(|e| e * (1.0 - e)).collect();
        let mut hessian = design.gram(&weights);
        let width = design.width();
        for (position, value) in penalty.iter().enumerate() {
            hessian[position * width + position] += value;
        }
        let factor = Cholesky::of_lower(&hessian, width, f64::EPSILON)
            .map_err(|_| Refusal::NoOverlap("nearly every propensity score is 0 or 1".into()))?;
        let residual = treatment.iter().zip(scores).map(|(t, e)| t - e).collect();
        let standardised = design.standardised(propensity.intercept, &propensity.coefficients);
        let drift = penalty.iter().zip(&standardised).map(|(p, g)| p * g / rows as f64).collect();
        Ok(Self { design, factor, residual, drift })
    }

    /// Adds the contribution of the estimated scores to each row's influence.
    ///
    /// `slope` holds, for each row, the derivative of the estimate by that row's linear predictor:
    /// zero if the score is clipped.
    pub(super) fn correct(&self, slope: &[f64], influence: &mut [f64]) {
        let direction = self.factor.solve(&self.design.cross(slope));
        let drift = dot(&direction, &self.drift);
        let along = self.design.predict(&direction);
        for ((value, residual), along) in influence.iter_mut().zip(&self.residual).zip(along) {
            *value += residual * along - drift;
        }
    }
}

/// A score clipped to the bounds, and its derivative by the linear predictor: zero outside.
pub(super) fn clipped(score: f64, clip: (f64, f64)) -> (f64, f64) {
    if score < clip.0 {
        (clip.0, 0.0)
    } else if score > clip.1 {
        (clip.1, 0.0)
    } else {
        (score, score * (1.0 - score))
    }
}
