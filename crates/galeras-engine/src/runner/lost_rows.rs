//! Unexpectedly empty tables, and the step that lost the last row.

use super::key::{StepManifests, artifact};
use super::silent_rows::silent_rows;
use crate::plan::{Input, Plan, PlannedOutput, TableRef};
use galeras_display::count;
use galeras_operator::event::{EventSink, RejectedRows, RunEvent};
use galeras_operator::{MAIN, REJECTS};
use galeras_store::Store;
use galeras_workflow::quote;

/// A step with input rows, or a source, that returned no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EmptyPort {
    step: usize,
    port: &'static str,
}

/// Reports empty tables and rows without results at the end of a run.
pub(super) async fn tell_lost_rows(
    plan: &Plan,
    store: &Store,
    done: &StepManifests,
    events: &dyn EventSink,
) {
    lost_rows(plan, done).into_iter().for_each(|event| events.send(event));
    for (at, step) in plan.steps.iter().enumerate() {
        // Read errors were already reported.
        if let Ok(Some(message)) = silent_rows(plan, store, done, at).await {
            tracing::warn!("{message}");
            events.send(RunEvent::Warning { step: Some(step.name.clone()), message });
        }
    }
}

/// The events about outputs without rows, and about steps that expected rows: one for each step
/// that lost the last row.
///
/// An empty port `rejects`, and everything computed from it, is not reported.
fn lost_rows(plan: &Plan, done: &StepManifests) -> Vec<RunEvent> {
    let mut empty: Vec<(EmptyPort, Vec<&PlannedOutput>)> = Vec::new();
    for output in &plan.outputs {
        let rejects = |table: &TableRef| table.port == REJECTS;
        if rows(done, &output.input) != Some(0) || output.input.tables.iter().all(rejects) {
            continue;
        }
        let Some(lost) = output.input.tables.first().and_then(|t| lost_at(plan, done, t)) else {
            continue;
        };
        match empty.iter_mut().find(|(known, _)| *known == lost) {
            Some((_, outputs)) => outputs.push(output),
            None => empty.push((lost, vec![output])),
        }
    }
    for (step, planned) in plan.steps.iter().enumerate() {
        let lost = EmptyPort { step, port: MAIN };
        let main = artifact(done, step, MAIN);
        if main.is_some_and(|table| table.rows == 0)
            && planned.step.no_rows_means().is_some()
            && rows_read(plan, done, step) > 0
            && !empty.iter().any(|(known, _)| *known == lost)
        {
            empty.push((lost, Vec::new()));
        }
    }
    empty.sort_by_key(|(lost, _)| lost.step);
    empty.into_iter().map(|(lost, outputs)| event(plan, done, lost, &outputs)).collect()
}

/// The step that lost the last row on the way to an empty table; `None` if it was expected to be
/// empty.
fn lost_at(plan: &Plan, done: &StepManifests, table: &TableRef) -> Option<EmptyPort> {
    let (mut step, mut port) = (table.step, table.port);
    loop {
        let inputs = &plan.steps[step].inputs;
        let empty = || inputs.iter().filter(|input| rows(done, input) == Some(0));
        let next = empty().find_map(|input| input.tables.iter().find(|t| t.port != REJECTS));
        match next {
            Some(table) => (step, port) = (table.step, table.port),
            None if !inputs.is_empty() && empty().count() == inputs.len() => return None,
            None => return Some(EmptyPort { step, port }),
        }
    }
}

/// The rows of an input, if all its tables exist.
fn rows(done: &StepManifests, input: &Input) -> Option<u64> {
    let rows = |table: &TableRef| artifact(done, table.step, table.port).map(|a| a.rows);
    input.tables.iter().map(rows).sum()
}

fn rows_read(plan: &Plan, done: &StepManifests, step: usize) -> u64 {
    plan.steps[step].inputs.iter().filter_map(|input| rows(done, input)).sum()
}

fn event(
    plan: &Plan,
    done: &StepManifests,
    lost: EmptyPort,
    outputs: &[&PlannedOutput],
) -> RunEvent {
    let planned = &plan.steps[lost.step];
    let name = match lost.port {
        MAIN => planned.name.clone(),
        port => format!("{}.{port}", planned.name),
    };
    let read = rows_read(plan, done, lost.step);
    let rejected = artifact(done, lost.step, REJECTS).filter(|table| table.rows > 0);
    let rejected = rejected.map(|table| RejectedRows {
        port: format!("{}.{REJECTS}", planned.name),
        rows: table.rows,
    });
    let mut message = match outputs {
        [] => String::new(),
        [one] => format!("no rows in the output {}: ", quote(&one.name)),
        [first, rest @ ..] => {
            let more = if rest.len() == 1 { "" } else { "s" };
            let (first, rest) = (quote(&first.name), rest.len());
            format!("no rows in the output {first} and {rest} other{more}: ")
        }
    };
    message += &match read {
        0 => format!("step {} made none", quote(&name)),
        1 => format!("step {} read 1 row and gave none", quote(&name)),
        _ => format!("step {} read {} rows and gave none", quote(&name), count(read)),
    };
    if let Some(rejected) = &rejected {
        let (port, rows) = (quote(&rejected.port), rejected.rows);
        message += &match rows {
            1 => format!("; {port} has 1 row, with the reason"),
            _ => format!("; {port} has {} rows, with the reasons", count(rows)),
        };
    }
    if let Some(words) = planned.step.no_rows_means().filter(|_| lost.port == MAIN) {
        message += &format!("; {words}");
    }
    RunEvent::NoRows {
        step: planned.name.clone(),
        port: lost.port.to_string(),
        outputs: outputs.iter().map(|output| output.name.clone()).collect(),
        read,
        rejected,
        message,
    }
}
