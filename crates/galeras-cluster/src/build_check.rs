//! Which build a process is of: said with every call to the scheduler and with every answer, and
//! compared before anything is done. Results of two builds may differ.
//!
//! Does not live here: what a build is (`runner`), and the same question before an item is done
//! (`runner`), for a store that two clusters share.

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

/// The header of an answer that says of which build the scheduler is.
const BUILD: &str = "galeras-build";
/// Who does not say.
pub(super) const NAMELESS: &str = "a program that does not say its build";
/// What the library that makes calls adds to the name of its user.
const LIBRARY: &str = " tonic/";

/// Lets all calls through this endpoint say of which build their process is.
pub(super) fn introduce(endpoint: Endpoint, build: &str) -> Result<Endpoint, Error> {
    endpoint.user_agent(build)
}

/// The build of which the caller says that it is.
fn caller(headers: &HeaderMap) -> Option<&str> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    agent.rsplit_once(LIBRARY).map(|(build, _)| build)
}

/// Answers calls of processes of this build, and refuses others by name.
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

/// Why an executor cannot join.
pub(super) enum Unfit {
    /// The scheduler does not answer, for this reason.
    Silent(String),
    /// It is of this build, if it says of which.
    OtherBuild(Option<String>),
}

/// Asks the scheduler of which build it is.
pub(super) async fn compare(scheduler: Channel, build: &str) -> Result<(), Unfit> {
    // A question without consequences: there is no such job.
    let question = GetJobStatusParams { job_id: "none".into() };
    let answer = SchedulerGrpcClient::new(scheduler).get_job_status(question).await;
    let metadata = match &answer {
        Ok(answer) => answer.metadata(),
        Err(status) if status.code() == Code::FailedPrecondition => status.metadata(),
        Err(status) => return Err(Unfit::Silent(status.message().to_string())),
    };
    match metadata.get(BUILD).and_then(|build| build.to_str().ok()) {
        Some(theirs) if theirs == build => Ok(()),
        theirs => Err(Unfit::OtherBuild(theirs.map(str::to_string))),
    }
}
