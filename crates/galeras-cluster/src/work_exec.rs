//! The plan that Ballista carries: the numbers of a job's items, computed where their partition is
//! executed.
//!
//! It reads a table in memory that Ballista may cut into any partitions: the number determines the
//! item, not the partition.

use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use galeras_engine::runner::Worker;

/// Computes items in this process. It has its own runtime, because that of plans has no network.
#[derive(Clone, Debug)]
pub(super) struct WorkerHandle {
    pub(super) worker: Arc<Worker>,
    pub(super) runtime: Handle,
}

/// Computes the items whose numbers its input has, and returns their numbers.
#[derive(Debug)]
pub(super) struct WorkExec {
    pub(super) job: String,
    pub(super) numbers: Arc<dyn ExecutionPlan>,
    handle: Option<WorkerHandle>,
    properties: Arc<PlanProperties>,
}

impl WorkExec {
    pub(super) fn new(
        job: String,
        numbers: Arc<dyn ExecutionPlan>,
        handle: Option<WorkerHandle>,
    ) -> Self {
        let properties = Arc::clone(numbers.properties());
        Self { job, numbers, handle, properties }
    }

    /// The plan of these items of a job, one partition each.
    pub(super) fn plan(job: &str, items: &[u32]) -> Result<Self> {
        let schema = schema();
        let partition = |item: &u32| {
            let numbers = Arc::new(UInt32Array::from(vec![*item]));
            Ok(vec![RecordBatch::try_new(Arc::clone(&schema), vec![numbers])?])
        };
        let partitions = items.iter().map(partition).collect::<Result<Vec<_>>>()?;
        let numbers = MemorySourceConfig::try_new_exec(&partitions, Arc::clone(&schema), None)?;
        Ok(Self::new(job.to_string(), numbers, None))
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]))
}

impl DisplayAs for WorkExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkExec: job={}", self.job)
    }
}

impl ExecutionPlan for WorkExec {
    fn name(&self) -> &'static str {
        "WorkExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.numbers]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let numbers = children.pop().ok_or_else(|| internal("work without items"))?;
        Ok(Arc::new(Self::new(self.job.clone(), numbers, self.handle.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let handle = self.handle.clone().ok_or_else(|| internal("this is not an executor"))?;
        let (job, numbers) = (self.job.clone(), self.numbers.execute(partition, context)?);
        let done = numbers.then(move |batch| done(handle.clone(), job.clone(), batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.numbers.schema(), done)))
    }
}

/// Computes the items of a batch in turn.
async fn done(
    handle: WorkerHandle,
    job: String,
    batch: Result<RecordBatch>,
) -> Result<RecordBatch> {
    let batch = batch?;
    for item in batch.column(0).as_primitive::<UInt32Type>().values().to_vec() {
        let (worker, job) = (Arc::clone(&handle.worker), job.clone());
        let work = handle.runtime.spawn(async move { worker.perform(&job, item).await });
        match AbortOnDropHandle::new(work).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(DataFusionError::External(Box::new(error))),
            Err(error) => return Err(DataFusionError::External(Box::new(error))),
        }
    }
    Ok(batch)
}

fn internal(message: &str) -> DataFusionError {
    DataFusionError::Internal(message.to_string())
}
