//! Equivalence and non-inferiority of the primary estimates: the arguments, and the rows of the port
//! `equivalence`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::args::Args;
use super::comparison::Contrast;
use super::effect_sizes::EffectSizes;
use super::estimate_table::EstimateEntry;
use super::estimators::{DIFFERENCE, OLS, PAIRED};
use crate::shared_columns::{self as columns, Answer, NoNumber, found, reason_of, status_of};
use crate::words::ci;
use galeras_base::prose::{by_interval, confidence_level, p_equals};
use galeras_causal::OneSided;
use galeras_operator::Entry;
use galeras_operator::small_table::{TableColumn, TableRow, number, text};

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
    /// The outcomes of which less is better, such as errors, seconds and costs; of all others more
    /// is. For `noninferiority`.
    #[serde(default)]
    pub(super) lower_is_better: Vec<String>,
    /// The outcomes of which more is better although their names are those of losses. For
    /// `noninferiority`.
    #[serde(default)]
    pub(super) higher_is_better: Vec<String>,
}

/// Words in the names of outcomes of which less is better.
const LOSSES: &str = "bug bugs cer cost costs defects distance dollars duration edits error errors \
                      failed failure failures latency levenshtein loss mae milliseconds mistakes ms \
                      mse perplexity price rmse runtime second seconds secs time usd violations \
                      warnings wer";

impl EquivalenceArgs {
    /// The name of this outcome is that of a loss, and neither list has it: what counts as worse has
    /// to be stated.
    pub(super) fn lacks_direction(&self, outcome: &str) -> bool {
        let stated = [&self.lower_is_better, &self.higher_is_better];
        let name = outcome.to_lowercase();
        let mut words = name.split(|c: char| !c.is_alphanumeric());
        self.test == EquivalenceTest::Noninferiority
            && !stated.into_iter().flatten().any(|one| one == outcome)
            && !name.contains("similarity")
            && words.any(|word| LOSSES.split(' ').any(|loss| loss == word))
    }
}

/// The unit of a margin.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(super) enum MarginUnits {
    /// The unit of the outcome.
    #[default]
    Raw,
    /// Standard deviations of the outcome, pooled over the arms.
    Sd,
    /// Standard deviations of the differences within units.
    SdDifference,
}

/// Which bounds an effect is tested against.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(super) enum EquivalenceTest {
    /// Both: two one-sided tests.
    #[default]
    Equivalence,
    /// The one on the worse side.
    Noninferiority,
}

/// The test of a primary estimate against the margin of its outcome.
#[derive(Clone)]
pub(super) struct MarginTest {
    /// The effect in the units of the margin.
    estimate: Answer<f64>,
    /// Its interval of 1 - 2 alpha, where alpha is below 0.5.
    interval: Option<(f64, f64)>,
    test: &'static str,
    units: MarginUnits,
    /// None without a margin.
    bounds: Option<BoundTests>,
    /// None unless non-inferiority is tested.
    lower_is_better: Option<bool>,
    /// The estimate extrapolates beyond the overlap of the arms: it excludes nothing.
    extrapolates: bool,
    pub(super) p_adjusted: Option<f64>,
}

/// The one-sided tests against the margin below and above.
#[derive(Clone, Copy)]
struct BoundTests {
    margin: f64,
    p_low: Option<f64>,
    p_high: Option<f64>,
}

impl MarginTest {
    pub(super) fn new(args: &Args, entry: &EstimateEntry, sizes: &EffectSizes) -> Self {
        let wanted = args.equivalence.as_ref();
        let units = wanted.map_or(MarginUnits::Raw, |wanted| wanted.units);
        let one_sided = wanted.filter(|wanted| wanted.test == EquivalenceTest::Noninferiority);
        let lower_is_better =
            one_sided.map(|wanted| wanted.lower_is_better.contains(&entry.outcome));
        let scaled = on_scale(entry, sizes, units);
        let bounds = match (wanted, &scaled) {
            (Some(wanted), Ok((_, effect))) => {
                let margin = wanted.margins.get(&entry.outcome).copied().or(wanted.margin);
                margin.map(|margin| BoundTests {
                    margin,
                    p_low: (lower_is_better != Some(true)).then(|| effect.p_above(-margin)),
                    p_high: (lower_is_better != Some(false)).then(|| effect.p_below(margin)),
                })
            }
            _ => None,
        };
        Self {
            test: match (wanted, &bounds) {
                (Some(wanted), Some(_)) => wanted.test.into_str(),
                _ => "none",
            },
            interval: scaled
                .as_ref()
                .ok()
                .filter(|_| args.alpha < 0.5)
                .map(|(_, effect)| effect.interval(2.0 * args.alpha)),
            estimate: scaled.map(|(value, _)| value).map_err(NoNumber::Refused),
            units,
            bounds,
            lower_is_better,
            extrapolates: entry.effect().is_some_and(|effect| effect.overlap_warning.is_some()),
            p_adjusted: None,
        }
    }

    pub(super) fn p_value(&self) -> Option<f64> {
        let bounds = self.bounds?;
        match (bounds.p_low, bounds.p_high) {
            (Some(low), Some(high)) => Some(low.max(high)),
            (low, high) => low.or(high),
        }
    }

    /// The effect beyond which, to either side, effects are excluded by one-sided tests at the level
    /// alpha.
    fn excluded(&self) -> Option<f64> {
        let interval = self.interval.filter(|_| self.holds());
        interval.map(|(low, high)| low.abs().max(high.abs()))
    }

    /// The interval of 1 - 2 alpha, in the units of the margin.
    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        self.interval
    }

    /// The tests may exclude effects.
    pub(super) fn holds(&self) -> bool {
        !self.extrapolates
    }

    /// The margin that the estimate was tested against, in words: ±0.02, or 0.02.
    pub(super) fn margin_in_words(&self) -> Option<String> {
        let margin = self.bounds?.margin;
        let sign = if self.lower_is_better.is_some() { "" } else { "±" };
        let units = match self.units {
            MarginUnits::Raw => "",
            MarginUnits::Sd => " standard deviations",
            MarginUnits::SdDifference => " standard deviations of the differences",
        };
        Some(match (1e-4..1e9).contains(&margin) {
            true => format!("{sign}{margin}{units}"),
            false => format!("{sign}{margin:e}{units}"),
        })
    }

    /// None unless non-inferiority is tested.
    pub(super) fn lower_is_better(&self) -> Option<bool> {
        self.lower_is_better
    }

    /// The conclusion from the tests of no difference and of equivalence, at the level alpha, both
    /// with adjusted p-values.
    pub(super) fn verdict(&self, args: &Args, entry: &EstimateEntry) -> Option<&'static str> {
        let effect = entry.estimate()?.value;
        let is_effect = entry.p_adjusted? <= args.alpha;
        let within = self.holds() && self.p_adjusted.is_some_and(|p| p <= args.alpha);
        Some(match (self.lower_is_better, is_effect, within) {
            (None, true, true) => "trivial",
            (None, false, true) => "equivalent",
            (None, true, false) => "different",
            (Some(lower), true, _) if (effect < 0.0) == lower => "superior",
            (Some(_), _, true) => "noninferior",
            (Some(_), true, false) => "inferior",
            (_, false, false) => "inconclusive",
        })
    }
}

/// The value of a primary estimate in the units of a margin, and its one-sided tests.
fn on_scale(
    entry: &EstimateEntry,
    sizes: &EffectSizes,
    units: MarginUnits,
) -> Result<(f64, Box<dyn OneSided>), String> {
    let effect = entry.answer.as_ref().map_err(|none| none.reason().to_owned())?;
    if effect.unbounded {
        let reason = "no effect is excluded: Anderson and Rubin's interval, which holds with weak \
                      instruments, is unbounded";
        return Err(reason.to_owned());
    }
    if units == MarginUnits::Raw {
        // A logarithm, or an interval that no standard error makes, is not on the scale of a margin.
        if effect.measure.is_ratio() || effect.inverted.is_some() {
            return Err(format!(
                "a margin is one of a difference with a standard error, and `{}` gives another \
                 measure",
                entry.estimator.name()
            ));
        }
        return Ok((effect.estimate.value, Box::new(effect.estimate)));
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
    let found = match (units, &sizes.standardised_pairs) {
        (MarginUnits::SdDifference, None) => return Err("there are no units".to_owned()),
        (MarginUnits::SdDifference, Some(pairs)) => pairs.clone()?,
        _ => sizes.standardised.clone()?,
    };
    Ok((found.value, Box::new(found)))
}

pub(super) struct EquivalenceRow {
    outcome: String,
    contrast: Contrast,
    margin: MarginTest,
    verdict: Option<&'static str>,
    note: String,
}

impl TableRow for EquivalenceRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text("test", "equivalence, noninferiority, or none without a margin", |row| {
            row.margin.test
        }),
        text("units", "of the numbers: raw, sd or sd_difference", |row| {
            row.margin.units.into_str()
        }),
        number("margin", "the effect that still counts as none", |row| {
            Some(row.margin.bounds?.margin)
        }),
        number("estimate", "the effect, in these units", |row| {
            found(&row.margin.estimate).copied()
        }),
        number(
            "ci_low",
            "lower end of its interval of 1 - 2 alpha, which belongs to one-sided tests",
            |row| Some(row.margin.interval?.0),
        ),
        number("ci_high", "upper end", |row| Some(row.margin.interval?.1)),
        number("low", "the lower bound that is tested", |row| {
            let bounds = row.margin.bounds?;
            bounds.p_low.map(|_| -bounds.margin)
        }),
        number("high", "the upper bound that is tested", |row| {
            let bounds = row.margin.bounds?;
            bounds.p_high.map(|_| bounds.margin)
        }),
        number("p_low", "p-value of an effect at the lower bound or below", |row| {
            row.margin.bounds?.p_low
        }),
        number("p_high", "p-value of an effect at the upper bound or above", |row| {
            row.margin.bounds?.p_high
        }),
        number("p_value", "the larger one of them", |row| row.margin.p_value()),
        number("p_adjusted", "adjusted over the family (`adjust_over`)", |row| {
            row.margin.p_adjusted
        }),
        columns::excluded(|row| row.margin.excluded()),
        columns::verdict(|row| row.verdict),
        columns::status(|row| status_of(&row.margin.estimate)),
        columns::reason(|row| reason_of(&row.margin.estimate)),
        columns::note(|row| &row.note),
    ];
}

impl EquivalenceRow {
    /// The row of a primary estimate, whose p-values are adjusted by now.
    pub(super) fn new(args: &Args, entry: &EstimateEntry, margin: &MarginTest) -> Self {
        Self {
            outcome: entry.outcome.clone(),
            contrast: entry.contrast.clone(),
            margin: margin.clone(),
            verdict: margin.verdict(args, entry),
            note: note(args, entry, margin),
        }
    }
}

fn note(args: &Args, entry: &EstimateEntry, margin: &MarginTest) -> String {
    let Contrast { treatment, control } = &entry.contrast;
    let what = format!("{treatment} against {control} on {}", entry.outcome);
    let estimate = match &margin.estimate {
        Ok(estimate) => *estimate,
        Err(none) => return format!("Equivalence of {what}: refused, because {}.", none.reason()),
    };
    let Some(ends) = margin.interval else {
        return format!("Equivalence of {what}: no interval, because alpha is not below 0.5.");
    };
    let effect = format!("{} ({})", by_interval(estimate, ends), ci(2.0 * args.alpha, ends));
    let excluded = match margin.excluded() {
        Some(excluded) => format!(
            " Effects beyond ±{} are excluded at the {} % level by one-sided tests.",
            by_interval(excluded, ends),
            confidence_level(1.0 - args.alpha)
        ),
        None => String::new(),
    };
    let (Some(p), Some(words)) = (margin.p_value(), margin.margin_in_words()) else {
        return format!("{what}: {effect}.{excluded}");
    };
    let adjusted = match margin.p_adjusted {
        Some(adjusted) => format!(", {}-adjusted p {}", args.adjust, p_equals(adjusted)),
        None => String::new(),
    };
    let test = match margin.lower_is_better {
        Some(lower) => {
            let better = if lower { "less" } else { "more" };
            format!(
                "Non-inferiority of {what} by a margin of {words} (one one-sided test; {better} is \
                 better)"
            )
        }
        None => format!("Equivalence of {what} within {words} (two one-sided tests)"),
    };
    let overlap = match margin.extrapolates {
        true => " The arms overlap too little for a test to exclude effects.",
        false => "",
    };
    format!("{test}: {effect}, p {}{adjusted}.{excluded}{overlap}", p_equals(p))
}
