//! The analysis of every contrast and outcome: what is estimated, refuted and diagnosed, in which
//! order. The rows of results are made in `tables`, `balance`, `sensitivity`, `omnibus` and
//! `modifiers`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use super::super::support::cells::Cell;
use super::args::{Args, Estimator};
use super::balance::{balance_rows, overlap_row};
use super::comparison::{Comparison, RowSet, contrasts, gather, row_sets};
use super::estimate::{Found, Pairs, Sample, Score, estimate, score};
use super::frame::Frame;
use super::identify::Identified;
use super::modifiers::{SLOPE_P, modifier_rows};
use super::omnibus::omnibus;
use super::refutations::{Draws, Refuted, Watch, refute};
use super::sensitivity::sensitivity_rows;
use super::tables::{self, Entry, Outcome};
use super::{Bound, Tables, identify};
use crate::operator::StepError;
use galeras_causal::{ColumnRef, Refusal, adjust};

/// Tells the user what is going on, at most once in a while.
pub(super) struct Activity {
    say: Box<dyn Fn(String) + Send + Sync>,
    said: Mutex<Instant>,
}

impl Activity {
    const PAUSE: Duration = Duration::from_secs(1);

    pub(super) fn new(say: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { say: Box::new(say), said: Mutex::new(Instant::now()) }
    }

    /// Says the text, unless the last one was said just now, or is being said.
    fn tell(&self, text: impl FnOnce() -> String) {
        if let Ok(mut said) = self.said.try_lock()
            && said.elapsed() >= Self::PAUSE
        {
            *said = Instant::now();
            (self.say)(text());
        }
    }
}

/// Analyses every contrast.
pub(super) fn analyse(
    bound: &Bound,
    frame: &Frame,
    stop: &AtomicBool,
    activity: &Activity,
) -> Result<Tables, StepError> {
    let args = &bound.args;
    let mut tables = Tables::default();
    let mut entries = Vec::new();
    let contrasts = contrasts(args, frame);
    for contrast in &contrasts {
        let versus = format!("{} against {}", contrast.treatment, contrast.control);
        activity.tell(|| format!("{versus}: estimating"));
        let sets = row_sets(args, frame, &bound.identified, contrast);
        let mut modifiers: Vec<Vec<Cell>> = Vec::new();
        for set in &sets {
            let folds = folds(args, frame, set);
            let score = shared_score(args, set, folds.as_deref());
            tables.balance.extend(balance_rows(args, frame, set, score.as_ref()));
            tables.overlap.extend(overlap_row(args, set, score.as_ref()));
            let mut found = estimates(bound, set, score.as_ref(), folds.as_deref());
            refutations(
                args,
                frame,
                set,
                score.as_ref(),
                folds.as_deref(),
                &mut found,
                |done| {
                    let all = args.simulations * args.refuters.len();
                    activity.tell(|| format!("{versus}: refuting, {done} of {all} data sets"));
                },
                stop,
            )?;
            for comparison in &set.comparisons {
                modifiers.extend(modifier_rows(args, frame, set, comparison, score.as_ref()));
                let primary = found
                    .iter()
                    .find(|entry| entry.outcome == comparison.outcome)
                    .map_or(Err("nothing was estimated"), |entry| match &entry.result {
                        Outcome::Ok(found) => Ok(found),
                        Outcome::Refused(reason) | Outcome::NotApplicable(reason) => {
                            Err(reason.as_str())
                        }
                    });
                tables.sensitivity.extend(sensitivity_rows(
                    args,
                    set,
                    comparison,
                    primary,
                    score.as_ref(),
                ));
            }
            entries.extend(found);
        }
        adjust_slopes(&mut modifiers);
        tables.modifiers.extend(modifiers);
    }
    tables.sensitivity.extend(omnibus(args, frame, &contrasts));
    if let Some(graph) = &bound.graph {
        let rows = identify::rows(args, graph, &bound.identified, frame);
        let (rows, cut) = rows.map_err(|error| StepError::new(error.to_string()))?;
        tables.graph = rows;
        tables.warnings.extend(cut);
    }
    adjust_entries(args, &mut entries);
    tables::write(args, &entries, &mut tables);
    Ok(tables)
}

/// The propensity model of a set of rows, if anything needs one.
fn shared_score(args: &Args, set: &RowSet, folds: Option<&[u32]>) -> Option<Score> {
    if set.adjusting_refused().is_some() || set.covariates.is_empty() {
        return None;
    }
    if set.comparisons.iter().all(|comparison| comparison.refused.is_some()) {
        return None;
    }
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    Some(score(args, &sample(set, 0, &covariates, &[], folds)))
}

fn sample<'a>(
    set: &'a RowSet,
    comparison: usize,
    covariates: &'a [&'a [f64]],
    instruments: &'a [&'a [f64]],
    folds: Option<&'a [u32]>,
) -> Sample<'a> {
    Sample {
        treated: &set.treated,
        outcome: &set.comparisons[comparison].values,
        covariates,
        instruments,
        units: set.units.as_deref(),
        clusters: set.clusters.as_deref(),
        folds,
        only_value: false,
    }
}

/// The fold of each row for cross-fitting: those of a cluster or unit are in the same one. Groups
/// are dealt out in the order of their random numbers, so that folds are of equal size.
fn folds(args: &Args, frame: &Frame, set: &RowSet) -> Option<Vec<u32>> {
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
    bound: &Bound,
    set: &RowSet,
    score: Option<&Score>,
    folds: Option<&[u32]>,
) -> Vec<Entry> {
    let args = &bound.args;
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    let instruments: Vec<&[f64]> = set.instruments.iter().map(Vec::as_slice).collect();
    let n_treated = set.n_treated();
    let n_clusters =
        set.correlated().map(|codes| codes.iter().max().map_or(0, |last| *last as usize + 1));
    let mut entries = Vec::new();
    for (at, comparison) in set.comparisons.iter().enumerate() {
        let position = args.outcomes.iter().position(|name| *name == comparison.outcome);
        let identified = &bound.identified[position.unwrap_or(0)];
        let sample = sample(set, at, &covariates, &instruments, folds);
        let n_pairs = set
            .units
            .as_ref()
            .map(|units| Pairs::of(&set.treated, &comparison.values, units).rows.len());
        for (order, estimator) in args.estimators().into_iter().enumerate() {
            let result = match withheld(args, set, identified, comparison, estimator, score) {
                Some(result) => result,
                None => match estimate(args, estimator, &sample, score) {
                    Ok(found) => Outcome::Ok(warned(found, identified, estimator, score)),
                    Err(refusal) => {
                        Outcome::Refused(reason(args, set, &comparison.outcome, &refusal))
                    }
                },
            };
            entries.push(Entry {
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
                adjusted_for: adjusted_for(estimator, set),
                result,
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
    if estimator.adjusts() { set.names.clone() } else { Vec::new() }
}

/// An estimate with what it rests on that only the graph, or the propensity, tells.
fn warned(
    mut found: Found,
    identified: &Identified,
    estimator: Estimator,
    score: Option<&Score>,
) -> Found {
    match estimator {
        Estimator::Paired if identified.unadjusted_refused.is_some() => found.remarks.push(
            "By the graph something confounds the effect: within units it is balanced only if it \
             is a property of the unit."
                .into(),
        ),
        Estimator::Ols | Estimator::Lin if matches!(score, Some(Err(Refusal::NoOverlap(_)))) => {
            found.remarks.push(
                "Some rows have no like in the other arm: for them the regression extrapolates."
                    .into(),
            );
        }
        _ => {}
    }
    found
}

/// Why an estimator gives no number, as far as that is known before it is asked.
fn withheld(
    args: &Args,
    set: &RowSet,
    identified: &Identified,
    comparison: &Comparison,
    estimator: Estimator,
    score: Option<&Score>,
) -> Option<Outcome> {
    if let Some(reason) = &comparison.refused {
        return Some(Outcome::Refused(reason.clone()));
    }
    if !estimator.estimates(args.estimand) {
        let (name, estimand) = (estimator.name(), args.estimand.name());
        let reason = format!("`{name}` does not estimate the {estimand}");
        return Some(Outcome::NotApplicable(reason));
    }
    let reason = match estimator {
        Estimator::Paired => None,
        Estimator::Difference => set.unadjusted_refused.clone(),
        // The graph's word on backdoor paths is not about instruments.
        Estimator::Iv => {
            identified.instruments_refused.clone().or_else(|| set.covariates_refused.clone())
        }
        _ => set.adjusting_refused().cloned(),
    };
    if let Some(reason) = reason {
        return Some(Outcome::Refused(reason));
    }
    // A regression would give a number here, of its form and not of the data.
    if let (Estimator::Ols | Estimator::Lin, Some(Err(reason @ Refusal::Separated))) =
        (estimator, score)
    {
        return Some(Outcome::Refused(reason.to_string()));
    }
    (estimator.needs_propensity() && set.names.is_empty()).then(|| {
        let reason = "there is nothing to adjust for, and so no propensity score";
        Outcome::NotApplicable(reason.into())
    })
}

/// Refutes the estimates there are.
#[allow(clippy::too_many_arguments)]
fn refutations(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    score: Option<&Score>,
    folds: Option<&[u32]>,
    entries: &mut [Entry],
    tell: impl Fn(usize) + Sync,
    stop: &AtomicBool,
) -> Result<(), StepError> {
    let place = |entry: &Entry| {
        set.comparisons.iter().position(|comparison| comparison.outcome == entry.outcome)
    };
    let mut results = {
        let refuted: Vec<Refuted> = entries
            .iter()
            .filter_map(|entry| match &entry.result {
                Outcome::Ok(_) => {
                    Some(Refuted { comparison: place(entry)?, estimator: entry.estimator })
                }
                _ => None,
            })
            .collect();
        if refuted.is_empty() {
            return Ok(());
        }
        let rows = gather(&frame.draws, &set.rows);
        let units = frame.unit_draws.as_ref().map(|draws| gather(draws, &set.rows));
        let draws = Draws { rows: &rows, units: units.as_deref(), folds };
        let constant = matches!(score, Some(Ok(score)) if score.constant().is_some());
        let watch = Watch { stop, done: &AtomicUsize::new(0), tell: &tell };
        refute(args, set, &draws, &refuted, constant, &watch)?.into_iter()
    };
    for entry in entries.iter_mut().filter(|entry| matches!(entry.result, Outcome::Ok(_))) {
        entry.refutations = results.next().unwrap_or_default();
    }
    Ok(())
}

/// Adjusts p-values over the contrasts and outcomes of each estimator.
fn adjust_entries(args: &Args, entries: &mut [Entry]) {
    for estimator in args.estimators() {
        let mut tested: Vec<&mut Entry> =
            entries.iter_mut().filter(|entry| entry.estimator == estimator).collect();
        let p: Vec<Option<f64>> = tested.iter().map(|entry| entry.p_value()).collect();
        let known: Vec<f64> = p.iter().copied().flatten().collect();
        let mut adjusted = adjust(&known, args.adjust.into()).into_iter();
        for (entry, p) in tested.iter_mut().zip(p) {
            entry.p_adjusted = p.and_then(|_| adjusted.next());
        }
    }
}

/// Benjamini and Hochberg's q-values of the slopes of a contrast, over outcomes and modifiers.
fn adjust_slopes(rows: &mut [Vec<Cell>]) {
    let p_value = |row: &Vec<Cell>| match row[SLOPE_P] {
        Cell::Number(p) => Some(p),
        _ => None,
    };
    let known: Vec<f64> = rows.iter().filter_map(p_value).collect();
    let mut q = adjust(&known, galeras_causal::Adjustment::BenjaminiHochberg).into_iter();
    for row in rows {
        if p_value(row).is_some() {
            row[SLOPE_P + 1] = q.next().into();
        }
    }
}

impl Entry {
    /// The p-value, if there is an estimate.
    pub(super) fn p_value(&self) -> Option<f64> {
        match &self.result {
            Outcome::Ok(Found { estimate, .. }) => Some(estimate.p_value()),
            _ => None,
        }
    }
}
