//! The analysis of every group of rows, with p-values adjusted over all of them, and the tables of
//! all groups as one.

use std::sync::atomic::AtomicBool;

use super::analysis::{ActivityReporter, AnalysisPlan, GroupAnalysis, analyse_group};
use super::args::Args;
use super::equivalence::{EquivalenceRow, MarginEntry, margin_entry};
use super::estimate_table::{EstimateEntry, EstimateRow, SummaryRow, refused_effects};
use super::families::{Tested, adjusted};
use super::findings::FindingRow;
use super::frame::AnalysisFrame;
use super::ports::ResultTables;
use super::refutation_table::refutation_rows;
use galeras_operator::StepError;
use galeras_sql::group_columns::Groups;

/// More warnings than these are counted.
const MOST_WARNINGS: usize = 20;

/// Analyses the groups, each a frame. Without groups there is one frame.
pub(super) fn analyse(
    plan: &AnalysisPlan,
    frames: &[AnalysisFrame],
    groups: Option<&Groups>,
    stop: &AtomicBool,
    activity: &ActivityReporter,
) -> Result<Vec<ResultTables>, StepError> {
    let args = &plan.args;
    let mut analyses = Vec::with_capacity(frames.len());
    for frame in frames {
        analyses.push(analyse_group(plan, frame, stop, activity)?);
    }
    adjust_entries(args, &mut analyses);
    let mut margins: Vec<Vec<MarginEntry>> = analyses
        .iter()
        .map(|group| {
            let primary = group.entries.iter().filter(|entry| entry.primary);
            primary.zip(&group.sizes).map(|(entry, size)| margin_entry(args, entry, size)).collect()
        })
        .collect();
    adjust_margins(args, &mut margins);
    let mut results: Vec<ResultTables> = Vec::with_capacity(frames.len());
    for (at, (group, margins)) in analyses.into_iter().zip(margins).enumerate() {
        let mut tables = finished(args, group, margins);
        if let Some(groups) = groups {
            let label = groups.label(at)?;
            let of_group = |warning: &String| format!("where {label}: {warning}");
            tables.warnings = tables.warnings.iter().map(of_group).collect();
        }
        results.push(tables);
    }
    shorten_warnings(&mut results);
    if results.is_empty() {
        let warning = "there is no row, and so no group".to_owned();
        results.push(ResultTables { warnings: vec![warning], ..ResultTables::default() });
    }
    Ok(results)
}

/// The tables of a group, whose p-values are adjusted.
fn finished(args: &Args, group: GroupAnalysis, margins: Vec<MarginEntry>) -> ResultTables {
    let GroupAnalysis { mut tables, entries, sizes } = group;
    tables.warnings.extend(refused_effects(&entries));
    let primary: Vec<&EstimateEntry> = entries.iter().filter(|entry| entry.primary).collect();
    tables.summary = primary.iter().map(|entry| SummaryRow::new(args, entry)).collect();
    for ((entry, sizes), margin) in primary.into_iter().zip(sizes).zip(margins) {
        tables.findings.push(FindingRow::new(args, entry, &sizes, &margin));
        tables.equivalence.push(EquivalenceRow::new(args, margin, entry));
        tables.effect_sizes.extend(sizes.rows);
    }
    tables.refutations = entries.iter().flat_map(|entry| refutation_rows(args, entry)).collect();
    tables.estimates = entries.into_iter().map(|entry| EstimateRow::new(args, entry)).collect();
    tables
}

/// Adjusts the p-values of each estimator over its family.
fn adjust_entries(args: &Args, analyses: &mut [GroupAnalysis]) {
    let entries = analyses
        .iter()
        .enumerate()
        .flat_map(|(at, group)| group.entries.iter().map(move |entry| (at, entry)));
    let tests: Vec<Tested<'_>> = entries
        .map(|(group, entry)| Tested {
            kind: entry.estimator.name(),
            group,
            outcome: &entry.outcome,
            contrast: &entry.contrast,
            p: entry.p_value(),
        })
        .collect();
    let values = adjusted(args, &tests);
    let entries = analyses.iter_mut().flat_map(|group| &mut group.entries);
    entries.zip(values).for_each(|(entry, value)| entry.p_adjusted = value);
}

/// Adjusts the p-values of tests against margins over their family.
fn adjust_margins(args: &Args, margins: &mut [Vec<MarginEntry>]) {
    let entries = margins
        .iter()
        .enumerate()
        .flat_map(|(at, group)| group.iter().map(move |entry| (at, entry)));
    let tests: Vec<Tested<'_>> = entries
        .map(|(group, entry)| Tested {
            kind: "margin",
            group,
            outcome: &entry.outcome,
            contrast: &entry.contrast,
            p: entry.p_value(),
        })
        .collect();
    let values = adjusted(args, &tests);
    let entries = margins.iter_mut().flatten();
    entries.zip(values).for_each(|(entry, value)| entry.p_adjusted = value);
}

/// Many groups have many warnings: the first of them, and how many there are.
fn shorten_warnings(results: &mut [ResultTables]) {
    let all: usize = results.iter().map(|tables| tables.warnings.len()).sum();
    if all <= MOST_WARNINGS || results.len() < 2 {
        return;
    }
    let mut room = MOST_WARNINGS;
    for tables in results.iter_mut() {
        tables.warnings.truncate(room);
        room -= tables.warnings.len();
    }
    if let Some(last) = results.last_mut() {
        last.warnings.push(format!("{} more of these", all - MOST_WARNINGS));
    }
}
