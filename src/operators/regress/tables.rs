//! Estimates and refutations as rows of tables, and in sentences.

use super::super::support::cells::Cell;
use super::super::support::words::{
    count, degrees, interval, level, list, p, p_equals, short, significant, thousands,
};
use super::Tables;
use super::args::{Args, Estimator};
use super::comparison::Contrast;
use super::estimate::Found;
use super::refutations::Refutation;
use galeras_causal::{Estimate, refutation_p};

/// What came of an estimator.
pub(super) enum Outcome {
    Ok(Found),
    Refused(String),
    NotApplicable(String),
}

/// An estimator's answer for one outcome and contrast.
pub(super) struct Entry {
    pub(super) outcome: String,
    pub(super) contrast: Contrast,
    pub(super) estimator: Estimator,
    pub(super) primary: bool,
    pub(super) n: usize,
    pub(super) n_treated: usize,
    pub(super) n_pairs: Option<usize>,
    pub(super) n_clusters: Option<usize>,
    pub(super) n_missing: usize,
    pub(super) adjusted_for: Vec<String>,
    pub(super) result: Outcome,
    pub(super) p_adjusted: Option<f64>,
    /// In the order of the refuters; none without an estimate.
    pub(super) refutations: Vec<Refutation>,
}

/// Writes the rows of estimates, of their summary and of their refutations.
pub(super) fn write(args: &Args, entries: &[Entry], tables: &mut Tables) {
    for entry in entries {
        tables.estimates.push(estimate_row(args, entry));
        if entry.primary {
            tables.summary.push(summary_row(args, entry));
            if let Outcome::Refused(reason) = &entry.result {
                let Contrast { treatment, control } = &entry.contrast;
                tables.warnings.push(format!(
                    "no effect of `{treatment}` against `{control}` on `{}`: {reason}",
                    entry.outcome
                ));
            }
        }
        for (at, refuter) in args.refuters.iter().enumerate() {
            let refuter = galeras_causal::Refuter::from(*refuter);
            tables.refutations.push(refutation_row(entry, refuter, entry.refutations.get(at)));
        }
    }
}

fn contrast(entry: &Entry) -> Vec<Cell> {
    let Contrast { treatment, control } = &entry.contrast;
    vec![entry.outcome.as_str().into(), treatment.as_str().into(), control.as_str().into()]
}

/// `status` and `reason` of an answer.
fn status(result: &Outcome) -> [Cell; 2] {
    match result {
        Outcome::Ok(_) => ["ok".into(), Cell::Null],
        Outcome::Refused(reason) => ["refused".into(), reason.as_str().into()],
        Outcome::NotApplicable(reason) => ["not_applicable".into(), reason.as_str().into()],
    }
}

fn estimate_row(args: &Args, entry: &Entry) -> Vec<Cell> {
    let found = match &entry.result {
        Outcome::Ok(found) => Some(found),
        _ => None,
    };
    let estimate = found.map(|found| found.estimate);
    let ends = estimate.map(|estimate| estimate.interval(args.alpha));
    let estimand = match (found, entry.estimator) {
        (Some(found), _) => found.estimand,
        (None, Estimator::Iv) => "late",
        (None, Estimator::Paired) => "ate",
        (None, estimator) if estimator.estimates(args.estimand) => args.estimand.name(),
        (None, _) => "ate",
    };
    let mut row = contrast(entry);
    row.extend([
        entry.estimator.name().into(),
        estimate.map(|e| e.value).into(),
        ends.map(|ends| ends.0).into(),
        ends.map(|ends| ends.1).into(),
        estimate.map(|e| e.p_value()).into(),
        entry.p_adjusted.into(),
    ]);
    row.extend(status(&entry.result));
    row.extend([
        estimand.into(),
        entry.primary.into(),
        estimate.map(|e| e.standard_error).into(),
        found.map(|found| found.se_kind.clone()).into(),
        estimate.map(|e| e.statistic()).into(),
        estimate.map(|e| e.degrees).filter(|df| df.is_finite()).into(),
        entry.n.into(),
        entry.n_treated.into(),
        (entry.n - entry.n_treated).into(),
        entry.n_pairs.into(),
        entry.n_clusters.into(),
        entry.n_missing.into(),
        found.map(|_| entry.adjusted_for.join(", ")).into(),
        note(args, entry).into(),
    ]);
    row
}

/// The method of an estimator, as the beginning of a sentence.
fn method(estimator: Estimator) -> &'static str {
    match estimator {
        Estimator::Paired => "Mean paired difference",
        Estimator::Difference => "Difference in means",
        Estimator::Ols => "Linear regression",
        Estimator::Lin => "Linear regression with interactions (Lin 2013)",
        Estimator::Matching => "Nearest-neighbour matching on the propensity score",
        Estimator::Stratification => "Stratification by the propensity score",
        Estimator::Weighting => "Inverse propensity weighting (Hájek)",
        Estimator::Aipw => "Augmented inverse propensity weighting",
        Estimator::Iv => "Two-stage least squares",
    }
}

/// The row in words.
fn note(args: &Args, entry: &Entry) -> String {
    let Contrast { treatment, control } = &entry.contrast;
    let method = method(entry.estimator);
    let what = format!("{method}, effect of {treatment} against {control} on {}", entry.outcome);
    let found = match &entry.result {
        Outcome::Ok(found) => found,
        Outcome::Refused(reason) => return format!("{what}: refused, because {reason}."),
        Outcome::NotApplicable(reason) => return format!("{what}: not applicable, {reason}."),
    };
    let size = match found.pairs {
        Some(pairs) => format!("{} pairs", thousands(pairs)),
        None => format!("{} rows", thousands(entry.n)),
    };
    let adjusted = match entry.adjusted_for.as_slice() {
        [] => String::new(),
        names => format!(", adjusted for {}", list(names)),
    };
    let estimate = found.estimate;
    let test = if estimate.degrees.is_finite() {
        format!("t({}) = {}", degrees(estimate.degrees), short(estimate.statistic()))
    } else {
        format!("z = {}", short(estimate.statistic()))
    };
    let adjusted_p = match entry.p_adjusted {
        Some(adjusted) => format!(", {}-adjusted p {}", args.adjust, p_equals(adjusted)),
        None => String::new(),
    };
    let mut text = format!(
        "{what} ({}) in {size}{adjusted}: {} ({} SE {}, {} % CI {}; {test}, p {}{adjusted_p}).",
        found.estimand.to_uppercase(),
        short(estimate.value),
        found.se_kind,
        short(estimate.standard_error),
        level(args.alpha),
        interval(estimate.interval(args.alpha)),
        p_equals(estimate.p_value()),
    );
    for remark in &found.remarks {
        text.push(' ');
        text.push_str(remark);
    }
    if entry.n_missing > 0 {
        let (one, many) =
            ("row without a value that is needed is", "rows without a value that is needed are");
        text.push_str(&format!(" {} left out.", count(entry.n_missing, one, many)));
    }
    text
}

fn summary_row(args: &Args, entry: &Entry) -> Vec<Cell> {
    let estimate: Option<Estimate> = match &entry.result {
        Outcome::Ok(found) => Some(found.estimate),
        _ => None,
    };
    let rounded = |x: f64| format!("{x:.3e}").parse::<f64>().unwrap_or(x);
    let ends = estimate.map(|estimate| estimate.interval(args.alpha));
    let n = match (&entry.result, entry.n_pairs) {
        (Outcome::Ok(Found { pairs: Some(pairs), .. }), _) => *pairs,
        (_, Some(pairs)) if entry.estimator == Estimator::Paired => pairs,
        _ => entry.n,
    };
    let [status, _] = status(&entry.result);
    vec![
        entry.outcome.as_str().into(),
        treatment(args, &entry.contrast).into(),
        estimate.map(|e| rounded(e.value)).into(),
        ends.map(|ends| rounded(ends.0)).into(),
        ends.map(|ends| rounded(ends.1)).into(),
        entry.p_adjusted.map_or_else(String::new, p).into(),
        n.into(),
        status,
        entry.contrast.control.as_str().into(),
    ]
}

/// A contrast in a word: the treatment, and with what it is compared unless that is control.
fn treatment(args: &Args, contrast: &Contrast) -> String {
    if contrast.control == args.control {
        contrast.treatment.clone()
    } else {
        format!("{} - {}", contrast.treatment, contrast.control)
    }
}

fn refutation_row(
    entry: &Entry,
    refuter: galeras_causal::Refuter,
    refutation: Option<&Refutation>,
) -> Vec<Cell> {
    let mut row = contrast(entry);
    row.extend([entry.estimator.name().into(), refuter.name().into()]);
    let empty = |row: &mut Vec<Cell>, status: &str, reason: String, estimate: Option<f64>| {
        let note = format!("Refuter {}: {reason}.", refuter.name());
        let failed = match refutation {
            Some(Refutation::Ran { failed, .. }) => *failed,
            _ => 0,
        };
        row.push(estimate.into());
        row.extend(std::iter::repeat_n(Cell::Null, 4));
        row.extend([0usize.into(), failed.into(), status.into(), reason.into(), note.into()]);
    };
    let found = match &entry.result {
        Outcome::Ok(found) => found,
        Outcome::Refused(reason) | Outcome::NotApplicable(reason) => {
            let reason = format!("there is no estimate to refute: {reason}");
            empty(&mut row, "not_applicable", reason, None);
            return row;
        }
    };
    let estimate = found.estimate.value;
    match refutation {
        None => empty(&mut row, "not_applicable", "it was not run".into(), Some(estimate)),
        Some(Refutation::NotApplicable(reason)) => {
            empty(&mut row, "not_applicable", reason.clone(), Some(estimate));
        }
        Some(Refutation::Ran { estimates, failed }) if estimates.is_empty() => {
            let reason = format!("the estimator was refused on all {failed} data sets");
            empty(&mut row, "refused", reason, Some(estimate));
        }
        Some(Refutation::Ran { estimates, failed }) => {
            let placebo = refuter == galeras_causal::Refuter::Placebo;
            let p = refutation_p(estimates, if placebo { 0.0 } else { estimate });
            let n = estimates.len() as f64;
            // Centred, so that equal numbers have exactly their mean, and no deviation.
            let first = estimates[0];
            let mean = first + estimates.iter().map(|x| x - first).sum::<f64>() / n;
            let variance =
                estimates.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
            let as_large = estimates.iter().filter(|x| x.abs() >= estimate.abs()).count();
            row.extend([estimate.into(), mean.into()]);
            let std = (estimates.len() > 1).then(|| variance.sqrt());
            row.extend([std.into(), p.into(), as_large.into()]);
            row.extend([estimates.len().into(), (*failed).into(), "ok".into(), Cell::Null]);
            row.push(refutation_note(refuter, estimates.len(), estimate, mean, p, as_large).into());
        }
    }
    row
}

fn refutation_note(
    refuter: galeras_causal::Refuter,
    simulations: usize,
    estimate: f64,
    mean: f64,
    p: f64,
    as_large: usize,
) -> String {
    use galeras_causal::Refuter::{Bootstrap, Placebo, RandomCommonCause, Subset};
    let (how, expected) = match refuter {
        Placebo => ("With the treatment permuted", "it should be near 0"),
        RandomCommonCause => ("With a random common cause added", "it should not change"),
        Subset => ("On random subsets", "it should not change"),
        Bootstrap => ("On bootstrap samples", "it should not change"),
    };
    // None of so many: a smaller share than that was not looked for.
    let least = significant((2.0 / simulations as f64).min(1.0), 2);
    let p = if p == 0.0 { format!("< {least}") } else { p_equals(p) };
    let mut text = format!(
        "{how} ({simulations} times), the effect of {} becomes {} ({expected}; p {p}).",
        short(estimate),
        short(mean)
    );
    if refuter == Placebo {
        let verb = if as_large == 1 { "is" } else { "are" };
        let share = format!(" {as_large} of them {verb} at least as large as the estimate.");
        text.push_str(&share);
    }
    text
}
