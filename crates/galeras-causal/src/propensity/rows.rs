//! The checks that all estimators share, the step from influence to an [`Estimate`], and the
//! estimating equations of regressions: their solution without some rows, and the effect of estimated
//! scores on an estimator's error.

use super::design::{StandardisedDesign, dot};
use super::logistic::{Propensity, penalties};
use crate::cholesky::Cholesky;
use crate::column::{UNITS, arm_sizes, cluster_sums, code_count, indicator};
use crate::refusal::{at_least, require, require_column};
use crate::{ColumnRef, Estimate, Refusal};

/// A standard error below this share of the largest outcome is rounding, not uncertainty.
const ROUNDING: f64 = 1e-14;

/// The rows that an estimator works on, checked.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) treated: &'a [bool],
    pub(super) outcome: &'a [f64],
    pub(super) clusters: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    /// Checks lengths, values and cluster codes.
    pub(super) fn new(
        treated: &'a [bool],
        outcome: &'a [f64],
        clusters: Option<&'a [u32]>,
    ) -> Result<Self, Refusal> {
        let n = treated.len();
        arm_sizes(treated, UNITS, 1)?;
        same_length("outcomes", outcome.len(), n)?;
        finite(ColumnRef::Outcome, outcome)?;
        if let Some(codes) = clusters {
            same_length("cluster codes", codes.len(), n)?;
            require(code_count(codes) <= n, "cluster codes are not dense")?;
            at_least("clusters", code_count(codes), 2)?;
        }
        Ok(Self { treated, outcome, clusters })
    }

    /// An estimate from the contribution of each row to its error: normal, or with G clusters
    /// Student's t with G - 1 degrees of freedom. Errors are those of [`estimate`].
    pub(super) fn estimate(&self, value: f64, influence: &[f64]) -> Result<Estimate, Refusal> {
        let sums = cluster_sums(influence, self.clusters);
        let normal = estimate(value, sums.iter().map(|sum| sum * sum).sum(), self.outcome)?;
        // As many contributions are independent as there are clusters.
        let degrees = self.clusters.map_or(f64::INFINITY, |codes| code_count(codes) as f64 - 1.0);
        Ok(Estimate { degrees, ..normal })
    }
}

pub(super) fn same_length(what: &str, length: usize, rows: usize) -> Result<(), Refusal> {
    require(length == rows, format!("there are {length} {what} for {rows} rows"))
}

pub(super) fn finite(column: ColumnRef, values: &[f64]) -> Result<(), Refusal> {
    let finite = values.iter().all(|value| value.is_finite());
    require_column(column, finite, "has values that are not finite")
}

/// Some of the scores, ascending, with their rows; rows of equal score keep their order.
pub(super) fn ascending(scores: &[f64], chosen: impl Fn(usize) -> bool) -> Vec<(f64, usize)> {
    // Adding zero turns a negative zero into a positive one, with which it ties.
    let chosen = scores.iter().enumerate().filter(|(row, _)| chosen(*row));
    let mut order: Vec<(f64, usize)> = chosen.map(|(row, score)| (score + 0.0, row)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    order
}

pub(super) fn bounds(clip: (f64, f64)) -> Result<(), Refusal> {
    let (low, high) = clip;
    let holds = 0.0 <= low && low < high && high <= 1.0;
    require(holds, format!("scores cannot be clipped to [{low}, {high}]"))
}

/// A normal estimate. Refuses a value or a variance that is not finite, or a standard error that is
/// only rounding: then the outcome is explained without error and an interval would be meaningless.
pub(super) fn estimate(value: f64, variance: f64, outcome: &[f64]) -> Result<Estimate, Refusal> {
    let standard_error = variance.sqrt();
    let reason = "the estimate or its standard error is not a finite number: a score of 0 or 1, \
                  or values that are too large";
    require(value.is_finite() && standard_error.is_finite(), reason)?;
    let reason =
        "the standard error is zero: the outcome does not vary, or is explained without error";
    let least = ROUNDING * crate::compensated::largest(outcome);
    require(standard_error > least && standard_error > 0.0, reason)?;
    Ok(Estimate { value, standard_error, degrees: f64::INFINITY })
}

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
    /// Each row's share of the penalty's gradient.
    drift: Vec<f64>,
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
        Ok(Self { design, matrix, factor, weights, residual, drift: Vec::new() })
    }

    /// The equations of the logistic coefficients at the end of the propensity's fit.
    pub(super) fn of_score(
        design: &'a StandardisedDesign<'a>,
        treated: &[bool],
        propensity: &Propensity,
    ) -> Result<Self, Refusal> {
        let (rows, width) = (treated.len(), design.width());
        same_length("scores", propensity.scores.len(), rows)?;
        let (fitted, given) = (propensity.coefficients.len(), width - 1);
        let reason = format!("the score was fitted on {fitted} covariates, not {given}");
        require(fitted == given, reason)?;
        let penalty = penalties(design, propensity.c)?;
        let weights: Vec<f64> = propensity.scores.iter().map(|e| e * (1.0 - e)).collect();
        let mut matrix = design.gram(&weights);
        for (at, value) in penalty.iter().enumerate() {
            matrix[at * width + at] += value;
        }
        let pairs = indicator(treated).into_iter().zip(&propensity.scores);
        let residual = pairs.map(|(t, e)| t - e).collect();
        let standardised = design.standardised(propensity.intercept, &propensity.coefficients);
        let drift = penalty.iter().zip(&standardised).map(|(p, g)| p * g / rows as f64).collect();
        Ok(Self { drift, ..Self::new(design, matrix, weights, residual)? })
    }

    /// Adds the contribution of the estimated scores to each row's influence on an estimator that
    /// solves its own equation together with these. `slope` holds, for each row, the derivative of
    /// the estimate by that row's linear predictor: zero if the score is clipped.
    ///
    /// The contribution is the derivative of the estimate by the logistic coefficients times the
    /// row's part in these: the sum of squared influence equals the sandwich A⁻¹BA⁻ᵀ of the stack
    /// (Stefanski & Boos 2002; Lunceford & Davidian 2004).
    pub(super) fn correct(&self, slope: &[f64], influence: &mut [f64]) {
        let direction = self.factor.solve(&self.design.cross(slope));
        let drift = dot(&direction, &self.drift);
        let along = self.design.predict(&direction);
        for ((value, residual), along) in influence.iter_mut().zip(&self.residual).zip(along) {
            *value += residual * along - drift;
        }
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
