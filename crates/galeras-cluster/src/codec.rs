//! The encoding of plans of work: the name of the job.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::work_exec::{WorkExec, WorkerHandle};

/// The first bytes of our plan; no message of Ballista starts with them.
const MARK: &[u8] = b"galeras-work:";

/// Encodes our plan, and leaves all others to Ballista.
#[derive(Debug)]
pub(super) struct WorkCodec {
    ballista: BallistaPhysicalExtensionCodec,
    /// Computes the work, in an executor.
    handle: Option<WorkerHandle>,
}

impl WorkCodec {
    pub(super) fn new(handle: Option<WorkerHandle>) -> Self {
        Self { ballista: BallistaPhysicalExtensionCodec::default(), handle }
    }
}

impl PhysicalExtensionCodec for WorkCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(job) = bytes.strip_prefix(MARK) else {
            return self.ballista.try_decode(bytes, inputs, context, converter);
        };
        let unreadable = || DataFusionError::Internal("a plan of work cannot be read".into());
        let job = std::str::from_utf8(job).map_err(|_| unreadable())?;
        let [numbers] = inputs else { return Err(unreadable()) };
        let (job, numbers) = (job.to_string(), Arc::clone(numbers));
        Ok(Arc::new(WorkExec::new(job, numbers, self.handle.clone())))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(work) = node.downcast_ref::<WorkExec>() else {
            return self.ballista.try_encode(node, bytes, converter);
        };
        bytes.extend_from_slice(MARK);
        bytes.extend_from_slice(work.job.as_bytes());
        Ok(())
    }
}
