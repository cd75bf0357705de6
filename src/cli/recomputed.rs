//! `verify --recompute`: computes steps again outside the store and compares their tables with the
//! stored ones.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::context::{Exit, Failure, answer, fail, failed, note};
use super::resources::default_env;
use super::runs::table_text;
use super::signals::watch_signals;
use super::store_places::{remove_last, scratch_folder};
use super::{Format, screen};
use galeras_base::terminal_escape::escape;
use galeras_display::count;
use galeras_engine::plan::Plan;
use galeras_engine::runner::{Recomputation, RowsAgain, RunError, StepManifests, drawn};
use galeras_engine::trust::Trust;
use galeras_operator::event::{EventSink, RunEvent};
use galeras_store::{Manifest, Store};
use galeras_study::diff_tables::{PortDiff, compare_stored};
use galeras_study::table_name;

const EXAMPLES: usize = 3;

/// The user's request.
pub(super) struct Asked {
    pub(super) steps: usize,
    pub(super) seed: i64,
    pub(super) format: Format,
}

/// Shows warnings of steps and ignores other events.
struct Warnings;

impl EventSink for Warnings {
    fn send(&self, event: RunEvent) {
        if let RunEvent::Warning { step, message } = event {
            let step = step.map(|step| format!("{}: ", escape(&step))).unwrap_or_default();
            note(&format!("warning: {step}{}", escape(&message)));
        }
    }
}

/// Computes some of the steps again, and reports whether their tables equal the stored ones.
pub(super) async fn recompute(
    plan: &Plan,
    store: &Store,
    done: &StepManifests,
    trust: Arc<Trust>,
    asked: Asked,
) -> Result<Exit, Failure> {
    let cancel = CancellationToken::new();
    watch_signals(cancel.clone());
    let env = default_env(trust, cancel.clone(), Arc::new(Warnings));
    let again = &Recomputation { plan, store, done, env };
    let steps = &plan.steps;
    let mut able = Vec::new();
    let mut objections = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match again.objection(at).await? {
            None => able.push(at),
            Some(objection) => objections.push((step.name.as_str(), objection)),
        }
    }
    let mut chosen = drawn(&able, again.done, asked.seed);
    chosen.truncate(asked.steps);
    if asked.format == Format::Human && chosen.len() < asked.steps {
        note(&format!("{} of {} steps can be computed again here", able.len(), steps.len()));
        for (step, why) in &objections {
            note(&format!("  {}: the step {}", escape(step), escape(why)));
        }
    }
    let (mut tables, mut equal) = (0_u64, 0_u64);
    for (place, at) in chosen.iter().enumerate() {
        let name = &steps[*at].name;
        if asked.format == Format::Human && screen::is_terminal() {
            let (place, all) = (place + 1, chosen.len());
            note(&format!("computing {} again, step {place} of {all}", escape(name)));
        }
        let scratch = scratch_folder()?;
        let scratch = Store::open(&scratch.to_string_lossy()).await?;
        let computed = tokio::select! {
            computed = again.compute(*at, &scratch) => computed,
            () = cancel.cancelled() => Err(RunError::Interrupted),
        };
        let computed = computed.map_err(|error| broken(name, error))?;
        let Some(stored) = again.done[*at].as_ref() else { continue };
        let (of_step, differing) = compare(again, &scratch, stored, &computed).await?;
        tables += of_step;
        equal += of_step - differing.len() as u64;
        let event = json!({"event": "step_recomputed", "step": name, "tables": of_step});
        told(name, event, "", &differing, asked.format)?;
        remove_last();
    }
    let (rows, equal_rows) = recomputed_rows(again, &able, &asked, &cancel).await?;
    let of_rows = match rows {
        0 => String::new(),
        all => format!(", {} of {} rows equal", count(equal_rows), count(all)),
    };
    answer(
        asked.format,
        json!({"event": "recomputed", "steps": chosen.len(), "able": able.len(),
            "tables": tables, "equal": equal, "rows": rows, "equal_rows": equal_rows}),
        &format!("{} of {} tables equal{of_rows}\n", count(equal), count(tables)),
    )?;
    if chosen.is_empty() && asked.steps > 0 {
        // Without any computed step there is nothing to compare.
        return Err(failed("no step could be computed again"));
    }
    if equal == tables && equal_rows == rows {
        return Ok(Exit::Done);
    }
    let message = "what came out now is not what is stored: either the stored result was not \
                   computed by this program from these inputs, or the step does not give the same \
                   twice";
    Err(fail(message, Exit::Disk))
}

fn broken(step: &str, error: RunError) -> Failure {
    match error.is_interruption() {
        true => Exit::Interrupted.into(),
        false => failed(format!("step {}: {}", escape(step), error.explained())),
    }
}

/// Computes as many single rows again as steps were asked for, from all row-by-row steps. Returns
/// their number, and how many of them are equal.
async fn recomputed_rows(
    again: &Recomputation<'_>,
    able: &[usize],
    asked: &Asked,
    cancel: &CancellationToken,
) -> Result<(u64, u64), Failure> {
    let (mut all, mut equal) = (0, 0);
    for (at, rows) in shares(again, able, asked) {
        let name = &again.plan.steps[at].name;
        let broken = |error| broken(name, error);
        let work = async {
            let rows = again.draw(at, rows, asked.seed).await.map_err(broken)?;
            // A new folder, so that no earlier result is reused.
            let fresh = scratch_folder()?;
            let fresh = Store::open(&fresh.to_string_lossy()).await?;
            let tables = again.compute_rows(at, &rows, &fresh).await.map_err(broken)?;
            let mut differing = Vec::new();
            for RowsAgain { stored, computed } in &tables {
                if stored.digest != computed.digest {
                    let diff = compare_stored((&fresh, stored), (&fresh, computed), EXAMPLES);
                    differing.push(diff.await?);
                }
            }
            let others = again.differing_rows(&rows, &tables, &fresh).await.map_err(broken)?;
            remove_last();
            let all = rows.len() as u64;
            let equal = all.saturating_sub(others);
            let event =
                json!({"event": "rows_recomputed", "step": name, "rows": all, "equal": equal});
            told(name, event, " in rows that were drawn", &differing, asked.format)?;
            Ok::<_, Failure>((all, equal))
        };
        let of_step = tokio::select! {
            counts = work => counts?,
            () = cancel.cancelled() => return Err(Exit::Interrupted.into()),
        };
        all += of_step.0;
        equal += of_step.1;
    }
    Ok((all, equal))
}

/// The number of rows to recompute per step: as equal as its rows allow, in the order of the seed.
fn shares(again: &Recomputation<'_>, able: &[usize], asked: &Asked) -> Vec<(usize, usize)> {
    let steps = drawn(able, again.done, asked.seed).into_iter();
    let mut left: Vec<(usize, u64)> =
        steps.map(|at| (at, again.rows(at))).filter(|(_, rows)| *rows > 0).collect();
    let mut shares: Vec<(usize, usize)> = left.iter().map(|(at, _)| (*at, 0)).collect();
    let mut wanted = asked.steps;
    while wanted > 0 && left.iter().any(|(_, rows)| *rows > 0) {
        for ((_, rows), (_, share)) in left.iter_mut().zip(&mut shares) {
            if wanted > 0 && *rows > 0 {
                *rows -= 1;
                *share += 1;
                wanted -= 1;
            }
        }
    }
    shares.retain(|(_, share)| *share > 0);
    shares
}

/// The number of tables of a step, and those that differ.
async fn compare(
    again: &Recomputation<'_>,
    scratch: &Store,
    stored: &Manifest,
    computed: &Manifest,
) -> Result<(u64, Vec<PortDiff>), Failure> {
    let mut differing = Vec::new();
    for old in &stored.ports {
        match computed.port(&old.port) {
            Some(new) if new.digest == old.digest => {}
            Some(new) => {
                let diff = compare_stored((again.store, old), (scratch, new), EXAMPLES).await?;
                differing.push(diff);
            }
            None => {
                let message = format!("the step no longer has the table {}", escape(&old.port));
                return Err(failed(message));
            }
        }
    }
    Ok((stored.ports.len() as u64, differing))
}

/// Prints the differences, or for programs the event with them.
fn told(
    step: &str,
    mut event: Value,
    place: &str,
    differing: &[PortDiff],
    format: Format,
) -> Result<Exit, Failure> {
    event["differing"] = differing.iter().map(difference).collect();
    let text = |diff: &PortDiff| {
        let table = table_name(&escape(step), &diff.port);
        let differences = table_text(diff, "computed otherwise");
        format!("{table} differs{place}: stored → computed\n{differences}")
    };
    answer(format, event, &differing.iter().map(text).collect::<String>())
}

fn difference(diff: &PortDiff) -> Value {
    let rows = match &diff.rows {
        Ok(rows) => json!({"added": rows.added, "removed": rows.removed, "changed": rows.changed,
            "same": rows.same, "columns": rows.columns.iter().map(|(name, _)| name)
                .collect::<Vec<_>>()}),
        Err(why) => json!({"not_compared": why}),
    };
    json!({"port": diff.port, "rows": rows, "added_columns": diff.added_columns,
        "removed_columns": diff.removed_columns})
}
