//! Lin's regression: the treatment interacted with centred covariates. The regression itself
//! lives in `fit`.

use super::super::Refusal;
use super::{Adjusted, Covariance, LinearFit, judge, rename, treatment_column};

/// The coefficient of `treated` in y ~ 1 + treated + x + treated x, with every covariate x
/// centred at its mean over all rows (Lin 2013): the average effect, without the assumption that
/// the covariates act alike in both arms.
///
/// The arguments are those of [`adjusted`](super::adjusted). The means are taken as given by the
/// standard error, as in the paper.
///
/// # Errors
///
/// As [`adjusted`](super::adjusted); `treatment x #2` is the interaction with `covariates[2]`.
pub fn interacted(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<Adjusted, Refusal> {
    let indicator = treatment_column(treated, outcome.len())?;
    let centred: Vec<Vec<f64>> = covariates.iter().map(|column| centre(column)).collect();
    let products: Vec<Vec<f64>> = centred
        .iter()
        .map(|column| column.iter().zip(&indicator).map(|(x, t)| x * t).collect())
        .collect();
    let mut columns = vec![indicator.as_slice()];
    columns.extend(centred.iter().chain(&products).map(Vec::as_slice));
    let fit = LinearFit::fit(&columns, outcome).map_err(|refusal| {
        rename(refusal, |column| match column.checked_sub(1) {
            None => "treatment".to_owned(),
            Some(covariate) if covariate < covariates.len() => format!("#{covariate}"),
            Some(product) => format!("treatment x #{}", product - covariates.len()),
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
