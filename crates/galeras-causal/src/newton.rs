//! Maximum likelihood by damped Newton steps on a convex objective.

use crate::cholesky::Cholesky;
use crate::propensity::design::dot;

/// Newton steps after which a fit is given up; fits with an optimum need about ten.
pub(crate) const MOST_STEPS: usize = 200;
/// The squared Newton step, in standard errors, after which one more full step is exact.
const CONVERGED: f64 = 1e-16;
/// A squared Newton step, per unit of the objective, that is only rounding.
const ROUNDING: f64 = 1e-26;

/// The objective and its derivatives at one point.
pub(crate) struct Point {
    pub(crate) objective: f64,
    pub(crate) gradient: Vec<f64>,
    /// Row-major; only the lower triangle is read.
    pub(crate) hessian: Vec<f64>,
    /// A number by which the model recognises separation.
    pub(crate) extreme: f64,
}

impl Point {
    pub(crate) fn zero(width: usize) -> Self {
        let (gradient, hessian) = (vec![0.0; width], vec![0.0; width * width]);
        Self { objective: 0.0, gradient, hessian, extreme: 0.0 }
    }
}

pub(crate) struct Optimum {
    pub(crate) coefficients: Vec<f64>,
    /// The last point, one step before the coefficients unless `exact`.
    pub(crate) point: Point,
    pub(crate) exact: bool,
}

/// The cause of a search without an optimum, which ends at these coefficients.
pub(crate) enum Failure {
    /// The Hessian is singular, or the model stopped the search.
    Stopped(Vec<f64>, Point),
    /// No step along Newton's direction descends.
    NoDescent,
    Exhausted(Vec<f64>, Point),
}

/// Minimises the objective from `coefficients`, at `point`. A step is halved until the objective
/// rises by no more than the share `slack`; without a point it is rejected. `stop` decides by the
/// point and the squared Newton step.
pub(crate) fn minimise(
    mut coefficients: Vec<f64>,
    mut point: Point,
    slack: f64,
    mut evaluate: impl FnMut(&[f64]) -> Option<Point>,
    stop: impl Fn(&Point, f64) -> bool,
) -> Result<Optimum, Failure> {
    for _ in 0..MOST_STEPS {
        let width = coefficients.len();
        let Ok(factor) = Cholesky::of_lower(&point.hessian, width, f64::EPSILON) else {
            return Err(Failure::Stopped(coefficients, point));
        };
        let step = factor.solve(&point.gradient);
        let decrement = dot(&step, &point.gradient);
        if stop(&point, decrement) {
            return Err(Failure::Stopped(coefficients, point));
        }
        let exact = decrement <= ROUNDING * point.objective.abs().max(1.0);
        if exact || decrement <= CONVERGED {
            if !exact {
                coefficients.iter_mut().zip(&step).for_each(|(g, d)| *g -= d);
            }
            return Ok(Optimum { coefficients, point, exact });
        }
        let mut share = 1.0;
        loop {
            let trial: Vec<f64> =
                coefficients.iter().zip(&step).map(|(g, d)| g - share * d).collect();
            let most = point.objective + slack * point.objective.abs();
            if let Some(next) = evaluate(&trial).filter(|next| next.objective <= most) {
                (coefficients, point) = (trial, next);
                break;
            }
            share *= 0.5;
            if share < 1e-10 {
                return Err(Failure::NoDescent);
            }
        }
    }
    Err(Failure::Exhausted(coefficients, point))
}
