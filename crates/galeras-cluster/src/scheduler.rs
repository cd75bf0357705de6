//! The process that hands out items to executors.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::{SERVICE_NAME, SchedulerGrpcServer};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::build_check::own_build_only;
use super::codec::WorkCodec;
use super::{ClusterError, LOST_AFTER, MESSAGE};

/// Runs a scheduler of this build until it is stopped; it refuses processes of other builds. Calls
/// `ready` with its address.
///
/// # Errors
/// If it cannot listen there, or if Ballista fails.
pub async fn run_scheduler(
    bind: SocketAddr,
    build: &str,
    stop: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ClusterError> {
    let listen = |source| ClusterError::Listen { address: bind.to_string(), source };
    let listener = TcpListener::bind(bind).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let config = SchedulerConfig {
        bind_host: address.ip().to_string(),
        external_host: address.ip().to_string(),
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: LOST_AFTER,
        expire_dead_executor_interval_seconds: LOST_AFTER / 5,
        // The coordinator decides how long to wait.
        no_executors_grace_period_seconds: 24 * 3600,
        override_physical_codec: Some(Arc::new(WorkCodec::new(None))),
        // The coordinator retries items, as it knows why they failed.
        task_max_failures: 8,
        stage_max_failures: 64,
        ..SchedulerConfig::default()
    };
    let config = Arc::new(config);
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await?;
    let calls = SchedulerGrpcServer::new(scheduler)
        .max_encoding_message_size(MESSAGE)
        .max_decoding_message_size(MESSAGE);
    // Ballista's other services, such as the tables of other executors, are not used.
    let routes = Router::new()
        .route_service(&format!("/{SERVICE_NAME}/{{*call}}"), calls)
        .layer(from_fn_with_state(Arc::<str>::from(build), own_build_only))
        .route("/healthz", get(|| async { "ok" }))
        .into_make_service_with_connect_info::<SocketAddr>();
    ready(address);
    tokio::select! {
        ended = axum::serve(listener, routes) => {
            ended.map_err(|source| ClusterError::Listen { address: address.to_string(), source })
        }
        () = stop.cancelled() => Ok(()),
    }
}
