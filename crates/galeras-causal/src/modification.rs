//! Effect modification: the effect of the treatment along a covariate, by a regression on the
//! standardised covariate, and in each of its fifths.

#[cfg(test)]
mod tests;

use crate::balance::moments;
use crate::column::{UNITS, arm_sizes, distinct, indicator};
use crate::rank::{ascending, quantile};
use crate::refusal::{at_least, require};
use crate::{
    ColumnRef, Covariance, Estimand, Estimate, LinearFit, Propensity, Refusal, adjusted, dense,
    difference_in_means, jackknifed_weighting,
};

const MINIMUM: usize = 10;
const FIFTHS: usize = 5;

/// The dependence of an effect on a covariate.
#[derive(Clone, Debug, PartialEq)]
pub struct Modification {
    /// The change of the effect with one standard deviation (n - 1) of the modifier, with its
    /// standard error (HC3, or CR2 by clusters) and Student's t.
    pub estimate: Estimate,
    /// The effect by fifths of the modifier, from low to high, or by its values if there are two.
    /// There are fewer than five if quantiles coincide.
    pub groups: Vec<ModifierGroup>,
}

/// The units whose modifier is above `low` and at most `high`; the first group includes `low`. If
/// both are equal, the units with this value.
#[derive(Clone, Debug, PartialEq)]
pub struct ModifierGroup {
    /// The lower edge, in units of the modifier.
    pub low: f64,
    /// The upper edge.
    pub high: f64,
    /// The number of units; it may be zero.
    pub n: usize,
    /// The effect among them: the mean paired difference, the difference in means (Welch), or the
    /// coefficient of the treatment in a regression that includes covariates (with overlap weights,
    /// a difference of weighted means).
    pub effect: Result<Estimate, Refusal>,
}

/// Regresses the differences within pairs on a modifier: ordinary least squares with intercept and
/// HC3 (MacKinnon and White 1985, Journal of Econometrics 29:305), t with n - 2 degrees; with
/// `clusters` CR2 and Satterthwaite's. Equals statsmodels' `OLS` with `cov_type="HC3"`. Refuses
/// fewer than 10 pairs, one pair that alone determines the slope ([`Refusal::Leverage`]), and an
/// exact fit.
pub fn modification(
    differences: &[f64],
    modifier: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Modification, Refusal> {
    check_both(differences, modifier)?;
    at_least("pairs", differences.len(), MINIMUM)?;
    let standardised = standardise(modifier)?;
    let estimate = LinearFit::fit(&[&standardised], differences)
        .and_then(|fit| fit.estimate(1, covariance(clusters), clusters))
        .map_err(name_difference_columns)?;
    let groups = groups(modifier, |units| {
        let of_group: Vec<f64> = units.iter().map(|unit| differences[*unit]).collect();
        mean(&of_group, clusters.map(|codes| codes_of(codes, units)).as_deref())
    });
    Ok(Modification { estimate, groups })
}

/// The mean of differences: Student's t, or CR2 by clusters.
fn mean(differences: &[f64], clusters: Option<&[u32]>) -> Result<Estimate, Refusal> {
    at_least("pairs", differences.len(), 2)?;
    let kind = if clusters.is_some() { Covariance::Cr2 } else { Covariance::Classic };
    LinearFit::fit(&[], differences)
        .and_then(|fit| fit.estimate(0, kind, clusters))
        .map_err(name_difference_columns)
}

/// Renames the columns of a regression of differences on the modifier.
fn name_difference_columns(refusal: Refusal) -> Refusal {
    refusal.map_column(|column| match column {
        ColumnRef::Outcome => ColumnRef::Differences,
        ColumnRef::Covariate(_) => ColumnRef::Modifier,
        column => column,
    })
}

fn codes_of(codes: &[u32], units: &[usize]) -> Vec<u32> {
    dense(units.iter().map(|unit| codes[*unit]))
}

/// Regresses the outcome on treatment, modifier, their product and `covariates`, for units that are
/// treated or not: the coefficient of the product with HC3, t with n - 4 degrees (minus one for
/// each covariate); with `clusters` CR2 and Satterthwaite's degrees.
///
/// Without covariates the model gives each arm a separate line: the coefficient is the difference
/// of the slopes, its variance the sum of theirs. The modifier may be one of the covariates. Errors
/// are those of [`modification`] and [`adjusted`], and fewer than 3 units in an arm;
/// [`ColumnRef::ModifierInArm`] is a modifier that does not vary within an arm.
pub fn interaction(
    treated: &[bool],
    outcome: &[f64],
    modifier: &[f64],
    covariates: &[&[f64]],
    clusters: Option<&[u32]>,
) -> Result<Modification, Refusal> {
    let effect: GroupEffect = |treated, outcome, columns, codes| {
        Ok(adjusted(treated, outcome, columns, covariance(codes), codes)?.estimate)
    };
    by_groups(treated, outcome, modifier, covariates, clusters, effect)
}

/// As [`interaction`], with the effect in each group by overlap weights (Li, Morgan and Zaslavsky
/// 2018, JASA 113:390), which average over the units that could have been in either arm. Scores are
/// estimated within the group, so the covariates have exactly the same means in both of its arms
/// (Yang and others 2021, Statistics in Medicine 40:4294). Standard errors are those of
/// [`jackknifed_weighting`].
pub fn overlap_interaction(
    treated: &[bool],
    outcome: &[f64],
    modifier: &[f64],
    covariates: &[&[f64]],
    clusters: Option<&[u32]>,
) -> Result<Modification, Refusal> {
    let effect: GroupEffect = |treated, outcome, columns, codes| {
        let score = Propensity::fit(columns, treated, None)?;
        let (estimand, all) = (Estimand::Ato, (0.0, 1.0));
        jackknifed_weighting(columns, treated, outcome, &score, estimand, all, codes)
    };
    by_groups(treated, outcome, modifier, covariates, clusters, effect)
}

/// The effect in a group, from its arms, outcomes, covariates that vary there, and clusters.
type GroupEffect = fn(&[bool], &[f64], &[&[f64]], Option<&[u32]>) -> Result<Estimate, Refusal>;

/// The interaction of a treatment with a modifier, and the effect in each group.
fn by_groups(
    treated: &[bool],
    outcome: &[f64],
    modifier: &[f64],
    covariates: &[&[f64]],
    clusters: Option<&[u32]>,
    effect: GroupEffect,
) -> Result<Modification, Refusal> {
    check_both(outcome, modifier)?;
    require(treated.len() == outcome.len(), "the columns differ in length")?;
    at_least("units", outcome.len(), MINIMUM)?;
    arm_sizes(treated, UNITS, 3)?;
    let standardised = standardise(modifier)?;
    let estimate = product(treated, outcome, modifier, &standardised, covariates, clusters)?;
    let groups = groups(modifier, |units| {
        let treated: Vec<bool> = units.iter().map(|unit| treated[*unit]).collect();
        let outcome: Vec<f64> = units.iter().map(|unit| outcome[*unit]).collect();
        if covariates.is_empty() && clusters.is_none() {
            return difference_in_means(&treated, &outcome);
        }
        // A covariate that is constant in the group needs no adjustment there.
        let of_group = covariates.iter().map(|column| units.iter().map(|unit| column[*unit]));
        let of_group = of_group.map(Iterator::collect::<Vec<f64>>).enumerate();
        let varying = |(_, column): &(usize, Vec<f64>)| column.iter().any(|x| *x != column[0]);
        let (places, columns): (Vec<usize>, Vec<Vec<f64>>) = of_group.filter(varying).unzip();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let clusters = clusters.map(|codes| codes_of(codes, units));
        if let Some(codes) = &clusters {
            two_clusters(&treated, codes)?;
        }
        let place = |at: usize| ColumnRef::Covariate(places.get(at).copied().unwrap_or(at));
        effect(&treated, &outcome, &columns, clusters.as_deref())
            .map_err(|refusal| refusal.map_covariate(place))
    });
    Ok(Modification { estimate, groups })
}

/// Refuses an arm that lies in one cluster: its effect cannot be separated from the treatment's.
fn two_clusters(treated: &[bool], codes: &[u32]) -> Result<(), Refusal> {
    for arm in [true, false] {
        let rows = treated.iter().zip(codes).filter(|(t, _)| **t == arm);
        let found = distinct(&rows.map(|(_, code)| *code).collect::<Vec<u32>>());
        at_least("clusters of an arm", found.max(1), 2)?;
    }
    Ok(())
}

fn covariance(clusters: Option<&[u32]>) -> Covariance {
    if clusters.is_some() { Covariance::Cr2 } else { Covariance::Hc3 }
}

/// The coefficient of the product of treatment and modifier.
fn product(
    treated: &[bool],
    outcome: &[f64],
    modifier: &[f64],
    standardised: &[f64],
    covariates: &[&[f64]],
    clusters: Option<&[u32]>,
) -> Result<Estimate, Refusal> {
    let arm = indicator(treated);
    let both: Vec<f64> = arm.iter().zip(standardised).map(|(t, z)| t * z).collect();
    let mut columns = vec![both.as_slice(), &arm, standardised];
    let others = || covariates.iter().enumerate().filter(|(_, column)| **column != modifier);
    columns.extend(others().map(|(_, column)| *column));
    let place = |at: usize| match at.checked_sub(3) {
        None => ColumnRef::ModifierInArm,
        Some(at) => ColumnRef::Covariate(others().nth(at).map_or(at, |(place, _)| place)),
    };
    let fit = LinearFit::fit(&columns, outcome).map_err(|refusal| refusal.map_covariate(place))?;
    fit.estimate(1, covariance(clusters), clusters)
}

/// The modifier with mean 0 and standard deviation (n - 1) 1.
fn standardise(modifier: &[f64]) -> Result<Vec<f64>, Refusal> {
    let summary = moments(modifier.iter().map(|value| (*value, 1.0)));
    let deviation = summary.deviation.unwrap_or(0.0);
    if deviation == 0.0 {
        return Err(Refusal::Constant(ColumnRef::Modifier));
    }
    require(deviation.is_finite(), "the values are too large to be added up")?;
    Ok(modifier.iter().map(|value| (value - summary.mean) / deviation).collect())
}

/// Groups units by the modifier: by its values if there are two, otherwise by its quintiles.
/// `effect` gets the positions of the units of each group.
fn groups(
    modifier: &[f64],
    effect: impl Fn(&[usize]) -> Result<Estimate, Refusal>,
) -> Vec<ModifierGroup> {
    let mut sorted = ascending(modifier);
    let mut edges: Vec<f64> = (0..=FIFTHS).map(|at| quantile(&sorted, at, FIFTHS)).collect();
    edges.dedup();
    sorted.dedup();
    let cuts: Vec<(f64, f64)> = if sorted.len() == 2 {
        sorted.iter().map(|value| (*value, *value)).collect()
    } else {
        edges.windows(2).map(|edge| (edge[0], edge[1])).collect()
    };
    let group = |(position, (low, high)): (usize, (f64, f64))| {
        let first = position == 0 || low == high;
        let inside = |at: f64| at <= high && (at > low || (first && at == low));
        let units: Vec<usize> =
            (0..modifier.len()).filter(|unit| inside(modifier[*unit])).collect();
        ModifierGroup { low, high, n: units.len(), effect: effect(&units) }
    };
    cuts.into_iter().enumerate().map(group).collect()
}

fn check_both(outcome: &[f64], modifier: &[f64]) -> Result<(), Refusal> {
    require(outcome.len() == modifier.len(), "the columns differ in length")?;
    let finite = outcome.iter().chain(modifier).all(|value| value.is_finite());
    require(finite, "a value is missing or infinite")
}
