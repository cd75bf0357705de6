//! Rate ratios: regressions of counts.

use super::dispersion::CountTails;
use super::newton::{CountFamily, maximise};
use crate::linear::{Covariance, LinearFit};
use crate::propensity::design::StandardisedDesign;
use crate::{ColumnRef, Estimate, Refusal};

/// Rounds of coefficients and dispersion after which a negative binomial fit is given up; the two
/// hardly depend on each other, so that few are needed.
const MOST_ROUNDS: usize = 100;

/// The effect of a binary treatment on counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountEffect {
    /// The logarithm of the ratio of the treated to the untreated mean, at equal covariates.
    pub log_ratio: Estimate,
    /// The dispersion a of the variance mu + a mu²; zero for Poisson.
    pub dispersion: f64,
    /// Pearson's chi-squared over rows less coefficients: 1 where the variance is as the model
    /// has it.
    pub pearson: f64,
}

/// The logarithm of the rate ratio of `treated` in a Poisson regression of `outcome` on 1, the
/// treatment and the covariates, by maximum likelihood. With robust errors it is right for any
/// outcome that is not negative (Gourieroux, Monfort & Trognon 1984, Econometrica 52:681); of yes
/// and no it is the risk ratio (Zou 2004, American Journal of Epidemiology 159:702).
///
/// Columns have one entry for each of n rows. Coefficients and `HC0` errors equal those of
/// statsmodels' `GLM(family=Poisson())`, `CR1` errors those of its `cov_type="cluster"`; errors of
/// independent rows are judged by the normal distribution.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty, or as for least squares; [`Refusal::UnusableColumn`] for
/// an outcome below zero or not finite; [`Refusal::Constant`], [`Refusal::Collinear`] for
/// covariates by position; [`Refusal::Other`] if fitted means go to zero (separation), lengths
/// differ, or nothing converges.
pub fn poisson(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<CountEffect, Refusal> {
    let columns = CountColumns::new(treated, outcome, covariates)?;
    let columns = columns.slices(covariates);
    let design = StandardisedDesign::new(&columns, outcome.len()).map_err(of_treatment)?;
    let family = CountFamily { dispersion: 0.0 };
    let fit = maximise(&design, outcome, family, None).map_err(of_treatment)?;
    effect(&columns, &design, outcome, family, &fit.coefficients, &fit.means, kind, clusters)
}

/// The same in a negative binomial regression (NB2): the dispersion by maximum likelihood, and
/// standard errors that take it as given, as R's `glm.nb` does (in large samples it is independent
/// of the coefficients; Lawless 1987, Canadian Journal of Statistics 15:209). Coefficients and
/// dispersion equal those of statsmodels' `NegativeBinomial`.
///
/// # Errors
/// As [`poisson`]; [`Refusal::Other`] if an outcome is not a whole number, or if the counts vary no
/// more than Poisson's.
pub fn negative_binomial(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<CountEffect, Refusal> {
    let columns = CountColumns::new(treated, outcome, covariates)?;
    let columns = columns.slices(covariates);
    let tails = CountTails::new(outcome)?;
    let design = StandardisedDesign::new(&columns, outcome.len()).map_err(of_treatment)?;
    let poisson = CountFamily { dispersion: 0.0 };
    let mut fit = maximise(&design, outcome, poisson, None).map_err(of_treatment)?;
    let mut known = f64::NAN;
    for _ in 0..MOST_ROUNDS {
        let dispersion = tails.maximum(outcome, &fit.means)?;
        let family = CountFamily { dispersion };
        fit = maximise(&design, outcome, family, Some(&fit.coefficients)).map_err(of_treatment)?;
        if (dispersion - known).abs() <= 1e-11 * dispersion {
            let coefficients = &fit.coefficients;
            let means = &fit.means;
            return effect(&columns, &design, outcome, family, coefficients, means, kind, clusters);
        }
        known = dispersion;
    }
    Err(Refusal::Other("the negative binomial regression did not converge".into()))
}

/// The treatment as a column, once everything about the outcome is checked.
struct CountColumns {
    indicator: Vec<f64>,
}

impl CountColumns {
    fn new(treated: &[bool], outcome: &[f64], covariates: &[&[f64]]) -> Result<Self, Refusal> {
        let rows = outcome.len();
        let indicator = crate::linear::treatment_column(treated, rows)?;
        let unusable = |problem: &str| Refusal::UnusableColumn {
            column: ColumnRef::Outcome,
            problem: problem.to_owned(),
        };
        if outcome.iter().any(|y| !y.is_finite()) {
            return Err(unusable("has a value that is not finite"));
        }
        if outcome.iter().any(|y| *y < 0.0) {
            return Err(unusable("has a value below zero, which is no count"));
        }
        for (arm, name) in [(true, "treated"), (false, "control")] {
            let mut of_arm = outcome.iter().zip(treated).filter(|(_, t)| **t == arm);
            if of_arm.all(|(y, _)| *y == 0.0) {
                return Err(Refusal::Other(format!(
                    "every count in the {name} arm is zero: the ratio is zero, infinite or \
                     undefined"
                )));
            }
        }
        if rows <= covariates.len() + 2 {
            return Err(Refusal::TooFew {
                what: "rows",
                found: rows,
                needed: covariates.len() + 3,
            });
        }
        Ok(Self { indicator })
    }

    fn slices<'a>(&'a self, covariates: &[&'a [f64]]) -> Vec<&'a [f64]> {
        std::iter::once(self.indicator.as_slice()).chain(covariates.iter().copied()).collect()
    }
}

/// Columns by the places of the caller: the treatment comes first here.
pub(crate) fn of_treatment(refusal: Refusal) -> Refusal {
    refusal.map_covariate(|position| match position.checked_sub(1) {
        None => ColumnRef::Treatment,
        Some(covariate) => ColumnRef::Covariate(covariate),
    })
}

#[allow(clippy::too_many_arguments)]
fn effect(
    columns: &[&[f64]],
    design: &StandardisedDesign<'_>,
    outcome: &[f64],
    family: CountFamily,
    coefficients: &[f64],
    means: &[f64],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<CountEffect, Refusal> {
    let (intercept, slopes) = design.raw(coefficients);
    let rows = || outcome.iter().zip(means);
    let squares: f64 = rows().map(|(y, mu)| ((y - mu) / mu).powi(2) * family.weight(*mu)).sum();
    // Sandwiches are around the observed information, as in statsmodels and Stata; the logarithm is
    // not the canonical link of the negative binomial, so that it is not the expected one.
    let observed = kind != Covariance::Classic;
    let weight = |y: f64, mu: f64| match observed {
        true => family.observed_weight(y, mu),
        false => family.weight(mu),
    };
    let weights: Vec<f64> = rows().map(|(y, mu)| weight(*y, *mu)).collect();
    // The score of a row is its expected weight times (y - mu) / mu.
    let residuals: Vec<f64> = rows()
        .zip(&weights)
        .map(|((y, mu), weight)| (y - mu) / mu * family.weight(*mu) / weight.sqrt())
        .collect();
    let pearson = squares / (outcome.len() - columns.len() - 1) as f64;
    let value = slopes[0];
    let all = std::iter::once(intercept).chain(slopes).collect();
    let fit = LinearFit::weighted(columns, &weights, residuals, all).map_err(of_treatment)?;
    let mut gradient = vec![0.0; columns.len() + 1];
    gradient[1] = 1.0;
    let log_ratio = fit.likelihood_function(value, &gradient, kind, clusters)?;
    Ok(CountEffect { log_ratio, dispersion: family.dispersion, pearson })
}
