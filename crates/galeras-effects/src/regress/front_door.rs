//! The estimate by the front door: the mediators of an analysis, and the estimate through them.

use super::comparison::{Comparison, RowSet};
use super::estimate::EffectEstimate;
use super::frame::{AnalysisFrame, gather};
use super::shared_columns as columns;
use galeras_base::prose::name_list;
use galeras_causal::front_door;
use galeras_operator::far_numbers::moved;

/// Estimates the effect through `mediators`.
///
/// # Errors
/// Why there is no estimate, in words.
pub(super) fn estimate_by_front_door(
    frame: &AnalysisFrame,
    set: &RowSet,
    comparison: &Comparison,
    mediators: &[String],
) -> Result<EffectEstimate, String> {
    let values: Vec<Vec<f64>> =
        mediators.iter().map(|name| moved(gather(&frame.numbers[name], &set.rows))).collect();
    let slices: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let clusters = set.correlated();
    let found = front_door(&set.treated, &slices, comparison.near_zero(), clusters)
        .map_err(|refusal| columns::named(&refusal, mediators))?;
    let kind = match clusters {
        Some(_) => "jackknife, clustered",
        None => "jackknife",
    };
    let mut effect = EffectEstimate::new(found.estimate, "ate", kind);
    effect.remarks.push(format!(
        "By the graph the whole effect runs through {}, which the confounders of treatment and \
         outcome do not touch (front door, Pearl 2009); in each arm the outcome is taken as linear \
         in it. Refuters do not change it.",
        name_list(mediators)
    ));
    Ok(effect)
}
