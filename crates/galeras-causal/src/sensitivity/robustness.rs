//! Robustness values of a regression coefficient, and of an estimate by an instrument.

use crate::column::indicator;
use crate::{ColumnRef, Covariance, LinearFit, Refusal, tail};

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
/// classic standard error) and the residual degrees of freedom n - k.
///
/// `reduction` is the fraction q of the estimate to be explained away, 1 for all of it; `alpha` is
/// the level of the two-sided test.
///
/// # Errors
/// [`Refusal::TooFew`] without two degrees of freedom; [`Refusal::Other`] if the statistic or the
/// degrees are not finite, `reduction` is not above zero, or not 0 < `alpha` < 1.
pub fn robustness(
    statistic: f64,
    degrees: f64,
    reduction: f64,
    alpha: f64,
) -> Result<Robustness, Refusal> {
    // More degrees than rows can be counted are a mistake, and slow the quantile of t.
    if !statistic.is_finite() || degrees.is_nan() || degrees > 1e15 {
        return Err(Refusal::Other("the t statistic or its degrees are not finite".to_owned()));
    }
    if degrees < 2.0 {
        let whole = degrees.max(0.0) as usize;
        return Err(Refusal::TooFew { what: "degrees of freedom", found: whole, needed: 2 });
    }
    if !(reduction > 0.0 && reduction.is_finite() && alpha > 0.0 && alpha < 1.0) {
        return Err(Refusal::Other(format!(
            "a reduction by {reduction} at level {alpha} does not exist: \
             the reduction must be above 0, and the level between 0 and 1"
        )));
    }
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
    let extreme = (effect - critical).max(0.0) * (effect + critical) / (1.0 + effect * effect);
    let robustness = Robustness {
        extreme_alpha: extreme,
        partial_r2: 1.0 / (1.0 + (1.0 / plain).powi(2)),
        partial_f2: plain * plain,
        value: balanced(effect),
        value_alpha,
    };
    let numbers =
        [robustness.partial_r2, robustness.partial_f2, robustness.value, robustness.value_alpha];
    if critical.is_finite() && numbers.iter().all(|number| number.is_finite()) {
        Ok(robustness)
    } else {
        Err(Refusal::Other("the t statistic is too large".to_owned()))
    }
}

/// (sqrt(f^4 + 4 f^2) - f^2) / 2, written so that no digits cancel if f is large.
fn balanced(effect: f64) -> f64 {
    2.0 / (1.0 + 1.0_f64.hypot(2.0 / effect))
}

/// The strength that a confounder of the instrument would need, given the covariates, with both the
/// instrument and the outcome (Cinelli and Hazlett 2025, Biometrika 112, asaf004).
///
/// Anderson and Rubin's test rejects an effect of zero if and only if the instrument's coefficient
/// for the outcome (the reduced form) is significant, and its set of effects is bounded if and only
/// if the coefficient for the treatment (the first stage) is. So the robustness values are those of
/// these two regressions.
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
/// brought to zero, at level `alpha`; by classic standard errors. All columns have one entry for
/// each row.
///
/// # Errors
/// As [`LinearFit::fit`] and [`robustness`], with [`ColumnRef::Instrument`] for the instrument.
pub fn instrument_robustness(
    outcome: &[f64],
    treated: &[bool],
    instrument: &[f64],
    covariates: &[&[f64]],
    alpha: f64,
) -> Result<InstrumentRobustness, Refusal> {
    let mut columns = vec![instrument];
    columns.extend_from_slice(covariates);
    let of = |target: &[f64], name: ColumnRef| {
        let fit = LinearFit::fit(&columns, target).map_err(|refusal| {
            refusal.map_column(|column| match column {
                ColumnRef::Outcome => name,
                ColumnRef::Covariate(0) => ColumnRef::Instrument(0),
                ColumnRef::Covariate(position) => ColumnRef::Covariate(position - 1),
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
