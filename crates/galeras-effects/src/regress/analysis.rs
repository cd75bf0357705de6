//! The analysis of every contrast and outcome: what is estimated, refuted and diagnosed, in which
//! order. Each table has a file that makes its rows.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use super::adjustment::AdjustmentPlan;
use super::args::Args;
use super::attrition::attrition_rows;
use super::balance::balance_rows;
use super::comparison::{Comparison, RowSet, contrasts, row_sets};
use super::contours::contour_rows;
use super::data_faults::similar_arms;
use super::dose::dose_rows;
use super::effect_sizes::{EffectSizes, effect_sizes};
use super::estimate::{EffectEstimate, EstimationSample, FittedPropensity, fit_propensity};
use super::estimate_table::{EstimateEntry, EstimatorAnswer};
use super::estimators::Estimator;
use super::frame::{AnalysisFrame, gather};
use super::front_door::estimate_by_front_door;
use super::generalised::estimate;
use super::identify::graph_rows;
use super::modifiers::{ModifierRow, modifier_rows};
use super::omnibus::omnibus;
use super::overlap::{overlap_row, usable_scores};
use super::ports::ResultTables;
use super::propensity_bins::propensity_bin_rows;
use super::refutations::{RefutationProgress, RefutedEstimate, RowDraws, refute};
use super::sensitivity::sensitivity_rows;
use super::suspect_rows::remarks;
use super::trim::{self, trimmed};
use super::unit_pairs::UnitPairs;
use galeras_base::prose::count;
use galeras_causal::{CausalGraph, ColumnRef, Refusal, adjust};
use galeras_operator::StepError;

/// What an analysis knows before it sees a row.
#[derive(Debug)]
pub(super) struct AnalysisPlan {
    pub(super) args: Args,
    pub(super) graph: Option<CausalGraph>,
    /// For each outcome.
    pub(super) adjustments: Vec<AdjustmentPlan>,
}

impl AnalysisPlan {
    /// Every column of numbers that is read.
    pub(super) fn numbers(&self) -> Vec<String> {
        let mut more: Vec<String> = self
            .adjustments
            .iter()
            .flat_map(|one| one.adjusted.iter().chain(&one.instruments).cloned())
            .collect();
        if let Some(graph) = &self.graph {
            // Testable implications may speak of any of them.
            let observed = graph.names().iter().filter(|name| !graph.is_latent(name));
            more.extend(observed.filter(|name| **name != self.args.treatment).cloned());
        }
        self.args.numbers(&more)
    }
}

/// Reports what is going on, at most once in a while.
pub(super) struct ActivityReporter {
    report: Box<dyn Fn(String) + Send + Sync>,
    last: Mutex<Instant>,
}

impl ActivityReporter {
    const PAUSE: Duration = Duration::from_secs(1);

    pub(super) fn new(report: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { report: Box::new(report), last: Mutex::new(Instant::now()) }
    }

    /// Reports the text, unless another one was just reported, or is being reported.
    fn report(&self, text: impl FnOnce() -> String) {
        if let Ok(mut last) = self.last.try_lock()
            && last.elapsed() >= Self::PAUSE
        {
            *last = Instant::now();
            (self.report)(text());
        }
    }
}

/// What came of the rows of a group before p-values are adjusted.
pub(super) struct GroupAnalysis {
    /// All tables but those of estimates.
    pub(super) tables: ResultTables,
    pub(super) entries: Vec<EstimateEntry>,
    /// For each primary estimate, in the order of `entries`.
    pub(super) sizes: Vec<EffectSizes>,
}

/// Analyses every contrast of the rows of a group.
pub(super) fn analyse_group(
    plan: &AnalysisPlan,
    frame: &AnalysisFrame,
    stop: &AtomicBool,
    activity: &ActivityReporter,
) -> Result<GroupAnalysis, StepError> {
    let args = &plan.args;
    let mut tables = ResultTables::default();
    let (mut entries, mut sizes) = (Vec::new(), Vec::new());
    let contrasts = contrasts(args, frame);
    tables.warnings = similar_arms(&args.treatment, frame.arms.names());
    for contrast in &contrasts {
        let versus = format!("{} against {}", contrast.treatment, contrast.control);
        activity.report(|| format!("{versus}: estimating"));
        let sets = row_sets(args, frame, &plan.adjustments, contrast);
        let mut modifiers: Vec<ModifierRow> = Vec::new();
        for set in sets {
            let set = trimmed(args, frame, set, |set| shared_propensity(args, set, None));
            let set = &set;
            let folds = folds(args, frame, set);
            let score = shared_propensity(args, set, folds.as_deref());
            tables.balance.extend(balance_rows(args, frame, set, score.as_ref()));
            tables.overlap.extend(overlap_row(args, set, score.as_ref()));
            tables.propensity.extend(propensity_bin_rows(args, set, score.as_ref()));
            let score = usable_scores(args, set, score);
            let mut set_entries = estimates(plan, frame, set, score.as_ref(), folds.as_deref());
            for comparison in &set.comparisons {
                let about = format!("the effect of {versus} on `{}`", comparison.outcome);
                let warnings = remarks(set, comparison).into_iter();
                tables.warnings.extend(warnings.map(|remark| format!("{about}: {remark}")));
            }
            refutations(
                args,
                frame,
                set,
                score.as_ref(),
                folds.as_deref(),
                &mut set_entries,
                |done| {
                    let all = args.simulations * args.refuters.len();
                    activity.report(|| format!("{versus}: refuting, {done} of {all} data sets"));
                },
                stop,
            )?;
            for comparison in &set.comparisons {
                sizes.push(effect_sizes(args, set, comparison));
                tables.contours.extend(contour_rows(args, set, comparison, score.as_ref()));
                modifiers.extend(modifier_rows(args, frame, set, comparison, score.as_ref()));
                let primary = set_entries
                    .iter()
                    .find(|entry| entry.outcome == comparison.outcome)
                    .map_or(Err("nothing was estimated"), |entry| match &entry.answer {
                        EstimatorAnswer::Estimated(effect) if effect.measure.is_ratio() => {
                            Err("the primary estimate is a ratio, and this is about differences")
                        }
                        EstimatorAnswer::Estimated(_)
                            if entry.estimator == Estimator::Ols && !args.absorb.is_empty() =>
                        {
                            Err("the primary estimate absorbs effects, which this does not")
                        }
                        EstimatorAnswer::Estimated(effect) => Ok(effect),
                        EstimatorAnswer::Refused(reason)
                        | EstimatorAnswer::NotApplicable(reason) => Err(reason.as_str()),
                    });
                tables.sensitivity.extend(sensitivity_rows(
                    args,
                    set,
                    comparison,
                    primary,
                    score.as_ref(),
                    folds.as_deref(),
                ));
                let outcome = &comparison.outcome;
                tables.sensitivity.extend(attrition_rows(args, frame, contrast, outcome));
            }
            entries.extend(set_entries);
        }
        adjust_slopes(&mut modifiers);
        tables.modifiers.extend(modifiers);
    }
    activity.report(|| "estimating along the dose".into());
    (tables.dose, tables.trend) = dose_rows(args, frame, &plan.adjustments);
    tables.sensitivity.extend(omnibus(args, frame, &contrasts));
    if let Some(graph) = &plan.graph {
        let rows = graph_rows(args, graph, &plan.adjustments, frame);
        let (rows, cut) = rows.map_err(|error| StepError::new(error.to_string()))?;
        tables.graph = rows;
        tables.warnings.extend(cut);
    }
    Ok(GroupAnalysis { tables, entries, sizes })
}

/// The propensity model of a set of rows, if anything needs one.
fn shared_propensity(args: &Args, set: &RowSet, folds: Option<&[u32]>) -> Option<FittedPropensity> {
    if set.adjusting_refused().is_some() || set.covariates.is_empty() {
        return None;
    }
    if set.comparisons.iter().all(|comparison| comparison.refused.is_some()) {
        return None;
    }
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    Some(fit_propensity(args, &sample(set, 0, &covariates, &[], &[], folds)))
}

fn sample<'a>(
    set: &'a RowSet,
    comparison: usize,
    covariates: &'a [&'a [f64]],
    instruments: &'a [&'a [f64]],
    absorbed: &'a [&'a [u32]],
    folds: Option<&'a [u32]>,
) -> EstimationSample<'a> {
    EstimationSample {
        treated: &set.treated,
        outcome: &set.comparisons[comparison].values,
        covariates,
        instruments,
        units: set.units.as_deref(),
        clusters: set.clusters.as_deref(),
        absorbed,
        folds,
        only_value: false,
    }
}

/// The fold of each row for cross-fitting: those of a cluster or unit are in the same one. Groups
/// are dealt out in the order of their random numbers, so that folds are of equal size.
fn folds(args: &Args, frame: &AnalysisFrame, set: &RowSet) -> Option<Vec<u32>> {
    let folds = args.folds?;
    let numbers = gather(frame.unit_draws.as_ref().unwrap_or(&frame.draws), &set.rows);
    let rows: Vec<u32> = (0..set.rows.len() as u32).collect();
    let groups = set.correlated().unwrap_or(&rows);
    // A group is known by the number of its first row.
    let mut first: Vec<Option<u64>> = vec![None; set.rows.len()];
    for (group, number) in groups.iter().zip(&numbers) {
        first[*group as usize].get_or_insert(*number);
    }
    let mut order: Vec<(u64, u32)> =
        first.iter().zip(0..).filter_map(|(number, group)| Some(((*number)?, group))).collect();
    order.sort_unstable();
    let mut fold = vec![0; set.rows.len()];
    for ((_, group), place) in order.into_iter().zip(0u32..) {
        fold[group as usize] = place % folds;
    }
    Some(groups.iter().map(|group| fold[*group as usize]).collect())
}

/// Every estimate of a set of rows, the primary one of each outcome first.
fn estimates(
    plan: &AnalysisPlan,
    frame: &AnalysisFrame,
    set: &RowSet,
    score: Option<&FittedPropensity>,
    folds: Option<&[u32]>,
) -> Vec<EstimateEntry> {
    let args = &plan.args;
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    let instruments: Vec<&[f64]> = set.instruments.iter().map(Vec::as_slice).collect();
    let absorbed: Vec<&[u32]> = set.absorbed.iter().map(Vec::as_slice).collect();
    let n_treated = set.n_treated();
    let n_clusters =
        set.correlated().map(|codes| codes.iter().max().map_or(0, |last| *last as usize + 1));
    let mut entries = Vec::new();
    for (at, comparison) in set.comparisons.iter().enumerate() {
        let position = args.outcomes.iter().position(|name| *name == comparison.outcome);
        let adjustment = &plan.adjustments[position.unwrap_or(0)];
        let sample = sample(set, at, &covariates, &instruments, &absorbed, folds);
        let n_pairs = set
            .units
            .as_ref()
            .map(|units| UnitPairs::of(&set.treated, &comparison.values, units).rows.len());
        let remarks = remarks(set, comparison);
        for (order, estimator) in args.estimators().into_iter().enumerate() {
            let result = match why_withheld(args, set, adjustment, comparison, estimator, score) {
                Some(result) => result,
                None if estimator == Estimator::Frontdoor => {
                    let mediators = &adjustment.mediators;
                    match estimate_by_front_door(frame, set, comparison, mediators) {
                        Ok(effect) => EstimatorAnswer::Estimated(effect),
                        Err(reason) => EstimatorAnswer::Refused(reason),
                    }
                }
                None => match estimate(args, estimator, &sample, score) {
                    Ok(effect) => {
                        let mut effect =
                            with_warnings(effect, set, comparison, adjustment, estimator, score);
                        effect.remarks.extend(remarks.iter().cloned());
                        EstimatorAnswer::Estimated(effect)
                    }
                    Err(refusal) => {
                        EstimatorAnswer::Refused(reason(args, set, &comparison.outcome, &refusal))
                    }
                },
            };
            entries.push(EstimateEntry {
                outcome: comparison.outcome.clone(),
                contrast: set.contrast.clone(),
                estimator,
                primary: order == 0,
                n: set.rows.len(),
                n_treated,
                n_pairs,
                n_clusters,
                n_missing: if estimator.adjusts() {
                    comparison.missing
                } else {
                    comparison.missing_always
                },
                n_absent: comparison.absent,
                adjusted_for: adjusted_for(estimator, set),
                answer: result,
                p_adjusted: None,
                refutations: Vec::new(),
            });
        }
    }
    entries
}

/// A refusal in words, with the names of the table's columns.
fn reason(args: &Args, set: &RowSet, outcome: &str, refusal: &Refusal) -> String {
    refusal.describe(|column| match column {
        ColumnRef::Covariate(position) => set.names.get(position).map(String::as_str),
        ColumnRef::Instrument(position) => set.instrument_names.get(position).map(String::as_str),
        ColumnRef::Treatment | ColumnRef::Endogenous => Some(&args.treatment),
        ColumnRef::Outcome => Some(outcome),
        _ => None,
    })
}

fn adjusted_for(estimator: Estimator, set: &RowSet) -> Vec<String> {
    if estimator.adjusts() { set.described.clone() } else { Vec::new() }
}

/// An estimate with remarks on what it rests on, as far as only the graph or the propensity show it.
fn with_warnings(
    mut effect: EffectEstimate,
    set: &RowSet,
    comparison: &Comparison,
    adjustment: &AdjustmentPlan,
    estimator: Estimator,
    score: Option<&FittedPropensity>,
) -> EffectEstimate {
    if comparison.left_out > 0 {
        let units =
            count(comparison.left_out, "unit lacks an arm and is", "units lack an arm and are");
        effect.remarks.push(format!("{units} left out."));
    }
    if let Some(trimmed) = &set.trimmed {
        effect.estimand = trim::estimand(effect.estimand);
        effect.remarks.push(trim::remark(set, trimmed));
    }
    match estimator {
        Estimator::Paired if adjustment.unadjusted_refused.is_some() => effect.remarks.push(
            "By the graph something confounds the effect: within units it is balanced only if it \
             is a property of the unit."
                .into(),
        ),
        one if one.is_regression() && matches!(score, Some(Err(Refusal::NoOverlap(_)))) => {
            effect.remarks.push(
                "Some rows have no like in the other arm: for them the regression extrapolates."
                    .into(),
            );
        }
        _ => {}
    }
    effect
}

/// Why an estimator gives no number, as far as that is known before it is asked.
fn why_withheld(
    args: &Args,
    set: &RowSet,
    adjustment: &AdjustmentPlan,
    comparison: &Comparison,
    estimator: Estimator,
    score: Option<&FittedPropensity>,
) -> Option<EstimatorAnswer> {
    if let Some(reason) = &comparison.refused {
        return Some(EstimatorAnswer::Refused(reason.clone()));
    }
    if !estimator.estimates(args.estimand) {
        let (name, estimand) = (estimator.name(), args.estimand.name());
        let reason = format!("`{name}` does not estimate the {estimand}");
        return Some(EstimatorAnswer::NotApplicable(reason));
    }
    if estimator.adjusts() && estimator != Estimator::Ols && !args.absorb.is_empty() {
        let reason = format!("`{}` does not absorb effects: only `ols` does", estimator.name());
        return Some(EstimatorAnswer::NotApplicable(reason));
    }
    let reason = match estimator {
        Estimator::Frontdoor => {
            adjustment.mediators_refused.clone().or_else(|| set.covariates_refused.clone())
        }
        one if one.needs_unit() => None,
        Estimator::Wilcoxon if set.units.is_some() => None,
        one if !one.adjusts() => set.unadjusted_refused.clone(),
        // The graph's word on backdoor paths is not about instruments.
        Estimator::Iv => {
            adjustment.instruments_refused.clone().or_else(|| set.covariates_refused.clone())
        }
        _ => set.adjusting_refused().cloned(),
    };
    if let Some(reason) = reason {
        return Some(EstimatorAnswer::Refused(reason));
    }
    // A regression would give a number here, of its form and not of the data.
    if let (true, Some(Err(reason @ Refusal::Separated))) = (estimator.is_regression(), score) {
        return Some(EstimatorAnswer::Refused(reason.to_string()));
    }
    (estimator.needs_propensity() && set.names.is_empty()).then(|| {
        let reason = "there is nothing to adjust for, and so no propensity score";
        EstimatorAnswer::NotApplicable(reason.into())
    })
}

/// Refutes the estimates there are.
#[allow(clippy::too_many_arguments)]
fn refutations(
    args: &Args,
    frame: &AnalysisFrame,
    set: &RowSet,
    score: Option<&FittedPropensity>,
    folds: Option<&[u32]>,
    entries: &mut [EstimateEntry],
    report: impl Fn(usize) + Sync,
    stop: &AtomicBool,
) -> Result<(), StepError> {
    let place = |entry: &EstimateEntry| {
        set.comparisons.iter().position(|comparison| comparison.outcome == entry.outcome)
    };
    // The mediators of the front door are no part of the samples that refuters change.
    let is_refuted = |entry: &EstimateEntry| {
        matches!(entry.answer, EstimatorAnswer::Estimated(_))
            && entry.estimator != Estimator::Frontdoor
    };
    let mut results = {
        let refuted: Vec<RefutedEstimate> = entries
            .iter()
            .filter_map(|entry| match &entry.answer {
                EstimatorAnswer::Estimated(_) if is_refuted(entry) => {
                    Some(RefutedEstimate { comparison: place(entry)?, estimator: entry.estimator })
                }
                _ => None,
            })
            .collect();
        if refuted.is_empty() {
            return Ok(());
        }
        let rows = gather(&frame.draws, &set.rows);
        let units = frame.unit_draws.as_ref().map(|draws| gather(draws, &set.rows));
        let draws = RowDraws { rows: &rows, units: units.as_deref(), folds };
        let constant = matches!(score, Some(Ok(score)) if score.constant().is_some());
        let progress = RefutationProgress { stop, done: &AtomicUsize::new(0), report: &report };
        refute(args, set, &draws, &refuted, constant, &progress)?.into_iter()
    };
    for entry in entries.iter_mut().filter(|entry| is_refuted(entry)) {
        entry.refutations = results.next().unwrap_or_default();
    }
    Ok(())
}

/// Benjamini and Hochberg's q-values of the slopes of a contrast, over outcomes and modifiers.
fn adjust_slopes(rows: &mut [ModifierRow]) {
    let known: Vec<f64> = rows.iter().filter_map(|row| row.p_value).collect();
    let mut q = adjust(&known, galeras_causal::Adjustment::BenjaminiHochberg).into_iter();
    for row in rows {
        if row.p_value.is_some() {
            row.q_value = q.next();
        }
    }
}
