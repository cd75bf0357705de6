//! The account of the machine that the program runs on, for lack of credentials in the environment.
//! Most machines have none: that is known within seconds, and said with what is missing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::{BackoffConfig, CredentialProvider, Error, Result, RetryConfig};
use tokio::sync::OnceCell;

use super::answer::ServerFailure;

/// How long a machine may take to say who it is for the first time.
const FIRST: Duration = Duration::from_secs(3);

/// How a machine is asked: under its name, which may lead nowhere, and soon under its address.
pub(super) fn retries() -> RetryConfig {
    RetryConfig { max_retries: 1, retry_timeout: FIRST, backoff: BackoffConfig::default() }
}

/// Credentials that the machine gives, if it is one that has an account.
pub(super) struct MachineAccount<C> {
    machine: Arc<dyn CredentialProvider<Credential = C>>,
    /// True if it has one, once that is known.
    known: OnceCell<bool>,
    /// What the environment may have instead.
    instead: &'static str,
}

impl<C> MachineAccount<C> {
    /// Of the machine that `machine` asks, with [`retries`].
    pub(super) fn new(
        machine: &Arc<dyn CredentialProvider<Credential = C>>,
        instead: &'static str,
    ) -> Self {
        Self { machine: Arc::clone(machine), known: OnceCell::new(), instead }
    }
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
            let asked = tokio::time::timeout(FIRST, self.machine.get_credential()).await;
            matches!(asked, Ok(Ok(_)))
        };
        if *self.known.get_or_init(|| first).await {
            return self.machine.get_credential().await;
        }
        let source = ServerFailure::NoCredentials(self.instead).into();
        Err(Error::Generic { store: "credentials", source })
    }
}
