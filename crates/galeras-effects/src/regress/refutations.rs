//! Runs the refuters: every estimate of a set of rows again, on changed data.
//!
//! How data are changed is in `causal::refute`. Simulations run on all threads; each is a function
//! of the seed and the ids alone, so their number changes nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::args::{Args, RefuterName};
use super::comparison::RowSet;
use super::estimate::{EstimationSample, fit_propensity};
use super::estimators::Estimator;
use super::frame::gather;
use super::generalised::estimate;
use galeras_causal::{Estimate, RefutationDesign, Refuter, Resample, Resampler, as_large};
use galeras_operator::StepError;

/// What came of a refuter for one estimate.
pub(super) enum Refutation {
    /// The estimates on changed data, in the order of simulations; of placebos, how many are at
    /// least as far from 0 as the estimate; how many were refused.
    Ran { estimates: Vec<f64>, as_large: Option<usize>, failed: usize },
    /// The refuter says nothing about this estimator here, and why.
    NotApplicable(String),
}

/// An estimate that is refuted: the comparison and the estimator by their positions.
pub(super) struct RefutedEstimate {
    pub(super) comparison: usize,
    pub(super) estimator: Estimator,
}

/// The numbers that rows have besides their columns.
pub(super) struct RowDraws<'a> {
    pub(super) rows: &'a [u64],
    pub(super) units: Option<&'a [u64]>,
    pub(super) folds: Option<&'a [u32]>,
}

/// A task that may be stopped, and counts what it has done.
pub(super) struct RefutationProgress<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) done: &'a AtomicUsize,
    pub(super) report: &'a (dyn Fn(usize) + Sync),
}

/// Why a refuter says nothing about an estimator, if it does not.
fn why_inapplicable(
    refuter: RefuterName,
    estimator: Estimator,
    constant: bool,
    in_pairs: bool,
) -> Option<&'static str> {
    if constant && estimator.needs_propensity() {
        return Some("every propensity score is the same: it adjusts for nothing to be refuted");
    }
    match (refuter, estimator) {
        (RefuterName::RandomCommonCause, _) if !estimator.adjusts() => {
            Some("the estimator uses no covariates, so that one more changes nothing")
        }
        (RefuterName::Placebo, Estimator::Iv) => {
            Some("the instrument does not act on a permuted treatment")
        }
        (RefuterName::Placebo, _) if !in_pairs && !estimator.needs_unit() => {
            Some("most rows are of units with one arm only, in which there is nothing to permute")
        }
        (RefuterName::Bootstrap, Estimator::Matching) => {
            Some("the bootstrap is not valid for matching (Abadie and Imbens 2008)")
        }
        _ => None,
    }
}

/// Whether most rows are of units that have rows under both arms; so it is without units.
fn mostly_in_pairs(set: &RowSet) -> bool {
    let Some(units) = &set.units else { return true };
    let size = units.iter().max().map_or(0, |last| *last as usize + 1);
    let mut arms = vec![[false; 2]; size];
    units
        .iter()
        .zip(&set.treated)
        .for_each(|(unit, treated)| arms[*unit as usize][usize::from(*treated)] = true);
    let in_pairs = units.iter().filter(|unit| arms[**unit as usize] == [true; 2]).count();
    2 * in_pairs >= units.len()
}

/// Refutes the estimates of a set of rows: for each of them, one result per refuter.
pub(super) fn refute(
    args: &Args,
    set: &RowSet,
    draws: &RowDraws<'_>,
    refuted: &[RefutedEstimate],
    constant: bool,
    progress: &RefutationProgress<'_>,
) -> Result<Vec<Vec<Refutation>>, StepError> {
    let design = RefutationDesign {
        treated: &set.treated,
        units: set.units.as_deref(),
        clusters: set.clusters.as_deref(),
        rows: draws.rows,
        unit_numbers: draws.units,
    };
    let resampler = Resampler::new(design);
    let in_pairs = mostly_in_pairs(set);
    let mut results: Vec<Vec<Refutation>> = refuted.iter().map(|_| Vec::new()).collect();
    for refuter in &args.refuters {
        let reasons =
            refuted.iter().map(|one| why_inapplicable(*refuter, one.estimator, constant, in_pairs));
        let reasons: Vec<Option<&str>> = reasons.collect();
        let applicable: Vec<usize> =
            (0..refuted.len()).filter(|at| reasons[*at].is_none()).collect();
        let simulate = |simulation: usize| -> Vec<Option<Estimate>> {
            if progress.stop.load(Ordering::Relaxed) {
                return Vec::new();
            }
            let resample =
                resampler.resample(Refuter::from(*refuter), simulation, args.subset_fraction);
            let estimates =
                estimate_again(args, set, draws, refuted, &applicable, *refuter, &resample);
            (progress.report)(progress.done.fetch_add(1, Ordering::Relaxed) + 1);
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
        let as_it_is = match refuter {
            RefuterName::Placebo if !applicable.is_empty() => estimate_again(
                args,
                set,
                draws,
                refuted,
                &applicable,
                *refuter,
                &resampler.unchanged(),
            ),
            _ => Vec::new(),
        };
        for (at, reason) in reasons.into_iter().enumerate() {
            results[at].push(match reason {
                Some(reason) => Refutation::NotApplicable(reason.into()),
                None => {
                    let place = applicable.iter().position(|one| *one == at).unwrap_or(0);
                    let all = simulated.iter().map(|estimates| estimates[place]);
                    let estimates: Vec<Estimate> = all.flatten().collect();
                    let failed = simulated.len() - estimates.len();
                    let as_it_is = as_it_is.get(place).copied().flatten();
                    let as_large = as_it_is.map(|as_it_is| placebos_as_large(&estimates, as_it_is));
                    let estimates = estimates.iter().map(|estimate| estimate.value).collect();
                    Refutation::Ran { estimates, as_large, failed }
                }
            });
        }
    }
    Ok(results)
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
    args: &Args,
    set: &RowSet,
    draws: &RowDraws<'_>,
    refuted: &[RefutedEstimate],
    applicable: &[usize],
    refuter: RefuterName,
    resample: &Resample,
) -> Vec<Option<Estimate>> {
    // With the same rows in the same order nothing is copied.
    let same_rows = matches!(refuter, RefuterName::Placebo | RefuterName::RandomCommonCause);
    let copied = |columns: &[Vec<f64>]| -> Vec<Vec<f64>> {
        if same_rows {
            return Vec::new();
        }
        columns.iter().map(|column| gather(column, &resample.rows)).collect()
    };
    let (covariates, instruments) = (copied(&set.covariates), copied(&set.instruments));
    fn slices<'a>(copies: &'a [Vec<f64>], all: &'a [Vec<f64>], same: bool) -> Vec<&'a [f64]> {
        if same { all } else { copies }.iter().map(Vec::as_slice).collect()
    }
    let mut covariates = slices(&covariates, &set.covariates, same_rows);
    covariates.extend(resample.cause.as_deref());
    let instruments = slices(&instruments, &set.instruments, same_rows);
    let folds = draws.folds.map(|folds| gather(folds, &resample.rows));
    let absorbed: Vec<Vec<u32>> =
        set.absorbed.iter().map(|codes| gather(codes, &resample.rows)).collect();
    let absorbed: Vec<&[u32]> = absorbed.iter().map(Vec::as_slice).collect();
    let mut outcomes: Vec<(usize, Vec<f64>)> = Vec::new();
    if !same_rows {
        for at in applicable {
            let comparison = refuted[*at].comparison;
            if !outcomes.iter().any(|(known, _)| *known == comparison) {
                let values = gather(&set.comparisons[comparison].values, &resample.rows);
                outcomes.push((comparison, values));
            }
        }
    }
    let sample = |comparison: usize| EstimationSample {
        treated: &resample.treated,
        outcome: outcomes
            .iter()
            .find(|(known, _)| *known == comparison)
            .map_or(&set.comparisons[comparison].values, |(_, values)| values),
        covariates: &covariates,
        instruments: &instruments,
        units: resample.units.as_deref(),
        clusters: resample.clusters.as_deref(),
        absorbed: &absorbed,
        folds: folds.as_deref(),
        only_value: true,
    };
    let mut shared = None;
    applicable
        .iter()
        .map(|at| {
            let RefutedEstimate { comparison, estimator, .. } = &refuted[*at];
            let sample = sample(*comparison);
            if estimator.needs_propensity() && shared.is_none() {
                shared = Some(fit_propensity(args, &sample));
            }
            let effect = estimate(args, *estimator, &sample, shared.as_ref()).ok()?;
            Some(effect.estimate).filter(|estimate| estimate.value.is_finite())
        })
        .collect()
}
