//! Two-stage least squares: the effect of a treatment by instruments, with tests of
//! overidentification.

use crate::linear::cluster::ClusterRows;
use crate::linear::fit::LinearFit;
use crate::linear::sandwich::Covariance;
use crate::linear::symmetric::{add_outer, divide_rows, dot, mirror, upper_factor};
use crate::{ColumnRef, Estimate, Refusal, tail};

/// The result of two-stage least squares.
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
    /// The same for the variances of the estimate's kind: Wald's statistic of the instruments over
    /// their number. `None` if that covariance is undefined or singular.
    pub robust_first_stage_f: Option<f64>,
    /// Degrees of freedom of `first_stage_f`: instruments, and rows minus first-stage coefficients.
    pub first_stage_degrees: (usize, usize),
    /// Sargan's test; `None` with one instrument.
    pub sargan: Option<Overidentification>,
    /// Hansen's J by the variances of the estimate's kind; `None` with one instrument, for equal
    /// variances, and if its weights are singular.
    pub hansen: Option<Overidentification>,
}

/// The coefficient of `endogenous` in `outcome` ~ 1 + endogenous + exogenous, instrumented by
/// `instruments`, in units of the outcome per unit of `endogenous`. The coefficient equals that of
/// linearmodels' `IV2SLS`. All columns, and `clusters` if any, have one entry for each of n rows.
///
/// Degrees of freedom and small-sample factors are those of a regression: n - k, G - 1, or Bell &
/// McCaffrey's. Leverages are those of the second stage.
///
/// # Errors
/// As [`LinearFit::fit`] and [`LinearFit::estimate`], with [`ColumnRef::Covariate`] for a position
/// in `exogenous` and [`ColumnRef::Instrument`] for one in `instruments`; [`Refusal::TooFew`]
/// without an instrument; [`Refusal::Other`] if the instruments are unrelated to the endogenous
/// column, or determine it.
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
    // Exogenous columns come first in both stages, then the instruments or the fitted endogenous
    // column.
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
    // Residual sums have the same unit: both fits have the same outcome.
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

/// Wald's statistic of the coefficients from position `from` on, for the hypothesis that they are
/// zero.
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

/// A test that all instruments give one effect. Instruments that are all invalid in the same way
/// pass it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overidentification {
    /// The statistic, chi-squared if the instruments are valid.
    pub chi_squared: f64,
    /// Its degrees of freedom: instruments minus one.
    pub degrees: usize,
    /// Its p-value.
    pub p: f64,
}

impl Overidentification {
    fn new(chi_squared: f64, instruments: usize) -> Self {
        let degrees = instruments - 1;
        Self { chi_squared, degrees, p: tail::chi_squared_upper(chi_squared, degrees as f64) }
    }
}

/// Sargan's test (1958): n times R squared of the structural residuals on the instruments.
pub(super) fn sargan(
    first: &LinearFit,
    second: &LinearFit,
    instruments: usize,
) -> Overidentification {
    let projected = first.coordinates(&second.residuals, second.scale);
    let explained: f64 = projected.iter().map(|value| value * value).sum();
    let chi_squared = second.residuals.len() as f64 * explained / second.residual_sum();
    Overidentification::new(chi_squared, instruments)
}

/// Hansen's J (1982): the minimum of the moments of two-step efficient GMM, whose weights are the
/// products of instruments and two-stage residuals, summed within clusters if there are any. No
/// small-sample factor; equals linearmodels' `IVGMM` with `weight_type="robust"` or `"clustered"`.
/// `None` for the classic kind, and if the weights are singular (for example with no more clusters
/// than instruments).
///
/// The moments of the covariates determine their coefficients and drop out. Only the part of the
/// instruments remains that covariates do not explain: the last columns of the first stage's basis.
pub(super) fn hansen(
    first: &LinearFit,
    second: &LinearFit,
    endogenous: &[f64],
    instruments: usize,
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Option<Overidentification> {
    if kind == Covariance::Classic {
        return None;
    }
    let from = first.width - instruments;
    let row = |at: usize| &first.basis[at * first.width + from..(at + 1) * first.width];
    let residual = |at: usize| second.residuals[at] / second.scale;
    let mut weights = vec![0.0; instruments * instruments];
    let mut moment = vec![0.0; instruments];
    let mut score = vec![0.0; instruments];
    let mut groups = 0;
    let mut add = |score: &mut [f64]| {
        add_outer(&mut weights, score, 1.0);
        moment.iter_mut().zip(score.iter()).for_each(|(sum, part)| *sum += part);
        score.fill(0.0);
        groups += 1;
    };
    let collect = |score: &mut [f64], at: usize| {
        score.iter_mut().zip(row(at)).for_each(|(sum, cell)| *sum += cell * residual(at));
    };
    if kind.is_clustered() {
        for rows in ClusterRows::new(clusters?).members() {
            rows.iter().for_each(|at| collect(&mut score, *at));
            add(&mut score);
        }
    } else {
        for at in 0..second.residuals.len() {
            collect(&mut score, at);
            add(&mut score);
        }
    }
    if groups <= instruments {
        return None;
    }
    mirror(&mut weights, instruments);
    let slopes = &first.coordinates(endogenous, first.scale)[from..];
    let scale: Vec<f64> =
        (0..instruments).map(|at| weights[at * instruments + at].sqrt()).collect();
    let correlation: Vec<f64> = (0..instruments * instruments)
        .map(|at| weights[at] / (scale[at / instruments] * scale[at % instruments]))
        .collect();
    let factor = upper_factor(&correlation, instruments, 1e-12).ok()?;
    let whitened = |vector: &[f64]| {
        let mut row: Vec<f64> = vector.iter().zip(&scale).map(|(value, s)| value / s).collect();
        divide_rows(&mut row, &factor, instruments);
        row
    };
    let (moment, slopes) = (whitened(&moment), whitened(slopes));
    // The moments at the efficient estimate of the effect.
    let step = dot(&slopes, &moment) / dot(&slopes, &slopes);
    let left: f64 = moment.iter().zip(&slopes).map(|(m, s)| (m - step * s).powi(2)).sum();
    Some(left).filter(|j| j.is_finite()).map(|j| Overidentification::new(j, instruments))
}
