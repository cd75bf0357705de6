//! The propensity score: logistic regression of the treatment by damped Newton steps.
//!
//! One pass over the rows gives the objective, its gradient, its Hessian and the scores, with one
//! exponential per row.

use super::design::{BLOCK, StandardisedDesign, add_gram, combine, dot};
use super::exponential::exp_of_minus_abs;
use super::rows::arms;
use crate::cholesky::Cholesky;
use crate::column::indicator;
use crate::{ColumnRef, Refusal};

/// Newton steps after which a fit is given up; fits with an optimum need about ten.
const MOST_STEPS: usize = 200;
/// Newton steps of little progress after which the remaining rows count as not separated.
const SLOW_STEPS: usize = 20;
/// The squared Newton step, in standard errors, after which one more full step is exact.
const CONVERGED: f64 = 1e-16;
/// A squared Newton step, per unit of the objective, that is only rounding.
const ROUNDING: f64 = 1e-26;
/// The share 1 - R² of a covariate below which the others explain it.
const DEPENDENT: f64 = 1e-10;
/// A score this close to 0 or 1 counts as certain.
const CERTAIN: f64 = 1e-10;
/// Scores within a smaller range count as equal.
const CONSTANT: f64 = 1e-8;

/// A fitted propensity score.
#[derive(Clone, Debug, PartialEq)]
pub struct Propensity {
    /// The intercept, on the scale of the original covariates.
    pub intercept: f64,
    /// One coefficient per covariate, on the scale of the original covariates.
    pub coefficients: Vec<f64>,
    /// The probability of treatment of each row.
    pub scores: Vec<f64>,
    /// The number of Newton steps.
    pub iterations: usize,
    /// The inverse strength of the ridge penalty, or `None` for maximum likelihood.
    pub c: Option<f64>,
}

impl Propensity {
    /// Logistic regression of the treatment on an intercept and the covariates: columns of n
    /// values, in any units, for the n rows of `treated`. Equals scikit-learn's
    /// `LogisticRegression` with this `C`.
    ///
    /// Without `c` (or if it is infinite) by maximum likelihood; otherwise with the ridge penalty
    /// of scikit-learn, half the sum of squared coefficients over `c`, on the scale of the
    /// covariates and without the intercept. Newton's method starts at zero and halves a step that
    /// does not descend.
    ///
    /// # Errors
    /// [`Refusal::TooFew`] if an arm is empty; [`Refusal::Constant`], [`Refusal::OutOfRange`] or
    /// [`Refusal::UnusableColumn`] if a covariate has one value only, values that are not finite or
    /// cannot be squared, or another length, and [`Refusal::Collinear`] if it is a linear
    /// combination of earlier ones, with [`ColumnRef::Covariate`] for its position;
    /// [`Refusal::Separated`] or [`Refusal::NoOverlap`] if the covariates predict the treatment of
    /// all or some rows without error, so that the maximum of the likelihood is at infinity
    /// (complete or quasi-complete separation, Albert & Anderson 1984), or with a penalty if every
    /// treated row has a higher score than every control; [`Refusal::Other`] if `c` is not above
    /// zero or no optimum is reached.
    pub fn fit(covariates: &[&[f64]], treated: &[bool], c: Option<f64>) -> Result<Self, Refusal> {
        arms(treated)?;
        let design = StandardisedDesign::new(covariates, treated.len())?;
        let solution = solve(&design, &indicator(treated), c)?;
        if disjoint(&solution.scores, treated) {
            return Err(Refusal::Separated);
        }
        let (intercept, coefficients) = design.raw(&solution.coefficients);
        Ok(Self {
            intercept,
            coefficients,
            scores: solution.scores,
            iterations: solution.iterations,
            c: c.filter(|c| c.is_finite()),
        })
    }

    /// The common score, if scores are equal within 1e-8: then scores cannot find similar rows.
    pub fn constant(&self) -> Option<f64> {
        constant(&self.scores)
    }

    /// The number of distinct scores, compared exactly.
    pub fn distinct(&self) -> usize {
        let mut sorted = self.scores.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.dedup();
        sorted.len()
    }

    /// The least and the greatest score; infinite and reversed without rows.
    pub fn range(&self) -> (f64, f64) {
        range(&self.scores)
    }
}

/// True if every treated row has a higher score than every control.
fn disjoint(scores: &[f64], treated: &[bool]) -> bool {
    let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
    for (score, treated) in scores.iter().zip(treated) {
        if *treated {
            ends.0 = ends.0.min(*score);
        } else {
            ends.1 = ends.1.max(*score);
        }
    }
    ends.0 > ends.1
}

pub(super) fn range(scores: &[f64]) -> (f64, f64) {
    scores
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), e| (low.min(*e), high.max(*e)))
}

/// The score that all rows share within 1e-8.
pub(super) fn constant(scores: &[f64]) -> Option<f64> {
    let (low, high) = range(scores);
    (low <= high && high - low <= CONSTANT).then_some(low + (high - low) / 2.0)
}

/// The penalty's second derivative for each standardised coefficient.
///
/// # Errors
/// `c` is not above zero.
pub(super) fn penalties(
    design: &StandardisedDesign<'_>,
    c: Option<f64>,
) -> Result<Vec<f64>, Refusal> {
    let strength = match c {
        None => 0.0,
        Some(c) if c > 0.0 => c.recip(),
        Some(c) => return Err(Refusal::Other(format!("the penalty C is {c}, not above zero"))),
    };
    let scaled = (1..design.width()).map(|column| {
        let (_, scale) = design.standard(column - 1);
        strength / (scale * scale)
    });
    Ok(std::iter::once(0.0).chain(scaled).collect())
}

/// The probability of a linear predictor.
pub(crate) fn expit(predictor: f64) -> f64 {
    let small = exp_of_minus_abs(predictor);
    if predictor >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

/// The optimum in standardised coefficients.
pub(crate) struct Solution {
    pub(crate) coefficients: Vec<f64>,
    pub(crate) scores: Vec<f64>,
    pub(super) iterations: usize,
}

struct Point {
    objective: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
    farthest: f64,
}

/// Minimises the penalised negative log-likelihood.
///
/// # Errors
/// As [`Propensity::fit`].
pub(crate) fn solve(
    design: &StandardisedDesign<'_>,
    treatment: &[f64],
    c: Option<f64>,
) -> Result<Solution, Refusal> {
    let width = design.width();
    let penalty = penalties(design, c)?;
    let unpenalised = penalty.iter().all(|value| *value == 0.0);
    let mut evaluator =
        Evaluator { design, treatment, penalty: &penalty, scratch: design.scratch() };
    let mut coefficients = vec![0.0; width];
    let mut point = evaluator.evaluate(&coefficients);
    independent(&point, &penalty)?;
    let limit = (CERTAIN.recip() - 1.0).ln();
    for iterations in 0..MOST_STEPS {
        let Ok(factor) = Cholesky::of_lower(&point.hessian, width, f64::EPSILON) else {
            return Err(match unpenalised {
                true => evaluator.separated(coefficients, point),
                false => not_converged(),
            });
        };
        let step = factor.solve(&point.gradient);
        let decrement = dot(&step, &point.gradient);
        // Only near the optimum: a first step may go far beyond it and return.
        if unpenalised && point.farthest >= limit && decrement < 1.0 {
            return Err(evaluator.separated(coefficients, point));
        }
        let exact = decrement <= ROUNDING * point.objective.abs().max(1.0);
        if exact || decrement <= CONVERGED {
            if !exact {
                coefficients.iter_mut().zip(&step).for_each(|(g, d)| *g -= d);
            }
            let scores: Vec<f64> = design.predict(&coefficients).into_iter().map(expit).collect();
            let (low, high) = range(&scores);
            if unpenalised && (low <= CERTAIN || high >= 1.0 - CERTAIN) {
                return Err(evaluator.separated(coefficients, point));
            }
            let iterations = iterations + usize::from(!exact);
            return Ok(Solution { coefficients, scores, iterations });
        }
        let mut share = 1.0;
        loop {
            let trial: Vec<f64> =
                coefficients.iter().zip(&step).map(|(g, d)| g - share * d).collect();
            let next = evaluator.evaluate(&trial);
            if next.objective <= point.objective + 1e-12 * point.objective.abs() {
                (coefficients, point) = (trial, next);
                break;
            }
            share *= 0.5;
            if share < 1e-10 {
                return Err(not_converged());
            }
        }
    }
    Err(if unpenalised && point.farthest >= limit {
        evaluator.separated(coefficients, point)
    } else {
        not_converged()
    })
}

/// Refuses covariates that earlier ones explain. At zero all rows weigh the same, so the Hessian
/// there is the Gram matrix.
fn independent(point: &Point, penalty: &[f64]) -> Result<(), Refusal> {
    let width = penalty.len();
    let mut gram = point.hessian.clone();
    for (position, value) in penalty.iter().enumerate() {
        gram[position * width + position] -= value;
    }
    // A strong penalty costs digits in the difference above, but the diagonal of the Gram matrix is
    // known, since all columns are standardised.
    let rows = gram.first().copied().unwrap_or(0.0);
    for position in 0..width {
        gram[position * width + position] = rows;
    }
    Cholesky::of_lower(&gram, width, DEPENDENT).map(|_| ()).map_err(|column| Refusal::Collinear {
        column: ColumnRef::Covariate(column.saturating_sub(1)),
    })
}

fn not_converged() -> Refusal {
    Refusal::Other("the logistic regression of the treatment did not converge".into())
}

/// The inputs of each evaluation of the objective.
struct Evaluator<'a> {
    design: &'a StandardisedDesign<'a>,
    treatment: &'a [f64],
    penalty: &'a [f64],
    scratch: Vec<f64>,
}

impl Evaluator<'_> {
    /// The refusal of a fit whose coefficients grow without bound. Their further growth shows if
    /// the covariates separate all rows or some.
    fn separated(&mut self, mut coefficients: Vec<f64>, mut point: Point) -> Refusal {
        let width = self.design.width();
        // In a complete separation every step eventually divides the objective by e.
        let mut slow = 0;
        for _ in 0..MOST_STEPS {
            // A row on the wrong side of its arm adds at least ln 2, so below that there is none.
            if point.objective < std::f64::consts::LN_2 {
                return Refusal::Separated;
            }
            let Ok(factor) = Cholesky::of_lower(&point.hessian, width, f64::EPSILON) else { break };
            let step = factor.solve(&point.gradient);
            coefficients.iter_mut().zip(&step).for_each(|(g, d)| *g -= d);
            let next = self.evaluate(&coefficients);
            // The remaining objective is that of rows that are not, or hardly, separated.
            slow += usize::from(next.objective > 0.99 * point.objective);
            if next.objective.is_nan() || slow > SLOW_STEPS {
                break;
            }
            point = next;
        }
        Refusal::NoOverlap(
            "the covariates tell some treated units from all controls, or the reverse, without \
             error (quasi-complete separation): their scores are 0 or 1, and the coefficients grow \
             without bound"
                .into(),
        )
    }

    fn evaluate(&mut self, coefficients: &[f64]) -> Point {
        let width = self.design.width();
        let mut gradient = vec![0.0; width];
        let mut hessian = vec![0.0; width * width];
        let (mut objective, mut farthest) = (0.0, 0.0_f64);
        let (mut predictor, mut whole) = ([0.0; BLOCK], [1.0; BLOCK]);
        let (mut residual, mut weight, mut weighted) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        let treatment = self.treatment;
        self.design.blocks(&mut self.scratch, |start, length, block| {
            let predictor = &mut predictor[..length];
            combine(block, coefficients, predictor);
            let (residual, weight) = (&mut residual[..length], &mut weight[..length]);
            let treatment = &treatment[start..start + length];
            // Loops without a sum, so that they are vectorised.
            whole.fill(1.0);
            for row in 0..length {
                let eta = predictor[row];
                let small = exp_of_minus_abs(eta);
                let inverse = (1.0 + small).recip();
                let score = if eta >= 0.0 { inverse } else { small * inverse };
                whole[row] += small;
                residual[row] = score - treatment[row];
                weight[row] = small * inverse * inverse;
            }
            let mut linear = -dot(treatment, predictor);
            // One logarithm of the product: 256 factors between 1 and 2, at most 2^256.
            let mut product = [1.0; 8];
            for factors in whole.chunks_exact(8) {
                product.iter_mut().zip(factors).for_each(|(product, factor)| *product *= factor);
            }
            let logarithm = product.iter().product::<f64>().ln();
            let (mut positive, mut far) = ([0.0; 8], [0.0_f64; 8]);
            for etas in predictor.chunks(8) {
                for (lane, eta) in etas.iter().enumerate() {
                    positive[lane] += eta.max(0.0);
                    far[lane] = far[lane].max(eta.abs());
                }
            }
            linear += positive.iter().sum::<f64>();
            farthest = far.into_iter().fold(farthest, f64::max);
            objective += linear + logarithm;
            for (position, sum) in gradient.iter_mut().enumerate() {
                *sum += dot(&block[position * BLOCK..][..length], residual);
            }
            add_gram(block, weight, &mut weighted, &mut hessian);
        });
        for (position, penalty) in self.penalty.iter().enumerate() {
            let value = coefficients[position];
            objective += 0.5 * penalty * value * value;
            gradient[position] += penalty * value;
            hessian[position * width + position] += penalty;
        }
        Point { objective, gradient, hessian, farthest }
    }
}
