//! The estimate by the front door, through mediators.

use super::{Controls, EffectEstimate, EstimationSample, EstimatorSpec};
use crate::shared_columns::named;
use galeras_base::prose::name_list;
use galeras_causal::{Refusal, front_door};

pub(super) const FRONTDOOR: EstimatorSpec = EstimatorSpec {
    controls: Controls::Mediators,
    risks: |_, _, _| {
        Err(Refusal::Other("the front door gives a difference of risks, and no risks".into()))
    },
    ..EstimatorSpec::new(
        "frontdoor",
        "Front-door adjustment",
        "The effect through the mediators that the graph names, by the front door.",
        by_front_door,
    )
};

fn by_front_door(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let (names, clusters) = (sample.mediator_names, sample.correlated());
    let found = front_door(sample.treated, &sample.mediators, sample.outcome, clusters)
        .map_err(|refusal| Refusal::Other(named(&refusal, names)))?;
    let kind = match clusters {
        Some(_) => "jackknife, clustered",
        None => "jackknife",
    };
    let mut effect = EffectEstimate::new(found, "ate", kind);
    effect.remarks.push(format!(
        "By the graph the whole effect runs through {}, which the confounders of treatment and \
         outcome do not touch (front door, Pearl 2009); in each arm the outcome is taken as linear \
         in it. Refuters do not change it.",
        name_list(names)
    ));
    Ok(effect)
}
