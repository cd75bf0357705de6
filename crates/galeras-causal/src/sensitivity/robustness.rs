//! Robustness values of a regression coefficient and of an estimate by an instrument; estimates
//! under a confounder of given strength, with observed covariates as benchmarks.

use crate::column::indicator;
use crate::linear::treatment_first;
use crate::refusal::{at_least, require};
use crate::{ColumnRef, Covariance, Estimate, LinearFit, Refusal, tail};

/// The share of the residual variance of both treatment and outcome that an unmeasured confounder
/// would have to explain to change a conclusion (Cinelli and Hazlett 2020, Journal of the Royal
/// Statistical Society B 82:39).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Robustness {
    /// The share of the outcome's residual variance that the treatment explains, 0 to 1.
    pub partial_r2: f64,
    /// Cohen's partial f squared of the treatment.
    pub partial_f2: f64,
    /// The robustness value: the share that reduces the estimate by the fraction q.
    pub value: f64,
    /// The share that makes the reduced estimate insignificant at alpha; 0 if it already is.
    pub value_alpha: f64,
    /// The extreme robustness value: the share of the treatment alone that does so if the
    /// confounder explains the whole rest of the outcome; 0 if the estimate already is
    /// insignificant (Cinelli and Hazlett 2025, Biometrika 112, asaf004).
    pub extreme_alpha: f64,
}

/// The robustness value from the t statistic of the treatment in an ordinary regression (with the
/// classic standard error) and the residual degrees of freedom n - k. `reduction` is the fraction q
/// of the estimate to be explained away; `alpha` is the level of the two-sided test. Refuses fewer
/// than two degrees of freedom, a `reduction` that is not above zero, or an overflow.
pub fn robustness(
    statistic: f64,
    degrees: f64,
    reduction: f64,
    alpha: f64,
) -> Result<Robustness, Refusal> {
    // More degrees than rows can be counted are a mistake, and slow the quantile of t.
    let usable = statistic.is_finite() && degrees <= 1e15;
    require(usable, "the t statistic or its degrees are not finite")?;
    at_least("degrees of freedom", degrees as usize, 2)?;
    let reason = format!(
        "a reduction by {reduction} at level {alpha} does not exist: \
         the reduction must be above 0, and the level between 0 and 1"
    );
    let exists = reduction > 0.0 && reduction.is_finite() && alpha > 0.0 && alpha < 1.0;
    require(exists, reason)?;
    let plain = statistic.abs() / degrees.sqrt();
    let effect = reduction * plain;
    // The confounder takes one degree of freedom.
    let critical = tail::t_quantile(alpha / 2.0, degrees - 1.0).abs() / (degrees - 1.0).sqrt();
    let value_alpha = if effect <= critical {
        0.0
    } else if effect * critical > 1.0 {
        // The constraint that both shares are equal no longer binds.
        (effect - critical) * (effect + critical) / (1.0 + effect * effect)
    } else {
        balanced(effect - critical)
    };
    let robustness = Robustness {
        extreme_alpha: (effect - critical).max(0.0) * (effect + critical) / (1.0 + effect * effect),
        partial_r2: 1.0 / (1.0 + (1.0 / plain).powi(2)),
        partial_f2: plain * plain,
        value: balanced(effect),
        value_alpha,
    };
    let numbers =
        [robustness.partial_r2, robustness.partial_f2, robustness.value, robustness.value_alpha];
    let finite = critical.is_finite() && numbers.iter().all(|number| number.is_finite());
    require(finite, "the t statistic is too large")?;
    Ok(robustness)
}

/// (sqrt(f^4 + 4 f^2) - f^2) / 2, written so that no digits cancel if f is large.
fn balanced(effect: f64) -> f64 {
    2.0 / (1.0 + 1.0_f64.hypot(2.0 / effect))
}

/// The strength that a confounder of the instrument would need, given the covariates, with both the
/// instrument and the outcome (Cinelli and Hazlett 2025, Biometrika 112, asaf004).
///
/// Anderson and Rubin's test rejects an effect of zero if and only if the instrument's coefficient
/// for the outcome (the reduced form) is significant, and its set is bounded if and only if that
/// for the treatment (the first stage) is: so the values are those of these two regressions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstrumentRobustness {
    /// The regression of the outcome on the instrument and the covariates.
    pub reduced_form: Robustness,
    /// The regression of the treatment on the instrument and the covariates.
    pub first_stage: Robustness,
}

impl InstrumentRobustness {
    /// The share of the residuals of both instrument and outcome, or of both instrument and
    /// treatment, that allows the estimate to be zero or anything: the smaller of both values.
    pub fn value(&self) -> f64 {
        self.reduced_form.value.min(self.first_stage.value)
    }

    /// The share that makes the estimate insignificant at alpha, or its set of effects unbounded.
    pub fn value_alpha(&self) -> f64 {
        self.reduced_form.value_alpha.min(self.first_stage.value_alpha)
    }

    /// The same for a confounder that explains the whole rest of the outcome or the treatment.
    pub fn extreme_alpha(&self) -> f64 {
        self.reduced_form.extreme_alpha.min(self.first_stage.extreme_alpha)
    }
}

/// The robustness values of the effect of `treated` on `outcome` by one instrument, for an estimate
/// brought to zero, at level `alpha`; by classic standard errors.
pub fn instrument_robustness(
    outcome: &[f64],
    treated: &[bool],
    instrument: &[f64],
    covariates: &[&[f64]],
    alpha: f64,
) -> Result<InstrumentRobustness, Refusal> {
    let columns = treatment_first(instrument, covariates);
    let of = |target: &[f64], name: ColumnRef| {
        let fit = LinearFit::fit(&columns, target).map_err(|refusal| {
            refusal.after_treatment().map_column(|column| match column {
                ColumnRef::Outcome => name,
                ColumnRef::Treatment => ColumnRef::Instrument(0),
                column => column,
            })
        })?;
        let estimate = fit.estimate(1, Covariance::Classic, None)?;
        robustness(estimate.statistic(), estimate.degrees, 1.0, alpha)
    };
    Ok(InstrumentRobustness {
        reduced_form: of(outcome, ColumnRef::Outcome)?,
        first_stage: of(&indicator(treated), ColumnRef::Endogenous)?,
    })
}

/// The strength of an unobserved confounder, as two partial R², each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfounderStrength {
    /// The share of the treatment's variance, given the covariates, that it explains.
    pub treatment_r2: f64,
    /// The share of the outcome's variance, given treatment and covariates, that it explains.
    pub outcome_r2: f64,
}

/// The coefficient of a treatment in an ordinary regression, with its classic standard error, as it
/// would be with a confounder of this strength that biases it away from zero (Cinelli and Hazlett
/// 2020, Journal of the Royal Statistical Society B 82:39, equations 6 and 7). Equals sensemakr's
/// `adjusted_estimate` and `adjusted_se`. The confounder takes a degree of freedom. Refuses fewer
/// than two degrees of freedom, or a share beyond 0 and 1.
pub fn with_confounder(
    estimate: &Estimate,
    strength: ConfounderStrength,
) -> Result<Estimate, Refusal> {
    let ConfounderStrength { treatment_r2, outcome_r2 } = strength;
    let reason = format!(
        "no confounder explains a share of {treatment_r2} of the treatment and {outcome_r2} of the \
         outcome"
    );
    let exists = (0.0..1.0).contains(&treatment_r2) && (0.0..=1.0).contains(&outcome_r2);
    require(exists, reason)?;
    let degrees = estimate.degrees;
    at_least("degrees of freedom", degrees as usize, 2)?;
    let error = estimate.standard_error;
    let bias = error * (degrees * outcome_r2 * treatment_r2 / (1.0 - treatment_r2)).sqrt();
    let factor = ((1.0 - outcome_r2) / (1.0 - treatment_r2) * degrees / (degrees - 1.0)).sqrt();
    let adjusted = Estimate {
        value: estimate.value.signum() * (estimate.value.abs() - bias),
        standard_error: error * factor,
        degrees: degrees - 1.0,
    };
    let finite = adjusted.value.is_finite() && adjusted.standard_error.is_finite();
    require(finite, "the estimate or its standard error is not finite")?;
    Ok(adjusted)
}

/// The ordinary regression of `outcome` on 1, the treatment and `covariates`, with the strength of
/// each covariate, from which bounds on confounders follow.
#[derive(Clone, Debug)]
pub struct Benchmarks {
    /// The coefficient of the treatment, with its classic standard error.
    pub estimate: Estimate,
    /// For each covariate its partial R² with the treatment, and with the outcome.
    shares: Vec<(f64, f64)>,
}

impl Benchmarks {
    /// Fits the regression; errors are those of [`adjusted`](crate::adjusted).
    pub fn new(treated: &[bool], outcome: &[f64], covariates: &[&[f64]]) -> Result<Self, Refusal> {
        let arm = indicator(treated);
        let of_outcome = LinearFit::fit(&treatment_first(&arm, covariates), outcome)
            .map_err(Refusal::after_treatment)?;
        let estimate = of_outcome.estimate(1, Covariance::Classic, None)?;
        let mut shares = Vec::with_capacity(covariates.len());
        if !covariates.is_empty() {
            let of_treatment =
                LinearFit::fit(covariates, &arm).map_err(|refusal| match refusal {
                    Refusal::Constant(ColumnRef::Outcome) => {
                        Refusal::Constant(ColumnRef::Treatment)
                    }
                    other => other,
                })?;
            let share = |fit: &LinearFit, at: usize| -> Result<f64, Refusal> {
                let coefficient = fit.estimate(at, Covariance::Classic, None)?;
                let square = coefficient.statistic().powi(2);
                Ok(square / (square + coefficient.degrees))
            };
            for at in 0..covariates.len() {
                shares.push((share(&of_treatment, at + 1)?, share(&of_outcome, at + 2)?));
            }
        }
        Ok(Self { estimate, shares })
    }

    /// The largest strength of a confounder that is `times` as strong as the covariate at this
    /// position, in explaining the treatment and in explaining the outcome (Cinelli and Hazlett
    /// 2020, section 4.4). Equals sensemakr's `ovb_partial_r2_bound`. `None` if such a confounder
    /// would explain more of the treatment than possible.
    pub fn bound(&self, covariate: usize, times: f64) -> Option<ConfounderStrength> {
        let (with_treatment, with_outcome) = *self.shares.get(covariate)?;
        let treatment_r2 = times * with_treatment / (1.0 - with_treatment);
        // The share that confounder and covariate have in common, given the treatment.
        let shared = times * with_treatment * with_treatment
            / ((1.0 - times * with_treatment) * (1.0 - with_treatment));
        if !(0.0..1.0).contains(&treatment_r2) || !(0.0..1.0).contains(&shared) {
            return None;
        }
        let factor = (times.sqrt() + shared.sqrt()) / (1.0 - shared).sqrt();
        let outcome_r2 = (factor * factor * with_outcome / (1.0 - with_outcome)).min(1.0);
        Some(ConfounderStrength { treatment_r2, outcome_r2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Number, Table, json, near};

    #[track_caller]
    fn close(found: f64, expected: impl Number) {
        near(found, expected, 1e-9, 1e-6);
    }

    #[test]
    fn adjusted_estimates_and_bounds_are_those_of_sensemakr() {
        let json = json("contours.json");
        let table = Table::parse(json["csv"].as_str().unwrap());
        let names = ["size", "age", "depth"];
        let (treated, covariates) = (table.treated("arm"), table.columns(names));
        let benchmarks = Benchmarks::new(&treated, table.column("y"), &covariates).unwrap();
        close(benchmarks.estimate.value, &json["estimate"]);
        close(benchmarks.estimate.standard_error, &json["standard_error"]);
        let grid = json["grid"].as_array().unwrap();
        assert_eq!(grid.len(), 20);
        for row in grid {
            let strength = ConfounderStrength {
                treatment_r2: (&row["treatment_r2"]).number(),
                outcome_r2: (&row["outcome_r2"]).number(),
            };
            let found = with_confounder(&benchmarks.estimate, strength).unwrap();
            close(found.value, &row["estimate"]);
            close(found.standard_error, &row["standard_error"]);
        }
        let bounds = json["bounds"].as_array().unwrap();
        assert_eq!(bounds.len(), 9);
        for row in bounds {
            let covariate = names.iter().position(|name| row["covariate"] == *name).unwrap();
            let strength = benchmarks.bound(covariate, (&row["times"]).number()).unwrap();
            close(strength.treatment_r2, &row["treatment_r2"]);
            close(strength.outcome_r2, &row["outcome_r2"]);
            let found = with_confounder(&benchmarks.estimate, strength).unwrap();
            close(found.value, &row["estimate"]);
            close(found.standard_error, &row["standard_error"]);
            close(found.statistic(), &row["t"]);
        }
    }

    #[test]
    fn a_confounder_that_is_measured_moves_the_estimate_as_predicted() {
        // The formula is an identity: left out and put in, with the confounder's own partial R².
        let rows = 60;
        let value = |row: usize, step: usize| ((row * step) % 17) as f64;
        let confounder: Vec<f64> = (0..rows).map(|row| value(row, 5)).collect();
        let treated: Vec<bool> =
            (0..rows).map(|row| value(row, 5) + value(row, 7) > 16.0).collect();
        let outcome: Vec<f64> = (0..rows)
            .map(|row| f64::from(u8::from(treated[row])) + 0.8 * confounder[row] + value(row, 3))
            .collect();
        let without = Benchmarks::new(&treated, &outcome, &[]).unwrap().estimate;
        let with = Benchmarks::new(&treated, &outcome, &[&confounder]).unwrap();
        let (treatment_r2, outcome_r2) = with.shares[0];
        let strength = ConfounderStrength { treatment_r2, outcome_r2 };
        let predicted = with_confounder(&without, strength).unwrap();
        assert!((predicted.value / with.estimate.value - 1.0).abs() < 1e-9);
        assert!((predicted.standard_error / with.estimate.standard_error - 1.0).abs() < 1e-9);
        assert_eq!(predicted.degrees, with.estimate.degrees);
    }

    #[test]
    fn impossible_strengths_are_refused() {
        let estimate = Estimate { value: 1.0, standard_error: 0.5, degrees: 20.0 };
        for (treatment_r2, outcome_r2) in [(1.0, 0.1), (-0.1, 0.1), (0.1, 1.1), (f64::NAN, 0.0)] {
            let strength = ConfounderStrength { treatment_r2, outcome_r2 };
            assert!(with_confounder(&estimate, strength).is_err());
        }
        let few = Estimate { degrees: 1.0, ..estimate };
        let none = ConfounderStrength { treatment_r2: 0.0, outcome_r2: 0.0 };
        assert!(with_confounder(&few, none).is_err());
    }
}
