//! The analysis of every group of rows, with p-values adjusted over families of tests.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::analysis::{ActivityReporter, AnalysisPlan, GroupAnalysis, analyse_group};
use super::args::{Args, FamilyMember};
use super::comparison::Contrast;
use super::equivalence::{EquivalenceRow, MarginEntry, margin_entry};
use super::estimate_table::{EstimateEntry, EstimateRow, SummaryRow, refused_effects};
use super::findings::FindingRow;
use super::frame::AnalysisFrame;
use super::ports::ResultTables;
use super::refuters::refutation_rows;
use galeras_causal::adjust;
use galeras_operator::Entry;
use galeras_operator::StepError;
use galeras_sql::group_columns::Groups;

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
    let tests = analyses.iter_mut().enumerate().flat_map(|(group, analysis)| {
        analysis.entries.iter_mut().map(move |entry| Tested {
            kind: entry.estimator.name(),
            group,
            p: entry.p_value(),
            outcome: &entry.outcome,
            contrast: &entry.contrast,
            adjusted: &mut entry.p_adjusted,
        })
    });
    adjust_families(args, tests.collect());
}

/// Adjusts the p-values of tests against margins over their family.
fn adjust_margins(args: &Args, margins: &mut [Vec<MarginEntry>]) {
    let tests = margins.iter_mut().enumerate().flat_map(|(group, entries)| {
        entries.iter_mut().map(move |entry| Tested {
            kind: "margin",
            group,
            p: entry.p_value(),
            outcome: &entry.outcome,
            contrast: &entry.contrast,
            adjusted: &mut entry.p_adjusted,
        })
    });
    adjust_families(args, tests.collect());
}

struct Tested<'a> {
    /// Tests of different kinds (estimators) are never in one family.
    kind: &'static str,
    group: usize,
    outcome: &'a str,
    contrast: &'a Contrast,
    /// None where there is no test: it does not count.
    p: Option<f64>,
    adjusted: &'a mut Option<f64>,
}

/// Adjusts p-values. The tests of a family have the same kind, and differ only in the dimensions of
/// `adjust_over`.
fn adjust_families(args: &Args, tests: Vec<Tested<'_>>) {
    type Family<'a> = (&'static str, Option<usize>, Option<&'a str>, Option<(&'a str, &'a str)>);
    let mut families: BTreeMap<Family<'_>, Vec<(f64, &mut Option<f64>)>> = BTreeMap::new();
    let apart = |member| !args.adjust_over.contains(&member);
    for test in tests {
        let Some(p) = test.p else { continue };
        let Contrast { treatment, control } = test.contrast;
        let family = (
            test.kind,
            apart(FamilyMember::Groups).then_some(test.group),
            apart(FamilyMember::Outcomes).then_some(test.outcome),
            apart(FamilyMember::Contrasts).then_some((treatment.as_str(), control.as_str())),
        );
        families.entry(family).or_default().push((p, test.adjusted));
    }
    for members in families.into_values() {
        let p: Vec<f64> = members.iter().map(|(p, _)| *p).collect();
        for ((_, adjusted), value) in members.into_iter().zip(adjust(&p, args.adjust.into())) {
            *adjusted = Some(value);
        }
    }
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
