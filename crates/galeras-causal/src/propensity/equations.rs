//! Estimating equations of a regression, and how their solution moves when some rows are left out.

use super::design::{StandardisedDesign, dot};
use super::logistic::{Propensity, penalties};
use super::rows::same_length;
use crate::Refusal;
use crate::cholesky::Cholesky;
use crate::column::indicator;

/// The share of a pivot below which a regression without some rows has no solution.
pub(super) const DEPENDENT: f64 = 1e-9;

/// Estimating equations sum(x r) = 0 with the derivative -sum(w x x'), at their solution: those of
/// a logistic or a linear regression.
pub(super) struct Equations<'a> {
    design: &'a StandardisedDesign<'a>,
    /// The lower triangle of the derivative, with a penalty if there is one.
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

    /// How the coefficients change, by one Newton step, if these rows are left out; none if there
    /// is no solution without them. `x` is memory to work in.
    pub(super) fn without(&self, members: &[usize], x: &mut [f64]) -> Option<Vec<f64>> {
        let mut right = vec![0.0; self.design.width()];
        for row in members {
            self.design.row(*row, x);
            right.iter_mut().zip(&*x).for_each(|(sum, x)| *sum -= x * self.residual[*row]);
        }
        self.solve_without(members, &right, x)
    }

    /// The solution for this right-hand side with the derivative of the other rows; none if that is
    /// singular. `x` is memory to work in.
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
            // The formula of Sherman and Morrison.
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

    /// The solution for this right-hand side.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        self.factor.solve(right)
    }
}

/// The equations of the score's logistic regression.
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
