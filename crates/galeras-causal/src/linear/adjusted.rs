//! The coefficient of a binary treatment, with covariates alone or interacted with it.

use super::{Covariance, LinearFit};
use crate::column::{ROWS, arm_sizes, indicator};
use crate::difference::same_rows;
use crate::{ColumnRef, Estimate, Refusal};

/// The effect of a binary treatment in a linear regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustedEffect {
    /// The coefficient of the treatment.
    pub estimate: Estimate,
    /// The coefficient divided by its classic standard error, from which Cinelli & Hazlett (2020)
    /// derive robustness values, for any kind of standard error.
    pub classic_statistic: f64,
    /// Rows minus coefficients.
    pub residual_degrees: usize,
}

/// The coefficient of `treated` in y ~ 1 + treated + covariates, by ordinary least squares. It and
/// its classic and HC errors equal those of statsmodels' `OLS`. `clusters` holds the code of each
/// row's cluster, for the clustered kinds. Refuses a row with a leverage of 1 for HC2 and HC3
/// ([`Refusal::Leverage`]), missing clusters, a perfect fit, or a variance that is zero to
/// rounding.
pub fn adjusted(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AdjustedEffect, Refusal> {
    let indicator = treatment_column(treated, outcome.len())?;
    let fit = LinearFit::fit(&treatment_first(&indicator, covariates), outcome)
        .map_err(Refusal::after_treatment)?;
    treatment_effect(&fit, kind, clusters)
}

/// The first slope of a fit as the effect of the treatment.
fn treatment_effect(
    fit: &LinearFit,
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AdjustedEffect, Refusal> {
    Ok(AdjustedEffect {
        estimate: fit.estimate(1, kind, clusters)?,
        classic_statistic: fit.estimate(1, Covariance::Classic, None)?.statistic(),
        residual_degrees: fit.residual_degrees(),
    })
}

/// The treatment as a column of zeros and ones; both arms must have rows.
pub(crate) fn treatment_column(treated: &[bool], rows: usize) -> Result<Vec<f64>, Refusal> {
    same_rows(treated, rows)?;
    arm_sizes(treated, ROWS, 1)?;
    Ok(indicator(treated))
}

/// The columns of a regression on a treatment and covariates.
pub(crate) fn treatment_first<'a>(
    treatment: &'a [f64],
    covariates: &[&'a [f64]],
) -> Vec<&'a [f64]> {
    [&[treatment][..], covariates].concat()
}

/// The coefficient of `treated` in y ~ 1 + treated + x + treated x, with every covariate x centred
/// at its mean over all rows (Lin 2013, Annals of Applied Statistics 7:295): the average effect,
/// without assuming that the covariates act alike in both arms. The standard error takes the means
/// as fixed, as in the paper. Errors are those of [`adjusted`], where [`ColumnRef::Interaction`] is
/// the product with a covariate.
pub fn interacted(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AdjustedEffect, Refusal> {
    let indicator = treatment_column(treated, outcome.len())?;
    let centred: Vec<Vec<f64>> = covariates.iter().map(|column| centre(column)).collect();
    let products: Vec<Vec<f64>> = centred
        .iter()
        .map(|column| column.iter().zip(&indicator).map(|(x, t)| x * t).collect())
        .collect();
    let columns: Vec<&[f64]> = centred.iter().chain(&products).map(Vec::as_slice).collect();
    let fit =
        LinearFit::fit(&treatment_first(&indicator, &columns), outcome).map_err(|refusal| {
            refusal.after_treatment().map_covariate(|at| match at.checked_sub(covariates.len()) {
                None => ColumnRef::Covariate(at),
                Some(product) => ColumnRef::Interaction(product),
            })
        })?;
    treatment_effect(&fit, kind, clusters)
}

/// The distances of a column from its mean; a constant column becomes exactly constant.
fn centre(column: &[f64]) -> Vec<f64> {
    let Some(origin) = column.first().copied() else {
        return Vec::new();
    };
    // Relative to one of the values, so that a column far from zero keeps its digits.
    let shift = column.iter().map(|value| value - origin).sum::<f64>() / column.len() as f64;
    column.iter().map(|value| value - origin - shift).collect()
}
