//! Tests that several instruments agree: Sargan's for equal variances, Hansen's for others.

use super::cluster::ClusterRows;
use super::covariance::Covariance;
use super::fit::LinearFit;
use super::symmetric::{add_outer, divide_rows, dot, mirror, upper_factor};
use crate::tail;

/// A test that all instruments give one effect. It cannot tell instruments that are all invalid in
/// the same way from valid ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overidentification {
    /// The statistic, chi-squared if the instruments are valid.
    pub chi_squared: f64,
    /// Its degrees of freedom: instruments less one.
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
/// None for the classic kind, and where the weights are singular: no more clusters than
/// instruments, say.
///
/// The moments of the covariates determine their coefficients and drop out, so that only the part
/// of the instruments counts that covariates do not explain: the last columns of the first stage's
/// basis.
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
    // What the efficient estimate of the effect leaves of the moments.
    let step = dot(&slopes, &moment) / dot(&slopes, &slopes);
    let left: f64 = moment.iter().zip(&slopes).map(|(m, s)| (m - step * s).powi(2)).sum();
    Some(left).filter(|j| j.is_finite()).map(|j| Overidentification::new(j, instruments))
}
