//! Friedman's test of whether any arm differs: its rows of the port `sensitivity`.

use super::args::Args;
use super::comparison::{Contrast, FEWEST_UNITS};
use super::data_faults::lost_in_rounding;
use super::frame::{AnalysisFrame, NONE};
use super::sensitivity::{CLUSTERED, SensitivityRow};
use crate::words::infinite;
use galeras_base::prose::{count, four_digits, p_equals};
use galeras_causal::{Refusal, friedman};
use galeras_operator::far_numbers::{LEAST_RANGE, moved};
use galeras_operator::missing_values::MissingValues;

/// Friedman's test of whether any of three and more arms differs, over complete units.
pub(super) fn omnibus(
    args: &Args,
    frame: &AnalysisFrame,
    contrasts: &[Contrast],
) -> Vec<SensitivityRow> {
    let Some(units) = &frame.units else { return Vec::new() };
    let mut arms = vec![args.control.as_str()];
    let others = contrasts.iter().filter(|contrast| contrast.control == args.control);
    arms.extend(others.map(|contrast| contrast.treatment.as_str()));
    let codes: Option<Vec<u32>> = arms.iter().map(|arm| frame.arms.code(arm)).collect();
    let Some(codes) = codes.filter(|codes| codes.len() > 2) else { return Vec::new() };
    // The rows are about all arms.
    let contrast = Contrast { treatment: arms[1..].join(", "), control: args.control.clone() };
    let mut rows = Vec::new();
    for outcome in &args.outcomes {
        let columns = complete_units(frame, &units.rows, units.names.len(), &codes, outcome);
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let n = count(columns[0].len(), "unit", "units");
        let test = match why_unusable(args, frame, &units.rows, &codes, outcome) {
            Some(reason) => Err(reason),
            None if args.cluster.is_some() => Err(CLUSTERED.into()),
            None if columns[0].len() < FEWEST_UNITS => {
                let (what, found) = ("units with rows under all arms", columns[0].len());
                Err(Refusal::TooFew { what, found, needed: FEWEST_UNITS }.to_string())
            }
            None => friedman(&slices).map_err(|refusal| refusal.to_string()),
        };
        let mut add = |measure: &str, value: Result<f64, String>, note: String| {
            rows.push(SensitivityRow::new(outcome, &contrast, "omnibus", measure, value, note));
        };
        match test {
            Ok(test) => {
                let p = p_equals(test.p_value);
                let statistic = four_digits(test.statistic);
                add(
                    "friedman_chi2",
                    Ok(test.statistic),
                    format!(
                        "Friedman's test of any difference between {} arms over {n}: chi-squared \
                         {statistic}, p {p}.",
                        arms.len()
                    ),
                );
                add("friedman_p", Ok(test.p_value), format!("Its p-value: p {p}."));
            }
            Err(reason) => add("friedman_chi2", Err(reason), String::new()),
        }
    }
    rows
}

fn why_unusable(
    args: &Args,
    frame: &AnalysisFrame,
    units: &[u32],
    arms: &[u32],
    outcome: &str,
) -> Option<String> {
    let mut missing = 0;
    for ((value, arm), unit) in frame.numbers[outcome].iter().zip(&frame.arms.rows).zip(units) {
        let compared = *arm == NONE || arms.contains(arm);
        missing += usize::from(compared && (value.is_nan() || *unit == NONE || *arm == NONE));
    }
    if missing > 0 && args.missing == MissingValues::Refuse {
        let rows = count(missing, "row is", "rows are");
        return Some(format!(
            "{rows} without a value that is needed (missing: drop leaves such rows out)"
        ));
    }
    let incomplete = lacking_units(frame, units, arms);
    if incomplete > 0 && args.missing == MissingValues::Refuse {
        let units = count(incomplete, "unit lacks", "units lack");
        return Some(format!("{units} a row under an arm (missing: drop leaves such units out)"));
    }
    let (codes, values) = (&frame.arms.rows, &frame.numbers[outcome]);
    let known = (0..codes.len()).filter(|row| codes[*row] == NONE || arms.contains(&codes[*row]));
    infinite(outcome, known.map(|row| values[row])).or_else(|| {
        let compared = (0..codes.len() as u32).filter(|row| arms.contains(&codes[*row as usize]));
        lost_in_rounding(frame, outcome, compared, LEAST_RANGE)
    })
}

/// The number of units with rows under some of the arms only; none are absent if no unit has all.
fn lacking_units(frame: &AnalysisFrame, units: &[u32], arms: &[u32]) -> usize {
    let n_units = frame.units.as_ref().map_or(0, |units| units.names.len());
    let mut has = vec![vec![false; arms.len()]; n_units];
    for (unit, arm) in units.iter().zip(&frame.arms.rows) {
        if let Some(place) = arms.iter().position(|code| code == arm).filter(|_| *unit != NONE) {
            has[*unit as usize][place] = true;
        }
    }
    let complete = has.iter().filter(|has| has.iter().all(|here| *here)).count();
    let seen = has.iter().filter(|has| has.contains(&true)).count();
    if complete == 0 { 0 } else { seen - complete }
}

/// The means of an outcome under each arm, for the units that have rows under all.
fn complete_units(
    frame: &AnalysisFrame,
    units: &[u32],
    n_units: usize,
    arms: &[u32],
    outcome: &str,
) -> Vec<Vec<f64>> {
    let values = moved(frame.numbers[outcome].clone());
    let mut sums = vec![(0.0, 0u32); n_units * arms.len()];
    for (row, unit) in units.iter().enumerate() {
        let arm = arms.iter().position(|code| *code == frame.arms.rows[row]);
        if let Some(arm) = arm.filter(|_| *unit != NONE && values[row].is_finite()) {
            let (sum, n) = &mut sums[*unit as usize * arms.len() + arm];
            *sum += values[row];
            *n += 1;
        }
    }
    let mut columns = vec![Vec::new(); arms.len()];
    for unit in sums.chunks_exact(arms.len()) {
        if unit.iter().all(|(_, n)| *n > 0) {
            for (column, (sum, n)) in columns.iter_mut().zip(unit) {
                column.push(sum / f64::from(*n));
            }
        }
    }
    columns
}
