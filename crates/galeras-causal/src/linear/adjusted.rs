//! The coefficient of a binary treatment in a linear regression on covariates, alone or interacted
//! with them.

use crate::column::indicator;
use crate::linear::fit::LinearFit;
use crate::linear::sandwich::Covariance;
use crate::{ColumnRef, Estimate, Refusal};

/// The effect of a binary treatment in a linear regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustedEffect {
    /// The coefficient of the treatment.
    pub estimate: Estimate,
    /// The treated rows.
    pub treated: usize,
    /// The control rows.
    pub control: usize,
    /// The largest leverage of a row, between 0 and 1.
    pub max_leverage: f64,
    /// The coefficient divided by its classic standard error, from which Cinelli & Hazlett (2020)
    /// derive robustness values, for any kind of standard error.
    pub classic_statistic: f64,
    /// Rows minus coefficients.
    pub residual_degrees: usize,
}

/// The coefficient of `treated` in y ~ 1 + treated + covariates, by ordinary least squares, in
/// units of the outcome. The coefficient and its classic and HC errors equal those of statsmodels'
/// `OLS`.
///
/// `treated`, `outcome`, each of `covariates` and `clusters` have one entry for each of n rows;
/// `clusters` holds the code of each row's cluster and is needed by the clustered kinds only.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty, there are not more rows than coefficients, or fewer than
/// two clusters; [`Refusal::Constant`] and [`Refusal::Collinear`] with [`ColumnRef::Covariate`] for
/// a position in `covariates`; [`Refusal::UnusableColumn`] if a value is not finite or beyond
/// 1e290; [`Refusal::Leverage`] for HC2 and HC3; [`Refusal::Other`] if lengths differ, the fit is
/// perfect, the variance is zero to rounding, or clusters are missing.
pub fn adjusted(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AdjustedEffect, Refusal> {
    let indicator = treatment_column(treated, outcome.len())?;
    let mut columns = vec![indicator.as_slice()];
    columns.extend_from_slice(covariates);
    let fit = LinearFit::fit(&columns, outcome).map_err(|refusal| {
        refusal.map_covariate(|position| match position.checked_sub(1) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        })
    })?;
    treatment_effect(&fit, treated, kind, clusters)
}

/// The first slope of a fit as the effect of the treatment.
pub(super) fn treatment_effect(
    fit: &LinearFit,
    treated: &[bool],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AdjustedEffect, Refusal> {
    let estimate = fit.estimate(1, kind, clusters)?;
    let classic = fit.estimate(1, Covariance::Classic, None)?;
    let count = treated.iter().filter(|treated| **treated).count();
    Ok(AdjustedEffect {
        estimate,
        treated: count,
        control: treated.len() - count,
        max_leverage: fit.max_leverage(),
        classic_statistic: classic.statistic(),
        residual_degrees: fit.residual_degrees(),
    })
}

/// The treatment as a column of zeros and ones; both arms must have rows.
pub(crate) fn treatment_column(treated: &[bool], rows: usize) -> Result<Vec<f64>, Refusal> {
    if treated.len() != rows {
        return Err(Refusal::Other(format!(
            "the treatment has {} rows and the outcome {rows}",
            treated.len()
        )));
    }
    let count = treated.iter().filter(|treated| **treated).count();
    for (what, rows) in [("treated rows", count), ("control rows", rows - count)] {
        if rows == 0 {
            return Err(Refusal::TooFew { what, found: 0, needed: 1 });
        }
    }
    Ok(indicator(treated))
}

/// The coefficient of `treated` in y ~ 1 + treated + x + treated x, with every covariate x centred
/// at its mean over all rows (Lin 2013, Annals of Applied Statistics 7:295): the average effect in
/// units of the outcome, without assuming that the covariates act alike in both arms.
///
/// The arguments are those of [`adjusted`]: columns of n rows each. The standard error takes the
/// means as fixed, as in the paper.
///
/// # Errors
/// As [`adjusted`]; [`ColumnRef::Interaction`] is the product with a covariate.
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
    let mut columns = vec![indicator.as_slice()];
    columns.extend(centred.iter().chain(&products).map(Vec::as_slice));
    let fit = LinearFit::fit(&columns, outcome).map_err(|refusal| {
        refusal.map_covariate(|position| match position.checked_sub(1) {
            None => ColumnRef::Treatment,
            Some(covariate) if covariate < covariates.len() => ColumnRef::Covariate(covariate),
            Some(product) => ColumnRef::Interaction(product - covariates.len()),
        })
    })?;
    treatment_effect(&fit, treated, kind, clusters)
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
