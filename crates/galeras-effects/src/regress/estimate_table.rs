//! The estimates: the rows of the ports `out` and `summary`, and in sentences.

use super::args::Args;
use super::comparison::Contrast;
use super::effect_sizes::EffectSizes;
use super::equivalence::MarginTest;
use super::estimators::{EffectEstimate, Estimator, Measure, PAIRED};
use super::refuters::Refutation;
use crate::shared_columns::{self as columns, Answer, NoNumber, reason_of, status_of};
use crate::words::{ci, left_out};
use galeras_base::prose::{
    by_interval, degrees_of_freedom, four_digits, name_list, p, p_equals, thousands,
};
use galeras_causal::Estimate;
use galeras_operator::Entry;
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, flag, number, optional_count, optional_text, text,
};

/// An estimator's answer for one outcome and contrast.
pub(super) struct EstimateEntry {
    pub(super) outcome: String,
    pub(super) contrast: Contrast,
    pub(super) estimator: Estimator,
    /// Of the primary estimator only.
    pub(super) primary: Option<PrimaryResults>,
    pub(super) n: usize,
    pub(super) n_treated: usize,
    pub(super) n_pairs: Option<usize>,
    pub(super) n_clusters: Option<usize>,
    pub(super) n_missing: usize,
    /// Rows that are absent: one for each unit and arm without any.
    pub(super) n_absent: usize,
    pub(super) adjusted_for: Vec<String>,
    pub(super) answer: Answer<EffectEstimate>,
    pub(super) p_adjusted: Option<f64>,
    /// The contributions of clusters, units or rows of the frame to the error, if they are known.
    pub(super) influence: Option<Vec<f64>>,
    /// The tests that its p-value is adjusted for.
    pub(super) family: Option<TestFamily>,
    /// In the order of the refuters; none without an estimate.
    pub(super) refutations: Vec<Refutation>,
}

/// The tests whose p-values are adjusted together.
#[derive(Clone, Copy)]
pub(super) struct TestFamily {
    pub(super) tests: usize,
    /// The critical value of max-t, if the correlations of the estimates are known.
    pub(super) critical: Option<f64>,
}

/// The results of a primary estimate in addition to the estimate.
pub(super) struct PrimaryResults {
    pub(super) sizes: EffectSizes,
    pub(super) margin: MarginTest,
}

impl EstimateEntry {
    pub(super) fn effect(&self) -> Option<&EffectEstimate> {
        self.answer.as_ref().ok()
    }

    pub(super) fn estimate(&self) -> Option<Estimate> {
        self.effect().map(|effect| effect.estimate)
    }

    /// The number of things that were compared, and their name.
    pub(super) fn size(&self) -> (usize, &'static str) {
        match (self.effect().and_then(|effect| effect.pairs), self.n_pairs) {
            (Some(pairs), _) => (pairs, "data points"),
            (None, Some(pairs)) if self.estimator == PAIRED => (pairs, "data points"),
            _ => (self.n, "rows"),
        }
    }

    /// The interval that covers together with those of all tests of the family, with probability
    /// `1 - alpha`: by max-t, or by Bonferroni where the correlations are not known. None for the
    /// interval of a test, which is made for one level.
    pub(super) fn simultaneous_interval(&self, args: &Args) -> Option<(f64, f64)> {
        let effect = self.effect().filter(|effect| effect.inverted.is_none())?;
        let family = self.family.filter(|_| args.adjust.is_family_wise())?;
        Some(match family.critical {
            Some(critical) => effect.interval_of(critical),
            None => effect.interval(args.alpha / family.tests as f64),
        })
    }

    pub(super) fn p_value(&self) -> Option<f64> {
        self.effect().map(EffectEstimate::p_value)
    }
}

pub(super) fn refused_effects(entries: &[EstimateEntry]) -> Vec<String> {
    let primary = entries.iter().filter(|entry| entry.primary.is_some());
    primary
        .filter_map(|entry| match &entry.answer {
            Err(NoNumber::Refused(reason)) => {
                let Contrast { treatment, control } = &entry.contrast;
                let outcome = &entry.outcome;
                Some(format!(
                    "the effect of `{treatment}` against `{control}` on `{outcome}` is not \
                     estimated: {reason}"
                ))
            }
            _ => None,
        })
        .collect()
}

pub(super) struct EstimateRow {
    entry: EstimateEntry,
    estimand: String,
    measure: Measure,
    interval: Option<(f64, f64)>,
    simultaneous: Option<(f64, f64)>,
    /// None without an estimate.
    adjusted_for: Option<String>,
    note: String,
}

impl TableRow for EstimateRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.entry.outcome),
        columns::treatment(|row| &row.entry.contrast.treatment),
        columns::control(|row| &row.entry.contrast.control),
        text("estimator", "how the effect is estimated", |row| row.entry.estimator.name()),
        text(
            "measure",
            "what the estimate is: difference, risk_difference, risk_ratio, odds_ratio, rate_ratio, \
             probability_of_superiority",
            |row| row.measure.into_str(),
        ),
        number(
            "estimate",
            "the effect: treatment minus control, or treatment over control for a ratio",
            |row| Some(row.entry.effect()?.value()),
        ),
        number(
            "null_value",
            "the value of no effect, which the p-value is about: 0, 1 for a ratio, 0.5 for a probability",
            |row| Some(row.measure.null()),
        ),
        number("ci_low", "lower end of the confidence interval", |row| Some(row.interval?.0)),
        number("ci_high", "upper end of the confidence interval", |row| Some(row.interval?.1)),
        number("p_value", "two-sided p-value of no effect", |row| row.entry.p_value()),
        number(
            "p_adjusted",
            "adjusted over the contrasts, outcomes and groups of the estimator (`adjust_over`)",
            |row| row.entry.p_adjusted,
        ),
        number(
            "simultaneous_low",
            "lower end of an interval that covers together with those of its family (max-t, else \
             Bonferroni); \
             null where `adjust` is about the false discovery rate, and for intervals of tests",
            |row| Some(row.simultaneous?.0),
        ),
        number("simultaneous_high", "upper end of it", |row| Some(row.simultaneous?.1)),
        columns::status(|row| status_of(&row.entry.answer)),
        columns::reason(|row| reason_of(&row.entry.answer)),
        text(
            "estimand",
            "for whom it is averaged: ate, att, atc, ato, late; _trimmed: those in the overlap",
            |row| &row.estimand,
        ),
        flag("primary", "whether this is the primary estimator", |row| row.entry.primary.is_some()),
        number(
            "standard_error",
            "the standard error of the estimate; of its logarithm for a ratio",
            |row| row.entry.effect()?.standard_error(),
        ),
        optional_text("se_kind", "how the standard error is computed", |row| {
            Some(row.entry.effect()?.se_kind.as_str())
        }),
        number(
            "statistic",
            "the estimate (of a ratio its logarithm) divided by its standard error, or that of the \
             test; null for an exact test",
            |row| row.entry.effect()?.statistic(),
        ),
        number(
            "df",
            "degrees of freedom of Student's t; null for the normal distribution",
            |row| row.entry.estimate().map(|e| e.degrees).filter(|df| df.is_finite()),
        ),
        count_of(
            "n",
            "complete rows of both arms; the note says which of them were not used",
            "rows",
            |row| row.entry.n,
        ),
        count_of("n_treatment", "of them under the treatment", "rows", |row| row.entry.n_treated),
        count_of("n_control", "of them under control", "rows", |row| {
            row.entry.n - row.entry.n_treated
        }),
        optional_count(
            "n_pairs",
            "units with rows under both; null without units",
            Some("units"),
            |row| row.entry.n_pairs,
        ),
        optional_count("n_clusters", "clusters; null without clusters", Some("clusters"), |row| {
            row.entry.n_clusters
        }),
        count_of(
            "n_missing",
            "rows without a value that is needed, and one for each unit and arm without any row",
            "rows",
            |row| row.entry.n_missing + row.entry.n_absent,
        ),
        optional_text(
            "adjusted_for",
            "the covariates that were adjusted for, with commas",
            |row| row.adjusted_for.as_deref(),
        ),
        columns::note(|row| &row.note),
    ];
}

impl EstimateRow {
    pub(super) fn new(args: &Args, entry: EstimateEntry) -> Self {
        let effect = entry.effect();
        let asked_for = match entry.estimator.estimates(args.estimand) {
            true => args.estimand.into_str(),
            false => "ate",
        };
        let estimand = match effect {
            Some(effect) => effect.estimand.as_str(),
            None => entry.estimator.fixed_estimand.unwrap_or(asked_for),
        };
        Self {
            estimand: estimand.to_owned(),
            measure: effect.map_or(entry.estimator.measure, |effect| effect.measure),
            interval: effect.map(|effect| effect.interval(args.alpha)),
            simultaneous: entry.simultaneous_interval(args),
            adjusted_for: effect.map(|_| entry.adjusted_for.join(", ")),
            note: note(args, &entry),
            entry,
        }
    }
}

fn note(args: &Args, entry: &EstimateEntry) -> String {
    let Contrast { treatment, control } = &entry.contrast;
    let method = entry.estimator.method;
    let what = format!("{method}, effect of {treatment} against {control} on {}", entry.outcome);
    let effect = match &entry.answer {
        Ok(effect) => effect,
        Err(NoNumber::Refused(reason)) => return format!("{what}: refused, because {reason}."),
        Err(NoNumber::NotApplicable(reason)) => {
            return format!("{what}: not applicable, {reason}.");
        }
    };
    let size = match effect.pairs {
        Some(pairs) => format!("{} pairs", thousands(pairs)),
        None => format!("{} rows", thousands(entry.n)),
    };
    let adjusted = match entry.adjusted_for.as_slice() {
        [] => String::new(),
        names => format!(", adjusted for {}", name_list(names)),
    };
    let test = match effect.statistic().map(four_digits) {
        None => String::new(),
        Some(statistic) if effect.estimate.degrees.is_finite() => {
            format!("t({}) = {statistic}, ", degrees_of_freedom(effect.estimate.degrees))
        }
        Some(statistic) => format!("z = {statistic}, "),
    };
    // The standard error of a ratio is that of its logarithm.
    let log = if effect.measure.is_ratio() { " of the logarithm" } else { "" };
    let error = match effect.standard_error() {
        Some(error) => format!("{} SE{log} {}, ", effect.se_kind, four_digits(error)),
        None => format!("{}, ", effect.se_kind),
    };
    let measure = match effect.measure {
        Measure::Difference => String::new(),
        measure => format!("{} ", measure.words()),
    };
    let adjusted_p = match entry.p_adjusted {
        Some(adjusted) => format!(", {}-adjusted p {}", args.adjust, p_equals(adjusted)),
        None => String::new(),
    };
    let ends = effect.interval(args.alpha);
    let mut text = format!(
        "{what} ({}) in {size}{adjusted}: {measure}{} ({error}{}; {test}p \
         {}{adjusted_p}).",
        effect.estimand.to_uppercase(),
        by_interval(effect.value(), ends),
        ci(args.alpha, ends),
        p_equals(effect.p_value()),
    );
    for remark in &effect.remarks {
        text.push(' ');
        text.push_str(remark);
    }
    let (one, many) =
        ("row without a value that is needed is", "rows without a value that is needed are");
    text + &left_out(entry.n_missing, one, many)
}

pub(super) struct SummaryRow {
    outcome: String,
    treatment: String,
    control: String,
    measure: Measure,
    estimate: Option<f64>,
    interval: Option<(f64, f64)>,
    p_adjusted: String,
    n: usize,
    status: &'static str,
}

impl TableRow for SummaryRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.treatment),
        number("estimate", "the effect", |row| row.estimate),
        number("ci_low", "lower end of the interval, which is not adjusted", |row| {
            Some(row.interval?.0)
        }),
        number("ci_high", "upper end", |row| Some(row.interval?.1)),
        text("p_adj", "the adjusted p-value, to two digits", |row| &row.p_adjusted),
        count_of(
            "n",
            "complete rows of both arms; pairs where these are compared",
            "rows",
            |row| row.n,
        ),
        columns::status(|row| row.status),
        columns::control(|row| &row.control),
        text(
            "measure",
            "what the estimate is: a ratio is 1 without an effect, a difference 0, a probability 0.5",
            |row| row.measure.into_str(),
        ),
    ];
}

impl SummaryRow {
    pub(super) fn new(args: &Args, entry: &EstimateEntry) -> Self {
        let effect = entry.effect();
        let interval = effect.map(|effect| effect.interval(args.alpha));
        let Contrast { treatment, control } = &entry.contrast;
        Self {
            outcome: entry.outcome.clone(),
            // The control arm that all are compared with goes without saying.
            treatment: match *control == args.control {
                true => treatment.clone(),
                false => format!("{treatment} - {control}"),
            },
            control: control.clone(),
            measure: effect.map_or(entry.estimator.measure, |effect| effect.measure),
            estimate: effect.map(EffectEstimate::value),
            interval,
            p_adjusted: entry.p_adjusted.map_or_else(String::new, p),
            n: entry.size().0,
            status: status_of(&entry.answer),
        }
    }
}
