//! Compares the builds of processes in a cluster before any work: every call to the scheduler and
//! every answer carries the build. Two builds may compute different results.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{HeaderMap, HeaderValue, USER_AGENT};
use axum::middleware::Next;
use axum::response::Response;
use ballista_core::serde::protobuf::GetJobStatusParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use tonic::transport::{Channel, Endpoint, Error};
use tonic::{Code, Status};

use super::ClusterError;

/// The header with the scheduler's build.
const BUILD: &str = "galeras-build";
/// A process that sends no build.
const NAMELESS: &str = "a program of an unknown build";
/// The text that tonic appends to the user agent.
const LIBRARY: &str = " tonic/";

/// Sends the build of this process with every call through this endpoint.
pub(super) fn introduce(endpoint: Endpoint, build: &str) -> Result<Endpoint, Error> {
    endpoint.user_agent(build)
}

fn caller(headers: &HeaderMap) -> Option<&str> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    agent.rsplit_once(LIBRARY).map(|(build, _)| build)
}

/// Serves processes of this build, and refuses others with a message.
pub(super) async fn own_build_only(
    State(build): State<Arc<str>>,
    request: Request,
    next: Next,
) -> Response {
    let refused = match caller(request.headers()) {
        Some(theirs) if *theirs == *build => None,
        theirs => Some(refusal(&build, theirs)),
    };
    let mut answer = match refused {
        Some(message) => Status::failed_precondition(message).into_http::<Body>(),
        None => next.run(request).await,
    };
    if let Ok(build) = HeaderValue::from_str(&build) {
        answer.headers_mut().insert(BUILD, build);
    }
    answer
}

fn refusal(build: &str, theirs: Option<&str>) -> String {
    let theirs = theirs.unwrap_or(NAMELESS);
    format!(
        "it is {build}, but the caller is {theirs}; all processes of a cluster must be of one build"
    )
}

/// Fails unless the scheduler at this address answers, and is of this build.
pub(super) async fn compare(
    scheduler: Channel,
    address: &str,
    build: &str,
) -> Result<(), ClusterError> {
    // A harmless question: this job does not exist.
    let question = GetJobStatusParams { job_id: "none".into() };
    let answer = SchedulerGrpcClient::new(scheduler).get_job_status(question).await;
    let metadata = match &answer {
        Ok(answer) => answer.metadata(),
        Err(status) if status.code() == Code::FailedPrecondition => status.metadata(),
        Err(status) => {
            let cause = status.message().to_string();
            return Err(ClusterError::Silent { address: address.to_string(), cause });
        }
    };
    match metadata.get(BUILD).and_then(|build| build.to_str().ok()) {
        Some(theirs) if theirs == build => Ok(()),
        theirs => Err(ClusterError::OtherBuild {
            address: address.to_string(),
            scheduler: theirs.unwrap_or(NAMELESS).to_string(),
            executor: build.to_string(),
        }),
    }
}
