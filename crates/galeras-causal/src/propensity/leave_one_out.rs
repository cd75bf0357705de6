//! Standard errors of weighting and augmented weighting that hold in few rows and few clusters:
//! the jackknife, by one Newton step for each row or cluster that is left out.
//!
//! The sandwich of the stacked equations takes the residuals for errors. They are smaller, the
//! more so the fewer rows there are, and its interval is a normal one: with 20 rows it covers 84 %
//! in place of 95 %. Here each row (or cluster) is left out of the score's regression, of the
//! outcome's and of the means; every estimating equation takes one Newton step, which is exact for
//! means and linear regressions (Mancl and DeRouen 2001 do so for the sandwich of GEE; MacKinnon,
//! Nielsen and Webb 2023 for clusters). Intervals are those of Student's t, with degrees of freedom
//! by Satterthwaite: both estimators are linear in the outcome, so that rows of equal variance
//! contribute by the squares of their coefficients.

use super::design::{StandardisedDesign, dot};
use super::logistic::{Propensity, penalties};
use super::outcome_model::{OutcomeModel, residuals};
use super::rows::{Rows, bounds, estimate, same_length};
use super::stacked::clipped;
use super::weighting::Estimand;
use crate::cholesky::Cholesky;
use crate::column::indicator;
use crate::{Estimate, Refusal};

/// The share of a pivot below which a regression without some rows has no solution.
const DEPENDENT: f64 = 1e-9;

/// The effect of [`weighting`](super::weighting) with the standard error of the jackknife and
/// Student's t.
///
/// Arguments are those of [`weighting`](super::weighting): columns of n values and n entries each,
/// scores clipped to `clip`. The variance is (G - 1) / G times the sum of squared changes, for G
/// rows or clusters.
///
/// # Errors
/// As [`weighting`](super::weighting), and [`Refusal::Other`] if the scores, or the mean of an arm,
/// cannot be estimated without one of the rows or clusters.
pub fn jackknifed_weighting(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    estimand: Estimand,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Estimate, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let design = StandardisedDesign::new(covariates, treated.len())?;
    let score = score_equations(&design, covariates, treated, propensity)?;
    let n = treated.len();
    let centre = outcome.iter().sum::<f64>() / n as f64;
    let mut arms = [WeightedArm::default(); 2];
    let (mut weight, mut derivative) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for ((e, t), y) in propensity.scores.iter().zip(treated).zip(outcome) {
        let (e, slope) = clipped(*e, clip);
        weight.push(estimand.weight(e, *t));
        derivative.push(if slope > 0.0 { estimand.slope(e, *t) * slope } else { 0.0 });
        arms[usize::from(*t)].add(weight[weight.len() - 1], y - centre);
    }
    let means = arms.map(|arm| arm.mean());
    // The derivative of each arm's weighted sum of residuals by the score's coefficients.
    let slope: Vec<f64> = (0..n)
        .map(|row| derivative[row] * (outcome[row] - centre - means[usize::from(treated[row])]))
        .collect();
    let of_arm = |arm: bool| {
        let own = |row: usize| if treated[row] == arm { slope[row] } else { 0.0 };
        design.cross(&(0..n).map(own).collect::<Vec<f64>>())
    };
    let slopes = [of_arm(false), of_arm(true)];
    let value = means[1] - means[0];
    let mut change = |members: &[usize], x: &mut [f64]| -> Option<f64> {
        let moved = score.without(members, x)?;
        let (mut left, mut along) = (arms, slopes.each_ref().map(|slope| dot(slope, &moved)));
        for row in members {
            let arm = usize::from(treated[*row]);
            left[arm].add(-weight[*row], outcome[*row] - centre);
            design.row(*row, x);
            along[arm] -= slope[*row] * dot(x, &moved);
        }
        let whole = |arm: usize| left[arm].total > DEPENDENT * arms[arm].total;
        let mean = |arm: usize| left[arm].mean() + along[arm] / left[arm].total;
        (whole(0) && whole(1)).then(|| mean(1) - mean(0) - value)
    };
    let coefficient = |row: usize| weight[row] / arms[usize::from(treated[row])].total;
    let parameters = design.width() + 1;
    Groups::new(&rows).estimate(&rows, value, &design, parameters, &mut change, coefficient)
}

/// The effect of [`aipw`](super::aipw) (with a model per arm) with the standard error of the
/// jackknife and Student's t.
///
/// Arguments are those of [`aipw`](super::aipw); the variance is as for [`jackknifed_weighting`].
///
/// # Errors
/// As [`aipw`](super::aipw), and [`Refusal::Other`] if one of the regressions cannot be estimated
/// without one of the rows or clusters.
pub fn jackknifed_aipw(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Estimate, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let n = treated.len();
    let treatment = indicator(treated);
    let design = StandardisedDesign::new(covariates, n)?;
    let score = score_equations(&design, covariates, treated, propensity)?;
    let model = OutcomeModel::fit(covariates, &treatment, outcome, false)?;
    let (control, one) = model.predict(covariates, n);
    let residual = residuals(&treatment, outcome, &control, &one);
    let of_arm = |arm: bool| {
        let own = |row: usize, value: f64| if treated[row] == arm { value } else { 0.0 };
        let weights: Vec<f64> = (0..n).map(|row| own(row, 1.0)).collect();
        let residual: Vec<f64> = (0..n).map(|row| own(row, residual[row])).collect();
        Equations::new(&design, design.gram(&weights), weights, residual)
    };
    let models = [of_arm(false)?, of_arm(true)?];
    let mut effect = Vec::with_capacity(n);
    let mut slopes = [vec![0.0; n], vec![0.0; n], vec![0.0; n]];
    let mut weight = Vec::with_capacity(n);
    for row in 0..n {
        let (e, derivative) = clipped(propensity.scores[row], clip);
        let inverse = if treated[row] { e.recip() } else { (1.0 - e).recip() };
        let signed = if treated[row] { inverse } else { -inverse };
        effect.push(one[row] - control[row] + signed * residual[row]);
        slopes[0][row] = if treated[row] { -1.0 } else { inverse - 1.0 };
        slopes[1][row] = if treated[row] { 1.0 - inverse } else { 1.0 };
        slopes[2][row] = -inverse * inverse * residual[row] * derivative;
        weight.push(signed);
    }
    let totals = slopes.each_ref().map(|slope| design.cross(slope));
    let sum: f64 = effect.iter().sum();
    let value = sum / n as f64;
    let mut change = |members: &[usize], x: &mut [f64]| -> Option<f64> {
        let moved = [
            models[0].without(members, x)?,
            models[1].without(members, x)?,
            score.without(members, x)?,
        ];
        let mut left: f64 = (0..3).map(|at| dot(&totals[at], &moved[at])).sum::<f64>() + sum;
        for row in members {
            design.row(*row, x);
            left -= effect[*row];
            for (slope, moved) in slopes.iter().zip(&moved) {
                left -= slope[*row] * dot(x, moved);
            }
        }
        let rest = n - members.len();
        (rest > 0).then(|| left / rest as f64 - value)
    };
    // What a residual contributes to the estimate: by its own weight, and by its regression.
    let along = [0, 1].map(|arm| design.predict(&models[arm].factor.solve(&totals[arm])));
    let coefficient = |row: usize| {
        let arm = usize::from(treated[row]);
        (weight[row] + along[arm][row]) / n as f64
    };
    let parameters = 2 * design.width();
    Groups::new(&rows).estimate(&rows, value, &design, parameters, &mut change, coefficient)
}

/// The weighted outcomes of one arm.
#[derive(Clone, Copy, Default)]
struct WeightedArm {
    total: f64,
    outcomes: f64,
}

impl WeightedArm {
    fn add(&mut self, weight: f64, outcome: f64) {
        self.total += weight;
        self.outcomes += weight * outcome;
    }

    fn mean(&self) -> f64 {
        self.outcomes / self.total
    }
}

/// Estimating equations sum(x r) = 0 with the derivative -sum(w x x'), at their solution: those of
/// a logistic or a linear regression.
struct Equations<'a> {
    design: &'a StandardisedDesign<'a>,
    /// The lower triangle of the derivative, with a penalty if there is one.
    matrix: Vec<f64>,
    factor: Cholesky,
    weights: Vec<f64>,
    residual: Vec<f64>,
}

impl<'a> Equations<'a> {
    fn new(
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
    fn without(&self, members: &[usize], x: &mut [f64]) -> Option<Vec<f64>> {
        let width = self.design.width();
        if let [row] = members {
            self.design.row(*row, x);
            let mut step = self.factor.solve(x);
            let left = 1.0 - self.weights[*row] * dot(x, &step);
            let scale = -self.residual[*row] / left;
            step.iter_mut().for_each(|value| *value *= scale);
            return (left > DEPENDENT).then_some(step);
        }
        let mut matrix = self.matrix.clone();
        let mut right = vec![0.0; width];
        for row in members {
            self.design.row(*row, x);
            let (weight, residual) = (self.weights[*row], self.residual[*row]);
            for (at, value) in x.iter().enumerate() {
                right[at] -= value * residual;
                for (cell, other) in matrix[at * width..=at * width + at].iter_mut().zip(&*x) {
                    *cell -= weight * value * other;
                }
            }
        }
        let pivot = |at: usize, pivot: f64| pivot > DEPENDENT * self.matrix[at * width + at];
        let entry = |row: usize, column: usize| matrix[row * width + column];
        Some(Cholesky::new(width, entry, pivot).ok()?.solve(&right))
    }
}

/// The equations of the score's logistic regression.
fn score_equations<'a>(
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

/// What is left out together: a row, or the rows of a cluster.
struct Groups {
    /// Rows, group after group.
    order: Vec<usize>,
    /// Where each group begins in `order`, and the end.
    starts: Vec<usize>,
    clustered: bool,
}

impl Groups {
    fn new(rows: &Rows<'_>) -> Self {
        let n = rows.treated.len();
        let mut order: Vec<usize> = (0..n).collect();
        let Some(codes) = rows.clusters else {
            return Self { order, starts: (0..=n).collect(), clustered: false };
        };
        order.sort_by_key(|row| codes[*row]);
        let begins = |at: &usize| *at == 0 || codes[order[*at]] != codes[order[*at - 1]];
        let mut starts: Vec<usize> = (0..n).filter(begins).collect();
        starts.push(n);
        Self { order, starts, clustered: true }
    }

    /// An estimate from the change that each group makes when it is left out. `coefficient` is
    /// what the residual of a row counts in the estimate, `parameters` how many coefficients and
    /// means were estimated to get the residuals.
    fn estimate(
        &self,
        rows: &Rows<'_>,
        value: f64,
        design: &StandardisedDesign<'_>,
        parameters: usize,
        change: &mut impl FnMut(&[usize], &mut [f64]) -> Option<f64>,
        coefficient: impl Fn(usize) -> f64,
    ) -> Result<Estimate, Refusal> {
        let n = self.order.len();
        let count = (self.starts.len() - 1) as f64;
        let mut x = vec![0.0; design.width()];
        let (mut squares, mut trace, mut trace_of_squares) = (0.0, 0.0, 0.0);
        for bounds in self.starts.windows(2) {
            let members = &self.order[bounds[0]..bounds[1]];
            let Some(change) = change(members, &mut x).filter(|change| change.is_finite()) else {
                return Err(alone(self.clustered));
            };
            squares += change * change;
            let variance: f64 = members.iter().map(|row| coefficient(*row).powi(2)).sum();
            trace += variance;
            trace_of_squares += variance * variance;
        }
        let variance = squares * (count - 1.0) / count;
        let normal = estimate(value, variance, rows.outcome)?;
        // Residuals have fewer degrees of freedom than there are rows, clusters one less.
        let lost = if self.clustered { 1.0 / count } else { parameters as f64 / n as f64 };
        let degrees = trace * trace / trace_of_squares * (1.0 - lost);
        if !(degrees.is_finite() && degrees > 0.0) {
            return Err(alone(self.clustered));
        }
        Ok(Estimate { degrees, ..normal })
    }
}

/// The refusal of an estimate that rests on one group.
fn alone(clustered: bool) -> Refusal {
    let what = if clustered { "cluster" } else { "row" };
    Refusal::Other(format!(
        "the estimate rests on one {what}: without it the scores, the regressions or the mean of \
         an arm cannot be estimated, so that nothing tells how far the estimate may be off"
    ))
}
