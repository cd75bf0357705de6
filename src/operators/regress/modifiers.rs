//! Effect modification: the rows of this port.

use super::super::support::cells::Cell;
use super::super::support::missing::Missing;
use super::super::support::words::{count, interval, level, list, p_equals, short};
use super::args::Args;
use super::balance::contrast;
use super::comparison::{Comparison, RowSet, differing_units, gather};
use super::estimate::{Pairs, Score};
use super::frame::Frame;
use galeras_causal::{
    ColumnRef, Estimate, Modification, ModifierGroup, Refusal, dense, interaction, modification,
};

/// The rows of the port `modifiers` of one comparison, without adjusted p-values: the position of
/// a slope's p-value in a row is [`SLOPE_P`], that of its adjusted one comes after.
pub(super) fn modifier_rows(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    comparison: &Comparison,
    score: Option<&Score>,
) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for modifier in &args.modifiers {
        let about = About { args, set, outcome: &comparison.outcome, modifier };
        let found = match withheld(set, comparison, modifier, score) {
            Some(reason) => Err(reason),
            None => modified(args, frame, set, comparison, modifier),
        };
        match found {
            Ok(found) => {
                rows.push(about.slope(&found));
                let groups = found.of.groups.iter().enumerate();
                rows.extend(groups.map(|(at, group)| about.group(at, group)));
            }
            Err(reason) => {
                let note = format!("Whether the effect changes with `{modifier}`: {reason}.");
                rows.push(about.row(0, None, Err(reason), None, 0, note));
            }
        }
    }
    rows
}

/// The position of a p-value in a row of [`modifier_rows`].
pub(super) const SLOPE_P: usize = 8;

/// What the rows of a modifier are about.
struct About<'a> {
    args: &'a Args,
    set: &'a RowSet,
    outcome: &'a str,
    modifier: &'a str,
}

impl About<'_> {
    fn row(
        &self,
        bin: usize,
        edges: Option<(f64, f64)>,
        effect: Result<Estimate, String>,
        p_value: Option<f64>,
        n: usize,
        note: String,
    ) -> Vec<Cell> {
        let estimate = effect.as_ref().ok();
        let ends = estimate.map(|estimate| estimate.interval(self.args.alpha));
        let mut row: Vec<Cell> = vec![self.outcome.into()];
        row.extend(contrast(self.set));
        row.extend([self.modifier.into(), bin.into(), estimate.map(|e| e.value).into()]);
        row.extend([ends.map(|ends| ends.0).into(), ends.map(|ends| ends.1).into()]);
        row.extend([p_value.into(), Cell::Null]);
        row.extend([edges.map(|edges| edges.0).into(), edges.map(|edges| edges.1).into()]);
        let error = estimate.map(|estimate| estimate.standard_error);
        row.extend(match effect {
            Ok(_) => ["ok".into(), Cell::Null],
            Err(reason) => ["refused".into(), reason.into()],
        });
        row.extend([error.into(), n.into(), note.into()]);
        row
    }

    /// How much the effect changes per standard deviation.
    fn slope(&self, found: &Modified) -> Vec<Cell> {
        let slope = found.of.estimate;
        let note = format!(
            "The effect on {} changes by {} per standard deviation of `{}` ({} % CI {}, p {}{}).{}",
            self.outcome,
            short(slope.value),
            self.modifier,
            level(self.args.alpha),
            interval(slope.interval(self.args.alpha)),
            p_equals(slope.p_value()),
            adjusted(self.set),
            left_out(self.set, found.left_out)
        );
        self.row(0, None, Ok(slope), Some(slope.p_value()), found.n, note)
    }

    /// The effect in the group at this position.
    fn group(&self, at: usize, group: &ModifierGroup) -> Vec<Cell> {
        let (modifier, low, high) = (self.modifier, short(group.low), short(group.high));
        let range = if group.low == group.high {
            format!("`{modifier}` is {low}")
        } else {
            let edges = if at == 0 { "from" } else { "above" };
            format!("`{modifier}` is {edges} {low} to {high}")
        };
        let words = match self.set.units {
            Some(_) => count(group.n, "unit", "units"),
            None => count(group.n, "row", "rows"),
        };
        let effect = match &group.effect {
            Ok(effect) => Ok(*effect),
            Err(refusal) => Err(words_of(refusal, self.set, modifier)),
        };
        let told = match &effect {
            Ok(effect) => format!(
                "the effect is {} ({} % CI {})",
                short(effect.value),
                level(self.args.alpha),
                interval(effect.interval(self.args.alpha))
            ),
            Err(reason) => format!("no effect is given, because {reason}"),
        };
        let note = format!("Where {range} ({words}), {told}.");
        self.row(at + 1, Some((group.low, group.high)), effect, None, group.n, note)
    }
}

/// What a slope is adjusted for and what its errors know, as the end of a parenthesis.
fn adjusted(set: &RowSet) -> String {
    let mut text = String::new();
    if set.units.is_none() && !set.names.is_empty() {
        text.push_str(&format!(", adjusted for {}", list(&set.names)));
    }
    if set.clusters.is_some() {
        text.push_str(", errors by clusters");
    }
    text
}

/// What is said of units without a value of the modifier.
fn left_out(set: &RowSet, missing: usize) -> String {
    let (one, many) = match set.units {
        Some(_) => ("unit without a value of it is", "units without a value of it are"),
        None => ("row without a value of it is", "rows without a value of it are"),
    };
    match missing {
        0 => String::new(),
        _ => format!(" {} left out.", count(missing, one, many)),
    }
}

/// A modification and the units it is known for.
struct Modified {
    of: Modification,
    /// Units, without a unit rows.
    n: usize,
    /// How many have no value of the modifier.
    left_out: usize,
}

/// Why nothing is said of a modifier, as far as that is known before it is looked at. A comparison
/// of arms that may not be made for an estimate may not be made by fifths either.
fn withheld(
    set: &RowSet,
    comparison: &Comparison,
    modifier: &str,
    score: Option<&Score>,
) -> Option<String> {
    if let Some(reason) = &comparison.refused {
        return Some(reason.clone());
    }
    if set.affected.iter().any(|name| name == modifier) {
        return Some("by the graph the treatment changes it, so it is no modifier".into());
    }
    if set.units.is_some() {
        return None;
    }
    if set.names.is_empty() {
        return set.unadjusted_refused.clone();
    }
    if let Some(reason) = set.adjusting_refused() {
        return Some(reason.clone());
    }
    match score {
        Some(Err(reason @ Refusal::Separated)) => Some(reason.to_string()),
        _ => None,
    }
}

/// A refusal in words.
fn words_of(refusal: &Refusal, set: &RowSet, modifier: &str) -> String {
    match refusal {
        Refusal::Constant(ColumnRef::Modifier) => refusal.describe(|_| Some(modifier)),
        Refusal::Constant(ColumnRef::ModifierInArm)
        | Refusal::Collinear { column: ColumnRef::ModifierInArm } => {
            format!("`{modifier}` has one value only in one of the arms")
        }
        Refusal::Constant(ColumnRef::Differences) => "all differences are equal".into(),
        Refusal::Constant(ColumnRef::Outcome) => "the outcome has one value only".into(),
        other => super::named(other, &set.names),
    }
}

/// How the effect changes with a modifier.
fn modified(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    comparison: &Comparison,
    modifier: &str,
) -> Result<Modified, String> {
    let column = gather(&frame.numbers[modifier], &set.rows);
    let missing = column.iter().filter(|value| value.is_nan()).count();
    if missing > 0 && args.missing == Missing::Refuse {
        let rows = count(missing, "row has", "rows have");
        return Err(format!("{rows} no value of it (missing: drop leaves such rows out)"));
    }
    let infinite = column.iter().filter(|value| value.is_infinite()).count();
    if infinite > 0 {
        return Err(format!("it is infinite in {}", count(infinite, "row", "rows")));
    }
    let words = |refusal: Refusal| words_of(&refusal, set, modifier);
    let known: Vec<u32> =
        (0..column.len() as u32).filter(|row| !column[*row as usize].is_nan()).collect();
    let Some(units) = &set.units else {
        let covariates: Vec<Vec<f64>> =
            set.covariates.iter().map(|column| gather(column, &known)).collect();
        let covariates: Vec<&[f64]> = covariates.iter().map(Vec::as_slice).collect();
        let clusters = set.clusters.as_ref().map(|codes| dense(gather(codes, &known).into_iter()));
        let found = interaction(
            &gather(&set.treated, &known),
            &gather(&comparison.values, &known),
            &gather(&column, &known),
            &covariates,
            clusters.as_deref(),
        );
        let of = found.map_err(words)?;
        return Ok(Modified { of, n: known.len(), left_out: missing });
    };
    let of_known = (gather(units, &known), gather(&column, &known));
    // A modifier is a property of the unit: what the treatment changes cannot modify it.
    let differing = differing_units(&of_known.0, &of_known.1);
    if differing > 0 {
        let units = count(differing, "unit", "units");
        return Err(format!("it differs between the rows of {units}, so it is no modifier"));
    }
    let size = units.iter().max().map_or(0, |last| *last as usize + 1);
    let mut of_unit = vec![f64::NAN; size];
    of_known.0.iter().zip(&of_known.1).for_each(|(unit, value)| of_unit[*unit as usize] = *value);
    let pairs = Pairs::of(&set.treated, &comparison.values, units);
    let values: Vec<f64> = pairs.units.iter().map(|unit| of_unit[*unit as usize]).collect();
    let kept: Vec<u32> =
        (0..values.len() as u32).filter(|pair| !values[*pair as usize].is_nan()).collect();
    let clusters = match &set.clusters {
        None => None,
        Some(codes) => Some(gather(&pairs.clusters(units, codes).map_err(words)?, &kept)),
    };
    let clusters = clusters.map(|codes| dense(codes.into_iter()));
    let differences = gather(&pairs.differences(), &kept);
    let of = modification(&differences, &gather(&values, &kept), clusters.as_deref());
    let left_out = values.len() - kept.len();
    Ok(Modified { of: of.map_err(words)?, n: kept.len(), left_out })
}
