//! Generalised linear models of an outcome on a treatment and covariates: logistic for binary
//! outcomes, Poisson and negative binomial for counts. The logistic fit is that of propensity
//! scores; standard errors are those of `linear`, on the weighted design of the last step.

#[cfg(test)]
mod tests;

use crate::cholesky::Cholesky;
use crate::linear::{Covariance, LinearFit, treatment_column, treatment_first};
use crate::newton::{Failure, Point, minimise};
use crate::propensity::design::{BLOCK, StandardisedDesign, add_gram, combine, dot};
use crate::propensity::logistic::{expit, solve};
use crate::refusal::{at_least, require, require_column};
use crate::tail::log1p_minus;
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
/// likelihood; average effects by the delta method, with fixed covariates. Coefficients and classic
/// errors equal those of statsmodels' `Logit`, `HC0` and `CR1` its robust and clustered ones, the
/// average marginal effect that of `get_margeff(dummy=True)`. Leverages are those of the last
/// weighted step. Errors are those of [`adjusted`](crate::adjusted), separation, and no
/// convergence.
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
        let reason = format!(
            "the outcome is {first} in every row of the {name} arm: one cell of the table of arm \
             and outcome is empty, so that the coefficient is infinite"
        );
        require(of_arm.any(|y| y != first), reason)?;
    }
    let columns = treatment_first(&indicator, covariates);
    let design = StandardisedDesign::new(&columns, rows).map_err(Refusal::after_treatment)?;
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
        other => other.after_treatment(),
    })?;
    let (intercept, slopes) = design.raw(&solution.coefficients);
    let weights: Vec<f64> = solution.scores.iter().map(|p| p * (1.0 - p)).collect();
    let residuals =
        outcome.iter().zip(&solution.scores).zip(&weights).map(|((y, p), w)| (y - p) / w.sqrt());
    let coefficients: Vec<f64> = std::iter::once(intercept).chain(slopes).collect();
    let effect = coefficients[1];
    let fit = LinearFit::weighted(&columns, &weights, residuals.collect(), coefficients)
        .map_err(Refusal::after_treatment)?;
    let function =
        |value: f64, gradient: &[f64]| fit.likelihood_function(value, gradient, kind, clusters);

    let mut gradient = vec![0.0; columns.len() + 1];
    gradient[1] = 1.0;
    let log_odds_ratio = function(effect, &gradient)?;
    // The linear predictor of each row without the treatment.
    let predictor = design.predict(&solution.coefficients).into_iter().zip(&indicator);
    let base: Vec<f64> = predictor.map(|(eta, t)| eta - effect * t).collect();
    let one = AverageRisk::new(&base, effect, &columns, 1.0);
    let zero = AverageRisk::new(&base, 0.0, &columns, 0.0);
    let difference: Vec<f64> = one.slopes.iter().zip(&zero.slopes).map(|(a, b)| a - b).collect();
    let ratio: Vec<f64> =
        one.slopes.iter().zip(&zero.slopes).map(|(a, b)| a / one.mean - b / zero.mean).collect();
    Ok(LogisticEffects {
        log_odds_ratio,
        risk_difference: function(one.mean - zero.mean, &difference)?,
        log_risk_ratio: function((one.mean / zero.mean).ln(), &ratio)?,
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

/// Rounds of coefficients and dispersion after which a negative binomial fit is given up. The two
/// hardly depend on each other, so few are needed.
const MOST_ROUNDS: usize = 100;
/// Relative changes of the dispersion: one that ends the rounds, and one that ends them if it is no
/// smaller than the last. A dispersion close to zero is known no better than that, because it is what
/// large sums leave when they cancel.
const SETTLED: f64 = 1e-11;
const ROUNDED: f64 = 1e-7;

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
/// outcome it is the risk ratio (Zou 2004, American Journal of Epidemiology 159:702). Coefficients
/// and `HC0` errors equal those of statsmodels' `GLM(family=Poisson())`, `CR1` errors those of its
/// `cov_type="cluster"`. Errors are those of [`adjusted`](crate::adjusted), separation (fitted
/// means that go to zero), and no convergence.
pub fn poisson(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<CountEffect, Refusal> {
    let indicator = checked_counts(treated, outcome, covariates.len())?;
    let columns = treatment_first(&indicator, covariates);
    let fit = || {
        let design = StandardisedDesign::new(&columns, outcome.len())?;
        let fit = CountFit::new(&design, outcome, 0.0, None)?;
        fit.effect(&columns, &design, outcome, kind, clusters)
    };
    fit().map_err(Refusal::after_treatment)
}

/// As [`poisson`], in a negative binomial regression (NB2): the dispersion by maximum likelihood,
/// and standard errors that take it as given, as in R's `glm.nb` (in large samples it is
/// independent of the coefficients; Lawless 1987, Canadian Journal of Statistics 15:209).
/// Coefficients and dispersion equal those of statsmodels' `NegativeBinomial`. Errors are those of
/// [`poisson`], and outcomes that are not whole numbers or vary no more than Poisson's.
pub fn negative_binomial(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<CountEffect, Refusal> {
    let indicator = checked_counts(treated, outcome, covariates.len())?;
    let columns = treatment_first(&indicator, covariates);
    let tails = CountTails::new(outcome)?;
    let fit = || {
        let design = StandardisedDesign::new(&columns, outcome.len())?;
        let mut fit = CountFit::new(&design, outcome, 0.0, None)?;
        let (mut known, mut last) = (f64::NAN, f64::INFINITY);
        for _ in 0..MOST_ROUNDS {
            let dispersion = tails.maximum(outcome, &fit.means)?;
            fit = CountFit::new(&design, outcome, dispersion, Some(fit.coefficients))?;
            let change = (dispersion / known - 1.0).abs();
            if change <= SETTLED || (change <= ROUNDED && change >= last) {
                return fit.effect(&columns, &design, outcome, kind, clusters);
            }
            (known, last) = (dispersion, change);
        }
        Err(Refusal::Other("the negative binomial regression did not converge".into()))
    };
    fit().map_err(Refusal::after_treatment)
}

/// The treatment as a column, after all checks of the outcome.
fn checked_counts(
    treated: &[bool],
    outcome: &[f64],
    covariates: usize,
) -> Result<Vec<f64>, Refusal> {
    let rows = outcome.len();
    let indicator = treatment_column(treated, rows)?;
    let finite = outcome.iter().all(|y| y.is_finite());
    require_column(ColumnRef::Outcome, finite, "has a value that is not finite")?;
    let counts = outcome.iter().all(|y| *y >= 0.0);
    require_column(ColumnRef::Outcome, counts, "has a value below zero, which is not a count")?;
    for (arm, name) in [(true, "treated"), (false, "control")] {
        let mut of_arm = outcome.iter().zip(treated).filter(|(_, t)| **t == arm);
        let reason = format!(
            "every count in the {name} arm is zero: the ratio is zero, infinite or undefined"
        );
        require(of_arm.any(|(y, _)| *y != 0.0), reason)?;
    }
    at_least("rows", rows, covariates + 3)?;
    Ok(indicator)
}

/// A fit of the coefficients of standardised columns, for one dispersion.
struct CountFit {
    family: CountFamily,
    coefficients: Vec<f64>,
    means: Vec<f64>,
}

impl CountFit {
    /// Maximises the likelihood of `outcome`, which is not negative, from `start`.
    fn new(
        design: &StandardisedDesign<'_>,
        outcome: &[f64],
        dispersion: f64,
        start: Option<Vec<f64>>,
    ) -> Result<Self, Refusal> {
        let family = CountFamily { dispersion };
        let mean = crate::compensated::mean(outcome);
        let start = match start {
            Some(start) => start,
            None => {
                Cholesky::of_gram(&design.gram(&vec![1.0; outcome.len()]), design.width())?;
                let mut zero = vec![0.0; design.width()];
                zero[0] = mean.ln();
                zero
            }
        };
        let separation = || {
            Refusal::Other(
                "the treatment and the covariates tell some rows whose count is zero from all \
                 others (separation): the fitted means of these rows go to zero, and the \
                 coefficients grow without bound"
                    .into(),
            )
        };
        let not_converged =
            || Refusal::Other("the regression of the counts did not converge".into());
        let evaluate = |at: &[f64]| evaluate(design, outcome, family, at);
        let first = evaluate(&start);
        let coefficients =
            match minimise(start, first, 1e-13, |at| Some(evaluate(at)), |_, _| false) {
                Ok(optimum) => optimum.coefficients,
                Err(Failure::Stopped(..)) => return Err(separation()),
                Err(Failure::NoDescent) => return Err(not_converged()),
                Err(Failure::Exhausted(at, _)) => {
                    let low = design.predict(&at).into_iter().fold(f64::INFINITY, f64::min);
                    let vanished = low.exp() <= VANISHED * mean;
                    return Err(if vanished { separation() } else { not_converged() });
                }
            };
        let means: Vec<f64> = design.predict(&coefficients).into_iter().map(f64::exp).collect();
        if means.iter().any(|fitted| *fitted <= VANISHED * mean) {
            return Err(separation());
        }
        if means.iter().any(|fitted| !fitted.is_finite()) {
            return Err(not_converged());
        }
        Ok(Self { family, coefficients, means })
    }

    fn effect(
        &self,
        columns: &[&[f64]],
        design: &StandardisedDesign<'_>,
        outcome: &[f64],
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<CountEffect, Refusal> {
        let family = self.family;
        let (intercept, slopes) = design.raw(&self.coefficients);
        let rows = || outcome.iter().zip(&self.means);
        let squares: f64 = rows().map(|(y, mu)| ((y - mu) / mu).powi(2) * family.weight(*mu)).sum();
        // Sandwiches use the observed information, as in statsmodels and Stata; the logarithm is not
        // the canonical link of the negative binomial, so the expected information differs.
        let weight = |(y, mu): (&f64, &f64)| match kind {
            Covariance::Classic => family.weight(*mu),
            _ => family.observed_weight(*y, *mu),
        };
        let weights: Vec<f64> = rows().map(weight).collect();
        // The score of a row is its expected weight times (y - mu) / mu.
        let residuals: Vec<f64> = rows()
            .zip(&weights)
            .map(|((y, mu), weight)| (y - mu) / mu * family.weight(*mu) / weight.sqrt())
            .collect();
        let pearson = squares / (outcome.len() - columns.len() - 1) as f64;
        let value = slopes[0];
        let all = std::iter::once(intercept).chain(slopes).collect();
        let fit = LinearFit::weighted(columns, &weights, residuals, all)?;
        let mut gradient = vec![0.0; columns.len() + 1];
        gradient[1] = 1.0;
        let log_ratio = fit.likelihood_function(value, &gradient, kind, clusters)?;
        Ok(CountEffect { log_ratio, dispersion: family.dispersion, pearson })
    }
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
struct CountTails {
    above: Vec<f64>,
}

impl CountTails {
    fn new(counts: &[f64]) -> Result<Self, Refusal> {
        let usable = |y: &f64| *y >= 0.0 && *y <= LARGEST_COUNT && y.fract() == 0.0;
        if let Some(y) = counts.iter().find(|y| !usable(y)) {
            let reason = "a negative binomial count is a whole number from 0 to 10 million";
            return Err(Refusal::Other(format!("an outcome is {y}: {reason}")));
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
    fn maximum(&self, counts: &[f64], means: &[f64]) -> Result<f64, Refusal> {
        // At zero the derivative is half of (the sum of squared residuals minus the sum of counts).
        let excess: f64 =
            counts.iter().zip(means).map(|(y, mu)| (y - mu) * (y - mu) - y).sum::<f64>();
        let reason = "the counts vary no more than Poisson's, so that the dispersion of the \
                      negative binomial is zero: use `poisson`";
        require(excess > 0.0, reason)?;
        // A moment estimate, then Newton's method on the logarithm, between bounds from the slope's
        // sign.
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
            let step = if bend < 0.0 { -slope / bend } else { slope.signum() };
            // The error after a step is about the square of the step. The bounds are no measure of
            // convergence: if every step comes from the same side, one of them stays infinite.
            if bend < 0.0 && step.abs() <= 1e-8 {
                return Ok((log_a + step).exp());
            }
            let mut next = log_a + step.clamp(-3.0, 3.0);
            if next <= low || next >= high {
                next = 0.5 * (low + high);
            }
            if !next.is_finite() || next.abs() > 100.0 {
                break;
            }
            log_a = next;
        }
        Err(Refusal::Other("the dispersion of the negative binomial did not converge".into()))
    }
}

/// A fitted mean below this share of the mean outcome counts as zero.
const VANISHED: f64 = 1e-9;
/// The largest linear predictor whose exponential is computed.
const FARTHEST: f64 = 300.0;

/// The variance of a count with mean mu: mu + dispersion mu². Zero is Poisson's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CountFamily {
    dispersion: f64,
}

impl CountFamily {
    /// The negative log-likelihood of a row, without terms that do not depend on the coefficients,
    /// and its derivatives by the linear predictor.
    fn terms(self, y: f64, eta: f64) -> (f64, f64, f64) {
        let mean = eta.exp();
        if self.dispersion == 0.0 {
            return (mean - y * eta, mean - y, mean);
        }
        let product = self.dispersion * mean;
        let objective = (y + 1.0 / self.dispersion) * product.ln_1p() - y * eta;
        (objective, (mean - y) / (1.0 + product), self.observed_weight(y, mean))
    }

    /// The weight of a row in the observed information.
    fn observed_weight(self, y: f64, mean: f64) -> f64 {
        let whole = 1.0 + self.dispersion * mean;
        mean * (1.0 + self.dispersion * y) / (whole * whole)
    }

    /// The weight of a row in the expected information.
    fn weight(self, mean: f64) -> f64 {
        mean / (1.0 + self.dispersion * mean)
    }
}

fn evaluate(
    design: &StandardisedDesign<'_>,
    outcome: &[f64],
    family: CountFamily,
    coefficients: &[f64],
) -> Point {
    let mut point = Point::zero(design.width());
    let (mut predictor, mut slope) = ([0.0; BLOCK], [0.0; BLOCK]);
    let (mut weight, mut weighted) = ([0.0; BLOCK], [0.0; BLOCK]);
    design.blocks(&mut design.scratch(), |start, length, block| {
        combine(block, coefficients, &mut predictor[..length]);
        let mut part = 0.0;
        for (row, y) in outcome[start..start + length].iter().enumerate() {
            let eta = predictor[row];
            // Such a step is too long, and the infinite objective rejects it.
            let terms =
                if eta < FARTHEST { family.terms(*y, eta) } else { (f64::INFINITY, 0.0, 0.0) };
            part += terms.0;
            (slope[row], weight[row]) = (terms.1, terms.2);
        }
        point.objective += part;
        for (position, sum) in point.gradient.iter_mut().enumerate() {
            *sum += dot(&block[position * BLOCK..][..length], &slope[..length]);
        }
        add_gram(block, &weight[..length], &mut weighted, &mut point.hessian);
    });
    point
}
