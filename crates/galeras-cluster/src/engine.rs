//! The coordinator's side: submits the items of a job as a plan and watches its progress.

use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::execute_query_result;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, CleanJobDataParams, ExecuteQueryParams, GetJobStatusParams, KeyValuePair,
};
use ballista_core::version::insert_version_header;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tonic::transport::{Channel, Endpoint};

use super::build_check::introduce;
use super::codec::WorkCodec;
use super::work_exec::WorkExec;
use super::{ClusterError, MESSAGE};
use galeras_engine::runner::{Engine, EngineError, build_stamp};
use galeras_operator::Registry;

/// The time limit for an answer of the scheduler.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions about a job.
const PAUSE: Duration = Duration::from_millis(500);

type Scheduler = SchedulerGrpcClient<Channel>;

/// The engine over the cluster at `df://host:port`.
#[derive(Debug)]
pub struct ClusterEngine {
    address: String,
    endpoint: Endpoint,
    build: String,
}

impl ClusterEngine {
    /// The engine at `df://host:port`. Does not connect yet.
    ///
    /// # Errors
    /// If the text is not such an address.
    pub fn new(address: &str, registry: &Registry) -> Result<Self, ClusterError> {
        let bad = || ClusterError::Address(address.to_string());
        let host = address.strip_prefix("df://").map(|host| host.trim_end_matches('/'));
        let host = host.filter(|host| host.contains(':') && !host.contains(['/', '@', '?', '#']));
        let url = format!("http://{}", host.ok_or_else(bad)?);
        let build = build_stamp(registry);
        let endpoint = Endpoint::from_shared(url).map_err(|_| bad())?;
        let endpoint = introduce(endpoint, &build)
            .map_err(|_| bad())?
            .connect_timeout(PATIENCE)
            .timeout(PATIENCE)
            .http2_keep_alive_interval(PATIENCE)
            .keep_alive_while_idle(true);
        Ok(Self { address: address.to_string(), endpoint, build })
    }

    async fn connect(&self) -> Result<Scheduler, EngineError> {
        let channel = self.endpoint.connect().await.map_err(|error| {
            let cause = galeras_base::error_chain::chain(&error)
                .last()
                .map(ToString::to_string)
                .unwrap_or_default();
            EngineError::Unreachable(format!("the scheduler does not answer ({cause})"))
        })?;
        Ok(SchedulerGrpcClient::new(channel)
            .max_encoding_message_size(MESSAGE)
            .max_decoding_message_size(MESSAGE))
    }

    async fn submitted(
        &self,
        scheduler: &mut Scheduler,
        job: &str,
        items: &[u32],
    ) -> Result<String, EngineError> {
        let plan: Arc<dyn ExecutionPlan> =
            Arc::new(WorkExec::plan(job, items).map_err(|error| refused(&error))?);
        let node = PhysicalPlanNode::try_from_physical_plan(plan, &WorkCodec::new(None));
        let mut bytes = Vec::new();
        node.and_then(|node| node.try_encode(&mut bytes)).map_err(|error| refused(&error))?;
        let query = ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(bytes)),
            // All items of a task would run at once in one slot.
            settings: vec![KeyValuePair {
                key: BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK.into(),
                value: Some("1".into()),
            }],
            session_id: job.to_string(),
            operation_id: job.to_string(),
        };
        let mut request = tonic::Request::new(query);
        insert_version_header(request.metadata_mut());
        let answer = scheduler.execute_query(request).await.map_err(|status| lost(&status))?;
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(accepted)) => Ok(accepted.job_id),
            Some(execute_query_result::Result::Failure(failure)) => {
                Err(EngineError::Refused(format!("the scheduler refuses the job: {failure:?}")))
            }
            None => Err(EngineError::Refused("the scheduler did not answer".into())),
        }
    }
}

impl Engine for ClusterEngine {
    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn build(&self) -> &str {
        &self.build
    }

    fn scatter<'a>(
        &'a self,
        job: &'a str,
        items: &'a [u32],
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let mut scheduler = self.connect().await?;
            let id = self.submitted(&mut scheduler, job, items).await?;
            let mut submitted = Submitted { scheduler: scheduler.clone(), id, over: false };
            loop {
                tokio::time::sleep(PAUSE).await;
                let question = GetJobStatusParams { job_id: submitted.id.clone() };
                let answer = scheduler.get_job_status(question).await;
                let answer = answer.map_err(|status| lost(&status))?.into_inner();
                match answer.status.and_then(|job| job.status) {
                    Some(Status::Queued(_) | Status::Running(_)) => {}
                    Some(Status::Failed(failed)) => {
                        tracing::info!(job, "the cluster gave a job up: {}", failed.error);
                        submitted.over = true;
                        return Ok(());
                    }
                    Some(Status::Successful(_)) => {
                        submitted.over = true;
                        return Ok(());
                    }
                    // The scheduler has restarted.
                    None => {
                        submitted.over = true;
                        let why = "the scheduler does not know the job any more";
                        return Err(EngineError::Unreachable(why.into()));
                    }
                }
            }
        })
    }
}

fn refused(error: &datafusion::error::DataFusionError) -> EngineError {
    EngineError::Refused(format!("the job cannot be sent: {error}"))
}

fn lost(status: &tonic::Status) -> EngineError {
    let why = format!("the scheduler does not answer ({})", status.message());
    match status.code() {
        tonic::Code::InvalidArgument
        | tonic::Code::FailedPrecondition
        | tonic::Code::Unimplemented => {
            EngineError::Refused(format!("the scheduler refuses the job: {}", status.message()))
        }
        _ => EngineError::Unreachable(why),
    }
}

/// A submitted job, which the scheduler forgets when this is dropped.
struct Submitted {
    scheduler: Scheduler,
    id: String,
    over: bool,
}

impl Drop for Submitted {
    fn drop(&mut self) {
        let (mut scheduler, id, over) = (self.scheduler.clone(), self.id.clone(), self.over);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if !over {
                    let _ = scheduler.cancel_job(CancelJobParams { job_id: id.clone() }).await;
                }
                let _ = scheduler
                    .clean_job_data(CleanJobDataParams { job_id: id, remove_stage_ids: Vec::new() })
                    .await;
            });
        }
    }
}
