//! Opens what stores are in behind a server: buckets of S3 and Google Cloud Storage, and web hosts.
//!
//! Who asks is said by the environment alone, with the variables of the providers' own tools; nothing of
//! that is in a URL, a key, or a message.

#[cfg(feature = "gcs")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use galeras_net::{AGENT, causes, http_builder, redirects_to};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use super::answer::ServerObjects;
use super::error::{StoreError, StoreErrorKind};
use super::location::shown;
#[cfg(any(feature = "gcs", feature = "s3"))]
use super::machine_account::{self, MachineAccount};
use galeras_base::error_chain;
use galeras_operator::ServerAddress;

/// How often, and for how long, a server is asked again that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryPolicy {
    /// The own store, without which nothing can go on.
    Own,
    /// A bucket elsewhere, without which a run goes on.
    Remote,
    /// A web host, likewise.
    Web,
}

impl RetryPolicy {
    fn retries(self) -> RetryConfig {
        let (max_retries, seconds) = match self {
            Self::Own => (30, 10),
            Self::Remote => (5, 15),
            Self::Web => (2, 20),
        };
        let max_backoff = Duration::from_secs(2);
        RetryConfig {
            max_retries,
            retry_timeout: Duration::from_secs(seconds),
            backoff: BackoffConfig { max_backoff, base: 3.0, ..BackoffConfig::default() },
        }
    }
}

/// A table may take long; whoever reads it notices if nothing comes any more.
#[cfg(any(feature = "gcs", feature = "s3"))]
const NO_TIMEOUT: &str = "1day";

/// How long a web host may take to take a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The bucket of a URL.
pub(super) fn open_bucket(
    url: &Url,
    retries: RetryPolicy,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let opened = match url.scheme() {
        "gs" => google(url, retries.retries()),
        _ => amazon(url, retries.retries()),
    };
    opened.map(served).map_err(|error| {
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
        .with_retry(RetryPolicy::Web.retries());
    let store = builder.build().map_err(|error| StoreError::of("open", shown(url), error))?;
    Ok(served(Arc::new(store)))
}

/// Makes the client for a web host. Who agreed to ask that host did not agree to ask the machines of
/// a private network, so redirects lead to itself, or to public servers through TLS.
#[derive(Debug)]
struct WebClient {
    host: Option<ServerAddress>,
}

impl HttpConnector for WebClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let host = self.host.clone();
        let redirects = redirects_to(move |_, url| match ServerAddress::of(url) {
            Some(to) if may_lead(host.as_ref(), &to) => Ok(()),
            Some(to) => Err(format!("it redirects to {to}, which is not followed")),
            None => Err("it redirects to no server".to_string()),
        });
        // Whoever reads an answer notices if nothing comes any more.
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

fn served(objects: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
    Arc::new(ServerObjects(objects))
}

#[cfg(feature = "s3")]
fn amazon(url: &Url, retries: RetryConfig) -> object_store::Result<Arc<dyn ObjectStore>> {
    use object_store::ClientConfigKey::Timeout;
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
    let mut builder = AmazonS3Builder::from_env().with_url(url.as_str());
    for (key, names) in [
        (Key::Endpoint, "AWS_ENDPOINT_URL (or AWS_ENDPOINT)"),
        (Key::S3Endpoint, "AWS_ENDPOINT_URL_S3"),
    ] {
        check_address(builder.get_config_value(&key), names)?;
    }
    if std::env::var_os("AWS_TIMEOUT").is_none() {
        builder = builder.with_config(Key::Client(Timeout), NO_TIMEOUT);
    }
    let given = [
        Key::AccessKeyId,
        Key::SecretAccessKey,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
    ];
    if given.iter().all(|key| builder.get_config_value(key).is_none()) {
        let machine = builder.clone().with_retry(machine_account::retries()).build()?;
        let instead = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are they, \
                       AWS_SKIP_SIGNATURE=true does without, for a public bucket";
        let account = MachineAccount::new(machine.credentials(), instead);
        builder = builder.with_credentials(Arc::new(account));
    }
    Ok(Arc::new(builder.with_retry(retries).build()?))
}

#[cfg(not(feature = "s3"))]
fn amazon(_: &Url, _: RetryConfig) -> object_store::Result<Arc<dyn ObjectStore>> {
    Err(object_store::Error::NotSupported { source: "this build has no S3".into() })
}

#[cfg(feature = "gcs")]
fn google(url: &Url, retries: RetryConfig) -> object_store::Result<Arc<dyn ObjectStore>> {
    use object_store::ClientConfigKey::Timeout;
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};
    let mut builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str());
    check_address(builder.get_config_value(&Key::BaseUrl), "GOOGLE_BASE_URL")?;
    if std::env::var_os("GOOGLE_TIMEOUT").is_none() {
        builder = builder.with_config(Key::Client(Timeout), NO_TIMEOUT);
    }
    let given = [Key::ServiceAccount, Key::ServiceAccountKey, Key::ApplicationCredentials];
    if given.iter().all(|key| builder.get_config_value(key).is_none()) && !has_logged_in() {
        let machine = builder.clone().with_retry(machine_account::retries()).build()?;
        let instead = "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT names their file, \
                       GOOGLE_SKIP_SIGNATURE=true does without, for a public bucket";
        let account = MachineAccount::new(machine.credentials(), instead);
        builder = builder.with_credentials(Arc::new(account));
    }
    Ok(Arc::new(builder.with_retry(retries).build()?))
}

/// Returns true if `gcloud auth application-default login` has left credentials.
#[cfg(feature = "gcs")]
fn has_logged_in() -> bool {
    let file = ".config/gcloud/application_default_credentials.json";
    std::env::var_os("HOME").is_some_and(|home| Path::new(&home).join(file).exists())
}

#[cfg(not(feature = "gcs"))]
fn google(_: &Url, _: RetryConfig) -> object_store::Result<Arc<dyn ObjectStore>> {
    Err(object_store::Error::NotSupported {
        source: "this build has no Google Cloud Storage".into(),
    })
}

/// An address of a server that the environment names is one.
#[cfg(any(feature = "gcs", feature = "s3"))]
fn check_address(address: Option<String>, name: &str) -> object_store::Result<()> {
    let is_address = |address: &String| {
        Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
    };
    match address {
        Some(address) if !is_address(&address) => {
            // Not shown: it may hold a password.
            let source = format!("{name} is not the address of a server: https://…").into();
            Err(object_store::Error::Generic { store: "environment", source })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
