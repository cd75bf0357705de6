//! Objects behind a server that does not answer, or answers with an error, said in words.
//!
//! What a server sends with an error is for programs, and may quote what it was asked with: the id of
//! a key, the token of a session. Of all that only the status and the code of the error go on, to
//! whoever reads these objects.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use galeras_base::error_chain;

/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// How many bytes a second go out at the least.
const SLOWEST: u64 = 16 << 10;

/// Codes of errors that are about who asks, whatever their status is.
const DENIALS: [&str; 5] =
    ["AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"];

/// What a server did instead of what it was asked for.
#[derive(Debug)]
pub(super) enum ServerFailure {
    /// It answered with an error: the status (`403 Forbidden`), and the code that object stores add.
    Refused { status: Option<String>, code: Option<String> },
    /// It could not be reached, or the connection ended.
    Unreached { cause: String, source: Option<io::Error> },
    /// The environment has no credentials, and the machine gives none: what the environment may have.
    NoCredentials(&'static str),
    /// It said nothing for so long.
    Silent(Duration),
}

impl ServerFailure {
    fn of(error: &object_store::Error) -> Self {
        let known = error_chain::chain(error).find_map(|error| error.downcast_ref());
        if let Some(Self::NoCredentials(instead)) = known {
            return Self::NoCredentials(instead);
        }
        let mut innermost = String::new();
        for error in error_chain::chain(error) {
            innermost = error.to_string();
            if let Some(answer) = innermost.strip_prefix("Server returned non-2xx status code: ") {
                let (status, body) = answer.split_once(": ").unwrap_or((answer, ""));
                return Self::Refused { status: Some(status.to_string()), code: code_in(body) };
            }
            if let Some(body) = innermost.strip_prefix("Server returned error response: ") {
                return Self::Refused { status: None, code: code_in(body) };
            }
            // One of the objects that were to be removed with one request.
            if innermost.starts_with("DeleteObjects request failed for key ") {
                let code = innermost.rsplit_once("(code: ").map(|(_, code)| code);
                let code = code.and_then(|code| plain_code(code.trim_end_matches(')')));
                return Self::Refused { status: None, code };
            }
        }
        let source = error_chain::io_cause(error).map(error_chain::copy_of);
        let cause = source.as_ref().map_or(innermost, error_chain::plain);
        Self::Unreached { cause, source }
    }

    /// What the operating system says, if that is what failed.
    pub(super) fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Unreached { source, .. } => source.as_ref(),
            _ => None,
        }
    }

    /// Returns true if it is about who asks, and not about what is asked.
    pub(super) fn is_denial(&self) -> bool {
        match self {
            Self::Refused { code, .. } => {
                let known = |code: &str| DENIALS.contains(&code);
                self.has_status(&["401", "403"]) || code.as_deref().is_some_and(known)
            }
            Self::NoCredentials(_) => true,
            _ => false,
        }
    }

    /// Returns true if the server does not know such requests.
    pub(super) fn is_unknown_request(&self) -> bool {
        self.has_status(&["501"])
    }

    fn has_status(&self, numbers: &[&str]) -> bool {
        let Self::Refused { status: Some(status), .. } = self else { return false };
        numbers.iter().any(|number| status.starts_with(number))
    }

    fn is_without_bucket(&self) -> bool {
        matches!(self, Self::Refused { code: Some(code), .. } if code == "NoSuchBucket")
    }
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if self.is_without_bucket() => f.write_str("there is no such bucket"),
            Self::Refused { status, code } => {
                f.write_str("the server answered ")?;
                match (status, code) {
                    (Some(status), Some(code)) => write!(f, "{status} ({code})")?,
                    (Some(status), None) => f.write_str(status)?,
                    (None, Some(code)) => f.write_str(code)?,
                    (None, None) => f.write_str("with an error")?,
                }
                let of_a_region = code.as_deref() == Some("AuthorizationHeaderMalformed");
                if of_a_region || self.has_status(&["301", "307"]) {
                    f.write_str("; AWS_REGION has to be the region of the bucket")?;
                }
                Ok(())
            }
            Self::Unreached { cause, .. } => match cause.as_str() {
                "URL scheme is not allowed" => {
                    f.write_str("its address begins with http://; AWS_ALLOW_HTTP=true allows that")
                }
                redirect if redirect.starts_with("Received redirect without LOCATION") => {
                    f.write_str("the bucket is in another region than AWS_REGION says")
                }
                // The words of the crate that reads answers.
                "end of file before message length reached" => {
                    f.write_str("the answer ends before the length that it says")
                }
                cause => write!(f, "the server cannot be reached: {cause}"),
            },
            Self::NoCredentials(instead) => {
                write!(f, "the environment has no credentials: {instead}")
            }
            Self::Silent(time) => write!(f, "nothing came for {} seconds", time.as_secs()),
        }
    }
}

impl Error for ServerFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.io().map(|source| source as &(dyn Error + 'static))
    }
}

/// The code in the XML of an error.
fn code_in(body: &str) -> Option<String> {
    let (_, rest) = body.split_once("<Code>")?;
    plain_code(rest.split_once("</Code>")?.0)
}

/// A code, if that is what it looks like: a word of letters.
fn plain_code(code: &str) -> Option<String> {
    let plain = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (plain && !code.is_empty()).then(|| code.to_string())
}

/// The same error without what the server sent.
fn worded(error: object_store::Error) -> object_store::Error {
    use object_store::Error as E;
    let failure = ServerFailure::of(&error);
    match error {
        // Else it would be an object that is not there.
        E::NotFound { .. } if failure.is_without_bucket() => generic(failure),
        E::NotFound { path, .. } => E::NotFound { path, source: failure.into() },
        E::AlreadyExists { path, .. } => E::AlreadyExists { path, source: failure.into() },
        E::Precondition { path, .. } => E::Precondition { path, source: failure.into() },
        E::NotModified { path, .. } => E::NotModified { path, source: failure.into() },
        E::PermissionDenied { path, .. } => E::PermissionDenied { path, source: failure.into() },
        E::Unauthenticated { path, .. } => E::Unauthenticated { path, source: failure.into() },
        E::Generic { .. } => generic(failure),
        // Of these the server knows nothing.
        other => other,
    }
}

fn generic(failure: ServerFailure) -> object_store::Error {
    object_store::Error::Generic { store: "object store", source: failure.into() }
}

/// What comes of a request for which so much time is enough.
async fn within<T>(time: Duration, request: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(time, request).await {
        Ok(result) => result.map_err(worded),
        Err(_) => Err(generic(ServerFailure::Silent(time))),
    }
}

/// How long it may take to send so much.
fn sending(payload: &PutPayload) -> Duration {
    SILENCE + Duration::from_secs(payload.content_length() as u64 / SLOWEST)
}

/// The same stream, which ends with the first error.
fn worded_stream<T: Send + 'static>(
    items: BoxStream<'static, Result<T>>,
) -> BoxStream<'static, Result<T>> {
    let unfolded = stream::unfold(Some(items), |items| async move {
        let mut items = items?;
        let next = within(SILENCE, async { items.next().await.transpose() }).await.transpose()?;
        let rest = next.is_ok().then_some(items);
        Some((next, rest))
    });
    unfolded.boxed()
}

/// Objects behind a server.
#[derive(Debug)]
pub(super) struct ServerObjects(pub(super) Arc<dyn ObjectStore>);

impl fmt::Display for ServerObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[async_trait]
impl ObjectStore for ServerObjects {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        within(sending(&payload), self.0.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = within(SILENCE, self.0.put_multipart_opts(location, options)).await?;
        Ok(Box::new(ServerUpload(upload)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut object = within(SILENCE, self.0.get_opts(location, options)).await?;
        object.payload = match object.payload {
            GetResultPayload::Stream(chunks) => GetResultPayload::Stream(worded_stream(chunks)),
            other => other,
        };
        Ok(object)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations).map(|removed| removed.map_err(worded)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        worded_stream(self.0.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        worded_stream(self.0.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        within(SILENCE, self.0.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        within(SILENCE, self.0.copy_opts(from, to, options)).await
    }
}

/// A large object on its way, in parts.
#[derive(Debug)]
struct ServerUpload(Box<dyn MultipartUpload>);

#[async_trait]
impl MultipartUpload for ServerUpload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let time = sending(&payload);
        Box::pin(within(time, self.0.put_part(payload)))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        within(SILENCE, self.0.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        within(SILENCE, self.0.abort()).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::Error as E;

    use super::*;

    /// The error of a request that was answered so.
    fn answered(answer: &str) -> E {
        let source = format!("Server returned non-2xx status code: {answer}").into();
        E::Generic { store: "S3", source: Box::new(E::Generic { store: "S3", source }) }
    }

    fn said(error: E) -> String {
        let error = worded(error);
        let failure = error_chain::chain(&error).last().map(ToString::to_string);
        failure.unwrap_or_default()
    }

    #[test]
    fn of_an_answer_the_status_and_the_code_are_said() {
        let body = "<?xml version=\"1.0\"?>\n<Error><Code>ExpiredToken</Code>\
                    <Message>x</Message><Token-0>hunter2</Token-0></Error>";
        let error = worded(answered(&format!("400 Bad Request: {body}")));
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        let words = "the server answered 400 Bad Request (ExpiredToken)";
        assert!(error.to_string().ends_with(words), "{error}");
        let busy = said(answered("503 Service Unavailable: "));
        assert_eq!(busy, "the server answered 503 Service Unavailable");
        let hostile = "403 Forbidden: <Code>\u{1b}[31m hunter2</Code>";
        assert_eq!(said(answered(hostile)), "the server answered 403 Forbidden");
    }

    #[test]
    fn a_bucket_that_is_not_there_is_not_an_object_that_is_not_there() {
        let found_no = |code: &str| {
            let source = answered(&format!("404 Not Found: <Code>{code}</Code>"));
            worded(E::NotFound { path: "x".into(), source: source.into() })
        };
        assert!(matches!(found_no("NoSuchKey"), E::NotFound { .. }));
        let error = found_no("NoSuchBucket");
        assert!(matches!(error, E::Generic { .. }));
        assert!(error.to_string().ends_with("there is no such bucket"), "{error}");
    }

    #[test]
    fn who_asks_is_told_from_what_is_asked() {
        let failure = |answer: &str| ServerFailure::of(&answered(answer));
        assert!(failure("401 Unauthorized: ").is_denial());
        assert!(failure("400 Bad Request: <Code>InvalidToken</Code>").is_denial());
        assert!(!failure("400 Bad Request: <Code>BadDigest</Code>").is_denial());
        assert!(failure("501 Not Implemented: ").is_unknown_request());
    }
}
