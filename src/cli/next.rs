//! The last lines of `run`: suggestions for the next command.

use galeras_engine::plan::Plan;
use galeras_engine::runner::RunOutcome;
use galeras_operator::MAIN;
use galeras_operator::event::{RunStatus, StepStatus};
use galeras_study::hint;

/// The command that shows rows of this run: of the first output, or of the last step if there is
/// none; after a failed data test, the rows that it checked. `None` if no step has rows.
pub(super) fn where_to_look(plan: &Plan, outcome: &RunOutcome, cache: &str) -> Option<String> {
    let table = match outcome.status {
        RunStatus::Ok => output_with_rows(plan, outcome).or_else(|| last_with_rows(outcome)),
        RunStatus::AssertFailed => {
            let tested = |status| status == StepStatus::Failed;
            let failed = outcome.steps.iter().find(|step| tested(step.status) && step.rows > 0);
            failed.map(|step| step.step.clone())
        }
        RunStatus::Failed | RunStatus::CacheFailed | RunStatus::Interrupted => None,
    }?;
    Some(format!("to see rows: {}", hint::show(&plan.file, &table, &plan.set, cache)))
}

fn output_with_rows(plan: &Plan, outcome: &RunOutcome) -> Option<String> {
    let tables = plan.outputs.iter().flat_map(|output| &output.input.tables);
    let mut named = tables.filter_map(|table| {
        let manifest = outcome.manifests.get(table.step)?.as_ref()?;
        let rows = manifest.port(table.port).map_or(0, |port| port.rows);
        let step = &plan.steps[table.step].name;
        let name = if table.port == MAIN { step.clone() } else { format!("{step}.{}", table.port) };
        (rows > 0).then_some(name)
    });
    named.next()
}

fn last_with_rows(outcome: &RunOutcome) -> Option<String> {
    outcome.steps.iter().rev().find(|step| step.rows > 0).map(|step| step.step.clone())
}
