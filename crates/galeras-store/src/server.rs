//! Object stores behind a server: buckets, and web hosts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use galeras_net::{AGENT, causes, http_builder, redirects_to};
use object_store::client::{HttpClient, HttpConnector};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, RetryConfig, UploadPart,
};
use url::Url;

use super::error::{StoreError, StoreErrorKind};
use super::location::shown;
use super::server_error::{ServerError, generic, in_words};
use galeras_base::error_chain;
use galeras_operator::ServerAddress;

/// How long a server may send nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// The lowest rate of an upload, in bytes per second.
const SLOWEST: u64 = 16 << 10;

/// How long a web host may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Requests to a server that fails: at most so many tries in so many seconds.
pub(super) const fn retries(max_retries: usize, seconds: u64) -> RetryConfig {
    let init_backoff = Duration::from_millis(100);
    let backoff = BackoffConfig { init_backoff, max_backoff: Duration::from_secs(2), base: 3.0 };
    RetryConfig { max_retries, retry_timeout: Duration::from_secs(seconds), backoff }
}

/// For the user's own store, without which a run cannot continue.
pub(super) const OWN_STORE: RetryConfig = retries(30, 10);
/// For a bucket that results come from, without which a run continues.
pub(super) const REMOTE: RetryConfig = retries(5, 15);
/// The same for a web host.
const WEB_HOST: RetryConfig = retries(2, 20);

/// The bucket of a URL.
#[cfg_attr(not(any(feature = "gcs", feature = "s3")), allow(unused_variables))]
pub(super) fn open_bucket(
    url: &Url,
    retries: RetryConfig,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let opened: Result<Arc<dyn ObjectStore>> = match url.scheme() {
        #[cfg(feature = "s3")]
        "s3" => super::cloud::amazon(url, retries),
        #[cfg(feature = "gcs")]
        "gs" => super::cloud::google(url, retries),
        scheme => {
            let source = format!("this build has no {scheme}://").into();
            Err(object_store::Error::NotSupported { source })
        }
    };
    let opened = opened.map(|objects| Arc::new(ServerObjects(objects)) as Arc<dyn ObjectStore>);
    opened.map_err(|error| {
        let cause = match error_chain::chain(&error).last() {
            // Its text may quote a key.
            Some(last) if last.is::<serde_json::Error>() => {
                "the credentials that the environment names are not the JSON of a service account"
                    .to_string()
            }
            Some(last) => match last.downcast_ref() {
                Some(io) => format!("the file of the credentials: {}", error_chain::plain(io)),
                None => last.to_string(),
            },
            None => error.to_string(),
        };
        StoreError::new(StoreErrorKind::Denied, "open", shown(url), cause)
    })
}

/// The files of a web host below a URL.
pub(super) fn open_web(url: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let builder = object_store::http::HttpBuilder::new()
        .with_url(url.as_str().trim_end_matches('/'))
        .with_http_connector(WebClient { host: ServerAddress::of(url.as_str()) })
        .with_retry(WEB_HOST);
    let store = builder.build().map_err(|error| StoreError::of("open", shown(url), error))?;
    Ok(Arc::new(ServerObjects(Arc::new(store))))
}

/// Makes the client for a web host. A user who agreed to that host did not agree to requests to the
/// machines of a private network, so redirects lead to the host itself, or to public servers
/// through TLS.
#[derive(Debug)]
struct WebClient {
    host: Option<ServerAddress>,
}

impl HttpConnector for WebClient {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let host = self.host.clone();
        let redirects = redirects_to(move |_, url| match ServerAddress::of(url) {
            Some(to) if may_lead(host.as_ref(), &to) => Ok(()),
            Some(to) => Err(format!("it redirects to {to}, which is not followed")),
            None => Err("it redirects to no server".to_string()),
        });
        let client = http_builder(AGENT, CONNECT, None).redirect(redirects).build();
        client.map(HttpClient::new).map_err(|error| object_store::Error::Generic {
            store: "web host",
            source: causes(&error).into(),
        })
    }
}

/// Returns true if a redirect of `host` may lead there.
fn may_lead(host: Option<&ServerAddress>, to: &ServerAddress) -> bool {
    let own = |host: &ServerAddress| to == host || (to.is_encrypted() && to.host() == host.host());
    host.is_some_and(own) || (to.is_encrypted() && to.is_public())
}

/// The result of a request that may take this long.
async fn within<T>(time: Duration, request: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(time, request).await {
        Ok(result) => result.map_err(in_words),
        Err(_) => {
            let message = format!("nothing came for {} seconds", time.as_secs());
            Err(generic(ServerError::new(StoreErrorKind::Io, message)))
        }
    }
}

/// How long an upload may take.
fn upload_time(payload: &PutPayload) -> Duration {
    SILENCE + Duration::from_secs(payload.content_length() as u64 / SLOWEST)
}

/// The same stream. It ends with the first error.
fn within_silence<T: Send + 'static>(
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

/// Objects behind a server, with time limits and errors that can be shown.
#[derive(Debug)]
struct ServerObjects(Arc<dyn ObjectStore>);

impl fmt::Display for ServerObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
        within(upload_time(&payload), self.0.put_opts(location, payload, options)).await
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
        if let GetResultPayload::Stream(chunks) = object.payload {
            object.payload = GetResultPayload::Stream(within_silence(chunks));
        }
        Ok(object)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations).map(|removed| removed.map_err(in_words)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        within_silence(self.0.list(prefix))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        within(SILENCE, self.0.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        within(SILENCE, self.0.copy_opts(from, to, options)).await
    }
}

/// An upload of a large object in parts.
#[derive(Debug)]
struct ServerUpload(Box<dyn MultipartUpload>);

#[async_trait]
impl MultipartUpload for ServerUpload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let time = upload_time(&payload);
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
    use super::*;

    #[test]
    fn redirects_lead_to_the_host_itself_or_to_public_servers() {
        for (host, to, may) in [
            ("http://example.org/store", "http://example.org/other/x", true),
            ("http://example.org/store", "https://example.org/store/x", true),
            ("https://example.org/store", "https://cdn.example.net/x", true),
            ("https://example.org/store", "http://example.org/x", false),
            ("https://example.org/store", "http://cdn.example.net/x", false),
            ("https://example.org/store", "http://169.254.169.254/latest", false),
            ("https://example.org/store", "https://10.0.0.1/x", false),
            ("https://example.org/store", "http://localhost:8000/x", false),
            ("http://127.0.0.1:8000/store", "http://127.0.0.1:8001/x", false),
            ("http://10.0.0.1/store", "https://10.0.0.1/store/x", true),
        ] {
            let (own, other) = (ServerAddress::of(host), ServerAddress::of(to).unwrap());
            assert_eq!(may_lead(own.as_ref(), &other), may, "{host} to {to}");
        }
    }
}
