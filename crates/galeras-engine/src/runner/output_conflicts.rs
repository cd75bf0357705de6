//! Finds outputs that would replace files from elsewhere, before anything runs.

use std::sync::Arc;

use super::error::{OVERWRITE_HELP, RunError};
use super::output::{OutputOptions, OutputWriter, shown};
use super::output_place::Occupant;
use super::output_table::origin;
use super::survey::survey;
use crate::plan::{Plan, PlannedOutput};
use galeras_base::digest::Digest;
use galeras_store::{Manifest, Store};
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, Diagnostics, Span, quote};

/// The outputs of these steps that may not be written, each at its place in the workflow. A file
/// that would not change is not a conflict, if the stored results show that.
///
/// # Errors
/// If the store, or a stored table, cannot be read.
pub async fn output_conflicts(
    plan: &Plan,
    store: &Store,
    wanted: &[usize],
    options: &OutputOptions,
) -> Result<Diagnostics, RunError> {
    let mut diagnostics = Diagnostics::default();
    if options.overwrite {
        return Ok(diagnostics);
    }
    let mut runs = vec![false; plan.steps.len()];
    wanted.iter().for_each(|at| runs[*at] = true);
    let mut conflicts = Vec::new();
    for output in &plan.outputs {
        if !output.input.tables.iter().all(|table| runs[table.step]) {
            continue;
        }
        let path = options.folder.join(&output.path);
        let occupant = Occupant::of(&path, store, &options.digests).await?;
        // The workflow is the same for any table.
        let own = origin(plan, output, Digest::of(b""));
        if let Some(objection) = occupant.objection(&own) {
            conflicts.push((output, occupant, format!("{}, {objection}", shown(&path))));
        }
    }
    if conflicts.is_empty() {
        return Ok(diagnostics);
    }
    let states = survey(plan, store, None).await?;
    let done: Vec<Option<Arc<Manifest>>> = states.into_iter().map(|state| state.manifest).collect();
    let writer = OutputWriter { plan, store, options, run: "", done: &done };
    for (output, occupant, what) in conflicts {
        let known = output.input.tables.iter().all(|table| done[table.step].is_some());
        // If a table does not fit the format, the run reports it.
        if known && writer.is_right(output, &occupant).await.unwrap_or(false) {
            continue;
        }
        diagnostics.push(diagnostic(output, &what));
    }
    Ok(diagnostics)
}

fn diagnostic(output: &PlannedOutput, what: &str) -> Diagnostic {
    let message = format!("the output {} would replace {what}", quote(&output.name));
    let span = Span::new(output.place.start, output.place.end());
    Diagnostic::error(Code::OverwrittenFile, message, &output.place.source, span)
        .with_help(OVERWRITE_HELP)
}
