//! Maximum likelihood with a logarithmic link, by damped Newton steps.
//!
//! One pass over the rows, in their order, gives the objective, its gradient and its Hessian; the
//! objective is convex in the coefficients for both families.

use crate::cholesky::Cholesky;
use crate::propensity::design::{BLOCK, StandardisedDesign, add_gram, combine, dot};
use crate::{ColumnRef, Refusal};

/// Newton steps after which a fit is given up; fits with an optimum need about ten.
const MOST_STEPS: usize = 200;
/// The squared Newton step, in standard errors, after which one more full step is exact.
const CONVERGED: f64 = 1e-16;
/// A squared Newton step, per unit of the objective, that is only rounding.
const ROUNDING: f64 = 1e-26;
/// The share 1 - R² of a covariate below which the others explain it.
const DEPENDENT: f64 = 1e-10;
/// A fitted mean below this share of the mean outcome counts as zero.
const VANISHED: f64 = 1e-9;
/// The largest linear predictor whose exponential is computed.
const FARTHEST: f64 = 300.0;

/// The variance of a count with mean mu: mu + dispersion mu². Zero is Poisson's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CountFamily {
    pub(super) dispersion: f64,
}

struct RowTerms {
    /// The negative log-likelihood, without terms that do not depend on the coefficients.
    objective: f64,
    slope: f64,
    curvature: f64,
}

impl CountFamily {
    fn terms(self, y: f64, eta: f64) -> RowTerms {
        let mean = eta.exp();
        if self.dispersion == 0.0 {
            return RowTerms { objective: mean - y * eta, slope: mean - y, curvature: mean };
        }
        let (a, product) = (self.dispersion, self.dispersion * mean);
        let whole = 1.0 + product;
        RowTerms {
            objective: (y + 1.0 / a) * product.ln_1p() - y * eta,
            slope: (mean - y) / whole,
            curvature: self.observed_weight(y, mean),
        }
    }

    /// The weight of a row in the observed information.
    pub(super) fn observed_weight(self, y: f64, mean: f64) -> f64 {
        let whole = 1.0 + self.dispersion * mean;
        mean * (1.0 + self.dispersion * y) / (whole * whole)
    }

    /// The weight of a row in the expected information.
    pub(super) fn weight(self, mean: f64) -> f64 {
        mean / (1.0 + self.dispersion * mean)
    }
}

/// A fit, with coefficients of standardised columns.
pub(super) struct CountFit {
    pub(super) coefficients: Vec<f64>,
    pub(super) means: Vec<f64>,
}

/// The objective and its derivatives at one point.
struct Point {
    objective: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

/// Maximises the likelihood of `outcome`, which is not negative, from `start`.
///
/// # Errors
/// [`Refusal::Collinear`] for covariates that depend on earlier ones; [`Refusal::Other`] if some
/// fitted means go to zero, so that coefficients are infinite, or no optimum is reached.
pub(super) fn maximise(
    design: &StandardisedDesign<'_>,
    outcome: &[f64],
    family: CountFamily,
    start: Option<&[f64]>,
) -> Result<CountFit, Refusal> {
    let width = design.width();
    let mean = crate::compensated::mean(outcome);
    let mut coefficients = match start {
        Some(start) => start.to_vec(),
        None => {
            independent(design, outcome.len())?;
            let mut zero = vec![0.0; width];
            zero[0] = mean.ln();
            zero
        }
    };
    let mut point = evaluate(design, outcome, family, &coefficients);
    for _ in 0..MOST_STEPS {
        let Ok(factor) = Cholesky::of_lower(&point.hessian, width, f64::EPSILON) else {
            return Err(separation());
        };
        let step = factor.solve(&point.gradient);
        let decrement = dot(&step, &point.gradient);
        let exact = decrement <= ROUNDING * point.objective.abs().max(1.0);
        if exact || decrement <= CONVERGED {
            if !exact {
                coefficients.iter_mut().zip(&step).for_each(|(g, d)| *g -= d);
            }
            let predictor = design.predict(&coefficients);
            let means: Vec<f64> = predictor.into_iter().map(f64::exp).collect();
            if means.iter().any(|fitted| *fitted <= VANISHED * mean) {
                return Err(separation());
            }
            if means.iter().any(|fitted| !fitted.is_finite()) {
                return Err(not_converged());
            }
            return Ok(CountFit { coefficients, means });
        }
        let mut share = 1.0;
        loop {
            let trial: Vec<f64> =
                coefficients.iter().zip(&step).map(|(g, d)| g - share * d).collect();
            let next = evaluate(design, outcome, family, &trial);
            if next.objective <= point.objective + 1e-13 * point.objective.abs() {
                (coefficients, point) = (trial, next);
                break;
            }
            share *= 0.5;
            if share < 1e-10 {
                return Err(not_converged());
            }
        }
    }
    let low = design.predict(&coefficients).into_iter().fold(f64::INFINITY, f64::min);
    Err(if low.exp() <= VANISHED * mean { separation() } else { not_converged() })
}

fn independent(design: &StandardisedDesign<'_>, rows: usize) -> Result<(), Refusal> {
    let gram = design.gram(&vec![1.0; rows]);
    let factor = Cholesky::of_lower(&gram, design.width(), DEPENDENT);
    factor.map(|_| ()).map_err(|column| Refusal::Collinear {
        column: ColumnRef::Covariate(column.saturating_sub(1)),
    })
}

fn separation() -> Refusal {
    Refusal::Other(
        "the treatment and the covariates tell some rows whose count is zero from all others \
         (separation): the fitted means of these rows go to zero, and the coefficients grow \
         without bound"
            .into(),
    )
}

fn not_converged() -> Refusal {
    Refusal::Other("the regression of the counts did not converge".into())
}

fn evaluate(
    design: &StandardisedDesign<'_>,
    outcome: &[f64],
    family: CountFamily,
    coefficients: &[f64],
) -> Point {
    let width = design.width();
    let mut gradient = vec![0.0; width];
    let mut hessian = vec![0.0; width * width];
    let mut objective = 0.0;
    let (mut predictor, mut slope) = ([0.0; BLOCK], [0.0; BLOCK]);
    let (mut weight, mut weighted) = ([0.0; BLOCK], [0.0; BLOCK]);
    design.blocks(&mut design.scratch(), |start, length, block| {
        combine(block, coefficients, &mut predictor[..length]);
        let mut part = 0.0;
        for (row, y) in outcome[start..start + length].iter().enumerate() {
            let eta = predictor[row];
            // Such a step is too long, and the infinite objective rejects it.
            let terms = match eta < FARTHEST {
                true => family.terms(*y, eta),
                false => RowTerms { objective: f64::INFINITY, slope: 0.0, curvature: 0.0 },
            };
            part += terms.objective;
            slope[row] = terms.slope;
            weight[row] = terms.curvature;
        }
        objective += part;
        for (position, sum) in gradient.iter_mut().enumerate() {
            *sum += dot(&block[position * BLOCK..][..length], &slope[..length]);
        }
        add_gram(block, &weight[..length], &mut weighted, &mut hessian);
    });
    Point { objective, gradient, hessian }
}
