//! Effect modification: the rows of the port `modifiers`.

use super::analysis::SetContext;
use super::comparison::{Comparison, Contrast, RowSet, differing_units, group_count};
use super::data_faults::lost_in_rounding;
use super::estimators::EstimandName;
use super::estimators::pairs::UnitPairs;
use super::frame::{gather, indicators};
use crate::shared_columns::{
    self as columns, Answer, IntervalEstimate, NoNumber, found, reason_of, status_of,
};
use crate::words::{ci, left_out};
use galeras_base::prose::{by_interval, count, four_digits, name_list, p_equals};
use galeras_causal::{
    ColumnRef, Estimate, Modification, ModifierGroup, Refusal, dense, interaction, modification,
    overlap_interaction,
};
use galeras_operator::far_numbers::{LEAST_RANGE, least_if_far};
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::{TableColumn, TableRow, count_of, number, text};

/// The change of the effect with a modifier (bin 0), or the effect in a fifth of its values.
pub(super) struct ModifierRow {
    outcome: String,
    contrast: Contrast,
    modifier: String,
    bin: usize,
    effect: Answer<IntervalEstimate>,
    /// Of a slope only.
    pub(super) p_value: Option<f64>,
    /// The p-value adjusted over the outcomes and modifiers of the contrast, filled in when all of
    /// them are known.
    pub(super) q_value: Option<f64>,
    edges: Option<(f64, f64)>,
    n: usize,
    note: String,
}

impl TableRow for ModifierRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text(
            "modifier",
            "the column with which the effect may change; of a text, column=level",
            |row| &row.modifier,
        ),
        count_of(
            "bin",
            "0: change of the effect per standard deviation, or from the base to the level; 1 and on: \
             a group",
            "groups",
            |row| row.bin,
        ),
        number("estimate", "the slope, or the effect in the group", |row| {
            Some(found(&row.effect)?.estimate.value)
        }),
        number("ci_low", "lower end of the confidence interval", |row| {
            Some(found(&row.effect)?.interval.0)
        }),
        number("ci_high", "upper end of the confidence interval", |row| {
            Some(found(&row.effect)?.interval.1)
        }),
        number("p_value", "two-sided p-value of no change with the modifier; slopes only", |row| {
            row.p_value
        }),
        number(
            "q_value",
            "Benjamini-Hochberg over the outcomes and modifiers; slopes only",
            |row| row.q_value,
        ),
        number(
            "low",
            "lower edge of the group; values are above it, in the first group also equal",
            |row| Some(row.edges?.0),
        ),
        number("high", "upper edge of the group; equal to the lower if it is one value", |row| {
            Some(row.edges?.1)
        }),
        columns::status(|row| status_of(&row.effect)),
        columns::reason(|row| reason_of(&row.effect)),
        number("standard_error", "the standard error of the estimate", |row| {
            Some(found(&row.effect)?.estimate.standard_error)
        }),
        count_of("n", "units, without a unit rows", "units", |row| row.n),
        columns::note(|row| &row.note),
    ];
}

/// The rows of one comparison, without adjusted p-values.
pub(super) fn modifier_rows(cx: &SetContext<'_>, comparison: &Comparison) -> Vec<ModifierRow> {
    let SetContext { args, frame, set, .. } = *cx;
    let rows = args.modifiers.iter().flat_map(|modifier| {
        let context = ModifierContext { cx, comparison, modifier };
        let lost = || lost_in_rounding(frame, modifier, set.rows.iter().copied(), LEAST_RANGE);
        let found = match why_withheld(cx, comparison, modifier).or_else(lost) {
            Some(reason) => Err(reason),
            None if frame.levels.contains_key(modifier) => level_rows(&context),
            None => context
                .fit(&gather(&frame.numbers[modifier], &set.rows))
                .map(|fit| context.slope_rows(&fit)),
        };
        found.unwrap_or_else(|reason| vec![context.refused(reason)])
    });
    rows.collect()
}

/// The rows of a modifier that is a text: for each level but the base, how much larger the effect is
/// than among rows of the base, in the rows of these two levels.
fn level_rows(context: &ModifierContext<'_>) -> Result<Vec<ModifierRow>, String> {
    let ModifierContext { cx, comparison, modifier } = *context;
    let SetContext { args, frame, set, .. } = *cx;
    let codes = gather(&frame.numbers[modifier], &set.rows);
    context.refuse_missing(&codes)?;
    let found = indicators(args, frame, modifier, &set.rows)?;
    let base = found.levels.iter().fold(codes, |mut base, (_, level)| {
        base.iter_mut().zip(level).filter(|(_, is)| **is == 1.0).for_each(|(b, _)| *b = f64::NAN);
        base
    });
    let mut rows = Vec::new();
    for (level, indicator) in &found.levels {
        let name = format!("{modifier}={level}");
        let context = ModifierContext { modifier: &name, ..*context };
        // Rows of other levels have no part in this comparison.
        let column: Vec<f64> = indicator
            .iter()
            .zip(&base)
            .map(|(is, base)| if *is == 1.0 || !base.is_nan() { *is } else { f64::NAN })
            .collect();
        let units = set.units.as_deref().unwrap_or_default();
        let fit = refuse_differing(units, &gather(&frame.numbers[modifier], &set.rows))
            .and_then(|()| context.fit_known(&column));
        let fit = match fit {
            Ok(fit) => fit,
            Err(reason) => {
                rows.push(context.refused(reason));
                continue;
            }
        };
        let slope = fit.modification.estimate;
        // From one standard deviation of the indicator to the whole step.
        let effect = Estimate {
            value: slope.value / fit.deviation,
            standard_error: slope.standard_error / fit.deviation,
            ..slope
        };
        let ends = effect.interval(args.alpha);
        let note = format!(
            "The effect on {} is larger by {} where `{modifier}` is {level} than where it is \
             {} ({}, p {}{}).",
            comparison.outcome,
            by_interval(effect.value, ends),
            found.base,
            ci(args.alpha, ends),
            p_equals(effect.p_value()),
            adjustment_phrase(set),
        );
        let p_value = Some(effect.p_value());
        rows.push(ModifierRow { p_value, ..context.row(0, Ok(effect), fit.n, note) });
        let groups = fit.modification.groups.iter().enumerate();
        rows.extend(groups.map(|(at, group)| {
            let level = if group.low == 1.0 { level } else { &found.base };
            let note = format!("Where `{modifier}` is {level}");
            context.named_group_row(at, group, &note)
        }));
    }
    Ok(rows)
}

/// Refuses a column that differs between the rows of a unit.
fn refuse_differing(units: &[u32], column: &[f64]) -> Result<(), String> {
    match differing_units(units, column) {
        0 => Ok(()),
        differing => {
            let units = count(differing, "unit", "units");
            Err(format!("it differs between the rows of {units}, so it is no modifier"))
        }
    }
}

#[derive(Clone, Copy)]
struct ModifierContext<'a> {
    cx: &'a SetContext<'a>,
    comparison: &'a Comparison,
    modifier: &'a str,
}

impl ModifierContext<'_> {
    fn row(
        &self,
        bin: usize,
        effect: Result<Estimate, String>,
        n: usize,
        note: String,
    ) -> ModifierRow {
        let with_interval = |effect| IntervalEstimate::new(effect, self.cx.args.alpha);
        ModifierRow {
            outcome: self.comparison.outcome.clone(),
            contrast: self.cx.set.contrast.clone(),
            modifier: self.modifier.into(),
            bin,
            effect: effect.map(with_interval).map_err(NoNumber::Refused),
            p_value: None,
            q_value: None,
            edges: None,
            n,
            note,
        }
    }

    /// The change of the effect per standard deviation, and the effect in groups.
    fn slope_rows(&self, fit: &ModifierFit) -> Vec<ModifierRow> {
        let (slope, modifier) = (fit.modification.estimate, self.modifier);
        let ends = slope.interval(self.cx.args.alpha);
        let note = format!(
            "The effect on {} changes by {} per standard deviation of `{modifier}` ({}, p {}{}).{}",
            self.comparison.outcome,
            by_interval(slope.value, ends),
            ci(self.cx.args.alpha, ends),
            p_equals(slope.p_value()),
            adjustment_phrase(self.cx.set),
            left_out_sentence(self.cx.set, fit.left_out)
        );
        let p_value = Some(slope.p_value());
        let mut rows = vec![ModifierRow { p_value, ..self.row(0, Ok(slope), fit.n, note) }];
        rows.extend(fit.modification.groups.iter().enumerate().map(|(at, group)| {
            let (low, high) = (four_digits(group.low), four_digits(group.high));
            let which = match (group.low == group.high, at) {
                (true, _) => format!("Where `{modifier}` is {low}"),
                (false, 0) => format!("Where `{modifier}` is from {low} to {high}"),
                (false, _) => format!("Where `{modifier}` is above {low} to {high}"),
            };
            self.named_group_row(at, group, &which)
        }));
        rows
    }

    fn named_group_row(&self, at: usize, group: &ModifierGroup, which: &str) -> ModifierRow {
        let SetContext { args, set, .. } = *self.cx;
        let size = match set.units {
            Some(_) => count(group.n, "unit", "units"),
            None => count(group.n, "row", "rows"),
        };
        let effect = match &group.effect {
            Ok(effect) => Ok(*effect),
            Err(refusal) => Err(words_of(refusal, &set.names, self.modifier)),
        };
        let weighted =
            args.estimand == EstimandName::Ato && set.units.is_none() && !set.names.is_empty();
        let answer = match &effect {
            Ok(effect) => {
                let ends = effect.interval(args.alpha);
                format!(
                    "the effect {}is {} ({})",
                    if weighted { "in the overlap of both arms " } else { "" },
                    by_interval(effect.value, ends),
                    ci(args.alpha, ends)
                )
            }
            Err(reason) => format!("no effect is given, because {reason}"),
        };
        let note = format!("{which} ({size}), {answer}.");
        let edges = Some((group.low, group.high));
        ModifierRow { edges, ..self.row(at + 1, effect, group.n, note) }
    }

    fn refused(&self, reason: String) -> ModifierRow {
        let note = format!("Whether the effect changes with `{}`: {reason}.", self.modifier);
        self.row(0, Err(reason), 0, note)
    }

    /// Refuses missing values, unless they are to be left out.
    fn refuse_missing(&self, column: &[f64]) -> Result<(), String> {
        let missing = column.iter().filter(|value| value.is_nan()).count();
        if missing == 0 || self.cx.args.missing == MissingValues::Drop {
            return Ok(());
        }
        let rows = count(missing, "row has", "rows have");
        Err(format!("{rows} no value of it (missing: drop leaves such rows out)"))
    }

    fn fit(&self, column: &[f64]) -> Result<ModifierFit, String> {
        self.refuse_missing(column)?;
        let infinite = column.iter().filter(|value| value.is_infinite()).count();
        if infinite > 0 {
            return Err(format!("it is infinite in {}", count(infinite, "row", "rows")));
        }
        let Some(least) = least_if_far(column) else { return self.fit_known(column) };
        // As the covariates, among which it may be: only the edges of groups know where zero is.
        let moved: Vec<f64> = column.iter().map(|value| value - least).collect();
        let mut fit = self.fit_known(&moved)?;
        for group in &mut fit.modification.groups {
            group.low += least;
            group.high += least;
        }
        Ok(fit)
    }

    fn fit_known(&self, column: &[f64]) -> Result<ModifierFit, String> {
        let ModifierContext { cx, comparison, modifier } = *self;
        let (args, set) = (cx.args, cx.set);
        let missing = column.iter().filter(|value| value.is_nan()).count();
        let words = |refusal: Refusal| words_of(&refusal, &set.names, modifier);
        let known: Vec<u32> =
            (0..column.len() as u32).filter(|row| !column[*row as usize].is_nan()).collect();
        let Some(units) = &set.units else {
            // An indicator of a level that the rows with the modifier do not have is left out.
            let covariates = set.names.iter().zip(&set.covariates);
            let (names, covariates): (Vec<String>, Vec<Vec<f64>>) = covariates
                .map(|(name, column)| (name.clone(), gather(column, &known)))
                .filter(|(_, column)| missing == 0 || column.iter().any(|x| *x != column[0]))
                .unzip();
            let values = gather(column, &known);
            let covariates: Vec<&[f64]> = covariates.iter().map(Vec::as_slice).collect();
            let clusters =
                set.clusters.as_ref().map(|codes| dense(gather(codes, &known).into_iter()));
            let fit =
                if args.estimand == EstimandName::Ato { overlap_interaction } else { interaction };
            let modification = fit(
                &gather(&set.treated, &known),
                &gather(comparison.near_zero(), &known),
                &values,
                &covariates,
                clusters.as_deref(),
            );
            let modification =
                modification.map_err(|refusal| words_of(&refusal, &names, modifier))?;
            let deviation = indicator_deviation(&values);
            return Ok(ModifierFit { modification, deviation, n: known.len(), left_out: missing });
        };
        let of_known = (gather(units, &known), gather(column, &known));
        // A modifier is a property of the unit: what the treatment changes cannot modify it.
        refuse_differing(&of_known.0, &of_known.1)?;
        let mut of_unit = vec![f64::NAN; group_count(units)];
        of_known
            .0
            .iter()
            .zip(&of_known.1)
            .for_each(|(unit, value)| of_unit[*unit as usize] = *value);
        let pairs = UnitPairs::of(&set.treated, comparison.near_zero(), units);
        let values: Vec<f64> = pairs.units.iter().map(|unit| of_unit[*unit as usize]).collect();
        let kept: Vec<u32> =
            (0..values.len() as u32).filter(|pair| !values[*pair as usize].is_nan()).collect();
        let clusters = match &set.clusters {
            None => None,
            Some(codes) => Some(gather(&pairs.clusters(units, codes).map_err(words)?, &kept)),
        };
        let clusters = clusters.map(|codes| dense(codes.into_iter()));
        let differences = gather(&pairs.differences(), &kept);
        let of_kept = gather(&values, &kept);
        let modification =
            modification(&differences, &of_kept, clusters.as_deref()).map_err(words)?;
        let deviation = indicator_deviation(&of_kept);
        Ok(ModifierFit {
            modification,
            deviation,
            n: kept.len(),
            left_out: values.len() - kept.len(),
        })
    }
}

/// The covariates and clusters of a slope, as the end of a parenthesis.
fn adjustment_phrase(set: &RowSet) -> String {
    let mut text = String::new();
    if set.units.is_none() && !set.names.is_empty() {
        text.push_str(&format!(", adjusted for {}", name_list(&set.names)));
    }
    if set.clusters.is_some() {
        text.push_str(", errors by clusters");
    }
    text
}

fn left_out_sentence(set: &RowSet, missing: usize) -> String {
    let (one, many) = match set.units {
        Some(_) => ("unit without a value of it is", "units without a value of it are"),
        None => ("row without a value of it is", "rows without a value of it are"),
    };
    left_out(missing, one, many)
}

struct ModifierFit {
    modification: Modification,
    /// The standard deviation (n - 1) of the modifier, if it is 0 and 1.
    deviation: f64,
    /// Units, without a unit rows.
    n: usize,
    left_out: usize,
}

/// Why a modifier is refused before its values are read. Arms that cannot be compared for an
/// estimate cannot be compared by fifths either.
fn why_withheld(cx: &SetContext<'_>, comparison: &Comparison, modifier: &str) -> Option<String> {
    let set = cx.set;
    if let Some(reason) = &comparison.refused {
        return Some(reason.clone());
    }
    if set.plan.affected.iter().any(|name| name == modifier) {
        return Some("by the graph the treatment changes it, so it is no modifier".into());
    }
    if set.units.is_some() {
        return None;
    }
    if !set.absorbed.is_empty() {
        return Some("the interactions are estimated without absorbed effects".into());
    }
    if set.names.is_empty() {
        return set.plan.unadjusted_refused.clone();
    }
    set.adjusting_refused().cloned().or_else(|| cx.separated())
}

fn words_of(refusal: &Refusal, names: &[String], modifier: &str) -> String {
    match refusal {
        Refusal::Constant(ColumnRef::Modifier) => refusal.describe(|_| Some(modifier)),
        Refusal::Constant(ColumnRef::ModifierInArm)
        | Refusal::Collinear { column: ColumnRef::ModifierInArm } => {
            format!("`{modifier}` has one value only in one of the arms")
        }
        Refusal::Constant(ColumnRef::Differences) => "all differences are equal".into(),
        Refusal::Constant(ColumnRef::Outcome) => "the outcome has one value only".into(),
        other => columns::named(other, names),
    }
}

/// The standard deviation (n - 1) of a column of zeros and ones.
fn indicator_deviation(column: &[f64]) -> f64 {
    let n = column.len() as f64;
    let ones = column.iter().filter(|value| **value == 1.0).count() as f64;
    (ones * (n - ones) / (n * (n - 1.0))).sqrt()
}
