//! The analysis of every group of rows, with p-values adjusted over families of tests.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::analysis::{ActivityReporter, AnalysisPlan, GroupAnalysis, analyse_group};
use super::args::{Args, FamilyMember};
use super::comparison::Contrast;
use super::equivalence::EquivalenceRow;
use super::estimate_table::{
    EstimateEntry, EstimateRow, PrimaryResults, SummaryRow, refused_effects,
};
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
    let mut analyses = Vec::with_capacity(frames.len());
    for frame in frames {
        analyses.push(analyse_group(plan, frame, stop, activity)?);
    }
    adjust_families(&plan.args, &mut analyses);
    let mut results: Vec<ResultTables> = Vec::with_capacity(frames.len());
    for (at, group) in analyses.into_iter().enumerate() {
        let mut tables = finished(&plan.args, group);
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
fn finished(args: &Args, group: GroupAnalysis) -> ResultTables {
    let GroupAnalysis { mut tables, entries } = group;
    tables.warnings.extend(refused_effects(&entries));
    for entry in &entries {
        if let Some(PrimaryResults { sizes, margin }) = &entry.primary {
            tables.summary.push(SummaryRow::new(args, entry));
            tables.findings.push(FindingRow::new(args, entry, sizes, margin));
            tables.equivalence.push(EquivalenceRow::new(args, entry, margin));
        }
        tables.refutations.extend(refutation_rows(args, entry));
    }
    tables.estimates = entries.into_iter().map(|entry| EstimateRow::new(args, entry)).collect();
    tables
}

/// Adjusts the p-values of estimates, and of tests against margins. The tests of a family have the
/// same estimator, or are of margins, and differ only in the dimensions of `adjust_over`.
fn adjust_families(args: &Args, analyses: &mut [GroupAnalysis]) {
    type Family<'a> = (&'a str, Option<usize>, Option<&'a str>, Option<(&'a str, &'a str)>);
    let mut families: BTreeMap<Family<'_>, Vec<(f64, &mut Option<f64>)>> = BTreeMap::new();
    let apart = |member| !args.adjust_over.contains(&member);
    for (group, analysis) in analyses.iter_mut().enumerate() {
        for entry in &mut analysis.entries {
            let p = entry.p_value();
            let EstimateEntry { outcome, contrast, estimator, p_adjusted, primary, .. } = entry;
            let Contrast { treatment, control } = &*contrast;
            let margin = primary.as_mut().map(|primary| &mut primary.margin);
            let margin = margin.map(|margin| ("margin", margin.p_value(), &mut margin.p_adjusted));
            for (kind, p, adjusted) in [(estimator.name(), p, p_adjusted)].into_iter().chain(margin)
            {
                // An estimate without a test does not count.
                let Some(p) = p else { continue };
                let family = (
                    kind,
                    apart(FamilyMember::Groups).then_some(group),
                    apart(FamilyMember::Outcomes).then_some(outcome.as_str()),
                    apart(FamilyMember::Contrasts)
                        .then_some((treatment.as_str(), control.as_str())),
                );
                families.entry(family).or_default().push((p, adjusted));
            }
        }
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
