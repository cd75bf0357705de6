//! How the network is reached, and what is reported of it.
//!
//! The bottom of `net`: it uses no other file of it.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use galeras_net::{CONNECT_TIMEOUT, http_builder, root_cause};
use reqwest::redirect;

use crate::error::GitError;

/// The `User-Agent` of git requests. Some servers (GitHub) look for `git/`.
pub(super) const AGENT: &str = concat!("git/galeras-", env!("CARGO_PKG_VERSION"));

/// The wait before the second attempt. Each further one waits four times as long.
const BACKOFF: Duration = Duration::from_millis(500);

/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// How the network is reached, and who is told about it.
#[derive(Clone)]
pub struct Network {
    /// The runtime that HTTP runs on. It must have threads of its own.
    pub handle: tokio::runtime::Handle,
    /// The HTTP client: the one of [`Network::new`].
    pub client: reqwest::Client,
    /// Everything stops with `Interrupted` soon after this is set.
    pub interrupt: Arc<AtomicBool>,
    /// Takes reports of what goes on, at most about ten a second, from the thread that fetches.
    pub activity: Arc<dyn Fn(Activity) + Send + Sync>,
    /// The wait before a request is repeated for the first time; four times as long each
    /// further time.
    pub backoff: Duration,
    /// How long a server may say nothing before the connection is given up.
    pub silence: Duration,
    /// The ssh program, as in `GIT_SSH_COMMAND`; `ssh` if absent.
    pub ssh: Option<OsString>,
    /// Whether a redirect from the first URL to the second may be followed; says why not.
    pub redirects: Arc<RedirectCheck>,
}

/// Judges a redirect from one URL to another.
pub(super) type RedirectCheck = dyn Fn(&str, &str) -> Result<(), String> + Send + Sync;

impl Network {
    /// A network with the usual waits (half a second before the second attempt, a minute of
    /// silence) and the ssh program of the environment: `GIT_SSH_COMMAND`, or else `GIT_SSH`.
    /// Redirects that `redirects` accepts are followed.
    ///
    /// # Errors
    /// `Other` if TLS cannot be set up, as on a system without certificates.
    pub fn new(
        handle: tokio::runtime::Handle,
        interrupt: Arc<AtomicBool>,
        activity: Arc<dyn Fn(Activity) + Send + Sync>,
        redirects: Arc<RedirectCheck>,
    ) -> Result<Self, GitError> {
        let client = http_client()?;
        let ssh = std::env::var_os("GIT_SSH_COMMAND").or_else(|| std::env::var_os("GIT_SSH"));
        let ssh = ssh.filter(|command| !command.is_empty());
        let (backoff, silence) = (BACKOFF, SILENCE);
        Ok(Self { handle, client, interrupt, activity, backoff, silence, ssh, redirects })
    }
}

/// A client for [`Network`]: it does not follow redirects by itself, as only the first request
/// of git may be redirected, and it has no time-out between bytes, as `Wire` watches that.
fn http_client() -> Result<reqwest::Client, GitError> {
    let builder = http_builder(AGENT, CONNECT_TIMEOUT, None).redirect(redirect::Policy::none());
    builder.build().map_err(|error| {
        GitError::other(format!("cannot set up HTTP: {}", root_cause(&error.without_url())))
    })
}

/// What goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// What is being fetched ("commits", "trees", "files", "objects", ...), or "waiting", or
    /// "warning".
    pub what: &'static str,
    /// Bytes received since this began.
    pub bytes: u64,
    /// Objects received since this began.
    pub objects: u64,
    /// What the server says it is doing, what is waited for, or what the warning says.
    pub detail: Option<String>,
}

impl Activity {
    /// Whether nothing is fetched meanwhile.
    pub fn is_waiting(&self) -> bool {
        self.what == "waiting"
    }

    /// A warning, if this is one: words of ssh or its server, on one line.
    pub fn warning(&self) -> Option<&str> {
        self.detail.as_deref().filter(|_| self.what == "warning")
    }
}
