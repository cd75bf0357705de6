//! Distributes the work of a step over the executors of an engine, and repeats missing items.
//!
//! The work is cut into items, which store their results as parts of the step's recipe, like an
//! interrupted run. Then one executor builds the tables of the step from these parts and computes
//! missing rows. So a table does not depend on where or in which order its rows were computed. Only
//! the coordinator stores manifests.
//!
//! Imports go one way: `engine`, `placement`, `order` → `worker`, `job` → here. The engine over a
//! cluster is `galeras-cluster`.

mod engine;
mod job;
mod order;
mod placement;
mod worker;

pub use engine::{Embedded, Engine, EngineError};
pub use order::build_stamp;
pub use placement::Placement;
pub use worker::Worker;

use self::job::Coordinator;
use self::order::{InputOrder, Outcome, StepOrder, WorkItem, arguments};
use self::placement::{MIN_BYTES, MIN_ROWS, ranges, shares};
use super::context::StepContext;
use super::error::RunError;
use super::fan_out_step::missing_rows;
use super::step_work::{StepResult, StepWork};
use crate::plan::PlannedStep;
use galeras_operator::{Lowering, StepError};

/// The result of a step that executors computed; `None` if the coordinator must compute it.
///
/// # Errors
/// If an item failed or was never finished.
pub(super) async fn spread(
    step: &PlannedStep,
    work: &StepWork<'_>,
    cx: &StepContext,
    engine: &dyn Engine,
) -> Result<Option<StepResult>, RunError> {
    if engine.address().is_none() {
        return Ok(None);
    }
    let placement = Placement::of(work.bound);
    tracing::debug!(placement = placement.describe(), "where it is done");
    let mut refused = false;
    let (items, expected, reused) = match (placement, work.bound.lowering()) {
        (Placement::Rows, _) => {
            let rows = work.stored_rows().unwrap_or(0);
            if rows < MIN_ROWS {
                return Ok(None);
            }
            (row_items(work), rows, 0)
        }
        (Placement::Shares, Lowering::FanOut(fan_out)) => {
            let Some(input) = work.inputs.first() else { return Ok(None) };
            let input = input.open(&cx.lower.session, &cx.store)?;
            let missing = missing_rows(cx, fan_out, input, work.recipe).await?;
            let (rows, reused) = (missing.rows, missing.reused);
            refused = missing.refused;
            let of = shares(rows.len());
            let expected = rows.len() as u64;
            let item = |(row, share)| share_item(row, share, of);
            let items =
                (0..of).flat_map(|share| rows.iter().map(move |row| (row, share))).map(item);
            (items.collect(), expected, reused)
        }
        (Placement::Whole, _) => {
            if work.stored_bytes() < MIN_BYTES {
                return Ok(None);
            }
            (Vec::new(), 0, 0)
        }
        (Placement::Coordinator(_) | Placement::Shares, _) => return Ok(None),
    };
    let coordinator = Coordinator::new(cx, engine, step_order(step, work)?);
    let shared = placement == Placement::Shares;
    cx.total(expected, reused);
    let computed = match items.is_empty() {
        true => 0,
        false => {
            // Shares are long, so pieces stored by a lost executor are used.
            let fresh = cx.lower.forced || (!shared && cx.parts(&work.recipe).await?.is_empty());
            // Rows are counted one by one, repositories when all their shares are done.
            let counts = !shared;
            let ended = coordinator.run(items, fresh, counts).await?;
            match ended {
                Some(_) if shared => expected,
                Some(outcomes) => outcomes.iter().map(|outcome| outcome.computed).sum(),
                // The step is tried here, which also reports the reason.
                None => return Ok(None),
            }
        }
    };
    if refused {
        // An executor would open that row as well, but does not know the user's consent.
        return Ok(None);
    }
    // The rows just computed are not computed again.
    let fresh = cx.lower.forced && placement == Placement::Whole;
    let whole = coordinator.run(vec![WorkItem::Whole], fresh, false).await?;
    let Some(outcome) = whole.and_then(|mut outcomes| outcomes.pop()) else { return Ok(None) };
    Ok(Some(result(cx, outcome, work, computed)?))
}

/// The result that an executor built, with the counts of the other items.
fn result(
    cx: &StepContext,
    outcome: Outcome,
    work: &StepWork<'_>,
    before: u64,
) -> Result<StepResult, RunError> {
    let Outcome { tables, computed, reused, retry, reads, .. } = outcome;
    let missing = || StepError::new("a defect: an executor gave no tables");
    let artifacts = tables.ok_or_else(missing)?;
    cx.reads(reads);
    cx.lower.retry.fetch_add(retry, std::sync::atomic::Ordering::Relaxed);
    let counts = match work.bound.lowering() {
        Lowering::Row(_) | Lowering::FanOut(_) => {
            Some((computed + before.min(reused), reused - before.min(reused)))
        }
        Lowering::Table(_) | Lowering::Paid(_) => None,
    };
    Ok(StepResult { artifacts, counts })
}

fn row_items(work: &StepWork<'_>) -> Vec<WorkItem> {
    let tables = work.inputs.iter().flat_map(|input| &input.tables).enumerate();
    let items = tables.flat_map(|(table, stored)| {
        ranges(stored.stored.rows).map(move |(start, len)| WorkItem::Rows { table, start, len })
    });
    items.collect()
}

fn share_item(row: &super::fan_out_step::MissingRow, share: u32, of: u32) -> WorkItem {
    WorkItem::Share { row: row.digest.clone(), label: row.label.clone(), share, of }
}

/// The data that executors need to bind the step in the same way.
fn step_order(step: &PlannedStep, work: &StepWork<'_>) -> Result<StepOrder, RunError> {
    let about = step.operator.descriptor();
    let inputs = work.inputs.iter().map(InputOrder::of).collect::<Result<_, _>>()?;
    Ok(StepOrder {
        name: step.name.clone(),
        operator: about.name.to_string(),
        version: about.version,
        arguments: arguments(step.arguments.as_ref()),
        bound_args: work.bound.args(),
        recipe: work.recipe,
        base: step.base.to_string_lossy().into_owned(),
        inputs,
    })
}
