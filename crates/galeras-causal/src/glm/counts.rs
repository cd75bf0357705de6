//! Rate ratios: Poisson and negative binomial regressions of counts.

use crate::glm::newton::{CountFamily, maximise};
use crate::linear::{Covariance, LinearFit};
use crate::propensity::design::StandardisedDesign;
use crate::tail::log1p_minus;
use crate::{ColumnRef, Estimate, Refusal};

/// Rounds of coefficients and dispersion after which a negative binomial fit is given up. The two
/// hardly depend on each other, so few are needed.
const MOST_ROUNDS: usize = 100;

/// The effect of a binary treatment on counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountEffect {
    /// The logarithm of the ratio of the treated to the untreated mean, at equal covariates.
    pub log_ratio: Estimate,
    /// The dispersion a of the variance mu + a mu²; zero for Poisson.
    pub dispersion: f64,
    /// Pearson's chi-squared over rows minus coefficients: 1 if the variance follows the model.
    pub pearson: f64,
}

/// The logarithm of the rate ratio of `treated` in a Poisson regression of `outcome` on 1, the
/// treatment and the covariates, by maximum likelihood. With robust errors it is valid for any
/// non-negative outcome (Gourieroux, Monfort & Trognon 1984, Econometrica 52:681); for a binary
/// outcome it is the risk ratio (Zou 2004, American Journal of Epidemiology 159:702).
///
/// Columns have one entry for each of n rows. Coefficients and `HC0` errors equal those of
/// statsmodels' `GLM(family=Poisson())`, `CR1` errors those of its `cov_type="cluster"`; for
/// independent rows the reference distribution is normal.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty, or as for least squares; [`Refusal::UnusableColumn`] for
/// an outcome below zero or not finite; [`Refusal::Constant`], [`Refusal::Collinear`] for
/// covariates by position; [`Refusal::Other`] if fitted means go to zero (separation), lengths
/// differ, or the fit does not converge.
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

/// As [`poisson`], in a negative binomial regression (NB2): the dispersion by maximum likelihood,
/// and standard errors that take it as given, as in R's `glm.nb` (in large samples it is
/// independent of the coefficients; Lawless 1987, Canadian Journal of Statistics 15:209).
/// Coefficients and dispersion equal those of statsmodels' `NegativeBinomial`.
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

/// The treatment as a column, after all checks of the outcome.
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
            return Err(unusable("has a value below zero, which is not a count"));
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

/// Renumbers columns for the caller: the treatment comes first here.
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
    // Sandwiches use the observed information, as in statsmodels and Stata; the logarithm is not
    // the canonical link of the negative binomial, so the expected information differs.
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

/// Larger counts are refused: the sum has a term for each whole number below them.
const LARGEST_COUNT: f64 = 1e7;
const MOST_STEPS: usize = 200;

/// The number of counts above each whole number, from which the dispersion of negative binomial
/// counts (NB2) is estimated by maximum likelihood, given their means.
///
/// For whole counts the gamma functions of the likelihood are products: the sum of ln(1 + a j) over
/// j < y is ln Γ(y + 1/a) - ln Γ(1/a) + y ln a. So each j needs one logarithm, times the number of
/// counts above it, and nothing cancels at small dispersions.
pub(super) struct CountTails {
    above: Vec<f64>,
}

impl CountTails {
    /// # Errors
    /// A count is not a whole number from 0 to 10 million.
    pub(super) fn new(counts: &[f64]) -> Result<Self, Refusal> {
        let usable = |y: &f64| *y >= 0.0 && *y <= LARGEST_COUNT && y.fract() == 0.0;
        if let Some(y) = counts.iter().find(|y| !usable(y)) {
            return Err(Refusal::Other(format!(
                "an outcome is {y}: a negative binomial count is a whole number from 0 to 10 \
                 million"
            )));
        }
        let largest = counts.iter().copied().fold(0.0, f64::max) as usize;
        let mut above = vec![0.0; largest + 1];
        for y in counts {
            above[*y as usize] += 1.0;
        }
        // From counts equal to j to counts above j.
        let mut more = 0.0;
        for cell in above.iter_mut().rev() {
            let equal = *cell;
            *cell = more;
            more += equal;
        }
        Ok(Self { above })
    }

    /// The first and second derivative of the log-likelihood by the dispersion `a`.
    fn derivatives(&self, a: f64, counts: &[f64], means: &[f64]) -> (f64, f64) {
        let (mut first, mut second) = (0.0, 0.0);
        for (j, above) in self.above.iter().enumerate() {
            let j = j as f64;
            let share = j / (1.0 + a * j);
            first += above * share;
            second -= above * share * share;
        }
        for (block_y, block_mu) in counts.chunks(256).zip(means.chunks(256)) {
            let (mut part, mut bend) = (0.0, 0.0);
            for (y, mu) in block_y.iter().zip(block_mu) {
                let x = a * mu;
                let share = mu / (1.0 + x);
                // ln(1 + x) - x / (1 + x), without cancellation of the first order.
                let rest = log1p_minus(x) + x * x / (1.0 + x);
                part += rest / (a * a) - y * share;
                bend += -2.0 * rest / (a * a * a) + share * share * (y + 1.0 / a);
            }
            first += part;
            second += bend;
        }
        (first, second)
    }

    /// The maximum likelihood dispersion, above zero.
    ///
    /// # Errors
    /// Counts that vary no more than Poisson's: the maximum is at zero.
    pub(super) fn maximum(&self, counts: &[f64], means: &[f64]) -> Result<f64, Refusal> {
        // At zero the derivative is half of (the sum of squared residuals minus the sum of counts).
        let excess: f64 =
            counts.iter().zip(means).map(|(y, mu)| (y - mu) * (y - mu) - y).sum::<f64>();
        if excess <= 0.0 {
            return Err(Refusal::Other(
                "the counts vary no more than Poisson's, so that the dispersion of the negative \
                 binomial is zero: use `poisson`"
                    .into(),
            ));
        }
        // A moment estimate, then Newton's method on the logarithm, kept between dispersions at
        // which the likelihood rises and falls.
        let squares: f64 = means.iter().map(|mu| mu * mu).sum();
        let mut log_a = (excess / squares).ln();
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for _ in 0..MOST_STEPS {
            let a = log_a.exp();
            let (first, second) = self.derivatives(a, counts, means);
            if first > 0.0 {
                low = log_a
            } else {
                high = log_a
            }
            let (slope, bend) = (a * first, a * first + a * a * second);
            let mut step = if bend < 0.0 { -slope / bend } else { slope.signum() };
            step = step.clamp(-3.0, 3.0);
            let mut next = log_a + step;
            if next <= low || next >= high {
                next = 0.5 * (low + high);
            }
            if !next.is_finite() || next.abs() > 100.0 {
                break;
            }
            if (next - log_a).abs() <= 1e-14 * next.abs().max(1.0) {
                return Ok(next.exp());
            }
            log_a = next;
        }
        if high - low <= 1e-9 {
            return Ok(log_a.exp());
        }
        Err(Refusal::Other("the dispersion of the negative binomial did not converge".into()))
    }
}
