//! Shows where rows were lost on the way to a table: the steps of one line, back to its source.

use galeras_pages::model::{AttritionBlock, AttritionStage, Labelled, LossReason};

use super::values::{number, rows, text};
use crate::Surveyed;
use galeras_base::id::ID;
use galeras_engine::plan::{Input, TableRef};
use galeras_engine::runner::RunError;
use galeras_operator::{MAIN, REJECTS};
use galeras_sql::session::session;

/// The most reasons listed per step, and the most example rows per reason.
const REASONS: usize = 12;
const EXAMPLES: usize = 3;

/// The stages that the rows of `input` passed; `None` if no step on the way lost any.
pub(super) async fn attrition(
    surveyed: &Surveyed,
    input: &Input,
) -> Result<Option<AttritionBlock>, RunError> {
    let mut stages = Vec::new();
    for tables in line(surveyed, input).into_iter().rev() {
        stages.extend(stage(surveyed, &tables).await?);
    }
    // Stages after the last loss are left out: the tables show their rows.
    let last = stages.iter().rposition(|stage| stage.lost.is_some_and(|lost| lost > 0));
    let Some(last) = last else { return Ok(None) };
    stages.truncate(last + 1);
    Ok(Some(AttritionBlock { stages }))
}

/// The tables on the way from the source to `input`, the last first: where tables meet, the largest
/// of them.
fn line(surveyed: &Surveyed, input: &Input) -> Vec<Vec<TableRef>> {
    let mut line = Vec::new();
    let mut tables = input.tables.clone();
    loop {
        let Some(first) = tables.first().map(|table| table.step) else { return line };
        let step = &surveyed.plan.steps[first];
        // Rows do not pass through ports such as `summary` or `findings`.
        let on_line = tables.iter().all(|table| table.port == MAIN || table.port == REJECTS);
        line.push(if on_line { tables } else { Vec::new() });
        let rows = |input: &&Input| surveyed.rows(input).unwrap_or(0);
        let Some(next) = step.inputs.iter().max_by_key(rows) else {
            line.retain(|tables| !tables.is_empty());
            return line;
        };
        tables = next.tables.clone();
    }
}

/// The rows that the cells of a step kept and lost.
async fn stage(
    surveyed: &Surveyed,
    tables: &[TableRef],
) -> Result<Option<AttritionStage>, RunError> {
    let Some(first) = tables.first() else { return Ok(None) };
    let rows_of = |step: usize, port: &str| surveyed.stored(step, port).map(|table| table.rows);
    let left: Option<u64> = tables.iter().map(|table| rows_of(table.step, table.port)).sum();
    let Some(left) = left else { return Ok(None) };
    let lost: Option<u64> = tables.iter().map(|table| rows_of(table.step, REJECTS)).sum();
    let step = &surveyed.plan.steps[first.step];
    let mut reasons: Vec<LossReason> = Vec::new();
    if lost.is_some_and(|lost| lost > 0) {
        for table in tables {
            for reason in reasons_of(surveyed, table.step).await? {
                match reasons.iter_mut().find(|known| known.reason == reason.reason) {
                    Some(known) => {
                        known.rows += reason.rows;
                        known.examples.extend(reason.examples);
                        known.examples.truncate(EXAMPLES);
                    }
                    None => reasons.push(reason),
                }
            }
        }
        reasons.sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| a.reason.cmp(&b.reason)));
        reasons.truncate(REASONS);
    }
    Ok(Some(AttritionStage {
        step: if tables.len() > 1 { step.family.clone() } else { step.name.clone() },
        operator: step.operator.descriptor().name.to_string(),
        rows: left,
        lost,
        reasons,
    }))
}

/// The rules that rejected rows in a step, with example rows.
async fn reasons_of(surveyed: &Surveyed, at: usize) -> Result<Vec<LossReason>, RunError> {
    let port = surveyed.plan.steps[at].port(REJECTS);
    let Some(port) = port.filter(|port| port.table.field("rule").is_some()) else {
        return Ok(Vec::new());
    };
    let session = session(1);
    let df = surveyed.open_port(&session, at, REJECTS)?;
    session.register_table("rejects", df.into_view())?;
    let id = if port.table.field(ID).is_some() { ID } else { "''" };
    // Reasons of one rule may contain different numbers, so rules are counted.
    let query = format!(
        "SELECT rule, count(*) AS rows, array_to_string(array_slice(array_agg(\
         concat(CAST({id} AS varchar), chr(31), reason) ORDER BY {id}, reason), 1, {EXAMPLES}), \
         chr(30)) AS examples FROM rejects GROUP BY rule ORDER BY rows DESC, rule LIMIT {REASONS}"
    );
    let counted = rows(session.sql(&query).await?).await?;
    Ok(counted
        .iter()
        .map(|row| LossReason {
            reason: text(row, "rule"),
            rows: number(row, "rows").unwrap_or(0.0) as u64,
            examples: text(row, "examples")
                .split('\u{1e}')
                .filter_map(|example| example.split_once('\u{1f}'))
                .map(|(id, reason)| Labelled { name: id.to_string(), value: reason.to_string() })
                .collect(),
        })
        .collect())
}
