//! Errors of servers in words that can be shown. An error response may quote the id of a key or the
//! token of a session, so only its status and its code are kept.

use std::io;

use object_store::Error;

use super::error::{StoreErrorKind, io_kind};
use galeras_base::error_chain;

/// Codes of errors that are about the credentials, with any status.
const DENIALS: [&str; 5] =
    ["AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"];

/// The failure of a request, without the text of the server.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct ServerError {
    message: String,
    pub(super) kind: StoreErrorKind,
    /// True if the server does not support such requests.
    pub(super) is_unsupported: bool,
    is_without_bucket: bool,
    source: Option<io::Error>,
}

impl ServerError {
    pub(super) fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, kind, is_unsupported: false, is_without_bucket: false, source: None }
    }

    fn of(error: &Error) -> Self {
        let mut innermost = String::new();
        for error in error_chain::chain(error) {
            innermost = error.to_string();
            if let Some(Self { message, kind, .. }) = error.downcast_ref() {
                return Self::new(*kind, message);
            }
            if let Some((status, code)) = error_response(&innermost) {
                return Self::refused(status, code);
            }
        }
        let source = error_chain::io_cause(error).map(error_chain::copy_of);
        let kind = source.as_ref().map_or(StoreErrorKind::Io, io_kind);
        let message = match source.as_ref().map_or(innermost, error_chain::plain) {
            scheme if scheme == "URL scheme is not allowed" => {
                "its address begins with http://; AWS_ALLOW_HTTP=true allows that".into()
            }
            redirect if redirect.starts_with("Received redirect without LOCATION") => {
                "the bucket is in a region other than AWS_REGION".into()
            }
            // The words of the HTTP library.
            cut if cut == "end of file before message length reached" => {
                "the response ends before the length in its header".into()
            }
            cause => format!("the server cannot be reached: {cause}"),
        };
        Self { source, ..Self::new(kind, message) }
    }

    /// The server returned an error.
    fn refused(status: &str, code: Option<&str>) -> Self {
        let has_status = |numbers: &[&str]| numbers.iter().any(|n| status.starts_with(n));
        let is_without_bucket = code == Some("NoSuchBucket");
        let mut message = match (status, code) {
            _ if is_without_bucket => "there is no such bucket".into(),
            ("", None) => "the server answered with an error".into(),
            ("", Some(words)) | (words, None) => format!("the server answered {words}"),
            (status, Some(code)) => format!("the server answered {status} ({code})"),
        };
        if code == Some("AuthorizationHeaderMalformed") || has_status(&["301", "307"]) {
            message += "; AWS_REGION has to be the region of the bucket";
        }
        let denied =
            has_status(&["401", "403"]) || code.is_some_and(|code| DENIALS.contains(&code));
        let kind = if denied { StoreErrorKind::Denied } else { StoreErrorKind::Io };
        let is_unsupported = has_status(&["501"]);
        Self { is_unsupported, is_without_bucket, ..Self::new(kind, message) }
    }
}

/// The status and the code in the text of an error of `object_store`, if it is about a response.
/// The status is `403 Forbidden`, or empty.
fn error_response(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(response) = text.strip_prefix("Server returned non-2xx status code: ") {
        let (status, body) = response.split_once(": ").unwrap_or((response, ""));
        return Some((status, xml_code(body)));
    }
    if let Some(body) = text.strip_prefix("Server returned error response: ") {
        return Some(("", xml_code(body)));
    }
    // One of several objects that were to be removed with one request.
    let rest = text.strip_prefix("DeleteObjects request failed for key ")?;
    let code = rest.rsplit_once("(code: ").map(|(_, code)| code.trim_end_matches(')'));
    Some(("", code.filter(is_word)))
}

fn xml_code(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0).filter(is_word)
}

fn is_word(code: &&str) -> bool {
    (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The same error without the text of the server.
pub(super) fn in_words(mut error: Error) -> Error {
    let words = ServerError::of(&error);
    match &mut error {
        // Otherwise it would look like an object that does not exist.
        Error::NotFound { .. } if words.is_without_bucket => return generic(words),
        Error::NotFound { source, .. }
        | Error::AlreadyExists { source, .. }
        | Error::Precondition { source, .. }
        | Error::NotModified { source, .. }
        | Error::PermissionDenied { source, .. }
        | Error::Unauthenticated { source, .. }
        | Error::Generic { source, .. } => *source = words.into(),
        // The others do not come from a server.
        _ => {}
    }
    error
}

pub(super) fn generic(error: ServerError) -> Error {
    Error::Generic { store: "object store", source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a request with this response.
    fn answered(answer: &str) -> Error {
        let source = format!("Server returned non-2xx status code: {answer}").into();
        Error::Generic { store: "S3", source: Error::Generic { store: "S3", source }.into() }
    }

    #[test]
    fn of_a_response_only_the_status_and_the_code_are_shown() {
        use StoreErrorKind::{Denied, Io};
        let quoting = "400 Bad Request: <?xml version=\"1.0\"?>\n<Error><Code>ExpiredToken</Code>\
                       <Message>x</Message><Token-0>hunter2</Token-0></Error>";
        let token = "400 Bad Request: <Code>InvalidToken</Code>";
        for (response, kind, words) in [
            (quoting, Denied, "400 Bad Request (ExpiredToken)"),
            ("503 Service Unavailable: ", Io, "503 Service Unavailable"),
            ("403 Forbidden: <Code>\u{1b}[31m hunter2</Code>", Denied, "403 Forbidden"),
            ("401 Unauthorized: ", Denied, "401 Unauthorized"),
            (token, Denied, "400 Bad Request (InvalidToken)"),
            ("400 Bad Request: <Code>BadDigest</Code>", Io, "400 Bad Request (BadDigest)"),
        ] {
            let error = answered(response);
            assert_eq!(ServerError::of(&error).kind, kind, "{response}");
            let error = in_words(error);
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
            let last = error_chain::chain(&error).last().map(ToString::to_string);
            assert_eq!(last, Some(format!("the server answered {words}")));
        }
        assert!(ServerError::of(&answered("501 Not Implemented: ")).is_unsupported);
    }

    #[test]
    fn a_bucket_that_is_not_there_is_not_an_object_that_is_not_there() {
        let not_found = |code: &str| {
            let source = answered(&format!("404 Not Found: <Code>{code}</Code>")).into();
            in_words(Error::NotFound { path: "x".into(), source })
        };
        assert!(matches!(not_found("NoSuchKey"), Error::NotFound { .. }));
        let error = not_found("NoSuchBucket");
        assert!(matches!(error, Error::Generic { .. }));
        assert!(error.to_string().ends_with("there is no such bucket"), "{error}");
    }
}
