//! The coefficient of a binary treatment, with covariates alone or interacted with it.

use super::{Covariance, LinearFit};
use crate::column::{ROWS, arm_sizes, indicator};
use crate::difference::same_rows;
use crate::refusal::{at_least, require};
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

/// How the rows of a regression count, and which of their errors may be correlated.
#[derive(Clone, Copy, Debug)]
pub struct RowDesign<'a> {
    /// The kind of standard errors.
    pub kind: Covariance,
    /// The cluster of each row, for the clustered kinds.
    pub clusters: Option<&'a [u32]>,
    /// The code of each row in another column of clusters, which are crossed with the first.
    pub second_clusters: Option<&'a [u32]>,
    /// The weight of each row.
    pub weights: Option<&'a [f64]>,
}

/// An effect, and the contribution of each row to its error: the squares of their sums within
/// clusters add up to the CR0 variance.
#[derive(Clone, Debug, PartialEq)]
pub struct RowEffect {
    /// The effect.
    pub estimate: Estimate,
    /// One for each row.
    pub influence: Vec<f64>,
}

impl RowDesign<'_> {
    fn fit(&self, columns: &[&[f64]], outcome: &[f64]) -> Result<LinearFit, Refusal> {
        match self.weights {
            None => LinearFit::fit(columns, outcome),
            Some(weights) => LinearFit::fit_weighted(columns, outcome, weights),
        }
    }

    /// The first slope of a fit.
    fn slope(&self, fit: &LinearFit) -> Result<RowEffect, Refusal> {
        let estimate = match (self.clusters, self.second_clusters) {
            (Some(first), Some(second)) if self.kind.is_clustered() => {
                fit.two_way_estimate(1, self.kind, [first, second])?
            }
            _ => fit.estimate(1, self.kind, self.clusters)?,
        };
        Ok(RowEffect { estimate, influence: fit.influence(1) })
    }
}

/// As [`adjusted`], with weights of rows and one or two columns of clusters. Errors are also those of
/// [`LinearFit::fit_weighted`] and [`LinearFit::two_way_estimate`].
pub fn adjusted_by_design(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    design: RowDesign<'_>,
) -> Result<RowEffect, Refusal> {
    let indicator = treatment_column(treated, outcome.len())?;
    let columns = treatment_first(&indicator, covariates);
    design.slope(&design.fit(&columns, outcome).map_err(Refusal::after_treatment)?)
}

/// The coefficient of treated x after in y ~ 1 + treated x after + treated + after + covariates: the
/// change of the treated from before to after, minus that of the controls. `after` is 0 or 1. It is
/// the effect of what came in between on the treated if both would have changed alike without it.
/// Errors are those of [`adjusted_by_design`], fewer than two rows of an arm before or after, and
/// other values of `after`.
pub fn difference_in_differences(
    treated: &[bool],
    after: &[f64],
    outcome: &[f64],
    covariates: &[&[f64]],
    design: RowDesign<'_>,
) -> Result<RowEffect, Refusal> {
    let indicator = treatment_column(treated, outcome.len())?;
    require(after.len() == treated.len(), "the column of time has another number of rows")?;
    let mut cells = [[0usize; 2]; 2];
    if let Some(other) = after.iter().find(|after| **after != 0.0 && **after != 1.0) {
        let reason = format!("the column of time is {other} in a row: it must be 0 or 1");
        return Err(Refusal::Other(reason));
    }
    for (treated, after) in treated.iter().zip(after) {
        cells[usize::from(*treated)][usize::from(*after == 1.0)] += 1;
    }
    let fewest = cells.as_flattened().iter().min().copied().unwrap_or_default();
    at_least("rows of an arm before or after", fewest, 2)?;
    let product: Vec<f64> = indicator.iter().zip(after).map(|(t, a)| t * a).collect();
    let columns = [&[product.as_slice(), indicator.as_slice(), after][..], covariates].concat();
    let fit = design.fit(&columns, outcome).map_err(|refusal| {
        refusal.map_covariate(|at| match at.checked_sub(3) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        })
    })?;
    design.slope(&fit)
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
