//! The analysis of every group, contrast and outcome: what is estimated, refuted and diagnosed, in
//! which order, with p-values adjusted over families of tests. Each table has a file that makes its
//! rows.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::adjustment::AdjustmentPlan;
use super::args::{Args, FamilyMember};
use super::attrition::attrition_rows;
use super::balance::balance_rows;
use super::beginnings::{BEGINS, BeginningShares};
use super::comparison::{Comparison, Contrast, RowSet, contrasts, group_count, row_sets};
use super::contours::contour_rows;
use super::data_faults::{remarks, similar_arms};
use super::dose::dose_rows;
use super::effect_sizes::{EffectSizeRow, effect_sizes};
use super::equivalence::{EquivalenceRow, MarginTest};
use super::estimate_table::{
    EstimateEntry, EstimateRow, PrimaryResults, SummaryRow, TestFamily, refused_effects,
};
use super::estimators::{
    AIPW, Controls, DID, EffectEstimate, EstimationSample, Estimator, FittedPropensity, Measure,
    OLS, PAIRED,
};
use super::findings::FindingRow;
use super::frame::{AnalysisFrame, gather};
use super::identify::{graph_rows, refuted};
use super::modifiers::{ModifierRow, modifier_rows};
use super::omnibus::omnibus;
use super::overlap::{lack_of_overlap, overlap_row, propensity_bin_rows, trimmed};
use super::ports::ResultTables;
use super::refuters::{RefutationProgress, refutation_rows, refute};
use super::sensitivity::sensitivity_rows;
use crate::shared_columns::{Answer, NoNumber};
use galeras_base::prose::{count, name_list};
use galeras_causal::{CausalGraph, ColumnRef, Influence, Refusal, adjust, max_t};
use galeras_operator::Entry;
use galeras_operator::StepError;
use galeras_operator::far_numbers::moved;
use galeras_sql::group_columns::Groups;

/// The inputs of an analysis that are known before its rows.
#[derive(Debug)]
pub(super) struct AnalysisPlan {
    pub(super) args: Args,
    pub(super) graph: Option<CausalGraph>,
    /// One per outcome.
    pub(super) adjustments: Vec<AdjustmentPlan>,
    /// A column that shows faults of units, or replaces them where there are none.
    pub(super) origin: Option<&'static str>,
    /// The input has the column [`BEGINS`].
    pub(super) begins: bool,
}

impl AnalysisPlan {
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
        more.extend(self.begins.then(|| BEGINS.to_owned()));
        self.args.numbers(&more)
    }
}

/// Reports progress, at most once per second.
pub(super) struct ActivityReporter {
    report: Box<dyn Fn(String) + Send + Sync>,
    last: Mutex<Instant>,
}

impl ActivityReporter {
    const PAUSE: Duration = Duration::from_secs(1);

    pub(super) fn new(report: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { report: Box::new(report), last: Mutex::new(Instant::now()) }
    }

    fn report(&self, text: impl FnOnce() -> String) {
        if let Ok(mut last) = self.last.try_lock()
            && last.elapsed() >= Self::PAUSE
        {
            *last = Instant::now();
            (self.report)(text());
        }
    }
}

/// The results of a group before p-values are adjusted.
struct GroupAnalysis {
    tables: ResultTables,
    entries: Vec<EstimateEntry>,
    beginnings: Vec<BeginningShares>,
}

fn analyse_group(
    plan: &AnalysisPlan,
    frame: &AnalysisFrame,
    stop: &AtomicBool,
    activity: &ActivityReporter,
) -> Result<GroupAnalysis, StepError> {
    let args = &plan.args;
    let mut tables = ResultTables::default();
    let mut entries = Vec::new();
    let contrasts = contrasts(args, frame);
    tables.warnings = similar_arms(&args.treatment, &frame.arms.names);
    let of_contrast = |contrast| BeginningShares::new(frame, contrast);
    let beginnings: Vec<BeginningShares> = contrasts.iter().filter_map(of_contrast).collect();
    tables.warnings.extend(beginnings.iter().filter_map(BeginningShares::warning));
    for contrast in &contrasts {
        let versus = format!("{} against {}", contrast.treatment, contrast.control);
        activity.report(|| format!("{versus}: estimating"));
        let sets = row_sets(args, frame, &plan.adjustments, contrast);
        let mut modifiers: Vec<ModifierRow> = Vec::new();
        for set in sets {
            let set = trimmed(args, frame, set, |set| {
                SetContext { args, frame, set, score: None, folds: None }.fit_propensity()
            });
            let folds = folds(args, frame, &set);
            let cx = SetContext { args, frame, set: &set, score: None, folds: folds.as_deref() };
            let score = cx.fit_propensity();
            let cx = SetContext { score: score.as_ref(), ..cx };
            let about: Vec<Vec<String>> =
                set.comparisons.iter().map(|comparison| remarks(&set, comparison)).collect();
            // Tables that do not need each other are made at the same time.
            let ((balance, overlap, propensity), mut set_entries) = rayon::join(
                || (balance_rows(&cx), overlap_row(&cx), propensity_bin_rows(&cx)),
                || estimates(plan, &cx, &about, &mut tables.effect_sizes),
            );
            tables.balance.extend(balance);
            tables.overlap.extend(overlap);
            tables.propensity.extend(propensity);
            for (comparison, remarks) in set.comparisons.iter().zip(&about) {
                let about = format!("the effect of {versus} on `{}`", comparison.outcome);
                let warnings = remarks.iter().map(|remark| format!("{about}: {remark}"));
                tables.warnings.extend(warnings);
            }
            let report = |done: usize| {
                let all = args.simulations * args.refuters.len();
                activity.report(|| format!("{versus}: refuting, {done} of {all} data sets"));
            };
            refute(&cx, &mut set_entries, &RefutationProgress { stop, report: &report })?;
            for comparison in &set.comparisons {
                let entry = set_entries.iter().find(|entry| entry.outcome == comparison.outcome);
                let primary = match entry.map(|entry| (&entry.answer, entry.estimator)) {
                    None => Err("nothing was estimated"),
                    Some((Err(none), _)) => Err(none.reason()),
                    Some((Ok(effect), _))
                        if effect.measure == Measure::ProbabilityOfSuperiority =>
                    {
                        Err("the primary estimate is a probability, and this is about differences")
                    }
                    Some((Ok(_), _)) if args.weights.is_some() => {
                        Err("the primary estimate is weighted, and this is not")
                    }
                    Some((Ok(_), estimator)) if estimator == DID => {
                        Err("the primary estimate is a difference in differences, and this is not")
                    }
                    Some((Ok(effect), _)) => Ok(effect),
                };
                let ((contours, slopes), sensitivity) = rayon::join(
                    || {
                        rayon::join(
                            || contour_rows(&cx, comparison),
                            || modifier_rows(&cx, comparison),
                        )
                    },
                    || sensitivity_rows(&cx, comparison, primary),
                );
                tables.contours.extend(contours);
                modifiers.extend(slopes);
                tables.sensitivity.extend(sensitivity);
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
        tables.warnings.extend(cut);
        tables.warnings.extend(refuted(&rows).map(|words| {
            format!(
                "{words}: see the port `graph`, and add the arrows or common causes that it lacks"
            )
        }));
        tables.graph = rows;
    }
    Ok(GroupAnalysis { tables, entries, beginnings })
}

/// The inputs that the analyses of a set of rows share.
#[derive(Clone, Copy)]
pub(super) struct SetContext<'a> {
    pub(super) args: &'a Args,
    pub(super) frame: &'a AnalysisFrame,
    pub(super) set: &'a RowSet,
    /// The propensity model, if anything needs one.
    pub(super) score: Option<&'a FittedPropensity>,
    /// The fold of each row, for cross-fitting.
    pub(super) folds: Option<&'a [u32]>,
}

impl<'a> SetContext<'a> {
    /// The rows of the set with an outcome, for an estimator.
    pub(super) fn sample(&self, outcome: &'a [f64]) -> EstimationSample<'a> {
        EstimationSample {
            args: self.args,
            treated: &self.set.treated,
            outcome,
            covariates: self.set.covariates(),
            instruments: self.set.instruments.iter().map(Vec::as_slice).collect(),
            mediators: Vec::new(),
            mediator_names: &[],
            units: self.set.units.as_deref(),
            clusters: self.set.clusters.as_deref(),
            absorbed: self.set.absorbed.iter().map(Vec::as_slice).collect(),
            design: &self.set.design,
            folds: self.folds,
            score: self.score,
            only_value: false,
        }
    }

    /// Why a regression would give a number of its form and not of the data: the confounders
    /// separate the arms.
    pub(super) fn separated(&self) -> Option<String> {
        match self.score {
            Some(Err(reason @ Refusal::Separated)) => Some(reason.to_string()),
            _ => None,
        }
    }

    fn fit_propensity(&self) -> Option<FittedPropensity> {
        let set = self.set;
        let useless = set.adjusting_refused().is_some()
            || set.covariates.is_empty()
            || set.comparisons.iter().all(|comparison| comparison.refused.is_some());
        (!useless).then(|| self.sample(&[]).fit_propensity())
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

/// Every estimate of a set of rows, the primary one of each outcome first. Adds the rows of its
/// effect sizes. `remarks` are about the rows of each comparison.
fn estimates(
    plan: &AnalysisPlan,
    cx: &SetContext<'_>,
    remarks: &[Vec<String>],
    size_rows: &mut Vec<EffectSizeRow>,
) -> Vec<EstimateEntry> {
    let (args, set) = (&plan.args, cx.set);
    let n_treated = set.n_treated();
    let n_clusters = set.correlated().map(group_count);
    let overlaps = EstimatorOverlaps::of(cx);
    let mut entries = Vec::new();
    for (comparison, remarks) in set.comparisons.iter().zip(remarks) {
        let position = args.outcomes.iter().position(|name| *name == comparison.outcome);
        let adjustment = &plan.adjustments[position.unwrap_or(0)];
        let mediators: Vec<Vec<f64>> = adjustment
            .mediators
            .iter()
            .map(|name| moved(gather(&cx.frame.numbers[name], &set.rows)))
            .collect();
        let sample = EstimationSample {
            mediators: mediators.iter().map(Vec::as_slice).collect(),
            mediator_names: &adjustment.mediators,
            ..cx.sample(&comparison.values)
        };
        let n_pairs = set.pairs(&comparison.values).map(|pairs| pairs.len());
        let estimate = |estimator: &Estimator| -> Answer<EffectEstimate> {
            applicable(cx, adjustment, comparison, *estimator)?;
            if let Some(refusal) = overlaps.refusal(*estimator) {
                return Err(refusal.into());
            }
            let mut effect = estimator
                .run(&sample)
                .map_err(|refusal| reason(args, set, &comparison.outcome, &refusal))?;
            if estimator.controls != Controls::Mediators {
                add_remarks(&mut effect, cx, comparison, adjustment, *estimator);
                overlaps.warn(&mut effect, set, *estimator);
                effect.remarks.extend(remarks.iter().cloned());
            }
            Ok(effect)
        };
        let estimators = args.estimators();
        let (answers, (sizes, rows)) = rayon::join(
            || estimators.par_iter().map(estimate).collect::<Vec<_>>(),
            || effect_sizes(args, set, comparison),
        );
        size_rows.extend(rows);
        let mut of_primary = Some(sizes);
        for (estimator, mut answer) in estimators.into_iter().zip(answers) {
            let influence = answer.as_mut().ok().and_then(|effect| effect.influence.take());
            let influence = influence.and_then(|parts| influence_of_groups(cx, &parts));
            let mut entry = EstimateEntry {
                outcome: comparison.outcome.clone(),
                contrast: set.contrast.clone(),
                estimator,
                primary: None,
                n: set.rows.len(),
                n_treated,
                n_pairs,
                n_clusters,
                n_missing: match estimator.adjusts() {
                    true => comparison.missing,
                    false => comparison.missing_always,
                },
                n_absent: comparison.absent,
                adjusted_for: match estimator.adjusts() {
                    true => set.described.clone(),
                    false => Vec::new(),
                },
                answer,
                p_adjusted: None,
                influence,
                family: None,
                refutations: Vec::new(),
            };
            // The first estimator is the primary one.
            if let Some(sizes) = of_primary.take() {
                let margin = MarginTest::new(args, &entry, &sizes);
                entry.primary = Some(PrimaryResults { sizes, margin });
            }
            entries.push(entry);
        }
    }
    entries
}

/// More clusters, units or rows would take too much memory, in as many columns as there are estimates.
const MOST_INFLUENCES: usize = 50_000;

/// The sums of the contributions of rows within the clusters, units or rows of the frame, which all
/// contrasts share.
fn influence_of_groups(cx: &SetContext<'_>, parts: &[f64]) -> Option<Vec<f64>> {
    let codes = cx.frame.clusters.as_ref().or(cx.frame.units.as_ref());
    let groups = codes.map_or(cx.frame.len(), |codes| codes.names.len());
    if groups > MOST_INFLUENCES {
        return None;
    }
    let mut sums = vec![0.0; groups];
    for (row, part) in cx.set.rows.iter().zip(parts) {
        let group = codes.map_or(*row, |codes| codes.rows[*row as usize]);
        sums[group as usize] += part;
    }
    Some(sums)
}

fn reason(args: &Args, set: &RowSet, outcome: &str, refusal: &Refusal) -> String {
    refusal.describe(|column| match column {
        ColumnRef::Covariate(position) => set.names.get(position).map(String::as_str),
        ColumnRef::Instrument(position) => set.plan.instruments.get(position).map(String::as_str),
        ColumnRef::Treatment | ColumnRef::Endogenous => Some(&args.treatment),
        ColumnRef::Outcome => Some(outcome),
        _ => None,
    })
}

/// Adds remarks that only the graph, the rows or the propensity give reason for.
fn add_remarks(
    effect: &mut EffectEstimate,
    cx: &SetContext<'_>,
    comparison: &Comparison,
    adjustment: &AdjustmentPlan,
    estimator: Estimator,
) {
    if comparison.left_out > 0 {
        let units =
            count(comparison.left_out, "unit lacks an arm and is", "units lack an arm and are");
        effect.remarks.push(format!("{units} left out."));
    }
    if let Some(trimmed) = &cx.set.trimmed {
        effect.estimand.push_str("_trimmed");
        effect.remarks.push(trimmed.remark(cx.set));
    }
    if estimator == PAIRED && adjustment.unadjusted_refused.is_some() {
        let remark = "By the graph something confounds the effect: within units it is balanced only \
                      if it is a property of the unit.";
        effect.remarks.push(remark.into());
    }
}

/// The estimators by propensity scores that a lack of overlap refuses, and that lack.
struct EstimatorOverlaps {
    refused: Vec<(Estimator, Refusal)>,
    /// The reason that matters to the others: the first of these, or a lack that would refuse any.
    lack: Option<Refusal>,
}

impl EstimatorOverlaps {
    fn of(cx: &SetContext<'_>) -> Self {
        let by_score = cx.args.estimators().into_iter().filter(|one| one.needs_propensity);
        let refused: Vec<(Estimator, Refusal)> = by_score
            .filter_map(|one| Some((one, lack_of_overlap(cx, (one.clip)(cx.args))?)))
            .collect();
        let lack = match refused.first() {
            Some((_, lack)) => Some(lack.clone()),
            // Its range is the widest.
            None => lack_of_overlap(cx, (AIPW.clip)(cx.args)),
        };
        Self { refused, lack }
    }

    fn refusal(&self, estimator: Estimator) -> Option<&Refusal> {
        self.refused.iter().find(|(one, _)| *one == estimator).map(|(_, refusal)| refusal)
    }

    /// Adds to an estimate without propensity scores that the arms overlap too little. Within units
    /// they overlap, and by instruments they need not.
    fn warn(&self, effect: &mut EffectEstimate, set: &RowSet, estimator: Estimator) {
        let by_arms = match estimator.controls {
            Controls::Covariates => !estimator.needs_propensity,
            Controls::Nothing => true,
            Controls::UnitsIfAny => set.units.is_none(),
            Controls::Units | Controls::Instruments | Controls::Mediators => false,
        };
        let Some(lack) = self.lack.as_ref().filter(|_| by_arms) else { return };
        let refused: Vec<&str> = self.refused.iter().map(|(one, _)| one.name()).collect();
        let without = match refused.as_slice() {
            [] => String::new(),
            names => format!(" for {}", name_list(names)),
        };
        let extrapolates = match estimator.is_regression {
            true => ", so that this extrapolates beyond their overlap",
            false => "",
        };
        effect.overlap_warning =
            Some(format!("the arms overlap too little{without}{extrapolates}"));
        effect.remarks.push(match estimator.is_regression {
            true => format!(
                "Some rows have no like in the other arm ({lack}): for them the regression \
                 extrapolates."
            ),
            false => format!("The arms overlap too little to adjust for confounders ({lack})."),
        });
    }
}

/// Says why an estimator gives no number, as far as that is known before it runs.
fn applicable(
    cx: &SetContext<'_>,
    adjustment: &AdjustmentPlan,
    comparison: &Comparison,
    estimator: Estimator,
) -> Answer<()> {
    let (args, set, name) = (cx.args, cx.set, estimator.name());
    if let Some(reason) = &comparison.refused {
        return Err(reason.into());
    }
    if !estimator.estimates(args.estimand) {
        let reason = format!("`{name}` does not estimate the {}", args.estimand.into_str());
        return Err(NoNumber::NotApplicable(reason));
    }
    if estimator.adjusts() && estimator != OLS && !args.absorb.is_empty() {
        let reason = format!("`{name}` does not absorb effects: only `ols` does");
        return Err(NoNumber::NotApplicable(reason));
    }
    if let Some(reason) = estimator.without_row_argument(args) {
        return Err(NoNumber::NotApplicable(reason));
    }
    let covariates_refused = || set.covariates_refused.as_ref();
    let reason = match estimator.controls {
        Controls::Units => None,
        Controls::UnitsIfAny if set.units.is_some() => None,
        Controls::Nothing | Controls::UnitsIfAny => set.plan.unadjusted_refused.as_ref(),
        Controls::Covariates => set.adjusting_refused(),
        // Backdoor paths that the graph leaves open do not matter here.
        Controls::Instruments => {
            adjustment.instruments_refused.as_ref().or_else(covariates_refused)
        }
        Controls::Mediators => adjustment.mediators_refused.as_ref().or_else(covariates_refused),
    };
    if let Some(reason) = reason {
        return Err(reason.into());
    }
    if let Some(reason) = cx.separated().filter(|_| estimator.is_regression) {
        return Err(reason.into());
    }
    if estimator.needs_propensity && set.names.is_empty() {
        let reason = "there is nothing to adjust for, and so no propensity score";
        return Err(NoNumber::not_applicable(reason));
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

const MOST_WARNINGS: usize = 20;

/// Analyses the groups, each a frame. Without groups there is one frame.
pub(super) fn analyse(
    plan: &AnalysisPlan,
    frames: &[AnalysisFrame],
    groups: Option<&Groups>,
    stop: &AtomicBool,
    activity: &ActivityReporter,
) -> Result<Vec<ResultTables>, StepError> {
    let mut analyses = Vec::with_capacity(frames.len());
    for frame in frames {
        analyses.push(analyse_group(plan, frame, stop, activity)?);
    }
    adjust_families(&plan.args, &mut analyses);
    let mut results: Vec<ResultTables> = Vec::with_capacity(frames.len());
    for (at, group) in analyses.into_iter().enumerate() {
        let mut tables = finished(&plan.args, group);
        if let Some(groups) = groups {
            let label = groups.label(at)?;
            let of_group = |warning: &String| format!("where {label}: {warning}");
            tables.warnings = tables.warnings.iter().map(of_group).collect();
        }
        results.push(tables);
    }
    shorten_warnings(&mut results);
    if results.is_empty() {
        let warning = "there is no row, and so no group".to_owned();
        results.push(ResultTables { warnings: vec![warning], ..ResultTables::default() });
    }
    Ok(results)
}

/// The tables of a group, whose p-values are adjusted.
fn finished(args: &Args, group: GroupAnalysis) -> ResultTables {
    let GroupAnalysis { mut tables, entries, beginnings } = group;
    tables.warnings.extend(refused_effects(&entries));
    let refuted = refuted(&tables.graph);
    for entry in &entries {
        if let Some(PrimaryResults { sizes, margin }) = &entry.primary {
            tables.summary.push(SummaryRow::new(args, entry));
            let begins = beginnings.iter().find(|found| found.contrast == entry.contrast);
            let remarks = begins.map(BeginningShares::clause).into_iter();
            let remarks = remarks.chain(refuted.iter().map(|words| format!("; {words}")));
            let remarks: String = remarks.collect();
            tables.findings.push(FindingRow::new(args, entry, sizes, margin, &remarks));
            tables.equivalence.push(EquivalenceRow::new(args, entry, margin));
        }
        tables.refutations.extend(refutation_rows(args, entry));
    }
    tables.estimates = entries.into_iter().map(|entry| EstimateRow::new(args, entry)).collect();
    tables
}

/// An estimate among the tests of a family.
struct EstimateMember<'a> {
    family: &'a mut Option<TestFamily>,
    influence: Option<&'a [f64]>,
    degrees: f64,
    group: usize,
}

/// The critical value of max-t, if the contributions of all members are known.
fn critical_value<'a, 'b: 'a>(
    args: &Args,
    members: impl Iterator<Item = Option<&'a EstimateMember<'b>>>,
) -> Option<f64> {
    if !args.adjust.is_family_wise() {
        return None;
    }
    let mut degrees = f64::INFINITY;
    let mut effects = Vec::new();
    for member in members {
        let member = member?;
        degrees = degrees.min(member.degrees);
        effects.push(Influence { sample: member.group, parts: member.influence? });
    }
    max_t(&effects, degrees, args.alpha).ok()
}

/// Adjusts the p-values of estimates, and of tests against margins. The tests of a family have the
/// same estimator, or are of margins, and differ only in the dimensions of `adjust_over`.
fn adjust_families(args: &Args, analyses: &mut [GroupAnalysis]) {
    type Family<'a> = (&'a str, Option<usize>, Option<&'a str>, Option<(&'a str, &'a str)>);
    type Member<'a> = (f64, &'a mut Option<f64>, Option<EstimateMember<'a>>);
    let mut families: BTreeMap<Family<'_>, Vec<Member<'_>>> = BTreeMap::new();
    let apart = |member| !args.adjust_over.contains(&member);
    for (group, analysis) in analyses.iter_mut().enumerate() {
        for entry in &mut analysis.entries {
            let p = entry.p_value();
            let EstimateEntry {
                outcome,
                contrast,
                estimator,
                p_adjusted,
                family: size,
                primary,
                influence,
                answer,
                ..
            } = entry;
            let Contrast { treatment, control } = &*contrast;
            let margin = primary.as_mut().map(|primary| &mut primary.margin);
            let margin =
                margin.map(|margin| ("margin", margin.p_value(), &mut margin.p_adjusted, None));
            let degrees = answer.as_ref().map_or(f64::NAN, |effect| effect.estimate.degrees);
            let member =
                EstimateMember { family: size, influence: influence.as_deref(), degrees, group };
            let own = [(estimator.name(), p, p_adjusted, Some(member))];
            for (kind, p, adjusted, size) in own.into_iter().chain(margin) {
                // An estimate without a test does not count.
                let Some(p) = p else { continue };
                let family = (
                    kind,
                    apart(FamilyMember::Groups).then_some(group),
                    apart(FamilyMember::Outcomes).then_some(outcome.as_str()),
                    apart(FamilyMember::Contrasts)
                        .then_some((treatment.as_str(), control.as_str())),
                );
                families.entry(family).or_default().push((p, adjusted, size));
            }
        }
    }
    for members in families.into_values() {
        let p: Vec<f64> = members.iter().map(|(p, ..)| *p).collect();
        let critical = critical_value(args, members.iter().map(|(.., one)| one.as_ref()));
        for ((_, adjusted, size), value) in members.into_iter().zip(adjust(&p, args.adjust.into()))
        {
            *adjusted = Some(value);
            if let Some(EstimateMember { family, .. }) = size {
                *family = Some(TestFamily { tests: p.len(), critical });
            }
        }
    }
}

/// Many groups have many warnings: the first of them, and how many there are.
fn shorten_warnings(results: &mut [ResultTables]) {
    let all: usize = results.iter().map(|tables| tables.warnings.len()).sum();
    if all <= MOST_WARNINGS || results.len() < 2 {
        return;
    }
    let mut room = MOST_WARNINGS;
    for tables in results.iter_mut() {
        tables.warnings.truncate(room);
        room -= tables.warnings.len();
    }
    if let Some(last) = results.last_mut() {
        last.warnings.push(format!("{} more of these", all - MOST_WARNINGS));
    }
}
