//! Linear regression with the wild cluster bootstrap, for few clusters.

use super::linear::OLS;
use super::{EffectEstimate, EstimationSample, EstimatorSpec, Measure};
use crate::regress::comparison::group_count;
use crate::regress::robustness;
use galeras_base::prose::thousands;
use galeras_causal::{Covariance, Refusal, WildClusters, adjusted, wild_weights};

/// Simulated intervals cover less with fewer clusters.
const FEWEST_CLUSTERS: usize = 6;
/// Of this many samples, 5 % are a whole number with the data themselves.
const SAMPLES: usize = 9_999;

pub(super) const WILD_CLUSTER: EstimatorSpec = EstimatorSpec {
    is_regression: true,
    robustness: robustness::of_ols,
    // Scaled risks would take the standard error, which is too small with few clusters.
    risks: OLS.risks,
    ..EstimatorSpec::new(
        "wild_cluster",
        "Linear regression with the wild cluster bootstrap",
        "As `ols`, with the test and interval of the wild cluster bootstrap, for few clusters.",
        by_bootstrap,
    )
};

fn by_bootstrap(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let (treated, outcome, covariates) = (sample.treated, sample.outcome, &sample.covariates);
    if sample.only_value {
        let fit = adjusted(treated, outcome, covariates, Covariance::Classic, None)?;
        return Ok(EffectEstimate::new(fit.estimate, "ate", "classic"));
    }
    let missing = || Refusal::Other("the wild cluster bootstrap needs clusters".into());
    let clusters = sample.correlated().ok_or_else(missing)?;
    let count = group_count(clusters);
    sample.require("clusters for the wild bootstrap", count, FEWEST_CLUSTERS)?;
    let weights = wild_weights(sample.args.seed as u64, count);
    let wild = WildClusters::new(treated, outcome, covariates, clusters, SAMPLES, weights)?;
    let found = wild.estimate(sample.args.alpha)?;
    let mut result =
        EffectEstimate::by_test(found, Measure::Difference, "wild cluster bootstrap, CR1");
    result.remarks.push(format!(
        "The interval has the effects that {} samples of the residuals under them do not reject \
         (Cameron, Gelbach and Miller 2008).",
        thousands(SAMPLES)
    ));
    Ok(result)
}
