//! A scheduler in this process, with callers of the same build and of others.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::*;
use galeras_engine::runner::{Engine, EngineError, Worker, build_stamp};
use galeras_operator::Registry;
use galeras_store::Store;

/// No work is done here, so that no operator is needed.
const REGISTRY: Registry = Registry::new(&[]);

/// The address of a scheduler of that build, which runs until the test ends.
async fn scheduler(build: &str) -> SocketAddr {
    let (told, address) = oneshot::channel();
    let build = build.to_string();
    tokio::spawn(async move {
        let bind = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let ready = |address| told.send(address).unwrap();
        run_scheduler(bind, &build, CancellationToken::new(), ready).await.unwrap();
    });
    address.await.unwrap()
}

async fn executor(scheduler: SocketAddr, build: &str, folder: &Path) -> Result<(), ClusterError> {
    let store = Store::open(&folder.to_string_lossy()).await.unwrap();
    let resources = (1, 1 << 30);
    let worker = Worker::new("w".into(), REGISTRY, store, folder.join("downloads"), resources);
    let scheduler = (scheduler.ip().to_string(), scheduler.port());
    let options =
        ExecutorOptions { scheduler, build: build.to_string(), patience: 5, ..Default::default() };
    let (told, known) = oneshot::channel();
    let ready = move || told.send(()).unwrap();
    tokio::select! {
        ended = run_executor(options, worker, ready) => ended,
        known = known => known.map_err(|_| panic!("the executor did not join")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_of_another_build_does_not_join_and_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = scheduler("galeras 1 for a toaster").await;
    executor(scheduler, "galeras 1 for a toaster", folder.path()).await.unwrap();
    let error = executor(scheduler, "galeras 2 for a toaster", folder.path()).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ClusterError::OtherBuild { .. }), "{text}");
    assert!(text.contains("is galeras 1 for a toaster, but"), "{text}");
    assert!(text.contains("this executor is galeras 2 for a toaster"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_another_build_is_refused_at_once_and_names_both() {
    let scheduler = scheduler("galeras 9.9.9 for a toaster").await;
    let engine = ClusterEngine::new(&format!("df://{scheduler}"), &REGISTRY).unwrap();
    let error = engine.scatter("a1", &[0]).await.unwrap_err();
    let EngineError::Refused(text) = error else { panic!("{error}") };
    assert!(text.contains("galeras 9.9.9 for a toaster"), "{text}");
    assert!(text.contains(&build_stamp(&REGISTRY)), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let error = executor(address, "galeras 1", folder.path()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("the scheduler at {address} does not answer")), "{text}");
}
