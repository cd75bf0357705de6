//! Augmented inverse-propensity weighting, and regression adjustment, which is the same without
//! scores.
//!
//! Both use linear models of the outcome; the estimate is consistent if either the scores or these
//! models are correct.

use super::equations::{ScoreEquations, clipped};
use super::logistic::Propensity;
use super::outcome_model::{OutcomeModel, residuals};
use super::rows::{Rows, bounds};
use crate::column::indicator;
use crate::{Estimate, Refusal};

/// The result of augmented weighting.
#[derive(Clone, Debug, PartialEq)]
pub struct DoublyRobust {
    /// The average effect over all units, with the standard error of the sandwich of the stacked
    /// estimating equations (that of Stata's and statsmodels' `teffects aipw`).
    pub estimate: Estimate,
    /// The augmented mean of the outcome without treatment.
    pub control_mean: f64,
    /// The standard error that takes scores and outcome models as known: the root of the sum of
    /// squared influence over n, summed within clusters first if there are any.
    pub se_influence: f64,
    /// The number of scores outside the bounds.
    pub clipped: usize,
}

/// The result of regression adjustment.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionAdjustment {
    /// The mean difference of the two arms' predictions over all units, with the standard error
    /// of the stacked estimating equations.
    pub estimate: Estimate,
    /// The mean prediction without treatment.
    pub control_mean: f64,
}

/// Augmented inverse-propensity weighting (Robins, Rotnitzky & Zhao 1994; Glynn & Quinn 2010).
///
/// `treated`, `outcome` and `clusters` have one entry for each of n rows; the effect is in units of
/// the outcome and equals that of statsmodels' `TreatmentEffect.aipw`. `covariates` are those of
/// the propensity's fit, columns of n values, and also enter the linear outcome models: one model
/// per arm, or with `additive` one for both with the treatment as a column. `clip` bounds the
/// scores. With `clusters` (codes from zero) influence is summed within clusters first. A constant
/// score is accepted.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty or has too few rows for its regression, or there are
/// fewer than two clusters; [`Refusal::Collinear`] if covariates are dependent within an arm;
/// [`Refusal::NoOverlap`] if nearly every score is 0 or 1; [`Refusal::UnusableColumn`] if an
/// outcome is not finite; [`Refusal::Other`] if lengths differ, `clip` is not an interval within
/// \[0, 1\], cluster codes have gaps, or the outcome is explained without error. Refusals of
/// covariates are those of [`Propensity::fit`].
pub fn aipw(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    clip: (f64, f64),
    additive: bool,
    clusters: Option<&[u32]>,
) -> Result<DoublyRobust, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let n = treated.len();
    let treatment = indicator(treated);
    let equations = ScoreEquations::new(covariates, &treatment, propensity)?;
    let model = OutcomeModel::fit(covariates, &treatment, outcome, additive)?;
    let (control, one) = model.predict(covariates, n);
    let residual = residuals(&treatment, outcome, &control, &one);
    let share = (n as f64).recip();
    let mut effect = Vec::with_capacity(n);
    let mut slope = Vec::with_capacity(n);
    let (mut slope_control, mut slope_one) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut control_mean = 0.0;
    for row in 0..n {
        let (e, derivative) = clipped(propensity.scores[row], clip);
        let u = residual[row];
        let (weight_one, weight_none) =
            if treated[row] { (e.recip(), 0.0) } else { (0.0, (1.0 - e).recip()) };
        effect.push(one[row] - control[row] + (weight_one - weight_none) * u);
        control_mean += control[row] + weight_none * u;
        let square = weight_one * weight_one + weight_none * weight_none;
        slope.push(if derivative > 0.0 { -square * u * derivative * share } else { 0.0 });
        slope_one.push((1.0 - weight_one) * share);
        slope_control.push(-(1.0 - weight_none) * share);
    }
    let value = effect.iter().sum::<f64>() * share;
    let mut influence: Vec<f64> = effect.iter().map(|psi| (psi - value) * share).collect();
    let se_influence = rows.variance(&influence).sqrt();
    equations.correct(&slope, &mut influence);
    model.correct(&treatment, &residual, (&slope_control, &slope_one), &mut influence);
    Ok(DoublyRobust {
        estimate: rows.estimate(value, &influence)?,
        control_mean: control_mean * share,
        se_influence,
        clipped: propensity.scores.iter().filter(|e| **e < clip.0 || **e > clip.1).count(),
    })
}

/// Regression adjustment: the outcome is modelled within each arm and predicted for every unit.
///
/// `covariates` are columns of n values; `treated`, `outcome` and `clusters` have n entries, and
/// the effect is in units of the outcome. The value is that of the fully interacted regression (Lin
/// 2013); the standard error is that of the stacked estimating equations and includes the spread of
/// the covariates (Stata's `teffects ra`).
///
/// # Errors
/// As [`aipw`], without those about scores and their bounds.
pub fn regression_adjustment(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<RegressionAdjustment, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    let n = treated.len();
    let share = (n as f64).recip();
    let treatment = indicator(treated);
    let model = OutcomeModel::fit(covariates, &treatment, outcome, false)?;
    let (control, one) = model.predict(covariates, n);
    let residual = residuals(&treatment, outcome, &control, &one);
    let value = one.iter().zip(&control).map(|(a, b)| a - b).sum::<f64>() * share;
    let mut influence: Vec<f64> =
        one.iter().zip(&control).map(|(a, b)| (a - b - value) * share).collect();
    let (plus, minus) = (vec![share; n], vec![-share; n]);
    model.correct(&treatment, &residual, (&minus, &plus), &mut influence);
    Ok(RegressionAdjustment {
        estimate: rows.estimate(value, &influence)?,
        control_mean: control.iter().sum::<f64>() * share,
    })
}
