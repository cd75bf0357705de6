//! Two-stage least squares: the effect of a treatment that instruments move.

use super::covariance::Covariance;
use super::fit::LinearFit;
use super::overidentification::{Overidentification, hansen, sargan};
use super::symmetric::{divide_rows, upper_factor};
use crate::{ColumnRef, Estimate, Refusal};

/// What two-stage least squares gives.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoStage {
    /// The coefficient of the endogenous column.
    pub estimate: Estimate,
    /// Its coefficient by ordinary least squares, for comparison.
    pub ols: f64,
    /// The coefficients of the instruments in the first stage, in their order.
    pub first_stage_coefficients: Vec<f64>,
    /// The F statistic of all instruments in the first stage, for equal variances.
    pub first_stage_f: f64,
    /// The same for the variances that the estimate assumes: Wald's statistic of the instruments
    /// over their number. `None` where that covariance is not defined or singular.
    pub robust_first_stage_f: Option<f64>,
    /// Degrees of freedom of `first_stage_f`: instruments, and rows less first-stage coefficients.
    pub first_stage_degrees: (usize, usize),
    /// Sargan's test where there are more instruments than one.
    pub sargan: Option<Overidentification>,
    /// Hansen's J by the variances that the estimate assumes, where there are more instruments than
    /// one. `None` for equal variances, and where its weights are singular.
    pub hansen: Option<Overidentification>,
}

/// The coefficient of `endogenous` in `outcome` ~ 1 + endogenous + exogenous, with the instruments
/// in place of the endogenous column, in units of the outcome per unit of `endogenous`. The
/// coefficient equals that of linearmodels' `IV2SLS`. All columns, and `clusters` if any, have one
/// entry for each of n rows.
///
/// Degrees of freedom and small-sample factors are those of a regression: n - k, G - 1, or Bell &
/// McCaffrey's. Leverages are those of the second stage.
///
/// # Errors
///
/// As [`LinearFit::fit`] and [`LinearFit::estimate`], with [`ColumnRef::Covariate`] for a position
/// in `exogenous` and [`ColumnRef::Instrument`] for one in `instruments`; [`Refusal::TooFew`]
/// without an instrument; [`Refusal::Other`] if the instruments do not move the endogenous column,
/// or determine it.
pub fn two_stage(
    outcome: &[f64],
    endogenous: &[f64],
    instruments: &[&[f64]],
    exogenous: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<TwoStage, Refusal> {
    if instruments.is_empty() {
        return Err(Refusal::TooFew { what: "instruments", found: 0, needed: 1 });
    }
    let covariates = exogenous.len();
    // Exogenous columns come first in both stages, then the instruments or what they stand for.
    let of_first_stage = |position: usize| match position.checked_sub(covariates) {
        None => ColumnRef::Covariate(position),
        Some(instrument) => ColumnRef::Instrument(instrument),
    };
    let of_second_stage = |position: usize| match position.checked_sub(covariates) {
        None => ColumnRef::Covariate(position),
        Some(_) => ColumnRef::Endogenous,
    };
    if endogenous.len() != outcome.len() {
        return Err(Refusal::Other(format!(
            "the endogenous column has {} rows and the outcome {}",
            endogenous.len(),
            outcome.len()
        )));
    }
    let mut design: Vec<&[f64]> = exogenous.to_vec();
    design.extend_from_slice(instruments);
    let first_refusal = |refusal: Refusal| {
        refusal.map_column(|column| match column {
            ColumnRef::Covariate(position) => of_first_stage(position),
            ColumnRef::Outcome => ColumnRef::Endogenous,
            column => column,
        })
    };
    let first = LinearFit::without_check(&design, endogenous).map_err(first_refusal)?;
    let restricted = LinearFit::without_check(exogenous, endogenous).map_err(first_refusal)?;
    first.refuse_perfect().map_err(|_| {
        Refusal::Other("the instruments and covariates determine the treatment entirely".into())
    })?;
    let count = instruments.len();
    // Residual sums are in the same unit: both fits have the same outcome.
    let (full, part) = (first.residual_sum(), restricted.residual_sum());
    let explained = ((part - full) / count as f64).max(0.0);
    let first_stage_f = explained / (full / first.residual_degrees() as f64);

    let fitted: Vec<f64> = endogenous
        .iter()
        .zip(first.residuals())
        .map(|(value, residual)| value - residual)
        .collect();
    let mut design: Vec<&[f64]> = exogenous.to_vec();
    design.push(&fitted);
    let mut second = LinearFit::without_check(&design, outcome).map_err(|refusal| match refusal
        .map_covariate(of_second_stage)
    {
        Refusal::Collinear { column: ColumnRef::Endogenous }
        | Refusal::Constant(ColumnRef::Endogenous) => Refusal::Other(
            "the instruments do not move the treatment: the first stage fits \
                                nothing beyond the covariates"
                .into(),
        ),
        other => other,
    })?;
    let position = covariates + 1;
    let effect = second.coefficients()[position];
    // The structural residuals belong to the endogenous column, not to its fitted values.
    for (residual, missed) in second.residuals.iter_mut().zip(first.residuals()) {
        *residual -= effect * missed;
    }
    second.refuse_perfect()?;
    let estimate = second.estimate(position, kind, clusters)?;

    let mut design: Vec<&[f64]> = exogenous.to_vec();
    design.push(endogenous);
    let ols = LinearFit::without_check(&design, outcome)
        .map_err(|refusal| refusal.map_covariate(of_second_stage))?
        .coefficients()[position];
    Ok(TwoStage {
        estimate,
        ols,
        first_stage_coefficients: first.coefficients()[position..].to_vec(),
        first_stage_f,
        robust_first_stage_f: wald(&first, position, kind, clusters).map(|w| w / count as f64),
        first_stage_degrees: (count, first.residual_degrees()),
        sargan: (count > 1).then(|| sargan(&first, &second, count)),
        hansen: (count > 1)
            .then(|| hansen(&first, &second, endogenous, count, kind, clusters))
            .flatten(),
    })
}

/// Wald's statistic of the coefficients from position `from` on being zero.
fn wald(fit: &LinearFit, from: usize, kind: Covariance, clusters: Option<&[u32]>) -> Option<f64> {
    let covariance = fit.covariance(kind, clusters).ok()?;
    let tested = &covariance[from..];
    let width = tested.len();
    let error = |at: usize| tested[at][from + at].sqrt();
    let correlation = (0..width * width)
        .map(|at| (at / width, at % width))
        .map(|(a, b)| tested[a][from + b] / (error(a) * error(b)));
    let factor = upper_factor(&correlation.collect::<Vec<f64>>(), width, 1e-12).ok()?;
    let values = fit.coefficients()[from..].iter().enumerate();
    let mut statistics: Vec<f64> = values.map(|(at, value)| value / error(at)).collect();
    divide_rows(&mut statistics, &factor, width);
    Some(statistics.iter().map(|value| value * value).sum()).filter(|wald: &f64| wald.is_finite())
}
