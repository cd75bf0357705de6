//! Runs the operator on the new rows of a window: one physical plan, executed again for each
//! window, whose partitions take chunks of rows from one queue.

use std::collections::VecDeque;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::super::error::RunError;
use crate::locked;
use galeras_operator::{RowStep, StepError};
use galeras_sql::session::ordered_session;

/// The number of rows that a thread computes at a time.
const CHUNK_ROWS: usize = 256;

/// Chunks of rows that wait for a thread.
type Chunks = Arc<Mutex<VecDeque<RecordBatch>>>;

/// One thread's share of the latest window.
struct Share {
    schema: SchemaRef,
    window: Arc<Mutex<Chunks>>,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fresh rows")
    }
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let chunks = Arc::clone(&locked(&self.window));
        let next = move || locked(&chunks).pop_front();
        let taken = stream::iter(std::iter::from_fn(next).map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), taken))
    }
}

pub(super) struct Evaluator {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    window: Arc<Mutex<Chunks>>,
}

impl Evaluator {
    /// The operator's plan over rows of `schema`, for this many threads.
    pub(super) async fn new(
        row: &dyn RowStep,
        schema: SchemaRef,
        threads: usize,
    ) -> Result<Self, RunError> {
        let window: Arc<Mutex<Chunks>> = Arc::default();
        let share = || {
            let (schema, window) = (Arc::clone(&schema), Arc::clone(&window));
            Arc::new(Share { schema, window }) as Arc<dyn PartitionStream>
        };
        let shares = (0..threads.max(1)).map(|_| share()).collect();
        let table = StreamingTable::try_new(Arc::clone(&schema), shares)?;
        let rows = row.evaluate(ordered_session(threads).read_table(Arc::new(table))?)?;
        let context = Arc::new(rows.task_ctx());
        Ok(Self { plan: rows.create_physical_plan().await?, context, window })
    }

    /// Starts to compute rows on all threads.
    pub(super) fn start(&self, rows: &[RecordBatch]) -> Result<Evaluation> {
        let wanted = rows.iter().map(RecordBatch::num_rows).sum();
        let mut chunks = VecDeque::new();
        for batch in rows {
            for start in (0..batch.num_rows()).step_by(CHUNK_ROWS) {
                chunks.push_back(batch.slice(start, CHUNK_ROWS.min(batch.num_rows() - start)));
            }
        }
        let (out, batches) = mpsc::unbounded_channel();
        if chunks.is_empty() {
            return Ok(Evaluation { wanted, batches, tasks: Vec::new() });
        }
        *locked(&self.window) = Arc::new(Mutex::new(chunks));
        let partitions = self.plan.output_partitioning().partition_count();
        let mut tasks = Vec::with_capacity(partitions);
        for partition in 0..partitions {
            let mut stream = self.plan.execute(partition, Arc::clone(&self.context))?;
            let out = out.clone();
            let work = async move {
                while let Some(batch) = stream.next().await {
                    let ended = batch.is_err();
                    if out.send(batch).is_err() || ended {
                        return;
                    }
                }
            };
            tasks.push(AbortOnDropHandle::new(tokio::spawn(work.in_current_span())));
        }
        Ok(Evaluation { wanted, batches, tasks })
    }
}

pub(super) struct Evaluation {
    wanted: usize,
    batches: mpsc::UnboundedReceiver<Result<RecordBatch, DataFusionError>>,
    tasks: Vec<AbortOnDropHandle<()>>,
}

impl Evaluation {
    /// Waits for the results, which come in any order. `on_rows` takes their numbers.
    ///
    /// # Panics
    /// If the operator panicked.
    pub(super) async fn finish(
        mut self,
        mut on_rows: impl FnMut(usize),
    ) -> Result<Vec<RecordBatch>, RunError> {
        let (mut evaluated, mut rows) = (Vec::new(), 0);
        while let Some(batch) = self.batches.recv().await {
            let batch = batch?;
            rows += batch.num_rows();
            on_rows(batch.num_rows());
            evaluated.push(batch);
        }
        for task in self.tasks {
            match task.await {
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                Err(_) => return Err(RunError::Interrupted),
                Ok(()) => {}
            }
        }
        if rows != self.wanted {
            let message = "a defect: the operator did not give exactly one row for each input row";
            return Err(StepError::new(message).into());
        }
        Ok(evaluated)
    }
}
