//! Differences in differences: the change from before to after an event, such as the cut-off date of
//! a model's training data, in one arm less that in the other.

use super::linear::in_design;
use super::{EffectEstimate, EstimandName, EstimationSample, EstimatorSpec};
use galeras_causal::{Refusal, difference_in_differences};

pub(super) const DID: EstimatorSpec = EstimatorSpec {
    is_regression: true,
    argument: Some("after"),
    row_arguments: &["second_cluster", "weights"],
    estimands: &[EstimandName::Ate, EstimandName::Att],
    fixed_estimand: Some("att"),
    robustness: |_, _| {},
    risks: |_, _, _| {
        Err(Refusal::Other("a difference in differences is one of four risks, not of two".into()))
    },
    ..EstimatorSpec::new(
        "did",
        "Difference in differences",
        "The change of the treated from before to `after` an event, less that of controls.",
        by_differences,
    )
};

fn by_differences(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let missing = || Refusal::Other("a defect: no column of time".into());
    let after = sample.design.after.as_deref().ok_or_else(missing)?;
    let mut result = in_design(sample, |design| {
        difference_in_differences(sample.treated, after, sample.outcome, &sample.covariates, design)
    })?;
    result.estimand = "att".to_owned();
    let remark = "It is an effect if both arms would have changed alike without the treatment \
                  (parallel trends), which these rows cannot show.";
    result.remarks.push(remark.into());
    Ok(result)
}
