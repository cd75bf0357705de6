//! The parts of all handlers: their state, the frame of pages, addresses, and the answers: a page,
//! another address, or a refusal.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use galeras_engine::plan::Input;
use galeras_engine::runner::RunError;
use galeras_pages::view::{ViewFrame, message_page};
use galeras_pages::{PageError, PageLink};
use tokio_util::sync::CancellationToken;
use url::form_urlencoded::Serializer;

use super::guard::Guard;
use super::study::{Snapshot, Study};

#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    /// A command that helps, if any.
    command: String,
}

impl Refusal {
    fn of(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), command: String::new() }
    }

    /// The requested thing does not exist.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::of(StatusCode::NOT_FOUND, message)
    }

    /// The request makes no sense, or is not allowed now.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::of(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Adds a command that helps.
    pub(super) fn run(mut self, command: String) -> Self {
        self.command = command;
        self
    }
}

impl From<PageError> for Refusal {
    fn from(error: PageError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Self {
        Self::failed(error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let frame = ViewFrame { links: links(""), ..ViewFrame::default() };
        let title = self.status.canonical_reason().unwrap_or("Error");
        let page = message_page(&frame, title, &self.message, &self.command);
        let mut response = html(page.unwrap_or(self.message));
        *response.status_mut() = self.status;
        response
    }
}

pub(super) fn html(page: String) -> Response {
    Html(page).into_response()
}

/// Redirects the browser to another page of this server.
pub(super) fn see(address: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    // `address` only returns ASCII.
    if let Ok(value) = HeaderValue::from_str(address) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

/// The result of a handler.
pub(super) type Answered = Result<Response, Refusal>;

/// State shared by all handlers.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) study: Arc<Study>,
    pub(super) cancel: CancellationToken,
    pub(super) guard: Arc<Guard>,
}

impl Served {
    /// The frame of a page; `current` is the address of the page in the list of pages.
    pub(super) fn frame(&self, snapshot: &Snapshot, current: &str) -> ViewFrame {
        let footer = format!(
            "{} in {}, galeras {}",
            self.study.file.display(),
            self.study.store.location(),
            env!("CARGO_PKG_VERSION")
        );
        ViewFrame { study: snapshot.surveyed.plan.name.clone(), links: links(current), footer }
    }

    /// The table with that name, and the study that has it.
    pub(super) async fn table(&self, name: &str) -> Result<(Arc<Snapshot>, Input), Refusal> {
        let snapshot = self.study.snapshot().await?;
        let table = snapshot.table(name);
        let table = table.map_err(|why| Refusal::missing(why).run(snapshot.surveyed.command()))?;
        Ok((snapshot, table))
    }
}

/// The links of every page.
fn links(current: &str) -> Vec<PageLink> {
    let pages = [("/", "Steps"), ("/report", "Report"), ("/review", "Review"), ("/runs", "Runs")];
    let link = |(address, text): (&str, &str)| PageLink {
        address: address.to_string(),
        text: text.to_string(),
        current: address == current,
    };
    pages.into_iter().map(link).collect()
}

/// `PAGE?name=value&…`, without empty values.
pub(super) fn address(page: &str, values: &[(&str, &str)]) -> String {
    let mut query = Serializer::new(String::new());
    for (name, value) in values.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    match query.finish() {
        query if query.is_empty() => page.to_string(),
        query => format!("{page}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn names_are_data() {
        let found =
            address("/table", &[("name", "gen[m=a].rejects"), ("sort", ""), ("v", "a&b=\"<")]);
        assert_eq!(found, "/table?name=gen%5Bm%3Da%5D.rejects&v=a%26b%3D%22%3C");
        assert_eq!(address("/", &[]), "/");
    }
}
