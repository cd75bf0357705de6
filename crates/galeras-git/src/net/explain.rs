//! From the errors of gix to ours.
//!
//! Which kind an error of a request is, and how it reads.

use std::io::ErrorKind;

use gix_transport::packetline::read::Error as ServerError;

use super::wire::Wire;
use crate::error::{GitError, GitErrorKind};
use crate::location::shown_url;

/// The error of a request to `url` that ended in `error`.
pub(super) fn explain<E>(wire: &Wire, url: &str, error: E) -> GitError
where
    E: std::error::Error + Send + Sync + 'static,
{
    explain_gix(wire, url, &gix::Error::from_error(error))
}

/// The same for an error that is one of gix's own already.
pub(super) fn explain_gix(wire: &Wire, url: &str, error: &gix::Error) -> GitError {
    // The first cause that is known counts: the flag, the connection, the server's own words.
    if wire.interrupted() {
        return GitError::interrupted();
    }
    let error = wire.failure().unwrap_or_else(|| cause(wire, error));
    at(
        url,
        match wire.words() {
            Some(words) => words.explain(error),
            None => error,
        },
    )
}

/// Puts what was done with which repository in front of a cause.
pub(super) fn at(url: &str, mut error: GitError) -> GitError {
    if error.kind != GitErrorKind::Interrupted {
        error.message = format!("cannot read from `{}`: {}", shown_url(url), cleaned(&error, url));
    }
    error
}

fn cause(wire: &Wire, error: &gix::Error) -> GitError {
    let said = error.iter_errors().find_map(|error| error.downcast_ref::<ServerError>());
    let said = said.map(|error| error.message.to_string()).or_else(|| wire.said());
    if let Some(said) = said {
        return of_server(&said);
    }
    let bottom = error.probable_cause().to_string();
    if error.is_permission_denied() || error.is_unauthenticated() {
        return GitError::new(GitErrorKind::Denied, bottom);
    }
    if error.is_unsupported() {
        return GitError::other(format!("no git server that we can talk to answers ({bottom})"));
    }
    let io = error.iter_errors().filter_map(|error| error.downcast_ref::<std::io::Error>());
    for kind in io.map(std::io::Error::kind) {
        match kind {
            ErrorKind::UnexpectedEof => return cut(),
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionRefused
            | ErrorKind::NotConnected
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown => return GitError::transient(bottom),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => return GitError::other(bottom),
            _ => {}
        }
    }
    if wire.has_ended() {
        cut()
    } else if error.is_corrupted() {
        GitError::new(GitErrorKind::Damaged, format!("what it sends is damaged ({bottom})"))
    } else {
        GitError::other(bottom)
    }
}

/// The connection ended before the end.
pub(super) fn cut() -> GitError {
    GitError::transient("the connection ended early")
}

/// An error that the server put into words.
pub(super) fn of_server(said: &str) -> GitError {
    let said = said.trim().trim_start_matches("ERR ").trim_end_matches('.');
    let lower = said.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let kind = if has(&["corrupt", "bad object", "inflate"]) {
        GitErrorKind::Damaged
    } else if has(&["not our ref", "not found", "not exported", "no such", "does not exist"]) {
        GitErrorKind::NotFound
    } else if has(&["denied", "not allowed", "unauthorized", "forbidden"]) {
        GitErrorKind::Denied
    } else if has(&["timeout", "timed out", "try again", "too many", "overload", "internal"]) {
        GitErrorKind::Transient
    } else {
        GitErrorKind::Other
    };
    GitError::new(kind, format!("the server says: {said}"))
}

/// The message in one line, without the credentials of `url`.
fn cleaned(error: &GitError, url: &str) -> String {
    let mut text = error.message.split_whitespace().collect::<Vec<_>>().join(" ");
    text = text.replace(url, &shown_url(url));
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    if let Some((user, _)) = authority.rsplit_once('@') {
        text = text.replace(&format!("{user}@"), "");
        if let Some((_, password)) = user.split_once(':').filter(|(_, word)| !word.is_empty()) {
            text = text.replace(password, "…");
        }
    }
    text
}
