//! Warnings for the reader of a number: refused estimates, flags, failed data tests, causal graphs that
//! the data reject, steps that are not computed.

use galeras_pages::model::{DiagnosticBlock, DiagnosticNote, NoteSeverity};

use super::values::{number, rows, text};
use crate::{Surveyed, table_name};
use galeras_engine::runner::{RunError, test_outcomes};
use galeras_sql::session::session;

const REASONS: usize = 20;

/// The notes on all steps, the most serious first.
pub(super) async fn notes(surveyed: &Surveyed) -> Result<DiagnosticBlock, RunError> {
    let mut notes = Vec::new();
    for at in 0..surveyed.plan.steps.len() {
        notes.extend(failed_tests(surveyed, at).await);
        notes.extend(refusals(surveyed, at).await?);
        notes.extend(refuted_graph(surveyed, at).await?);
    }
    notes.sort_by_key(|note: &DiagnosticNote| match note.severity {
        NoteSeverity::Error => 0,
        NoteSeverity::Refusal => 1,
        NoteSeverity::Warning => 2,
        NoteSeverity::Note => 3,
    });
    Ok(DiagnosticBlock { notes })
}

async fn failed_tests(surveyed: &Surveyed, at: usize) -> Vec<DiagnosticNote> {
    let outcomes = test_outcomes(&surveyed.plan, at, &surveyed.store, &surveyed.done()).await;
    let failed = outcomes.into_iter().filter(|outcome| outcome.held == Some(false));
    failed
        .map(|outcome| DiagnosticNote {
            severity: if outcome.warns { NoteSeverity::Warning } else { NoteSeverity::Error },
            step: surveyed.plan.steps[at].name.clone(),
            text: format!("The data test {} does not hold: {}", outcome.test, outcome.problem),
        })
        .collect()
}

/// The independencies that the graph of a step implies and that the data reject.
async fn refuted_graph(surveyed: &Surveyed, at: usize) -> Result<Option<DiagnosticNote>, RunError> {
    let step = &surveyed.plan.steps[at];
    let port = step.port("graph").filter(|port| port.table.field("verdict").is_some());
    let Some(port) = port.filter(|_| surveyed.states[at].manifest.is_some()) else {
        return Ok(None);
    };
    let session = session(1);
    let df = surveyed.open_port(&session, at, port.name)?;
    session.register_table("implied", df.into_view())?;
    let query = "SELECT count(verdict) AS refuted, count(p_adjusted) AS tested FROM implied";
    let counts = rows(session.sql(query).await?).await?;
    let count = |name: &str| counts.first().and_then(|row| number(row, name)).unwrap_or(0.0);
    let (refuted, tested) = (count("refuted"), count("tested"));
    Ok((refuted > 0.0).then(|| DiagnosticNote {
        severity: NoteSeverity::Warning,
        step: table_name(&step.name, port.name),
        text: format!(
            "The data reject {refuted} of {tested} independencies that the graph implies and that \
             can be tested."
        ),
    }))
}

/// Rows marked as unreliable by a `status` other than `ok`, with the reason.
async fn refusals(surveyed: &Surveyed, at: usize) -> Result<Vec<DiagnosticNote>, RunError> {
    let step = &surveyed.plan.steps[at];
    if surveyed.states[at].manifest.is_none() {
        return Ok(Vec::new());
    }
    let mut notes = Vec::new();
    let has = |port: &&galeras_operator::Port| {
        ["status", "reason"].iter().all(|name| port.table.field(name).is_some())
    };
    for port in step.step.ports().iter().filter(has) {
        let session = session(1);
        let df = surveyed.open_port(&session, at, port.name)?;
        session.register_table("numbers", df.into_view())?;
        let query = format!(
            "SELECT status, reason, count(*) AS rows FROM numbers \
             WHERE status NOT IN ('ok', '') AND reason <> '' \
             GROUP BY status, reason ORDER BY status DESC, rows DESC, reason LIMIT {REASONS}"
        );
        for row in rows(session.sql(&query).await?).await? {
            let n = number(&row, "rows").unwrap_or(0.0);
            let (status, reason) = (text(&row, "status"), text(&row, "reason"));
            let times = if n > 1.0 { format!(" ({n} rows)") } else { String::new() };
            let severity = match status.as_str() {
                "refused" => NoteSeverity::Refusal,
                _ => NoteSeverity::Note,
            };
            notes.push(DiagnosticNote {
                severity,
                step: table_name(&step.name, port.name),
                text: format!("{status}: {reason}{times}"),
            });
        }
    }
    Ok(notes)
}
