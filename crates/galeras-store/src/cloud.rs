//! Buckets of S3 and Google Cloud Storage. Credentials come from the environment, from the
//! variables of the providers' own tools, or from the machine. None of them is in a URL, a key, or
//! a message.

use std::fmt;
#[cfg(feature = "gcs")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::{CredentialProvider, ObjectStore, Result, RetryConfig};
use tokio::sync::OnceCell;
use url::Url;

use super::error::StoreErrorKind;
use super::server::retries;
use super::server_error::{ServerError, generic};

/// The timeout of a whole request, which may send a large table. Silence of the server ends it
/// earlier.
const NO_TIMEOUT: &str = "1day";

#[cfg(feature = "s3")]
pub(super) fn amazon(url: &Url, retries: RetryConfig) -> Result<Arc<dyn ObjectStore>> {
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
        let machine = builder.clone().with_retry(MACHINE_RETRIES).build()?;
        let hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true \
                    for a public bucket";
        builder = builder.with_credentials(machine_account(machine.credentials(), hint));
    }
    Ok(Arc::new(builder.with_retry(retries).build()?))
}

#[cfg(feature = "gcs")]
pub(super) fn google(url: &Url, retries: RetryConfig) -> Result<Arc<dyn ObjectStore>> {
    use object_store::ClientConfigKey::Timeout;
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};
    let mut builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str());
    check_address(builder.get_config_value(&Key::BaseUrl), "GOOGLE_BASE_URL")?;
    if std::env::var_os("GOOGLE_TIMEOUT").is_none() {
        builder = builder.with_config(Key::Client(Timeout), NO_TIMEOUT);
    }
    let given = [Key::ServiceAccount, Key::ServiceAccountKey, Key::ApplicationCredentials];
    // The file of `gcloud auth application-default login`.
    let file = ".config/gcloud/application_default_credentials.json";
    let home = std::env::var_os("HOME");
    let has_logged_in = home.is_some_and(|home| Path::new(&home).join(file).exists());
    if given.iter().all(|key| builder.get_config_value(key).is_none()) && !has_logged_in {
        let machine = builder.clone().with_retry(MACHINE_RETRIES).build()?;
        let hint = "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT to their file, or \
                    GOOGLE_SKIP_SIGNATURE=true for a public bucket";
        builder = builder.with_credentials(machine_account(machine.credentials(), hint));
    }
    Ok(Arc::new(builder.with_retry(retries).build()?))
}

/// Checks the address of a server in the environment.
fn check_address(address: Option<String>, name: &str) -> Result<()> {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
    if address.is_none_or(|address| Url::parse(&address).is_ok_and(|url| is_web(&url))) {
        return Ok(());
    }
    // Not shown: it may hold a password.
    let source = format!("{name} is not the address of a server: https://…").into();
    Err(object_store::Error::Generic { store: "environment", source })
}

/// How long a machine may take for its first credentials. Most machines have none.
const MACHINE_ANSWER: Duration = Duration::from_secs(3);

/// The server of a machine's account is asked by its name, which may not resolve, and then by its
/// address.
const MACHINE_RETRIES: RetryConfig = retries(1, MACHINE_ANSWER.as_secs());

/// Credentials of the machine that the program runs on, used if the environment has none.
struct MachineAccount<C> {
    machine: Arc<dyn CredentialProvider<Credential = C>>,
    /// True if it has an account, once that is known.
    exists: OnceCell<bool>,
    /// The variables to set instead.
    hint: &'static str,
}

fn machine_account<C>(
    machine: &Arc<dyn CredentialProvider<Credential = C>>,
    hint: &'static str,
) -> Arc<MachineAccount<C>> {
    Arc::new(MachineAccount { machine: Arc::clone(machine), exists: OnceCell::new(), hint })
}

impl<C> fmt::Debug for MachineAccount<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MachineAccount")
    }
}

#[async_trait]
impl<C: Send + Sync + 'static> CredentialProvider for MachineAccount<C> {
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        let first = async {
            let answer = tokio::time::timeout(MACHINE_ANSWER, self.machine.get_credential()).await;
            matches!(answer, Ok(Ok(_)))
        };
        if *self.exists.get_or_init(|| first).await {
            return self.machine.get_credential().await;
        }
        let message = format!("the environment has no credentials: {}", self.hint);
        Err(generic(ServerError::new(StoreErrorKind::Denied, message)))
    }
}
