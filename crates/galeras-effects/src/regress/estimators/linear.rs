//! Differences in means and linear regressions.

use super::{Controls, EffectEstimate, EstimationSample, EstimatorSpec, Measure};
use crate::regress::comparison::{arm_values, group_count};
use crate::regress::evalue::{counted_risks, scaled_risks};
use crate::regress::robustness;
use galeras_base::prose::{count, name_list, thousands};
use galeras_causal::{
    Covariance, Refusal, RowDesign, RowEffect, absorbed, adjusted_by_design, difference_in_means,
    interacted, standardised_risks,
};

/// Intervals by `HC1` with absorbed effects cover less with fewer degrees of freedom, and so do those
/// by `CR1` with fewer clusters, where each lies in one arm (docs/coverage.md).
const FEWEST_DEGREES: usize = 35;
const FEWEST_TREATED_WHOLE: usize = 20;

pub(super) const DIFFERENCE: EstimatorSpec = EstimatorSpec {
    controls: Controls::Nothing,
    row_arguments: &["second_cluster", "weights"],
    risks: counted_risks,
    ..EstimatorSpec::new(
        "difference",
        "Difference in means",
        "The difference of the means of the arms, with Welch's interval.",
        difference,
    )
};

pub(super) const OLS: EstimatorSpec = EstimatorSpec {
    is_regression: true,
    argument: Some("absorb"),
    row_arguments: &["second_cluster", "weights"],
    robustness: robustness::of_ols,
    risks: |estimator, sample, difference| {
        // Standardised risks know neither absorbed effects nor a second column of clusters.
        if !sample.absorbed.is_empty() || sample.design.second_clusters.is_some() {
            return scaled_risks(estimator, sample, difference);
        }
        let (kind, clusters) = (sample.args.covariance(), sample.correlated());
        standardised_risks(sample.treated, sample.outcome, &sample.covariates, kind, clusters)
    },
    ..EstimatorSpec::new(
        "ols",
        "Linear regression",
        "Linear regression on the treatment and the confounders.",
        ols,
    )
};

pub(super) const LIN: EstimatorSpec = EstimatorSpec {
    is_regression: true,
    robustness: robustness::of_lin,
    ..EstimatorSpec::new(
        "lin",
        "Linear regression with interactions (Lin 2013)",
        "Linear regression with every confounder centred and interacted with the treatment\n(Lin 2013).",
        |sample| {
            let (kind, clusters) = sample.covariance();
            let fit =
                interacted(sample.treated, sample.outcome, &sample.covariates, kind, clusters)?;
            Ok(EffectEstimate::regression(fit.estimate, Measure::Difference, sample, kind))
        },
    )
};

fn difference(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let clustered = sample.units.is_none() && sample.clusters.is_some() && !sample.only_value;
    if clustered || sample.design.weights.is_some() {
        // The same difference as the slope of a regression, whose errors know clusters.
        return in_design(sample, |design| {
            adjusted_by_design(sample.treated, sample.outcome, &[], design)
        });
    }
    let means = difference_in_means(sample.treated, sample.outcome)?;
    let mut result = EffectEstimate::new(means, "ate", "Welch");
    let is_known = sample.units.is_none() && !sample.only_value;
    result.influence = is_known.then(|| influence_on_means(sample));
    result.remarks.extend(sample.unpaired_remark(Covariance::Classic));
    Ok(result)
}

fn ols(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    if !sample.absorbed.is_empty() {
        return with_absorbed(sample);
    }
    in_design(sample, |design| {
        adjusted_by_design(sample.treated, sample.outcome, &sample.covariates, design)
    })
}

/// The contribution of each row to the error of a difference in means.
fn influence_on_means(sample: &EstimationSample<'_>) -> Vec<f64> {
    let [(control, n0), (treatment, n1)] = [false, true].map(|arm| {
        let values = arm_values(sample.treated, sample.outcome, arm);
        (values.iter().sum::<f64>() / values.len() as f64, values.len() as f64)
    });
    let part = |(treated, y): (&bool, &f64)| match treated {
        true => (y - treatment) / n1,
        false => (control - y) / n0,
    };
    sample.treated.iter().zip(sample.outcome).map(part).collect()
}

/// The estimate of a regression with the weights and clusters of the sample.
pub(super) fn in_design(
    sample: &EstimationSample<'_>,
    estimate: impl FnOnce(RowDesign<'_>) -> Result<RowEffect, Refusal>,
) -> Result<EffectEstimate, Refusal> {
    let (kind, clusters) = sample.covariance();
    let RowEffect { estimate, influence } = estimate(sample.design.row_design(kind, clusters))?;
    let mut result = EffectEstimate::regression(estimate, Measure::Difference, sample, kind);
    // Sums within the clusters of one column do not have the correlations of two.
    result.influence = sample.design.second_clusters.is_none().then_some(influence);
    if sample.design.second_clusters.is_some() && !sample.only_value {
        result.se_kind = format!("two-way {kind}");
    }
    if let (Some(name), Some(rows)) = (&sample.args.weights, sample.design.effective_rows()) {
        result.remarks.push(format!(
            "Rows are weighted by `{name}`, which leaves the precision of {} rows of equal weight.",
            thousands(rows.round() as usize)
        ));
    }
    Ok(result)
}

/// Refuses clusters that are too few for a standard error without leverages.
pub(super) fn refuse_few_whole(sample: &EstimationSample<'_>) -> Result<(), Refusal> {
    let Some(clusters) = sample.correlated() else { return Ok(()) };
    let found = group_count(clusters);
    if found >= FEWEST_TREATED_WHOLE || !sample.treats_clusters(clusters) {
        return Ok(());
    }
    sample.require("clusters, each of which lies in one arm", found, FEWEST_TREATED_WHOLE)
}

/// Least squares with a constant for each level of the absorbed columns.
fn with_absorbed(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    refuse_few_whole(sample)?;
    let (kind, clusters) = sample.covariance_without_leverage();
    let (treated, outcome) = (sample.treated, sample.outcome);
    let found = absorbed(treated, outcome, &sample.covariates, &sample.absorbed, kind, clusters)?;
    let degrees = found.residual_degrees;
    if kind != Covariance::Classic && clusters.is_none() {
        sample.require("degrees of freedom beside absorbed effects", degrees, FEWEST_DEGREES)?;
    }
    let mut result = EffectEstimate::regression(found.estimate, Measure::Difference, sample, kind);
    result.remarks.push(format!(
        "{} absorbed for the levels of {}, {degrees} degrees of freedom left.",
        count(found.absorbed, "constant", "constants"),
        name_list(&sample.args.absorb),
    ));
    Ok(result)
}
