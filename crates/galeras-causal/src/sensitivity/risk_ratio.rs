//! The risk ratio of a binary outcome, with an interval on the scale of its logarithm.

use crate::column::indicator;
use crate::compensated::mean;
use crate::{ColumnRef, Covariance, LinearFit, Refusal, tail};

/// The risks of both arms and their ratio with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiskRatio {
    /// The risk under the treatment, above 0 and at most 1.
    pub treated: f64,
    /// The risk under control, above 0 and at most 1.
    pub control: f64,
    /// The risk under the treatment over that under control.
    pub ratio: f64,
    /// The standard error of the logarithm of the ratio.
    pub log_error: f64,
    /// Degrees of freedom of Student's t; infinite for the normal distribution.
    pub degrees: f64,
}

impl RiskRatio {
    /// The ratio of two independent shares: events and rows of the treatment, then of control. The
    /// error is Katz's (1978, Biometrics 34:469), sqrt(1/a - 1/n + 1/b - 1/m), with the normal
    /// distribution; equals statsmodels' `confint_proportions_2indep(compare="ratio",
    /// method="log")`.
    ///
    /// # Errors
    /// As [`RiskRatio::new`]; [`Refusal::TooFew`] if an arm has no rows.
    pub fn of_counts(treated: (usize, usize), control: (usize, usize)) -> Result<Self, Refusal> {
        for (what, (_, rows)) in [("treated rows", treated), ("control rows", control)] {
            if rows == 0 {
                return Err(Refusal::TooFew { what, found: 0, needed: 1 });
            }
        }
        let share = |(events, rows): (usize, usize)| events as f64 / rows as f64;
        // (n - a) / (a n) is 1/a - 1/n without the difference of two close numbers.
        let part = |(events, rows): (usize, usize)| {
            rows.saturating_sub(events) as f64 / (events as f64 * rows as f64)
        };
        let (one, zero) = (share(treated), share(control));
        usable(one, zero)?;
        Self::new(one, zero, (part(treated) + part(control)).sqrt(), f64::INFINITY)
    }

    /// The ratio of two risks of an estimator, whose logarithm has this standard error with these
    /// degrees of freedom.
    ///
    /// # Errors
    /// [`Refusal::Other`] if a risk is not above 0 and at most 1, or the error is not above zero
    /// and finite.
    pub fn new(treated: f64, control: f64, log_error: f64, degrees: f64) -> Result<Self, Refusal> {
        usable(treated, control)?;
        if !(log_error > 0.0 && log_error.is_finite()) {
            let message = "the standard error of the risk ratio is not above zero and finite";
            return Err(Refusal::Other(message.into()));
        }
        Ok(Self { treated, control, ratio: treated / control, log_error, degrees })
    }

    /// The interval that covers the ratio with probability `1 - alpha`.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let quantile = if self.degrees.is_finite() {
            tail::t_quantile(1.0 - alpha / 2.0, self.degrees)
        } else {
            tail::normal_quantile(1.0 - alpha / 2.0)
        };
        let half = quantile * self.log_error;
        (self.ratio * (-half).exp(), self.ratio * half.exp())
    }
}

/// The risks of the whole sample under either arm, by a linear regression of the outcome (0 or 1) on the
/// treatment and the covariates: its mean predictions with all rows treated and with none. The
/// error of their ratio is by the delta method from the covariance of `kind`, for fixed covariates;
/// degrees of freedom are those of the effect.
///
/// # Errors
/// As [`adjusted`](crate::adjusted) and [`RiskRatio::new`].
pub fn standardised_risks(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<RiskRatio, Refusal> {
    // With centred covariates the intercept is the mean prediction for all rows as controls.
    let centred: Vec<Vec<f64>> = covariates
        .iter()
        .map(|column| {
            let mean = mean(column);
            column.iter().map(|value| value - mean).collect()
        })
        .collect();
    let arm = indicator(treated);
    let mut columns = vec![arm.as_slice()];
    columns.extend(centred.iter().map(Vec::as_slice));
    let fit = LinearFit::fit(&columns, outcome).map_err(|refusal| {
        refusal.map_covariate(|position| match position.checked_sub(1) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        })
    })?;
    let (control, effect) = (fit.coefficients()[0], fit.coefficients()[1]);
    let one = control + effect;
    usable(one, control)?;
    let covariance = fit.covariance(kind, clusters)?;
    let slopes = [1.0 / one - 1.0 / control, 1.0 / one];
    let variance: f64 =
        (0..4).map(|at| slopes[at / 2] * slopes[at % 2] * covariance[at / 2][at % 2]).sum();
    let degrees = fit.estimate(1, kind, clusters)?.degrees;
    RiskRatio::new(one, control, variance.sqrt(), degrees)
}

/// Refuses risks whose ratio has no interval.
fn usable(treated: f64, control: f64) -> Result<(), Refusal> {
    for (arm, risk) in [("the treatment", treated), ("control", control)] {
        // A complete share is 1 to rounding.
        if !(risk > 1e-12 && risk <= 1.0 + 1e-9) {
            let shown = if risk.abs() < 1e-12 { 0.0 } else { risk };
            return Err(Refusal::Other(format!(
                "there is no risk ratio: the risk under {arm} is {shown:.4}, and must be above 0 \
                 and at most 1"
            )));
        }
    }
    Ok(())
}
