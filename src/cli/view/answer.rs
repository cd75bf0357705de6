//! The answers to requests: a page, another address, or a refusal.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use galeras_pages::PageError;
use galeras_pages::view::{ViewFrame, message_page};

#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    /// A command that helps, if any.
    command: String,
}

impl Refusal {
    /// The requested thing does not exist.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into(), command: String::new() }
    }

    /// The request makes no sense, or is not allowed now.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into(), command: String::new() }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: message.into(),
            command: String::new(),
        }
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

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::failed(message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let frame = ViewFrame { links: super::served::links(""), ..ViewFrame::default() };
        let title = self.status.canonical_reason().unwrap_or("Error");
        let page = message_page(&frame, title, &self.message, &self.command);
        let mut response = html(page.unwrap_or(self.message));
        *response.status_mut() = self.status;
        response
    }
}

pub(super) fn html(page: String) -> Response {
    let mut response = Response::new(Body::from(page));
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
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
