//! The process that computes items.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::ExecutorHealth;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tonic::transport::{Channel, Endpoint};

use super::build_check::{compare, introduce};
use super::codec::WorkCodec;
use super::work_exec::WorkerHandle;
use super::{ClusterError, LOST_AFTER};
use galeras_base::scratch::ScratchFolder;
use galeras_engine::runner::Worker;

/// The settings of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The host and the port of the scheduler.
    pub scheduler: (String, u16),
    /// The address for other executors; we fetch nothing from there.
    pub bind: IpAddr,
    /// The number of items computed at once.
    pub slots: usize,
    /// The seconds to wait for the scheduler at the start.
    pub patience: u16,
    /// The build of this process. It does not work for a scheduler of another build.
    pub build: String,
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        let (scheduler, bind) = ((String::from("127.0.0.1"), 50050), Ipv4Addr::LOCALHOST.into());
        Self { scheduler, bind, slots: 1, patience: 60, build: String::new() }
    }
}

/// Runs an executor until a signal stops it; it then finishes its items. Calls `ready` when the
/// scheduler knows it.
///
/// # Errors
/// If the scheduler cannot be reached or has another build, or if Ballista fails.
pub async fn run_executor(
    options: ExecutorOptions,
    worker: Worker,
    ready: impl FnOnce() + Send + 'static,
) -> Result<(), ClusterError> {
    let scheduler = SchedulerCheck::new(&options)?;
    scheduler.join(Duration::from_secs(options.patience.into())).await?;
    let folder = ScratchFolder::create()
        .map_err(|source| ClusterError::Listen { address: "a temporary folder".into(), source })?;
    let _freed = worker.give_memory_back();
    let handle = WorkerHandle { worker: Arc::new(worker), runtime: Handle::current() };
    let health = ExecutorHealth::new();
    let build = options.build;
    let config = ExecutorProcessConfig {
        bind_host: options.bind.to_string(),
        external_host: Some(options.bind.to_string()),
        port: free_port(options.bind)?,
        grpc_port: free_port(options.bind)?,
        scheduler_host: options.scheduler.0,
        scheduler_port: options.scheduler.1,
        scheduler_connect_timeout_seconds: options.patience,
        vcores: options.slots,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(PathBuf::from(folder.path()).to_string_lossy().into_owned()),
        executor_heartbeat_interval_seconds: LOST_AFTER / 5,
        // Our items have a separate memory limit.
        memory_pool_size: Some(0),
        override_physical_codec: Some(Arc::new(WorkCodec::new(Some(handle)))),
        override_create_grpc_client_endpoint: Some(Arc::new(move |endpoint| {
            Ok(introduce(endpoint, &build)?)
        })),
        health: health.clone(),
        ..ExecutorProcessConfig::default()
    };
    let told = tokio::spawn(async move {
        while !health.is_ready() {
            sleep(Duration::from_millis(50)).await;
        }
        ready();
    });
    let ended = tokio::select! {
        ended = start_executor_process(Arc::new(config)) => ended.map_err(ClusterError::from),
        changed = scheduler.watch() => Err(changed),
    };
    told.abort();
    ended
}

struct SchedulerCheck {
    address: String,
    channel: Channel,
    build: String,
}

impl SchedulerCheck {
    fn new(options: &ExecutorOptions) -> Result<Self, ClusterError> {
        let (host, port) = &options.scheduler;
        let address = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let bad = || ClusterError::Address(format!("df://{address}"));
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|_| bad())?;
        let endpoint = introduce(endpoint, &options.build).map_err(|_| bad())?;
        let patience = Duration::from_secs(LOST_AFTER);
        let channel = endpoint.connect_timeout(patience).timeout(patience).connect_lazy();
        Ok(Self { address, channel, build: options.build.clone() })
    }

    async fn compare(&self) -> Result<(), ClusterError> {
        compare(self.channel.clone(), &self.address, &self.build).await
    }

    async fn join(&self, patience: Duration) -> Result<(), ClusterError> {
        let since = Instant::now();
        loop {
            match self.compare().await {
                Err(ClusterError::Silent { .. }) if since.elapsed() < patience => {
                    sleep(Duration::from_millis(500)).await;
                }
                ended => return ended,
            }
        }
    }

    /// Ends when a scheduler of another build replaces the first.
    async fn watch(&self) -> ClusterError {
        loop {
            sleep(Duration::from_secs(LOST_AFTER)).await;
            if let Err(other @ ClusterError::OtherBuild { .. }) = self.compare().await {
                return other;
            }
        }
    }
}

fn free_port(bind: IpAddr) -> Result<u16, ClusterError> {
    let listen = |source| ClusterError::Listen { address: bind.to_string(), source };
    let listener = TcpListener::bind(SocketAddr::new(bind, 0)).map_err(listen)?;
    Ok(listener.local_addr().map_err(listen)?.port())
}
