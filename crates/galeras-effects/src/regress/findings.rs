//! The primary estimates for a paper: the rows of the port `findings`, each with a sentence.

use super::args::Args;
use super::comparison::Contrast;
use super::effect_sizes::EffectSizes;
use super::equivalence::MarginTest;
use super::estimate_table::EstimateEntry;
use super::estimators::{EffectEstimate, Measure};
use crate::shared_columns::{self as columns, status_of};
use crate::words::ci;
use galeras_base::prose::{by_interval, confidence_level, name_list, p, p_equals, thousands};
use galeras_operator::small_table::{TableColumn, TableRow, count_of, number, text};

/// A row of the port `findings`.
pub(super) struct FindingRow {
    outcome: String,
    contrast: Contrast,
    estimate: Option<f64>,
    interval: Option<(f64, f64)>,
    p_adjusted: String,
    a12: Option<f64>,
    a12_interval: Option<(f64, f64)>,
    verdict: Option<&'static str>,
    excluded: Option<f64>,
    p_margin: Option<f64>,
    n: usize,
    status: &'static str,
    sentence: String,
}

impl TableRow for FindingRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        number("estimate", "the effect", |row| row.estimate),
        number("ci_low", "lower end of its confidence interval, which is not adjusted", |row| {
            Some(row.interval?.0)
        }),
        number("ci_high", "upper end", |row| Some(row.interval?.1)),
        text("p_adj", "the adjusted p-value, to two digits", |row| &row.p_adjusted),
        number("a12", "Vargha and Delaney's A12, to three decimals", |row| row.a12),
        columns::verdict(|row| row.verdict),
        columns::status(|row| row.status),
        count_of("n", "pairs where these are compared, else rows", "rows", |row| row.n),
        columns::control(|row| &row.contrast.control),
        number("a12_low", "lower end of the interval of A12", |row| Some(row.a12_interval?.0)),
        number("a12_high", "upper end", |row| Some(row.a12_interval?.1)),
        number(
            "p_margin",
            "adjusted p-value of the test against the margin; null without one",
            |row| row.p_margin,
        ),
        number(
            "excluded",
            "effects beyond this, to either side, are outside of the interval; null for a ratio, and \
             where the arms overlap too little",
            |row| row.excluded,
        ),
        text("sentence", "the finding, for a paper", |row| &row.sentence),
    ];
}

impl FindingRow {
    /// The row of a primary estimate, whose p-values are adjusted by now. Its sentence ends with the
    /// remarks.
    pub(super) fn new(
        args: &Args,
        entry: &EstimateEntry,
        sizes: &EffectSizes,
        margin: &MarginTest,
        remarks: &str,
    ) -> Self {
        let effect = entry.effect();
        let a12 = effect.and(sizes.dominance.as_ref().ok());
        Self {
            outcome: entry.outcome.clone(),
            contrast: entry.contrast.clone(),
            estimate: effect.map(EffectEstimate::value),
            interval: effect.map(|effect| effect.interval(args.alpha)),
            p_adjusted: entry.p_adjusted.map_or_else(String::new, p),
            a12: a12.map(|found| thousandths(found.a12())),
            a12_interval: a12.map(|found| {
                let (low, high) = found.a12_interval(args.alpha);
                (thousandths(low), thousandths(high))
            }),
            verdict: margin.verdict(args, entry),
            excluded: excluded(args, entry),
            p_margin: margin.p_adjusted,
            n: entry.size().0,
            status: status_of(&entry.answer),
            sentence: sentence(args, entry, sizes, margin, remarks),
        }
    }
}

/// A probability to three decimals.
fn thousandths(x: f64) -> f64 {
    (1000.0 * x).round() / 1000.0
}

/// The finding in a sentence.
fn sentence(
    args: &Args,
    entry: &EstimateEntry,
    sizes: &EffectSizes,
    margin: &MarginTest,
    remarks: &str,
) -> String {
    let Contrast { treatment, control } = &entry.contrast;
    let outcome = &entry.outcome;
    let estimated = match &entry.answer {
        Ok(effect) => effect,
        Err(none) => {
            return format!(
                "The effect of {treatment} on {outcome} against {control} is not estimated: {}.",
                none.reason()
            );
        }
    };
    let effect = direction(args, entry, estimated);
    let interval = ci(args.alpha, estimated.interval(args.alpha));
    let alone = format!("p {}", p_equals(estimated.p_value()));
    let mut numbers = match entry.p_adjusted {
        // The interval is that of one test, and may not go with a p-value for several.
        Some(adjusted) if adjusted > estimated.p_value() => vec![
            format!("{interval}, {alone} for this test alone"),
            format!("{}-adjusted p {}", args.adjust, p_equals(adjusted)),
        ],
        _ => vec![interval, alone],
    };
    // It is another name of this measure.
    let repeated = estimated.measure == Measure::ProbabilityOfSuperiority;
    if let Ok(found) = &sizes.dominance
        && !repeated
    {
        let (low, high) = found.a12_interval(args.alpha);
        let digits = |x: f64| format!("{x:.2}");
        numbers.push(format!(
            "A12 = {}, {} to {}{}",
            digits(found.a12()),
            digits(low),
            digits(high),
            if sizes.unadjusted_for.is_empty() { "" } else { ", not adjusted" }
        ));
    }
    let adjusted = match entry.adjusted_for.as_slice() {
        [] => String::new(),
        names => format!(", adjusted for {}", name_list(names)),
    };
    let (n, what) = entry.size();
    let overlap = match &estimated.overlap_warning {
        Some(warning) => format!("; {warning}"),
        None => String::new(),
    };
    format!(
        "{effect} ({}), n = {} {what}{adjusted}{}{}{overlap}{remarks}.",
        numbers.join("; "),
        thousands(n),
        population(&estimated.estimand),
        margin_clause(args, entry, margin)
    )
}

/// For whom the effect is averaged, if not for all.
fn population(estimand: &str) -> String {
    let whom = match estimand {
        "att" => "for the treated",
        "atc" => "for the controls",
        "ato" => "for rows weighted by the overlap of the arms",
        "late" => "for those whom the instruments move",
        trimmed if trimmed.ends_with("_trimmed") => {
            "for rows with propensity scores between 0.1 and 0.9"
        }
        _ => return String::new(),
    };
    format!(", {whom} ({estimand})")
}

/// The effect beyond which, to either side, effects are outside of the interval.
fn excluded(args: &Args, entry: &EstimateEntry) -> Option<f64> {
    let effect = entry.effect()?;
    // Without overlap the interval does not cover the error of extrapolating; one that is unbounded
    // excludes nothing.
    let bounded = effect.overlap_warning.is_none() && !effect.unbounded;
    let holds = bounded && effect.measure.is_difference();
    let (low, high) = effect.interval(args.alpha);
    holds.then_some(low.abs().max(high.abs())).filter(|excluded| excluded.is_finite())
}

/// The effect, as the beginning of the sentence.
fn direction(args: &Args, entry: &EstimateEntry, effect: &EffectEstimate) -> String {
    let Contrast { treatment, control } = &entry.contrast;
    // The control arm that all are compared with goes without saying.
    let against = match *control == args.control {
        true => String::new(),
        false => format!(" against {control}"),
    };
    let outcome = &entry.outcome;
    let shown = entry.p_adjusted.is_some_and(|p| p <= args.alpha);
    let (value, measure) = (effect.value(), effect.measure);
    let verb = if value > measure.null() { "raised" } else { "lowered" };
    let number = |x: f64| by_interval(x, effect.interval(args.alpha));
    match (shown, measure.is_difference()) {
        (true, true) => {
            format!("{treatment} {verb} {outcome} by {}{against}", number(value.abs()))
        }
        (true, false) => {
            format!("{treatment} {verb} {outcome}{against}: {} {}", measure.words(), number(value))
        }
        (false, difference) => {
            let words = if difference { String::new() } else { format!("{} ", measure.words()) };
            format!(
                "No effect of {treatment}{against} on {outcome} was shown: {words}{}",
                number(value)
            )
        }
    }
}

/// The tests against the margin, as the end of the sentence, each with its level.
fn margin_clause(args: &Args, entry: &EstimateEntry, margin: &MarginTest) -> String {
    let (Some(words), Some(p)) = (margin.margin_in_words(), margin.p_adjusted) else {
        // An effect that is shown is not one that could be excluded.
        let is_shown = entry.p_adjusted.is_some_and(|p| p <= args.alpha);
        let excluded = excluded(args, entry).filter(|_| !is_shown).zip(entry.effect());
        return excluded.map_or_else(String::new, |(excluded, effect)| {
            format!(
                "; the interval excludes an effect beyond ±{}",
                by_interval(excluded, effect.interval(args.alpha))
            )
        });
    };
    let what = match margin.lower_is_better() {
        None => format!("an effect beyond {words}"),
        Some(lower) => {
            let better = if lower { "less" } else { "more" };
            format!("that it is worse by {words} or more ({better} is better)")
        }
    };
    if !margin.holds() {
        return format!("; {what} is not excluded");
    }
    let verb = if p <= args.alpha { "is" } else { "is not" };
    let tests = match margin.lower_is_better() {
        Some(_) => "one-sided test",
        None => "two one-sided tests",
    };
    // The interval that belongs to the test is not the one next to the effect.
    let interval = match margin.interval() {
        Some(ends) => format!(", {}", ci(2.0 * args.alpha, ends)),
        None => String::new(),
    };
    let (alone, adjusted) = match margin.p_value() {
        Some(alone) if p > alone => (" for this test alone", format!("{}-adjusted ", args.adjust)),
        _ => ("", String::new()),
    };
    format!(
        "; {what} {verb} excluded at the {} % level ({tests}{interval}{alone}; {adjusted}p {})",
        confidence_level(1.0 - args.alpha),
        p_equals(p)
    )
}
