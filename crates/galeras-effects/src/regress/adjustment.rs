//! The adjustment: the given confounders, or those that follow from the causal graph.

use super::args::Args;
use super::estimators::Controls;
use galeras_base::prose::name_list;
use galeras_causal::{CausalGraph, Identification, QueryError, identify};

/// More instruments of a graph are not tried.
const MOST_TRIED: usize = 1000;

/// The columns that the estimators of an outcome use.
#[derive(Clone, Debug, Default)]
pub(super) struct AdjustmentPlan {
    pub(super) adjusted: Vec<String>,
    pub(super) instruments: Vec<String>,
    /// Why, by the graph, adjusting does not give the effect.
    pub(super) backdoor_refused: Option<String>,
    /// Why the arms cannot be compared without an adjustment.
    pub(super) unadjusted_refused: Option<String>,
    pub(super) instruments_refused: Option<String>,
    pub(super) mediators: Vec<String>,
    pub(super) mediators_refused: Option<String>,
    /// Modifiers that the treatment changes, by the graph.
    pub(super) affected: Vec<String>,
}

pub(super) fn adjustment_plan(
    args: &Args,
    graph: Option<&CausalGraph>,
    outcome: &str,
) -> Result<AdjustmentPlan, QueryError> {
    let mut plan = AdjustmentPlan {
        adjusted: args.confounders.clone(),
        instruments: args.instruments.clone(),
        ..AdjustmentPlan::default()
    };
    let Some(graph) = graph else { return Ok(plan) };
    let treatment = args.treatment.as_str();
    for modifier in args.modifiers.iter().filter(|name| graph.contains(name)) {
        if graph.has_directed_path(treatment, modifier)? {
            plan.affected.push(modifier.clone());
        }
    }
    if !graph.is_valid_backdoor(treatment, outcome, &[])? {
        let reason = "by the graph, the arms differ in more than the treatment: something has to \
                      be adjusted for";
        plan.unadjusted_refused = Some(reason.into());
    }
    let answer = identify(graph, treatment, outcome)?;
    if args.confounders.is_empty() {
        match answer.by {
            Identification::Backdoor { adjustment, .. } => plan.adjusted = adjustment,
            Identification::Frontdoor { mediators, .. } => {
                plan.backdoor_refused = Some(format!(
                    "by the graph no set of columns blocks the backdoor paths; the effect is \
                     identified by the front door only, through {} (estimators: [frontdoor])",
                    name_list(&mediators)
                ));
            }
            Identification::Instrument { instrument, .. } => {
                plan.backdoor_refused = Some(format!(
                    "by the graph no set of columns blocks the backdoor paths; the effect is \
                     identified by the instrument `{instrument}` only (estimators: [iv])"
                ));
            }
            Identification::NotIdentified { reason } => {
                let reason = format!("by the graph the effect is not identified: {reason}");
                plan.backdoor_refused = Some(reason.clone());
                plan.unadjusted_refused = Some(reason);
            }
        }
    } else {
        let names: Vec<&str> = args.confounders.iter().map(String::as_str).collect();
        if let Some(stranger) = names.iter().find(|name| !graph.contains(name)) {
            let reason = format!("the confounder `{stranger}` is not in the graph");
            plan.backdoor_refused = Some(reason);
        } else if !graph.is_valid_backdoor(treatment, outcome, &names)? {
            let names = name_list(&args.confounders);
            plan.backdoor_refused = Some(format!(
                "by the graph, adjusting for {names} does not give the effect: that leaves a \
                 backdoor path open, or blocks a part of the effect"
            ));
        }
    }
    let estimators = args.estimators();
    if estimators.iter().any(|one| one.controls == Controls::Mediators) {
        match graph.minimal_frontdoor(treatment, outcome)?.smallest() {
            Some(mediators) => plan.mediators = mediators.clone(),
            None => {
                let reason = "by the graph no columns carry the whole effect without being \
                              confounded: there is no front door";
                plan.mediators_refused = Some(reason.into());
            }
        }
    }
    if estimators.iter().any(|one| one.controls == Controls::Instruments) {
        instruments(args, graph, outcome, &mut plan)?;
    }
    Ok(plan)
}

/// Takes the instruments from the graph, or checks the given ones: all must be valid given the
/// adjustment set. If nothing else decides that set, it is the one that they need.
fn instruments(
    args: &Args,
    graph: &CausalGraph,
    outcome: &str,
    plan: &mut AdjustmentPlan,
) -> Result<(), QueryError> {
    let known = graph.instruments(&args.treatment, outcome)?.list;
    let valid = |name: &str, given: &[String]| {
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        graph.is_valid_instrument(name, &args.treatment, outcome, &given)
    };
    // Confounders that are given, or that block every backdoor path, are adjusted for.
    let free = args.confounders.is_empty() && plan.backdoor_refused.is_some();
    let mut candidates: Vec<Vec<String>> = vec![plan.adjusted.clone()];
    if free {
        candidates = known.iter().map(|one| one.given.clone()).collect();
        candidates.sort_by_key(Vec::len);
    }
    for given in candidates {
        let names = match args.instruments.as_slice() {
            [] => known.iter().map(|one| one.name.clone()).take(MOST_TRIED).collect(),
            names => names.to_vec(),
        };
        let mut fit = Vec::new();
        for name in &names {
            if graph.contains(name) && valid(name, &given)? {
                fit.push(name.clone());
            }
        }
        // Of those in the graph one is enough; those that the user names are all meant.
        if args.instruments.is_empty() {
            fit.truncate(1);
        }
        if !fit.is_empty() && (args.instruments.is_empty() || fit.len() == names.len()) {
            (plan.instruments, plan.adjusted) = (fit, given);
            return Ok(());
        }
    }
    let adjusted = name_list(&plan.adjusted);
    plan.instruments_refused = Some(match args.instruments.as_slice() {
        [] if known.is_empty() => "the graph has no instrument".into(),
        [] => format!("by the graph nothing is an instrument given {adjusted}"),
        names => match names.iter().find(|name| !known.iter().any(|one| one.name == **name)) {
            Some(stranger) => format!("by the graph, `{stranger}` is not an instrument"),
            None => {
                let needed = known.iter().find(|one| one.name == names[0]);
                let needed = name_list(needed.map_or(&[][..], |one| &one.given));
                format!(
                    "by the graph, {} is an instrument given {needed}, not given {adjusted}",
                    name_list(names)
                )
            }
        },
    });
    Ok(())
}
