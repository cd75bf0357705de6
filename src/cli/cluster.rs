//! `cluster`: the processes of a cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;

use super::StoreArgs;
use super::context::{Exit, Failure, fail, failed, note, open_store};
use super::process::watch_signals;
use super::resources::{MemoryArgs, all_threads};
use super::store_places::StorePlaces;
use crate::registry::REGISTRY;
use galeras_base::terminal_escape::escape;
use galeras_cluster::{ClusterError, ExecutorOptions, run_executor, run_scheduler};
use galeras_engine::runner::{Worker, build_stamp};
use galeras_store::StoreLocation;

const PORT: u16 = 50050;

#[derive(Subcommand)]
pub(crate) enum ClusterVerb {
    /// Run the scheduler, which gives the work of runs to executors.
    Scheduler(SchedulerArgs),
    /// Run an executor, which does work. It runs everything that a run sends: on private networks
    /// only.
    Executor(ExecutorArgs),
}

#[derive(Args)]
pub(crate) struct SchedulerArgs {
    /// Where to listen. Everyone who reaches it can have any plan executed.
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT))]
    bind: SocketAddr,
}

#[derive(Args)]
pub(crate) struct ExecutorArgs {
    /// The scheduler: df://HOST:PORT.
    #[arg(long, value_name = "URL", env = "GALERAS_ENGINE", default_value_t = format!("df://127.0.0.1:{PORT}"))]
    scheduler: String,
    #[command(flatten)]
    store: StoreArgs,
    /// The address under which the cluster knows it.
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST.into())]
    bind: IpAddr,
    /// Items of work that it does side by side (default: one for each processor).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    slots: Option<u16>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Its name in messages (default: the machine's name and the number of the process).
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl ClusterVerb {
    pub(super) fn memory(&self) -> Option<MemoryArgs> {
        match self {
            Self::Scheduler(_) => None,
            Self::Executor(args) => Some(args.memory),
        }
    }
}

pub(crate) async fn cluster(verb: ClusterVerb) -> Result<Exit, Failure> {
    match verb {
        ClusterVerb::Scheduler(args) => scheduler(args).await,
        ClusterVerb::Executor(args) => executor(args).await,
    }
}

async fn scheduler(args: SchedulerArgs) -> Result<Exit, Failure> {
    let stop = CancellationToken::new();
    watch_signals(stop.clone());
    let ready = |address| note(&format!("ready: scheduler at df://{address}, {}", build()));
    ended(run_scheduler(args.bind, &build(), stop, ready).await)
}

async fn executor(args: ExecutorArgs) -> Result<Exit, Failure> {
    let location = &args.store.here()?;
    if let Ok(StoreLocation::Memory(_)) = StoreLocation::parse(location) {
        return Err(fail("a store in memory cannot be shared", Exit::Invalid));
    }
    let Some(scheduler) = host_and_port(&args.scheduler) else {
        let error = ClusterError::Address(args.scheduler);
        return Err(fail(error.to_string(), Exit::Invalid));
    };
    let store = open_store(location).await?;
    let downloads = StorePlaces::of(location)?.downloads;
    let slots = args.slots.map_or_else(all_threads, usize::from);
    let name = args.name.unwrap_or_else(|| format!("{}-{}", host_name(), std::process::id()));
    let resources = (slots, args.memory.bytes() / slots);
    let worker = Worker::new(name.clone(), REGISTRY, store, downloads, resources);
    let options =
        ExecutorOptions { scheduler, bind: args.bind, slots, build: build(), ..Default::default() };
    let known = args.scheduler;
    let ready = move || {
        let name = escape(&name);
        note(&format!("ready: executor {name} of {}, {slots} slots, {}", escape(&known), build()));
    };
    ended(run_executor(options, worker, ready).await)
}

fn build() -> String {
    build_stamp(&REGISTRY)
}

fn ended(result: Result<(), ClusterError>) -> Result<Exit, Failure> {
    match result {
        Ok(()) => Ok(Exit::Done),
        Err(error @ ClusterError::OtherBuild { .. }) => {
            let help = "start all processes of a cluster from one build";
            Err(fail(format!("{error}\nhelp: {help}"), Exit::Failed))
        }
        Err(error) => Err(failed(error)),
    }
}

fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.strip_prefix("df://")?.trim_end_matches('/').rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_string(), port.parse().ok()?)).filter(|(host, _)| !host.is_empty())
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "executor".into() } else { name.trim().to_string() }
}
