//! The findings of `regress`, sentence by sentence.

use galeras_pages::model::{EffectFinding, FindingBlock, FindingStatus};

use super::values::{JsonRow, number, rows, table, text};
use crate::Surveyed;
use galeras_engine::plan::Input;
use galeras_engine::runner::RunError;

const MOST: usize = 200;

/// Columns that describe the subject of a finding, and therefore do not name a group.
const KNOWN: &[&str] = &[
    "outcome",
    "treatment",
    "control",
    "estimate",
    "ci_low",
    "ci_high",
    "p_adj",
    "a12",
    "a12_low",
    "a12_high",
    "verdict",
    "status",
    "n",
    "p_margin",
    "excluded",
    "sentence",
    "registered",
    "deviation",
];

pub(super) async fn findings(surveyed: &Surveyed, input: &Input) -> Result<FindingBlock, RunError> {
    let df = table(surveyed, input)?.limit(0, Some(MOST))?;
    let rows = rows(df).await?;
    let total = surveyed.rows(input).unwrap_or(rows.len() as u64);
    let note = match total.saturating_sub(rows.len() as u64) {
        0 => String::new(),
        more => format!("{more} more findings are in the table."),
    };
    Ok(FindingBlock { title: String::new(), findings: rows.iter().map(finding).collect(), note })
}

fn finding(row: &JsonRow) -> EffectFinding {
    let status = match text(row, "status").as_str() {
        "refused" => FindingStatus::Refused,
        "n.a." | "not_applicable" => FindingStatus::NotApplicable,
        _ => FindingStatus::Estimated,
    };
    let contrast = match (text(row, "treatment"), text(row, "control")) {
        (treatment, control) if control.is_empty() => treatment,
        (treatment, control) => format!("{treatment} against {control}"),
    };
    let group: Vec<String> = row
        .keys()
        .filter(|name| !KNOWN.contains(&name.as_str()) && !name.starts_with("__"))
        .map(|name| format!("{name} = {}", text(row, name)))
        .collect();
    EffectFinding {
        sentence: text(row, "sentence"),
        outcome: text(row, "outcome"),
        contrast,
        group: group.join(", "),
        status,
        effect: number(row, "estimate"),
        low: number(row, "ci_low"),
        high: number(row, "ci_high"),
        p_adjusted: number(row, "p_adj").or_else(|| text(row, "p_adj").parse().ok()),
        n: number(row, "n").map(|n| n as u64),
        verdict: text(row, "verdict"),
    }
}
