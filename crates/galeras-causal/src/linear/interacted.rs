//! Lin's regression: the treatment interacted with centred covariates.

use super::adjusted::{AdjustedEffect, judge, treatment_column};
use super::covariance::Covariance;
use super::fit::LinearFit;
use crate::{ColumnRef, Refusal};

/// The coefficient of `treated` in y ~ 1 + treated + x + treated x, with every covariate x
/// centred at its mean over all rows (Lin 2013, Annals of Applied Statistics 7:295): the average
/// effect in units of the outcome, without the assumption that the covariates act alike in both
/// arms.
///
/// The arguments are those of [`adjusted`](fn@super::adjusted): columns of n rows each. The means
/// are taken as given by the standard error, as in the paper.
///
/// # Errors
///
/// As [`adjusted`](fn@super::adjusted); [`ColumnRef::Interaction`] is the product with a covariate.
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
    judge(&fit, treated, kind, clusters)
}

/// The distances of a column from its mean; a constant column becomes exactly constant.
fn centre(column: &[f64]) -> Vec<f64> {
    let Some(origin) = column.first().copied() else {
        return Vec::new();
    };
    // Relative to one of the values, a column far from zero loses nothing.
    let shift = column.iter().map(|value| value - origin).sum::<f64>() / column.len() as f64;
    column.iter().map(|value| value - origin - shift).collect()
}
