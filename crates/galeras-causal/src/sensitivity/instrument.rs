//! The robustness values of an estimate by an instrument.

use super::robustness::{Robustness, robustness};
use crate::column::indicator;
use crate::{ColumnRef, Covariance, LinearFit, Refusal};

/// How strong a confounder of the instrument would have to be: one that is tied to the instrument
/// and to the outcome, given the covariates (Cinelli and Hazlett 2025, Biometrika 112, asaf004).
///
/// By Anderson and Rubin's test an effect of zero is rejected if, and only if, the instrument's
/// coefficient for the outcome (the reduced form) is; and the effects that are not rejected have an
/// end if, and only if, its coefficient for the treatment (the first stage) is not zero. So the
/// robustness values are those of these two regressions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstrumentRobustness {
    /// Of the outcome on the instrument and the covariates.
    pub reduced_form: Robustness,
    /// Of the treatment on the instrument and the covariates.
    pub first_stage: Robustness,
}

impl InstrumentRobustness {
    /// The share of what is left of both the instrument and the outcome, or of both the instrument
    /// and the treatment, that lets the estimate be zero or anything: the smaller of both values.
    pub fn value(&self) -> f64 {
        self.reduced_form.value.min(self.first_stage.value)
    }

    /// The share that makes the estimate insignificant at alpha, or its set of effects unbounded.
    pub fn value_alpha(&self) -> f64 {
        self.reduced_form.value_alpha.min(self.first_stage.value_alpha)
    }

    /// The same for a confounder that explains all that is left of the outcome or the treatment.
    pub fn extreme_alpha(&self) -> f64 {
        self.reduced_form.extreme_alpha.min(self.first_stage.extreme_alpha)
    }
}

/// The robustness values of the effect of `treated` on `outcome` by one instrument, for an estimate
/// brought to zero, at level `alpha`; by classic standard errors. All columns have one entry for
/// each row.
///
/// # Errors
///
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
