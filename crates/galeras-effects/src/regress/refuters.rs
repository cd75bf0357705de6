//! The refuters, which repeat every estimate of a set of rows on changed data, and the rows of the
//! port `refutations`.
//!
//! How data are changed is in `causal::refute`. Simulations run on all threads; each is a function
//! of the seed and the ids alone, so their number changes nothing.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::analysis::SetContext;
use super::args::Args;
use super::comparison::{Contrast, RowSet, group_count};
use super::estimate_table::EstimateEntry;
use super::estimators::{Controls, EstimationSample, Estimator, EstimatorSpec, Measure};
use super::frame::gather;
use crate::shared_columns::{self as columns, Answer, NoNumber, found, reason_of, status_of};
use galeras_base::prose::{four_digits, p_equals};
use galeras_causal::{
    Estimate, RefutationDesign, Refuter, Resample, Resampler, as_large, refutation_p,
};
use galeras_operator::StepError;
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, number, optional_count, text,
};
use galeras_operator::{Choice, Entry};

pub(super) type ChosenRefuter = Choice<RefuterSpec>;

/// A refuter.
pub(super) struct RefuterSpec {
    refuter: Refuter,
    /// Its description in the schema of the arguments.
    doc: &'static str,
    /// The beginning of the sentence about its results.
    how: &'static str,
    /// A refuter that removes the effect, so that placebos are compared with 0.
    is_placebo: bool,
    /// The changed data have the same rows in the same order.
    keeps_rows: bool,
    /// The reason why it does not apply to an estimator; `in_pairs` if most rows have a counterpart.
    unfit: fn(&EstimatorSpec, in_pairs: bool) -> Option<&'static str>,
}

const REFUTERS: &[&RefuterSpec] = &[
    &RefuterSpec {
        refuter: Refuter::Placebo,
        doc: "The treatment is permuted, within the unit if there is one, over whole clusters if each lies\nin one arm: the effect should vanish.",
        how: "With the treatment permuted",
        is_placebo: true,
        keeps_rows: true,
        unfit: |estimator, in_pairs| {
            (!in_pairs && !estimator.needs_unit()).then_some(
                "most rows are of units with one arm only, in which there is nothing to permute",
            )
        },
    },
    &RefuterSpec {
        refuter: Refuter::RandomCommonCause,
        doc: "A confounder of noise is added: the effect should stay.",
        how: "With a random common cause added",
        is_placebo: false,
        keeps_rows: true,
        unfit: |estimator, _| {
            (!estimator.adjusts())
                .then_some("the estimator uses no covariates, so that one more changes nothing")
        },
    },
    &RefuterSpec {
        refuter: Refuter::Subset,
        doc: "A share of the units is kept: the effect should stay.",
        how: "On random subsets",
        is_placebo: false,
        keeps_rows: false,
        unfit: |_, _| None,
    },
    &RefuterSpec {
        refuter: Refuter::Bootstrap,
        doc: "Clusters, units or rows are drawn with replacement: the effect should stay.",
        how: "On bootstrap samples",
        is_placebo: false,
        keeps_rows: false,
        unfit: |_, _| None,
    },
];

impl Entry for RefuterSpec {
    const ALL: &'static [&'static Self] = REFUTERS;
    const ABOUT: &'static str = "A check on changed data.";

    fn name(&self) -> &'static str {
        self.refuter.name()
    }

    fn doc(&self) -> &'static str {
        self.doc
    }
}

impl RefuterSpec {
    /// Columns on changed data. With the same rows in the same order they are not copied.
    fn changed<'a>(
        &self,
        columns: impl Iterator<Item = &'a Vec<f64>>,
        resample: &Resample,
    ) -> Vec<Cow<'a, [f64]>> {
        let column = |column: &'a Vec<f64>| match self.keeps_rows {
            true => Cow::Borrowed(column.as_slice()),
            false => Cow::Owned(gather(column, &resample.rows)),
        };
        columns.map(column).collect()
    }
}

/// The default of the argument `refuters`.
pub(super) fn all_refuters() -> Vec<ChosenRefuter> {
    REFUTERS.iter().map(|refuter| Choice(*refuter)).collect()
}

/// The result of a refuter for one estimate, or the reason why the refuter does not apply.
pub(super) type Refutation = Result<SimulatedEstimates, &'static str>;

/// The estimates on changed data.
pub(super) struct SimulatedEstimates {
    /// In the order of simulations.
    estimates: Vec<f64>,
    /// How many placebos are at least as far from 0 as the estimate.
    as_large: Option<usize>,
    /// How many simulations were refused.
    failed: usize,
}

/// Counts what is done, and may be stopped.
pub(super) struct RefutationProgress<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) report: &'a (dyn Fn(usize) + Sync),
}

/// An estimate that is refuted: the position of its comparison, its estimator and its measure.
type RefutedEstimate = (usize, Estimator, Option<Measure>);

/// Why a refuter does not apply to an estimator; `constant` if all propensity scores are equal.
fn why_inapplicable(
    refuter: &RefuterSpec,
    estimator: Estimator,
    constant: bool,
    in_pairs: bool,
) -> Option<&'static str> {
    if constant && estimator.needs_propensity {
        return Some("every propensity score is the same: it adjusts for nothing to be refuted");
    }
    let of_estimator = estimator.unfit_refuters.iter().find(|(one, _)| *one == refuter.refuter);
    of_estimator.map(|(_, reason)| *reason).or_else(|| (refuter.unfit)(&estimator, in_pairs))
}

/// Most rows have a counterpart in the other arm, or there are no units.
fn mostly_in_pairs(set: &RowSet) -> bool {
    let Some(units) = &set.units else { return true };
    let mut arms = vec![[false; 2]; group_count(units)];
    units
        .iter()
        .zip(&set.treated)
        .for_each(|(unit, treated)| arms[*unit as usize][usize::from(*treated)] = true);
    let in_pairs = units.iter().filter(|unit| arms[**unit as usize] == [true; 2]).count();
    2 * in_pairs >= units.len()
}

/// Refutes the estimates of a set of rows.
pub(super) fn refute(
    cx: &SetContext<'_>,
    entries: &mut [EstimateEntry],
    progress: &RefutationProgress<'_>,
) -> Result<(), StepError> {
    let (args, set) = (cx.args, cx.set);
    // The samples that refuters change do not include the mediators of the front door.
    let mut refuted_entries: Vec<&mut EstimateEntry> = entries
        .iter_mut()
        .filter(|entry| entry.effect().is_some() && entry.estimator.controls != Controls::Mediators)
        .collect();
    let place = |outcome: &str| set.comparisons.iter().position(|one| one.outcome == outcome);
    let refuted: Vec<RefutedEstimate> = refuted_entries
        .iter()
        .map(|entry| {
            let measure = entry.effect().map(|effect| effect.measure);
            (place(&entry.outcome).unwrap_or(0), entry.estimator, measure)
        })
        .collect();
    if refuted.is_empty() {
        return Ok(());
    }
    let rows = gather(&cx.frame.draws, &set.rows);
    let unit_numbers = cx.frame.unit_draws.as_ref().map(|draws| gather(draws, &set.rows));
    let resampler = Resampler::new(RefutationDesign {
        treated: &set.treated,
        units: set.units.as_deref(),
        clusters: set.clusters.as_deref(),
        rows: &rows,
        unit_numbers: unit_numbers.as_deref(),
    });
    let constant = matches!(cx.score, Some(Ok(score)) if score.constant().is_some());
    let in_pairs = mostly_in_pairs(set);
    let done = AtomicUsize::new(0);
    for refuter in &args.refuters {
        let reasons: Vec<Option<&'static str>> = refuted
            .iter()
            .map(|(_, estimator, _)| why_inapplicable(refuter, *estimator, constant, in_pairs))
            .collect();
        let applicable: Vec<RefutedEstimate> = refuted
            .iter()
            .zip(&reasons)
            .filter(|(_, reason)| reason.is_none())
            .map(|(one, _)| *one)
            .collect();
        let simulate = |simulation: usize| -> Vec<Option<Estimate>> {
            if progress.stop.load(Ordering::Relaxed) {
                return Vec::new();
            }
            let resample = resampler.resample(refuter.refuter, simulation, args.subset_fraction);
            let estimates = estimate_again(cx, &applicable, refuter, &resample);
            (progress.report)(done.fetch_add(1, Ordering::Relaxed) + 1);
            estimates
        };
        let simulated: Vec<Vec<Option<Estimate>>> = if applicable.is_empty() {
            Vec::new()
        } else {
            (0..args.simulations).into_par_iter().map(simulate).collect()
        };
        if progress.stop.load(Ordering::Relaxed) {
            return Err(StepError::new("interrupted"));
        }
        // With the standard errors that placebos have, which are not those of the table.
        let unchanged = if refuter.is_placebo && !applicable.is_empty() {
            estimate_again(cx, &applicable, refuter, &resampler.unchanged())
        } else {
            Vec::new()
        };
        let mut places = 0..applicable.len();
        for (entry, reason) in refuted_entries.iter_mut().zip(reasons) {
            entry.refutations.push(match reason {
                Some(reason) => Err(reason),
                None => {
                    let place = places.next().unwrap_or(0);
                    let all = simulated.iter().map(|estimates| estimates[place]);
                    let estimates: Vec<Estimate> = all.flatten().collect();
                    let failed = simulated.len() - estimates.len();
                    let unchanged = unchanged.get(place).copied().flatten();
                    let as_large = unchanged.map(|one| placebos_as_large(&estimates, one));
                    let estimates = estimates.iter().map(|estimate| estimate.value).collect();
                    Ok(SimulatedEstimates { estimates, as_large, failed })
                }
            });
        }
    }
    Ok(())
}

/// How many placebos are at least as far from 0 as the estimate, in units of their standard errors;
/// where one has none (a test's interval), by their values.
fn placebos_as_large(placebos: &[Estimate], estimate: Estimate) -> usize {
    let has_error = |one: &Estimate| one.standard_error > 0.0 && one.standard_error.is_finite();
    let by_error = has_error(&estimate) && placebos.iter().all(has_error);
    let size = |one: &Estimate| if by_error { one.statistic() } else { one.value };
    as_large(&placebos.iter().map(size).collect::<Vec<f64>>(), size(&estimate))
}

/// The estimates on a changed data set; none where it gives no number.
fn estimate_again(
    cx: &SetContext<'_>,
    refuted: &[RefutedEstimate],
    refuter: &RefuterSpec,
    resample: &Resample,
) -> Vec<Option<Estimate>> {
    let set = cx.set;
    let x = refuter.changed(set.covariates.iter(), resample);
    let z = refuter.changed(set.instruments.iter(), resample);
    let y = refuter.changed(set.comparisons.iter().map(|one| &one.values), resample);
    let mut covariates: Vec<&[f64]> = x.iter().map(|column| &**column).collect();
    covariates.extend(resample.cause.as_deref());
    let folds = cx.folds.map(|folds| gather(folds, &resample.rows));
    let absorbed: Vec<Vec<u32>> =
        set.absorbed.iter().map(|codes| gather(codes, &resample.rows)).collect();
    let design = set.design.of_rows(&resample.rows);
    let sample = EstimationSample {
        args: cx.args,
        treated: &resample.treated,
        outcome: &[],
        covariates,
        instruments: z.iter().map(|column| &**column).collect(),
        mediators: Vec::new(),
        mediator_names: &[],
        units: resample.units.as_deref(),
        clusters: resample.clusters.as_deref(),
        absorbed: absorbed.iter().map(Vec::as_slice).collect(),
        design: &design,
        folds: folds.as_deref(),
        score: None,
        only_value: true,
    };
    let needs_score = refuted.iter().any(|(_, estimator, _)| estimator.needs_propensity);
    let score = needs_score.then(|| sample.fit_propensity());
    refuted
        .iter()
        .map(|(place, estimator, measure)| {
            let (outcome, score) = (&*y[*place], score.as_ref());
            let sample = EstimationSample { outcome, score, ..sample.clone() };
            // Ties decide what Wilcoxon's test estimates.
            let effect =
                estimator.run(&sample).ok().filter(|effect| Some(effect.measure) == *measure)?;
            Some(effect.estimate).filter(|estimate| estimate.value.is_finite())
        })
        .collect()
}

/// The result of a refuter for an estimate, in a row.
pub(super) struct RefutationRow {
    outcome: String,
    contrast: Contrast,
    estimator: Estimator,
    refuter: &'static str,
    estimate: Option<f64>,
    on_changed_data: Answer<ChangedEstimates>,
    simulations: usize,
    failed: usize,
    note: String,
}

/// The estimates on changed data, summed up.
struct ChangedEstimates {
    mean: f64,
    deviation: Option<f64>,
    p_value: f64,
    /// How many placebos are as far from 0 as the estimate, or farther.
    as_large: Option<usize>,
}

impl TableRow for RefutationRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text("estimator", "the estimator that was fitted again", |row| row.estimator.name()),
        text("refuter", "how the data were changed", |row| row.refuter),
        number(
            "estimate",
            "the estimate on the data as they are; of a ratio its logarithm, of a probability its \
             distance from 0.5, as in `new_effect`",
            |row| row.estimate,
        ),
        number("new_effect", "the mean of the estimates on changed data", |row| {
            Some(found(&row.on_changed_data)?.mean)
        }),
        number("std", "their standard deviation (divisor n - 1)", |row| {
            found(&row.on_changed_data)?.deviation
        }),
        number(
            "p_value",
            "that their mean is the expected value: 0 for a placebo, else the estimate",
            |row| Some(found(&row.on_changed_data)?.p_value),
        ),
        optional_count(
            "as_large",
            "placebos at least as far from 0 as the estimate, both in units of their standard errors \
             (HC0 or classic; by their values, where a test gives the interval): a permutation test",
            None,
            |row| found(&row.on_changed_data)?.as_large,
        ),
        count_of(
            "simulations",
            "changed data sets on which the estimator gave a number",
            "data sets",
            |row| row.simulations,
        ),
        count_of("failed", "changed data sets on which it was refused", "data sets", |row| {
            row.failed
        }),
        columns::status(|row| status_of(&row.on_changed_data)),
        columns::reason(|row| reason_of(&row.on_changed_data)),
        columns::note(|row| &row.note),
    ];
}

/// The rows of an estimate, one for each refuter.
pub(super) fn refutation_rows(args: &Args, entry: &EstimateEntry) -> Vec<RefutationRow> {
    let row = |(at, refuter): (usize, &ChosenRefuter)| {
        let refutation = entry.refutations.get(at);
        let (simulations, failed) = match refutation {
            Some(Ok(ran)) => (ran.estimates.len(), ran.failed),
            _ => (0, 0),
        };
        let on_changed_data = match (&entry.answer, refutation) {
            (Err(none), _) => Err(NoNumber::NotApplicable(format!(
                "there is no estimate to refute: {}",
                none.reason()
            ))),
            (_, None) => Err(NoNumber::not_applicable("it was not run")),
            (_, Some(Err(reason))) => Err(NoNumber::not_applicable(reason)),
            (_, Some(Ok(_))) if simulations == 0 => {
                let reason = format!("the estimator was refused on all {failed} data sets");
                Err(NoNumber::Refused(reason))
            }
            (Ok(effect), Some(Ok(ran))) => Ok((
                effect.estimate.value,
                ChangedEstimates::of(ran, effect.estimate.value, refuter),
            )),
        };
        let note = match &on_changed_data {
            Ok((estimate, changed)) => refutation_note(refuter, simulations, *estimate, changed),
            Err(none) => format!("Refuter {}: {}.", refuter.name(), none.reason()),
        };
        RefutationRow {
            outcome: entry.outcome.clone(),
            contrast: entry.contrast.clone(),
            estimator: entry.estimator,
            refuter: refuter.name(),
            estimate: entry.estimate().map(|estimate| estimate.value),
            on_changed_data: on_changed_data.map(|(_, changed)| changed),
            simulations,
            failed,
            note,
        }
    };
    args.refuters.iter().enumerate().map(row).collect()
}

impl ChangedEstimates {
    /// Sums up the estimates, of which there is at least one.
    fn of(ran: &SimulatedEstimates, estimate: f64, refuter: &RefuterSpec) -> Self {
        let estimates = ran.estimates.as_slice();
        let n = estimates.len() as f64;
        // Centred, so that equal numbers have exactly their mean, and no deviation.
        let first = estimates[0];
        let mean = first + estimates.iter().map(|x| x - first).sum::<f64>() / n;
        let variance =
            estimates.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Self {
            mean,
            deviation: (estimates.len() > 1).then(|| variance.sqrt()),
            p_value: refutation_p(estimates, if refuter.is_placebo { 0.0 } else { estimate }),
            as_large: ran.as_large,
        }
    }
}

fn refutation_note(
    refuter: &RefuterSpec,
    simulations: usize,
    estimate: f64,
    changed: &ChangedEstimates,
) -> String {
    let how = refuter.how;
    let expected = if refuter.is_placebo { "it should be near 0" } else { "it should not change" };
    let p = p_equals(changed.p_value);
    let mut text = format!(
        "{how} ({simulations} times), the effect of {} becomes {} ({expected}; p {p}).",
        four_digits(estimate),
        four_digits(changed.mean)
    );
    if let Some(as_large) = changed.as_large {
        let verb = if as_large == 1 { "is" } else { "are" };
        let share = format!(
            " {as_large} of them {verb} at least as far from 0 as it, in units of their errors."
        );
        text.push_str(&share);
    }
    text
}
