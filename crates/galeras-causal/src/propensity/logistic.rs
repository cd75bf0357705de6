//! The propensity score: logistic regression of the treatment by damped Newton steps, each one pass
//! over the rows with one exponential per row.

use super::design::{BLOCK, StandardisedDesign, add_gram, combine, dot};
use crate::Refusal;
use crate::cholesky::Cholesky;
use crate::column::{UNITS, arm_sizes, indicator};
use crate::newton::{Failure, MOST_STEPS, Point, minimise};

/// Newton steps of little progress after which the remaining rows count as not separated.
const SLOW_STEPS: usize = 20;
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
    /// The inverse strength of the ridge penalty, or `None` for maximum likelihood.
    pub c: Option<f64>,
}

impl Propensity {
    /// Logistic regression of the treatment on an intercept and the covariates. Without `c` (or if
    /// it is infinite) by maximum likelihood; otherwise with the ridge penalty of scikit-learn's
    /// `LogisticRegression`, half the sum of squared coefficients over `c`, on the scale of the
    /// covariates and without the intercept.
    ///
    /// Gives [`Refusal::Separated`] or [`Refusal::NoOverlap`] if the covariates predict the
    /// treatment of all or some rows without error, so that the maximum of the likelihood is at
    /// infinity (complete or quasi-complete separation, Albert & Anderson 1984), or with a penalty
    /// if every treated row has a higher score than every control; refuses a `c` that is not above
    /// zero, or no convergence.
    pub fn fit(covariates: &[&[f64]], treated: &[bool], c: Option<f64>) -> Result<Self, Refusal> {
        arm_sizes(treated, UNITS, 1)?;
        let design = StandardisedDesign::new(covariates, treated.len())?;
        let solution = solve(&design, &indicator(treated), c)?;
        let pairs = || solution.scores.iter().zip(treated);
        let lowest = pairs().filter(|(_, t)| **t).fold(f64::INFINITY, |low, (e, _)| low.min(*e));
        if pairs().all(|(e, treated)| *treated || *e < lowest) {
            return Err(Refusal::Separated);
        }
        let (intercept, coefficients) = design.raw(&solution.coefficients);
        Ok(Self {
            intercept,
            coefficients,
            scores: solution.scores,
            c: c.filter(|c| c.is_finite()),
        })
    }

    /// The common score, if scores are equal within 1e-8: then scores cannot find similar rows.
    pub fn constant(&self) -> Option<f64> {
        constant(&self.scores)
    }
}

/// The least and the greatest score; infinite and reversed without rows.
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
}

/// Minimises the penalised negative log-likelihood.
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
    let start = vec![0.0; width];
    let first = evaluator.evaluate(&start);
    independent(&first, &penalty)?;
    let limit = (CERTAIN.recip() - 1.0).ln();
    let far = |point: &Point| unpenalised && point.extreme >= limit;
    // Only near the optimum: a first step may go far beyond it and return.
    let stop = |point: &Point, decrement: f64| far(point) && decrement < 1.0;
    match minimise(start, first, 1e-12, |at| Some(evaluator.evaluate(at)), stop) {
        Ok(optimum) => {
            let coefficients = optimum.coefficients;
            let scores: Vec<f64> = design.predict(&coefficients).into_iter().map(expit).collect();
            let (low, high) = range(&scores);
            if unpenalised && (low <= CERTAIN || high >= 1.0 - CERTAIN) {
                return Err(evaluator.separated(coefficients, optimum.point));
            }
            Ok(Solution { coefficients, scores })
        }
        Err(Failure::Stopped(at, point)) if unpenalised => Err(evaluator.separated(at, point)),
        Err(Failure::Exhausted(at, point)) if far(&point) => Err(evaluator.separated(at, point)),
        Err(_) => {
            Err(Refusal::Other("the logistic regression of the treatment did not converge".into()))
        }
    }
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
    Cholesky::of_gram(&gram, width).map(|_| ())
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

    /// The extreme of the point is the linear predictor that is farthest from zero.
    fn evaluate(&mut self, coefficients: &[f64]) -> Point {
        let width = self.design.width();
        let mut point = Point::zero(width);
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
            point.extreme = far.into_iter().fold(point.extreme, f64::max);
            point.objective += linear + logarithm;
            for (position, sum) in point.gradient.iter_mut().enumerate() {
                *sum += dot(&block[position * BLOCK..][..length], residual);
            }
            add_gram(block, weight, &mut weighted, &mut point.hessian);
        });
        for (position, penalty) in self.penalty.iter().enumerate() {
            let value = coefficients[position];
            point.objective += 0.5 * penalty * value * value;
            point.gradient[position] += penalty * value;
            point.hessian[position * width + position] += penalty;
        }
        point
    }
}

/// Below the negative of this, the exponential is subnormal.
const LARGEST: f64 = 708.0;
/// Adding 1.5 times 2^52 rounds to an integer, which the lowest bits then hold.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// The logarithm of two in two parts; the first ends in zeros, so its multiples are exact.
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// Inverse factorials from 1/2! up to 1/13!: the Taylor series of the exponential, whose next term
/// is below 5e-18 on half the logarithm of two.
const TERMS: [f64; 12] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

/// The exponential of `-|x|`, to about one unit in the last place; beyond 708 that of 708.
#[inline]
pub(super) fn exp_of_minus_abs(x: f64) -> f64 {
    let x = -x.abs().min(LARGEST);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let power = shifted - ROUND;
    let rest = (x - power * LN2_HIGH) - power * LN2_LOW;
    // Estrin's scheme: terms in pairs, so that few operations wait for each other.
    let square = rest * rest;
    let pair = |first: usize| TERMS[first] + TERMS[first + 1] * rest;
    let four = |first: usize| pair(first) + pair(first + 2) * square;
    let fourth = square * square;
    let series = four(0) + (four(4) + four(8) * fourth) * fourth;
    // One is added last, because it is the largest term.
    let fraction = 1.0 + (rest + square * series);
    // The power of two, by shifting its exponent into place.
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    fraction * scale
}
