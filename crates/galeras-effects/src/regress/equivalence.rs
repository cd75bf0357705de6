//! Equivalence and non-inferiority of the primary estimates: the arguments, and the rows of the port
//! `equivalence`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::args::Args;
use super::comparison::Contrast;
use super::effect_sizes::EffectSizes;
use super::estimate_table::{EstimateEntry, EstimatorAnswer};
use super::estimators::{DIFFERENCE, OLS, PAIRED};
use super::shared_columns::{self as columns, RowStatus};
use crate::words::ci;
use galeras_base::prose::{four_digits, p_equals};
use galeras_causal::{Estimate, OneSided, Standardised, equivalence, excluded_beyond};
use galeras_operator::Entry;
use galeras_operator::small_table::{TableColumn, TableRow, number, optional_text, text};

/// The effects that count as none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EquivalenceArgs {
    /// How large an effect may be, to either side, and still count as none.
    #[serde(default)]
    pub(super) margin: Option<f64>,
    /// The margins of outcomes that have one of their own: outcome -> margin.
    #[serde(default)]
    pub(super) margins: BTreeMap<String, f64>,
    /// What margins are measured in: the outcome's unit (raw), standard deviations of the outcome
    /// (sd, Cohen's d), or of the differences within units (sd_difference, d_z).
    #[serde(default)]
    pub(super) units: MarginUnits,
    /// Whether the effect must lie within the margin to both sides (equivalence), or only not be
    /// worse by it (noninferiority).
    #[serde(default)]
    pub(super) test: EquivalenceTest,
    /// The outcomes of which less is better; of all others more is. For `noninferiority`.
    #[serde(default)]
    pub(super) lower_is_better: Vec<String>,
}

/// The unit of a margin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum MarginUnits {
    /// The unit of the outcome.
    #[default]
    Raw,
    /// Standard deviations of the outcome, pooled over the arms.
    Sd,
    /// Standard deviations of the differences within units.
    SdDifference,
}

impl MarginUnits {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Sd => "sd",
            Self::SdDifference => "sd_difference",
        }
    }
}

/// Which bounds an effect is tested against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EquivalenceTest {
    /// Both: two one-sided tests.
    #[default]
    Equivalence,
    /// The one on the worse side.
    Noninferiority,
}

impl EquivalenceTest {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Equivalence => "equivalence",
            Self::Noninferiority => "noninferiority",
        }
    }
}

impl EquivalenceArgs {
    /// The margin of an outcome.
    pub(super) fn margin_of(&self, outcome: &str) -> Option<f64> {
        self.margins.get(outcome).copied().or(self.margin)
    }
}

/// The conclusion from the tests of no difference and of equivalence, at the level alpha, both with
/// adjusted p-values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is an effect.
    Different,
    /// There is an effect, and it lies within the margin.
    Trivial,
    /// The effect lies within the margin.
    Equivalent,
    /// Better than control.
    Superior,
    /// Not worse than control by the margin.
    Noninferior,
    /// Worse than control, and perhaps by the margin.
    Inferior,
    /// None of them is shown.
    Inconclusive,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Different => "different",
            Self::Trivial => "trivial",
            Self::Equivalent => "equivalent",
            Self::Superior => "superior",
            Self::Noninferior => "noninferior",
            Self::Inferior => "inferior",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The tests of one estimate against its margin.
struct MarginTests {
    margin: f64,
    low: Option<f64>,
    high: Option<f64>,
    p_low: Option<f64>,
    p_high: Option<f64>,
}

/// The test of an estimate before its p-value is adjusted.
pub(super) struct MarginEntry {
    pub(super) outcome: String,
    pub(super) contrast: Contrast,
    test: &'static str,
    units: MarginUnits,
    tests: Option<MarginTests>,
    estimate: Option<f64>,
    interval: Option<(f64, f64)>,
    pub(super) excluded: Option<f64>,
    status: RowStatus,
    /// None unless non-inferiority is tested.
    lower_is_better: Option<bool>,
    pub(super) p_adjusted: Option<f64>,
}

impl MarginEntry {
    pub(super) fn p_value(&self) -> Option<f64> {
        let tests = self.tests.as_ref()?;
        match (tests.p_low, tests.p_high) {
            (Some(low), Some(high)) => Some(low.max(high)),
            (low, high) => low.or(high),
        }
    }

    /// The margin that the estimate was tested against, in words: ±0.02, or 0.02.
    pub(super) fn margin_in_words(&self) -> Option<String> {
        let tests = self.tests.as_ref()?;
        let sign = if self.lower_is_better.is_none() { "±" } else { "" };
        let units = match self.units {
            MarginUnits::Raw => "",
            MarginUnits::Sd => " standard deviations",
            MarginUnits::SdDifference => " standard deviations of the differences",
        };
        Some(format!("{sign}{}{units}", plain(tests.margin)))
    }

    pub(super) fn is_one_sided(&self) -> bool {
        self.lower_is_better.is_some()
    }

    /// The verdict on an estimate whose adjusted p-value of no effect is `p_effect`.
    pub(super) fn verdict(&self, args: &Args, entry: &EstimateEntry) -> Option<Verdict> {
        let effect = entry.estimate()?.value;
        let is_effect = entry.p_adjusted? <= args.alpha;
        let within = self.p_adjusted.is_some_and(|p| p <= args.alpha);
        Some(match (self.lower_is_better, is_effect, within) {
            (None, true, true) => Verdict::Trivial,
            (None, false, true) => Verdict::Equivalent,
            (None, true, false) => Verdict::Different,
            (Some(lower), true, _) if (effect < 0.0) == lower => Verdict::Superior,
            (Some(_), _, true) => Verdict::Noninferior,
            (Some(_), true, false) => Verdict::Inferior,
            (_, false, false) => Verdict::Inconclusive,
        })
    }
}

fn plain(margin: f64) -> String {
    if (1e-4..1e9).contains(&margin) { format!("{margin}") } else { format!("{margin:e}") }
}

enum OnScale {
    Raw(Estimate),
    Standardised(Standardised),
}

impl OneSided for OnScale {
    fn interval(&self, alpha: f64) -> (f64, f64) {
        match self {
            Self::Raw(estimate) => OneSided::interval(estimate, alpha),
            Self::Standardised(effect) => effect.interval(alpha),
        }
    }

    fn p_above(&self, bound: f64) -> f64 {
        match self {
            Self::Raw(estimate) => estimate.p_above(bound),
            Self::Standardised(effect) => effect.p_above(bound),
        }
    }

    fn p_below(&self, bound: f64) -> f64 {
        match self {
            Self::Raw(estimate) => estimate.p_below(bound),
            Self::Standardised(effect) => effect.p_below(bound),
        }
    }
}

fn on_scale(
    entry: &EstimateEntry,
    sizes: &EffectSizes,
    units: MarginUnits,
) -> Result<OnScale, String> {
    let effect = match &entry.answer {
        EstimatorAnswer::Estimated(effect) => effect,
        EstimatorAnswer::Refused(reason) | EstimatorAnswer::NotApplicable(reason) => {
            return Err(reason.clone());
        }
    };
    if units == MarginUnits::Raw {
        // A logarithm, or an interval that no standard error makes, is not on the scale of a margin.
        if effect.measure.is_ratio() || effect.inverted.is_some() {
            return Err(format!(
                "a margin is one of a difference with a standard error, and `{}` gives another \
                 measure",
                entry.estimator.name()
            ));
        }
        return Ok(OnScale::Raw(effect.estimate));
    }
    // A standardised effect is one of the arms as they are.
    let plain = [PAIRED, DIFFERENCE, OLS].contains(&entry.estimator);
    if !plain || !entry.adjusted_for.is_empty() {
        return Err(format!(
            "a margin in standard deviations is for `paired` and `difference`, and `{}` adjusts \
             (units: raw is for all)",
            entry.estimator.name()
        ));
    }
    let found = match units {
        MarginUnits::SdDifference => sizes
            .standardised_pairs
            .clone()
            .unwrap_or_else(|| Err("there are no units".to_owned()))?,
        _ => sizes.standardised.clone()?,
    };
    Ok(OnScale::Standardised(found))
}

/// Tests a primary estimate against the margin of its outcome.
pub(super) fn margin_entry(args: &Args, entry: &EstimateEntry, sizes: &EffectSizes) -> MarginEntry {
    let wanted = args.equivalence.as_ref();
    let units = wanted.map_or(MarginUnits::Raw, |wanted| wanted.units);
    let scale = on_scale(entry, sizes, units);
    let tests = match (wanted, &scale) {
        (Some(wanted), Ok(scale)) => margin_tests(wanted, &entry.outcome, scale),
        _ => None,
    };
    let one_sided = wanted.filter(|wanted| wanted.test == EquivalenceTest::Noninferiority);
    let level = args.alpha < 0.5;
    let scaled = scale.as_ref().ok().filter(|_| level);
    MarginEntry {
        outcome: entry.outcome.clone(),
        contrast: entry.contrast.clone(),
        test: match (wanted, &tests) {
            (Some(wanted), Some(_)) => wanted.test.name(),
            _ => "none",
        },
        units,
        tests,
        estimate: scale.as_ref().ok().map(|scale| match scale {
            OnScale::Raw(estimate) => estimate.value,
            OnScale::Standardised(effect) => effect.value,
        }),
        interval: scaled.map(|scale| scale.interval(2.0 * args.alpha)),
        excluded: scaled.map(|scale| excluded_beyond(scale, args.alpha)),
        status: RowStatus::of(&scale),
        lower_is_better: one_sided.map(|wanted| wanted.lower_is_better.contains(&entry.outcome)),
        p_adjusted: None,
    }
}

fn margin_tests(wanted: &EquivalenceArgs, outcome: &str, scale: &OnScale) -> Option<MarginTests> {
    let margin = wanted.margin_of(outcome)?;
    let lower = wanted.lower_is_better.iter().any(|name| name == outcome);
    let one = |low, high, p_low, p_high| Some(MarginTests { margin, low, high, p_low, p_high });
    match (wanted.test, lower) {
        (EquivalenceTest::Equivalence, _) => {
            let tests = equivalence(scale, -margin, margin).ok()?;
            one(Some(-margin), Some(margin), Some(tests.p_low), Some(tests.p_high))
        }
        (EquivalenceTest::Noninferiority, false) => {
            one(Some(-margin), None, Some(scale.p_above(-margin)), None)
        }
        (EquivalenceTest::Noninferiority, true) => {
            one(None, Some(margin), None, Some(scale.p_below(margin)))
        }
    }
}

pub(super) struct EquivalenceRow {
    entry: MarginEntry,
    verdict: Option<Verdict>,
    note: String,
}

impl TableRow for EquivalenceRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.entry.outcome),
        columns::treatment(|row| &row.entry.contrast.treatment),
        columns::control(|row| &row.entry.contrast.control),
        text("test", "equivalence, noninferiority, or none without a margin", |row| row.entry.test),
        text("units", "of the numbers: raw, sd or sd_difference", |row| row.entry.units.name()),
        number("margin", "the effect that still counts as none", |row| {
            Some(row.entry.tests.as_ref()?.margin)
        }),
        number("estimate", "the effect, in these units", |row| row.entry.estimate),
        number(
            "ci_low",
            "lower end of its interval of 1 - 2 alpha, which belongs to one-sided tests",
            |row| Some(row.entry.interval?.0),
        ),
        number("ci_high", "upper end", |row| Some(row.entry.interval?.1)),
        number("low", "the lower bound that is tested", |row| row.entry.tests.as_ref()?.low),
        number("high", "the upper bound that is tested", |row| row.entry.tests.as_ref()?.high),
        number("p_low", "p-value of an effect at the lower bound or below", |row| {
            row.entry.tests.as_ref()?.p_low
        }),
        number("p_high", "p-value of an effect at the upper bound or above", |row| {
            row.entry.tests.as_ref()?.p_high
        }),
        number("p_value", "the larger one of them", |row| row.entry.p_value()),
        number("p_adjusted", "adjusted over the family (`adjust_over`)", |row| {
            row.entry.p_adjusted
        }),
        number(
            "excluded",
            "effects beyond this, to either side, are excluded at the level alpha",
            |row| row.entry.excluded,
        ),
        optional_text(
            "verdict",
            "with adjusted p-values: different, trivial, equivalent, superior, noninferior, \
             inferior or inconclusive",
            |row| row.verdict.map(Verdict::name),
        ),
        columns::status(|row| row.entry.status.name()),
        columns::reason(|row| row.entry.status.reason()),
        columns::note(|row| &row.note),
    ];
}

impl EquivalenceRow {
    /// The row of an estimate, whose p-values are adjusted by now.
    pub(super) fn new(args: &Args, margin: MarginEntry, entry: &EstimateEntry) -> Self {
        let verdict = margin.verdict(args, entry);
        Self { verdict, note: note(args, &margin), entry: margin }
    }
}

fn note(args: &Args, entry: &MarginEntry) -> String {
    let Contrast { treatment, control } = &entry.contrast;
    let what = format!("{treatment} against {control} on {}", entry.outcome);
    if let Some(reason) = entry.status.reason() {
        return format!("Equivalence of {what}: refused, because {reason}.");
    }
    let (Some(estimate), Some(ends)) = (entry.estimate, entry.interval) else {
        return format!("Equivalence of {what}: no interval, because alpha is not below 0.5.");
    };
    let effect = format!("{} ({})", four_digits(estimate), ci(2.0 * args.alpha, ends));
    let excluded = match entry.excluded {
        Some(excluded) => format!(
            " Effects beyond ±{} are excluded at the {} level.",
            four_digits(excluded),
            args.alpha
        ),
        None => String::new(),
    };
    let (Some(p), Some(margin)) = (entry.p_value(), entry.margin_in_words()) else {
        return format!("{what}: {effect}.{excluded}");
    };
    let adjusted = match entry.p_adjusted {
        Some(adjusted) => format!(", {}-adjusted p {}", args.adjust, p_equals(adjusted)),
        None => String::new(),
    };
    let test = if entry.is_one_sided() {
        format!("Non-inferiority of {what} by a margin of {margin} (one one-sided test)")
    } else {
        format!("Equivalence of {what} within {margin} (two one-sided tests)")
    };
    format!("{test}: {effect}, p {}{adjusted}.{excluded}", p_equals(p))
}
