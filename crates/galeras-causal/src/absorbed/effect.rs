//! The coefficient of a binary treatment in a regression with absorbed effects.

use super::factor::{Factor, constants};
use super::within::within;
use crate::linear::{Covariance, LinearFit, treatment_column};
use crate::{ColumnRef, Estimate, Refusal};

/// The share of a column's variance that has to be left within the levels.
const SMALLEST_SHARE: f64 = 1e-10;

/// The effect of a binary treatment among rows that share the levels of all factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbsorbedEffect {
    /// The coefficient of the treatment.
    pub estimate: Estimate,
    /// The constants that were absorbed, without those that follow from others.
    pub absorbed: usize,
    /// Rows less coefficients less absorbed constants.
    pub residual_degrees: usize,
}

/// The coefficient of `treated` in a linear regression of `outcome` on the treatment, `covariates`
/// and a constant for each level of each of `factors`, by the within-transformation (Frisch, Waugh
/// & Lovell), in units of the outcome. Equals that of linearmodels' `AbsorbingLS` and of least
/// squares with an indicator for each level.
///
/// All columns have one entry for each of n rows; a factor holds the code of each row's level.
/// `kind` is one of `Classic`, `Hc0`, `Hc1`, `Cr0` and `Cr1`. Degrees of freedom are rows less
/// coefficients less absorbed constants; with clusters Student's t has one degree less than there
/// are, and constants of levels that lie within clusters do not count in the factor of `Cr1`
/// (Cameron & Miller 2015; as reghdfe).
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty, below two clusters, or if no degree of freedom is left;
/// [`Refusal::UnusableColumn`] with [`ColumnRef::Treatment`] or [`ColumnRef::Covariate`] for a column
/// that does not vary within the levels; as for least squares else. [`Refusal::Other`] for a kind
/// that needs leverages, or factors that are too loosely connected.
pub fn absorbed(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    factors: &[&[u32]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AbsorbedEffect, Refusal> {
    let rows = outcome.len();
    let indicator = treatment_column(treated, rows)?;
    if factors.is_empty() {
        return Err(Refusal::TooFew { what: "absorbed factors", found: 0, needed: 1 });
    }
    if let Some(codes) = factors.iter().find(|codes| codes.len() != rows) {
        return Err(Refusal::Other(format!(
            "an absorbed factor has {} rows and the outcome {rows}",
            codes.len()
        )));
    }
    if !matches!(
        kind,
        Covariance::Classic | Covariance::Hc0 | Covariance::Hc1 | Covariance::Cr0 | Covariance::Cr1
    ) {
        return Err(Refusal::Other(format!(
            "{kind} needs leverages, which are not computed where effects are absorbed (classic, \
             HC0, HC1, CR0 and CR1 need none)"
        )));
    }
    let factors: Vec<Factor<'_>> = factors.iter().map(|codes| Factor::new(codes)).collect();
    let all: Vec<&Factor<'_>> = factors.iter().collect();
    let absorbed = constants(&all);
    let slopes = covariates.len() + 1;
    if rows <= absorbed + slopes {
        return Err(Refusal::TooFew { what: "rows", found: rows, needed: absorbed + slopes + 1 });
    }
    let residual_degrees = rows - absorbed - slopes;

    let mut columns = Vec::with_capacity(slopes);
    for (position, column) in
        std::iter::once(indicator.as_slice()).chain(covariates.iter().copied()).enumerate()
    {
        let reference = match position.checked_sub(1) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        };
        columns.push(varying_within(column, rows, &factors, reference)?);
    }
    let outcome = varying_within(outcome, rows, &factors, ColumnRef::Outcome)?;
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let fit = LinearFit::fit(&slices, &outcome).map_err(crate::glm::of_treatment)?;

    let (plain, factor, degrees) = match kind {
        Covariance::Classic | Covariance::Hc1 => {
            // The fit counts an intercept, which is one of the absorbed constants.
            let factor = (rows - slopes - 1) as f64 / residual_degrees as f64;
            (kind, factor, residual_degrees as f64)
        }
        Covariance::Cr1 => {
            let count = clusters.map_or(0, distinct) as f64;
            let counted: Vec<&Factor<'_>> = all
                .into_iter()
                .filter(|factor| !clusters.is_some_and(|groups| factor.is_nested_in(groups)))
                .collect();
            // The overall constant is there even if all others are within clusters.
            let used = slopes + constants(&counted).max(1);
            let factor = count / (count - 1.0) * (rows - 1) as f64 / (rows - used) as f64;
            (Covariance::Cr0, factor, count - 1.0)
        }
        _ => {
            let groups = clusters.filter(|_| kind.is_clustered());
            (
                kind,
                1.0,
                groups.map_or(residual_degrees as f64, |codes| distinct(codes) as f64 - 1.0),
            )
        }
    };
    let estimate = fit.estimate(1, plain, clusters)?;
    let standard_error = estimate.standard_error * factor.sqrt();
    Ok(AbsorbedEffect {
        estimate: Estimate { standard_error, degrees, ..estimate },
        absorbed,
        residual_degrees,
    })
}

/// A column without the means of the levels.
fn varying_within(
    column: &[f64],
    rows: usize,
    factors: &[Factor<'_>],
    reference: ColumnRef,
) -> Result<Vec<f64>, Refusal> {
    crate::column::check_column(column, reference, rows)?;
    // On a scale on which nothing overflows, and without a mean that costs digits.
    let centred = crate::compensated::centred(column, reference)?;
    let unit = scale(column, &centred);
    let mut left = within(&centred, factors)?;
    let sum = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    if sum(&left) <= SMALLEST_SHARE * sum(&centred) {
        let problem =
            "does not vary within the levels that are absorbed: these explain all of it".to_owned();
        return Err(Refusal::UnusableColumn { column: reference, problem });
    }
    left.iter_mut().for_each(|value| *value *= unit);
    Ok(left)
}

/// The power of two between a column and its centred version.
fn scale(column: &[f64], centred: &[f64]) -> f64 {
    let (mut low, mut high) = (0, 0);
    for (row, value) in column.iter().enumerate() {
        if *value < column[low] {
            low = row;
        }
        if *value > column[high] {
            high = row;
        }
    }
    let ratio =
        (column[high] * 0.5 - column[low] * 0.5) / (centred[high] * 0.5 - centred[low] * 0.5);
    ratio.log2().round().exp2()
}

fn distinct(codes: &[u32]) -> usize {
    let mut sorted = codes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}
