//! What an answer over HTTP means.
//!
//! Errors from status codes, `Retry-After` and failed connections.

use std::time::{Duration, SystemTime};

use galeras_net::{http_date, root_cause};
use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};

use crate::error::{GitError, GitErrorKind};

/// The response, if its status says that it is one.
pub(super) fn accepted(response: Response) -> Result<Response, GitError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let wait = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
    let wait = wait.and_then(wait_of);
    let number = status.as_u16();
    let (kind, message) = match status {
        StatusCode::UNAUTHORIZED => (
            GitErrorKind::Denied,
            "the server wants a login (answer 401), or there is no such repository".to_string(),
        ),
        // How GitHub says that there were too many requests.
        StatusCode::FORBIDDEN if wait.is_none() => {
            (GitErrorKind::Denied, "the server refuses access (answer 403)".to_string())
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            (GitErrorKind::NotFound, format!("there is no such repository (answer {number})"))
        }
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            (GitErrorKind::Transient, format!("the server wants us to wait (answer {number})"))
        }
        _ if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
            (GitErrorKind::Transient, format!("the server failed (answer {number})"))
        }
        _ => (GitErrorKind::Other, format!("the server answered {number}")),
    };
    Err(GitError::new(kind, message).after(wait))
}

/// The wait that a `Retry-After` header asks for (RFC 9110, section 10.2.3): seconds, or a date.
pub(super) fn wait_of(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Duration::from_secs(http_date(text)?.saturating_sub(now.as_secs())))
}

/// The error of a request that got no answer, or not all of it.
pub(super) fn failed(error: reqwest::Error) -> GitError {
    let builder = error.is_builder() || error.is_redirect();
    // The URL may hold a password.
    let message = root_cause(&error.without_url());
    // A certificate that is wrong stays wrong.
    if builder || message.contains("certificate") {
        GitError::other(message)
    } else {
        GitError::transient(message)
    }
}
