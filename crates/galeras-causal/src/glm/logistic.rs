//! Effects on a binary outcome from a logistic regression: the odds ratio at equal covariates, and
//! the average difference and ratio of the probabilities.

use super::counts::of_treatment;
use crate::linear::{Covariance, LinearFit, treatment_column};
use crate::propensity::design::StandardisedDesign;
use crate::propensity::logistic::{expit, solve};
use crate::{ColumnRef, Estimate, Refusal};

/// The effects of a binary treatment in a logistic regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogisticEffects {
    /// The logarithm of the ratio of the odds at equal covariates: the treatment's coefficient.
    pub log_odds_ratio: Estimate,
    /// The average marginal effect: the mean over all rows of the probability under treatment minus
    /// that under control, with the covariates of these rows.
    pub risk_difference: Estimate,
    /// The logarithm of the ratio of the two mean probabilities.
    pub log_risk_ratio: Estimate,
    /// The mean probability if every row were treated.
    pub treated_risk: f64,
    /// The mean probability if no row were treated.
    pub control_risk: f64,
}

/// Logistic regression of `outcome` (0 and 1) on 1, `treated` and `covariates` by maximum
/// likelihood; average effects by the delta method, with fixed covariates.
///
/// Columns have one entry for each of n rows. Coefficients and classic errors equal those of
/// statsmodels' `Logit`, `HC0` and `CR1` its robust and clustered ones; the average marginal effect
/// equals that of `get_margeff(dummy=True)`. The kinds that adjust for leverage use that of the
/// last weighted step.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty or there are too few rows; [`Refusal::UnusableColumn`]
/// for an outcome that is not 0 or 1; [`Refusal::Constant`], [`Refusal::Collinear`] for covariates
/// by position; [`Refusal::Other`] for separation, if lengths differ, or if the fit does not
/// converge.
pub fn logistic(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<LogisticEffects, Refusal> {
    let rows = outcome.len();
    let indicator = treatment_column(treated, rows)?;
    check_binary(outcome)?;
    for (arm, name) in [(true, "treated"), (false, "control")] {
        let mut of_arm = outcome.iter().zip(treated).filter(|(_, t)| **t == arm).map(|(y, _)| *y);
        let first = of_arm.next().unwrap_or_default();
        if of_arm.all(|y| y == first) {
            return Err(Refusal::Other(format!(
                "the outcome is {first} in every row of the {name} arm: one cell of the table of \
                 arm and outcome is empty, so that the coefficient is infinite"
            )));
        }
    }
    let columns: Vec<&[f64]> =
        std::iter::once(indicator.as_slice()).chain(covariates.iter().copied()).collect();
    let design = StandardisedDesign::new(&columns, rows).map_err(of_treatment)?;
    let solution = solve(&design, outcome, None).map_err(|refusal| match refusal {
        Refusal::Separated => Refusal::Other(
            "the treatment and the covariates predict the outcome of every row without error \
             (complete separation): the coefficients are infinite"
                .into(),
        ),
        Refusal::NoOverlap(_) => Refusal::Other(
            "the treatment and the covariates predict the outcome of some rows without error \
             (quasi-complete separation): a coefficient is infinite"
                .into(),
        ),
        Refusal::Other(_) => {
            Refusal::Other("the logistic regression of the outcome did not converge".into())
        }
        other => of_treatment(other),
    })?;
    let (intercept, slopes) = design.raw(&solution.coefficients);
    let weights: Vec<f64> = solution.scores.iter().map(|p| p * (1.0 - p)).collect();
    let residuals =
        outcome.iter().zip(&solution.scores).zip(&weights).map(|((y, p), w)| (y - p) / w.sqrt());
    let coefficients: Vec<f64> = std::iter::once(intercept).chain(slopes).collect();
    let effect = coefficients[1];
    let fit = LinearFit::weighted(&columns, &weights, residuals.collect(), coefficients)
        .map_err(of_treatment)?;

    let mut gradient = vec![0.0; columns.len() + 1];
    gradient[1] = 1.0;
    let log_odds_ratio = fit.likelihood_function(effect, &gradient, kind, clusters)?;
    // The linear predictor of each row without the treatment.
    let base: Vec<f64> = design
        .predict(&solution.coefficients)
        .into_iter()
        .zip(&indicator)
        .map(|(eta, t)| eta - effect * t)
        .collect();
    let one = AverageRisk::new(&base, effect, &columns, 1.0);
    let zero = AverageRisk::new(&base, 0.0, &columns, 0.0);
    let difference: Vec<f64> = one.slopes.iter().zip(&zero.slopes).map(|(a, b)| a - b).collect();
    let ratio: Vec<f64> =
        one.slopes.iter().zip(&zero.slopes).map(|(a, b)| a / one.mean - b / zero.mean).collect();
    Ok(LogisticEffects {
        log_odds_ratio,
        risk_difference: fit.likelihood_function(
            one.mean - zero.mean,
            &difference,
            kind,
            clusters,
        )?,
        log_risk_ratio: fit.likelihood_function(
            (one.mean / zero.mean).ln(),
            &ratio,
            kind,
            clusters,
        )?,
        treated_risk: one.mean,
        control_risk: zero.mean,
    })
}

pub(crate) fn check_binary(outcome: &[f64]) -> Result<(), Refusal> {
    match outcome.iter().find(|y| **y != 0.0 && **y != 1.0) {
        None => Ok(()),
        Some(y) => Err(Refusal::UnusableColumn {
            column: ColumnRef::Outcome,
            problem: format!("is {y} in a row: it must be 0 or 1, or true or false"),
        }),
    }
}

/// The mean probability if all rows had the same treatment.
struct AverageRisk {
    mean: f64,
    /// Its derivative by each coefficient, the intercept first.
    slopes: Vec<f64>,
}

impl AverageRisk {
    fn new(base: &[f64], shift: f64, columns: &[&[f64]], treatment: f64) -> Self {
        let rows = base.len() as f64;
        let risks: Vec<f64> = base.iter().map(|eta| expit(eta + shift)).collect();
        let weights: Vec<f64> = risks.iter().map(|p| p * (1.0 - p)).collect();
        let whole = weights.iter().sum::<f64>() / rows;
        let mut slopes = vec![whole, treatment * whole];
        slopes.extend(columns[1..].iter().map(|column| {
            column.iter().zip(&weights).map(|(x, weight)| x * weight).sum::<f64>() / rows
        }));
        Self { mean: risks.iter().sum::<f64>() / rows, slopes }
    }
}
