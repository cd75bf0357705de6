//! How the estimated propensity score adds to an estimator's error: stacked estimating equations.
//!
//! An estimator that uses estimated scores solves its own equation together with those of the
//! logistic regression. Writing the sandwich of the whole stack by rows gives each row's
//! influence: its own part, plus the derivative of the estimate by the logistic coefficients
//! times the row's part in these (Stefanski & Boos 2002; Lunceford & Davidian 2004). The sum of
//! squared influence equals the sandwich A⁻¹BA⁻ᵀ of the stack, without forming it.

use super::design::{StandardisedDesign, dot};
use super::logistic::{Propensity, penalties};
use super::rows::same_length;
use crate::Refusal;
use crate::cholesky::Cholesky;

/// The estimating equations of the logistic coefficients, at their solution.
pub(super) struct ScoreEquations<'a> {
    design: StandardisedDesign<'a>,
    factor: Cholesky,
    /// Treatment minus score.
    residual: Vec<f64>,
    /// Each row's share of the penalty's gradient; zeros without a penalty.
    drift: Vec<f64>,
}

impl<'a> ScoreEquations<'a> {
    /// Takes the propensity up where its fit ended.
    ///
    /// # Errors
    /// Covariates that are not those of the fit, or a Hessian that cannot be inverted because
    /// nearly every score is 0 or 1.
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

    /// Adds what the estimated scores contribute to each row's influence.
    ///
    /// `slope` holds, for each row, the derivative of the estimate by that row's linear
    /// predictor: zero where the score is clipped.
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
