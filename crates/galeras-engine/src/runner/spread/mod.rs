//! Distributes the work of a step over the executors of an engine, and repeats missing items.
//!
//! The work is cut into items, which store their results as parts of the step's recipe, like an
//! interrupted run. Then one executor builds the tables of the step from these parts and computes
//! missing rows. So a table does not depend on where or in which order its rows were computed. Only
//! the coordinator stores manifests.
//!
//! The engine over a cluster is `galeras-cluster`.

mod job;
mod order;
mod worker;

use std::fmt;

use futures::future::BoxFuture;
use serde_json::json;

use self::job::Coordinator;
use self::order::{StepOrder, WorkItem};
use super::compute::{StepResult, StepWork, rows_of};
use super::context::StepContext;
use super::error::RunError;
use super::fan_out_step::missing_rows;
use crate::plan::PlannedStep;
use galeras_operator::{BoundStep, Lowering, StepError};
use galeras_workflow::Node;

pub use order::build_stamp;
pub use worker::Worker;

/// The result of a step that executors computed; `None` if the coordinator must compute it.
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
    let (items, expected, reused): (Vec<WorkItem>, u64, u64) =
        match (placement, work.bound.lowering()) {
            (Placement::Rows, _) => {
                let rows = work.stored_rows().unwrap_or(0);
                if rows < MIN_ROWS {
                    return Ok(None);
                }
                let tables = work.inputs.iter().flat_map(|input| &input.tables).enumerate();
                let items = tables.flat_map(|(table, stored)| {
                    let ranges = ranges(stored.stored.rows);
                    ranges.map(move |(start, len)| WorkItem::Rows { table, start, len })
                });
                (items.collect(), rows, 0)
            }
            (Placement::Shares, Lowering::FanOut(fan_out)) => {
                let Some(input) = work.inputs.first() else { return Ok(None) };
                let input = input.open(&cx.lower.session, &cx.store)?;
                let missing = missing_rows(cx, fan_out, input, work.recipe).await?;
                let (rows, reused) = (missing.rows, missing.reused);
                refused = missing.refused;
                let of = shares(rows.len());
                let expected = rows.len() as u64;
                let items = (0..of).flat_map(|share| {
                    rows.iter().map(move |row| {
                        let (row, label) = (row.digest.clone(), row.label.clone());
                        WorkItem::Share { row, label, share, of }
                    })
                });
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
    let coordinator = Coordinator { cx, engine, step: step_order(step, work) };
    let shared = placement == Placement::Shares;
    cx.total(expected, reused);
    let computed = match items.is_empty() {
        true => 0,
        false => {
            // Shares are long, so pieces stored by a lost executor are used.
            let fresh = cx.lower.forced || (!shared && cx.parts(&work.recipe).await?.is_empty());
            // Rows are counted one by one, repositories when all their shares are done.
            match coordinator.run(items, fresh, !shared).await? {
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
    let missing = || StepError::new("a defect: an executor gave no tables");
    let artifacts = outcome.tables.ok_or_else(missing)?;
    cx.reads(outcome.reads);
    cx.lower.retry.fetch_add(outcome.retry, std::sync::atomic::Ordering::Relaxed);
    let (computed, reused) = match work.bound.lowering() {
        // The rows of the other items were reused by the last one.
        Lowering::Row(_) | Lowering::FanOut(_) => {
            let before = computed.min(outcome.reused);
            (outcome.computed + before, outcome.reused - before)
        }
        Lowering::Table(_) | Lowering::Paid(_) => (rows_of(&artifacts), 0),
    };
    Ok(Some(StepResult { artifacts, computed, reused }))
}

/// The data that executors need to bind the step in the same way.
fn step_order(step: &PlannedStep, work: &StepWork<'_>) -> StepOrder {
    let about = step.operator.descriptor();
    StepOrder {
        name: step.name.clone(),
        operator: about.name.to_string(),
        version: about.version,
        arguments: step.arguments.as_ref().map_or_else(|| json!({}), Node::to_json),
        bound_args: work.bound.args(),
        recipe: work.recipe,
        base: step.base.to_string_lossy().into_owned(),
        inputs: work.inputs.clone(),
    }
}

/// Hands out items of work.
///
/// An item's results and its outcome are written only to the store. So the store shows the
/// completed work, even if workers or the engine fail.
pub trait Engine: Send + Sync + fmt::Debug {
    /// Its name on the command line, `df://host:port`; `None` for this process.
    fn address(&self) -> Option<&str>;
    /// The build of this process; workers must have the same.
    fn build(&self) -> &str;
    /// Has these items of a job computed, in any order, each at least once or not at all. Ends when
    /// the engine stops working on them, for any reason. If this is dropped, the rest may be left.
    ///
    /// # Errors
    /// If the engine cannot be reached, or refuses.
    fn scatter<'a>(
        &'a self,
        job: &'a str,
        items: &'a [u32],
    ) -> BoxFuture<'a, Result<(), EngineError>>;
}

/// The reason why an engine stopped.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum EngineError {
    /// It cannot be reached at the moment.
    #[error("{0}")]
    Unreachable(String),
    /// It refuses.
    #[error("{0}")]
    Refused(String),
}

/// This process: every step is computed where it is scheduled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Embedded;

impl Engine for Embedded {
    fn address(&self) -> Option<&str> {
        None
    }

    fn build(&self) -> &str {
        ""
    }

    fn scatter<'a>(&'a self, _: &'a str, _: &'a [u32]) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            Err(EngineError::Refused("nothing is handed out by the embedded engine".into()))
        })
    }
}

/// The place where a step of a run on a cluster is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Executors compute ranges of its rows, and one of them builds the tables.
    Rows,
    /// Executors compute its rows in shares, and one of them builds the tables.
    Shares,
    /// An executor computes the whole step.
    Whole,
    /// The coordinator computes it, for this reason.
    Coordinator(&'static str),
}

impl Placement {
    /// The placement of a step by its arguments. A step with little input still stays with the
    /// coordinator.
    pub fn of(bound: &dyn BoundStep) -> Self {
        let lowering = bound.lowering();
        if let Lowering::Paid(_) = lowering {
            return Self::Coordinator(
                "answers are paid for once, and kept where they are asked for",
            );
        }
        if let Some(reason) = bound.stays() {
            return Self::Coordinator(reason);
        }
        if !bound.local_files().is_empty() || bound.side_files().map_or(true, |f| !f.is_empty()) {
            return Self::Coordinator("it reads files of this machine");
        }
        match lowering {
            // Consent for each row is asked before it is handed out.
            Lowering::FanOut(_) => Self::Shares,
            _ if bound.fact().is_some() || !bound.demands().is_empty() => {
                Self::Coordinator("it asks the world")
            }
            Lowering::Row(row) if row.is_source() => {
                Self::Coordinator("it has no input whose rows could be divided")
            }
            Lowering::Row(row) if row.is_light() => Self::Whole,
            Lowering::Row(_) => Self::Rows,
            Lowering::Table(_) => Self::Whole,
            Lowering::Paid(_) => Self::Coordinator("it is paid for"),
        }
    }

    /// The words of `plan --engine`.
    pub fn describe(self) -> String {
        match self {
            Self::Rows => "executors, by ranges of rows".into(),
            Self::Shares => "executors, by shares of each row".into(),
            Self::Whole => "one executor".into(),
            Self::Coordinator(reason) => format!("coordinator: {reason}"),
        }
    }
}

/// A row step with fewer input rows is computed faster here.
pub(super) const MIN_ROWS: u64 = 2048;
/// A table step with fewer stored bytes of input is computed faster here.
pub(super) const MIN_BYTES: u64 = 1 << 20;
/// The least rows of an item ...
const MIN_ITEM_ROWS: u64 = 1024;
/// ... and the most items of a table, unless they would be larger than ...
const MAX_ITEMS: u64 = 256;
/// ... this many rows, whose work may be lost.
const MAX_ITEM_ROWS: u64 = 16 * 1024;
/// The least number of items of a fan-out, cut into shares if it has fewer rows.
const SHARES: usize = 16;

/// The ranges of a table with this many rows: starts and lengths.
pub(super) fn ranges(rows: u64) -> impl Iterator<Item = (u64, u64)> {
    let wanted = rows.div_ceil(MAX_ITEMS).clamp(MIN_ITEM_ROWS, MAX_ITEM_ROWS);
    let items = rows.div_ceil(wanted);
    (0..items).map(move |item| {
        let (start, end) = (item * rows / items, (item + 1) * rows / items);
        (start, end - start)
    })
}

/// The number of shares of each row of a fan-out with this many rows.
pub(super) fn shares(rows: usize) -> u32 {
    match rows {
        0 => 1,
        rows => SHARES.div_ceil(rows) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_a_table_once() {
        for rows in [0, 1, 255, 256, 257, 1024, 17_000, 65_536, 10_000_000] {
            let mut next = 0;
            for (start, len) in ranges(rows) {
                assert_eq!(start, next);
                assert!(len > 0 && len <= MAX_ITEM_ROWS + 1);
                next = start + len;
            }
            assert_eq!(next, rows);
        }
        assert_eq!((shares(1), shares(3), shares(16), shares(900)), (16, 6, 1, 1));
    }
}
