//! Estimates under a confounder of given strength, and the strength of observed covariates as
//! benchmarks.

use crate::column::indicator;
use crate::{ColumnRef, Covariance, Estimate, LinearFit, Refusal};

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
/// `adjusted_estimate` and `adjusted_se`. The confounder takes a degree of freedom.
///
/// # Errors
/// [`Refusal::TooFew`] without two degrees of freedom; [`Refusal::Other`] unless 0 <=
/// `treatment_r2` < 1 and 0 <= `outcome_r2` <= 1, or if a number is not finite.
pub fn with_confounder(
    estimate: &Estimate,
    strength: ConfounderStrength,
) -> Result<Estimate, Refusal> {
    let ConfounderStrength { treatment_r2, outcome_r2 } = strength;
    if !((0.0..1.0).contains(&treatment_r2) && (0.0..=1.0).contains(&outcome_r2)) {
        return Err(Refusal::Other(format!(
            "no confounder explains a share of {treatment_r2} of the treatment and {outcome_r2} of \
             the outcome"
        )));
    }
    let degrees = estimate.degrees;
    if degrees < 2.0 {
        let found = degrees.max(0.0) as usize;
        return Err(Refusal::TooFew { what: "degrees of freedom", found, needed: 2 });
    }
    let error = estimate.standard_error;
    let bias = error * (degrees * outcome_r2 * treatment_r2 / (1.0 - treatment_r2)).sqrt();
    let factor = ((1.0 - outcome_r2) / (1.0 - treatment_r2) * degrees / (degrees - 1.0)).sqrt();
    let adjusted = Estimate {
        value: estimate.value.signum() * (estimate.value.abs() - bias),
        standard_error: error * factor,
        degrees: degrees - 1.0,
    };
    if adjusted.value.is_finite() && adjusted.standard_error.is_finite() {
        Ok(adjusted)
    } else {
        Err(Refusal::Other("the estimate or its standard error is not finite".to_owned()))
    }
}

/// The ordinary regression of `outcome` on 1, the treatment and `covariates`, with the strength of
/// each covariate, from which bounds on confounders follow. All columns have one entry for each
/// row.
#[derive(Clone, Debug)]
pub struct Benchmarks {
    /// The coefficient of the treatment, with its classic standard error.
    pub estimate: Estimate,
    /// For each covariate its partial R² with the treatment, and with the outcome.
    shares: Vec<(f64, f64)>,
}

impl Benchmarks {
    /// # Errors
    /// As [`adjusted`](crate::adjusted).
    pub fn new(treated: &[bool], outcome: &[f64], covariates: &[&[f64]]) -> Result<Self, Refusal> {
        let arm = indicator(treated);
        let mut columns = vec![arm.as_slice()];
        columns.extend_from_slice(covariates);
        let of_outcome = LinearFit::fit(&columns, outcome).map_err(|refusal| {
            refusal.map_covariate(|at| match at.checked_sub(1) {
                None => ColumnRef::Treatment,
                Some(covariate) => ColumnRef::Covariate(covariate),
            })
        })?;
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
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
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
