//! Effect modification: the rows of this port.

use super::super::support::cells::Cell;
use super::super::support::missing::Missing;
use super::super::support::words::{count, interval, level, p_equals, short};
use super::args::Args;
use super::balance::contrast;
use super::comparison::{Comparison, RowSet, differing_units, gather};
use super::estimate::Pairs;
use super::frame::Frame;
use crate::causal::{Estimate, Modification, Refusal, interaction, modification};

/// The rows of the port `modifiers` of one comparison, without adjusted p-values: the position of
/// a slope's p-value in a row is [`SLOPE_P`], that of its adjusted one comes after.
pub(super) fn modifier_rows(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    comparison: &Comparison,
) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for modifier in &args.modifiers {
        let start = |bin: usize, low: Option<f64>, high: Option<f64>| -> Vec<Cell> {
            let mut row: Vec<Cell> = vec![comparison.outcome.as_str().into()];
            row.extend(contrast(set));
            row.extend([modifier.as_str().into(), bin.into(), low.into(), high.into()]);
            row
        };
        let found = match &comparison.refused {
            Some(reason) => Err(reason.clone()),
            None => modified(args, frame, set, comparison, modifier),
        };
        let (found, n) = match found {
            Ok(found) => found,
            Err(reason) => {
                let note = format!("Whether the effect changes with `{modifier}`: {reason}.");
                let mut row = start(0, None, None);
                row.extend(["refused".into(), reason.into()]);
                row.extend(std::iter::repeat_n(Cell::Null, 6));
                row.extend([0usize.into(), note.into()]);
                rows.push(row);
                continue;
            }
        };
        let missing = gather(&frame.numbers[modifier], &set.rows);
        let missing = missing.iter().filter(|value| value.is_nan()).count();
        let left_out = match missing {
            0 => String::new(),
            rows => {
                format!(" {} no value of it and are left out.", count(rows, "row has", "rows have"))
            }
        };
        let slope = found.estimate;
        let (low, high) = slope.interval(args.alpha);
        let mut row = start(0, None, None);
        row.extend(["ok".into(), Cell::Null, slope.value.into(), slope.standard_error.into()]);
        row.extend([low.into(), high.into(), slope.p_value().into(), Cell::Null, n.into()]);
        row.push(
            format!(
                "The effect on {} changes by {} per standard deviation of `{modifier}` ({} % CI \
                 {}, p {}).{left_out}",
                comparison.outcome,
                short(slope.value),
                level(args.alpha),
                interval((low, high)),
                p_equals(slope.p_value())
            )
            .into(),
        );
        rows.push(row);
        for (at, group) in found.groups.iter().enumerate() {
            let estimate = group.mean.zip(group.standard_error).map(|(value, standard_error)| {
                let degrees = (group.n as f64 - 1.0).max(1.0);
                Estimate { value, standard_error, degrees }
            });
            let ends = estimate.filter(|e| e.standard_error > 0.0).map(|e| e.interval(args.alpha));
            let mut row = start(at + 1, Some(group.low), Some(group.high));
            row.extend(match group.mean {
                Some(_) => ["ok".into(), Cell::Null],
                None => ["refused".into(), "no units in one of the arms".into()],
            });
            row.extend([group.mean.into(), group.standard_error.into()]);
            row.extend([ends.map(|e| e.0).into(), ends.map(|e| e.1).into()]);
            row.extend([Cell::Null, Cell::Null, group.n.into()]);
            let edges = if at == 0 { "from" } else { "above" };
            let words = count(group.n, "unit", "units");
            let effect = group.mean.map_or("unknown".into(), short);
            row.push(
                format!(
                    "Where `{modifier}` is {edges} {} to {} ({words}), the effect is {effect}.",
                    short(group.low),
                    short(group.high)
                )
                .into(),
            );
            rows.push(row);
        }
    }
    rows
}

/// The position of a p-value in a row of [`modifier_rows`].
pub(super) const SLOPE_P: usize = 13;

/// How the effect changes with a modifier, and over how many units.
fn modified(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    comparison: &Comparison,
    modifier: &str,
) -> Result<(Modification, usize), String> {
    let column = gather(&frame.numbers[modifier], &set.rows);
    let words = |refusal: Refusal| match &refusal {
        Refusal::Constant(what) if what == "modifier" => {
            Refusal::Constant(modifier.into()).to_string()
        }
        Refusal::Constant(what) if what == "modifier in one arm" => {
            format!("`{modifier}` has one value only in one of the arms")
        }
        Refusal::Constant(what) => format!("the {what} have one value only"),
        other => other.to_string(),
    };
    let finite = |value: &f64| value.is_finite();
    let check = |column: &[f64]| {
        let missing = column.iter().filter(|value| value.is_nan()).count();
        if missing > 0 && args.missing == Missing::Refuse {
            let rows = count(missing, "row has", "rows have");
            return Err(format!("{rows} no value of it (missing: drop leaves such rows out)"));
        }
        match column.iter().filter(|value| value.is_infinite()).count() {
            0 => Ok(()),
            rows => Err(format!("it is infinite in {}", count(rows, "row", "rows"))),
        }
    };
    check(&column)?;
    let Some(units) = &set.units else {
        let rows: Vec<u32> =
            (0..column.len() as u32).filter(|row| finite(&column[*row as usize])).collect();
        let found = interaction(
            &gather(&set.treated, &rows),
            &gather(&comparison.values, &rows),
            &gather(&column, &rows),
        );
        return Ok((found.map_err(words)?, rows.len()));
    };
    let pairs = Pairs::of(&set.treated, &comparison.values, units);
    // A modifier is a property of the unit: what the treatment changes cannot modify it.
    let differing = differing_units(units, &column);
    if differing > 0 {
        let units = count(differing, "unit", "units");
        return Err(format!("it differs between the rows of {units}, so it is no modifier"));
    }
    let values: Vec<f64> = pairs.rows.iter().map(|row| column[*row as usize]).collect();
    let kept: Vec<u32> =
        (0..values.len() as u32).filter(|pair| finite(&values[*pair as usize])).collect();
    let differences = gather(&pairs.differences(), &kept);
    let found = modification(&differences, &gather(&values, &kept)).map_err(words)?;
    Ok((found, kept.len()))
}
