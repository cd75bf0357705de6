//! What a server says about a repository.
//!
//! Lives here: the network and what is reported of it, repeated attempts, and which commit a
//! branch is at. Does not live here: the transfer of objects (`fetch`).

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use gix::ObjectId;
use gix_protocol::LsRefsCommand;
use gix_protocol::handshake::Ref;
use gix_protocol::ls_refs::RefPrefixes;

use super::explain::{at, explain_gix};
use super::link::{Link, agent};
use super::meter::Meter;
use super::wire::Wire;
use crate::error::{GitError, GitErrorKind};

/// How often a request is tried in all.
const ATTEMPTS: u32 = 4;

/// The wait before the second attempt. Each further one waits four times as long.
const BACKOFF: Duration = Duration::from_millis(500);

/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// The longest wait that a server may ask for.
const LONGEST: Duration = Duration::from_secs(120);

/// How the network is reached, and whom to tell about it.
#[derive(Clone)]
pub struct Network {
    /// The runtime that HTTP runs on. It must have threads of its own.
    pub handle: tokio::runtime::Handle,
    /// The HTTP client: [`http_client`](super::http_client).
    pub client: reqwest::Client,
    /// Everything stops with `Interrupted` soon after this is set.
    pub interrupt: Arc<AtomicBool>,
    /// Is told what goes on, at most about ten times a second, from the thread that fetches.
    pub activity: Arc<dyn Fn(Activity) + Send + Sync>,
    /// The wait before a request is repeated for the first time; four times as long each
    /// further time.
    pub backoff: Duration,
    /// For how long a server may say nothing before the connection is given up.
    pub silence: Duration,
    /// The ssh program, as in `GIT_SSH_COMMAND`; `ssh` if absent.
    pub ssh: Option<OsString>,
}

impl Network {
    /// A network with the usual waits and the ssh program of the environment.
    ///
    /// # Errors
    /// `Other` if HTTP cannot be set up.
    pub fn new(
        handle: tokio::runtime::Handle,
        interrupt: Arc<AtomicBool>,
        activity: Arc<dyn Fn(Activity) + Send + Sync>,
    ) -> Result<Self, GitError> {
        let client = super::http_client()?;
        let ssh = std::env::var_os("GIT_SSH_COMMAND").or_else(|| std::env::var_os("GIT_SSH"));
        let ssh = ssh.filter(|command| !command.is_empty());
        let (backoff, silence) = (BACKOFF, SILENCE);
        Ok(Self { handle, client, interrupt, activity, backoff, silence, ssh })
    }

    /// Does `act` again after errors that may pass.
    pub(super) fn retry<T>(
        &self,
        wire: &Wire,
        mut act: impl FnMut() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let mut attempt = 1;
        let mut wait = self.backoff;
        loop {
            let error = match act() {
                Err(error) if error.kind == GitErrorKind::Transient && attempt < ATTEMPTS => error,
                result => return result,
            };
            wire.report_waiting(error.message.clone());
            wire.sleep(error.retry_after.unwrap_or(wait).min(LONGEST))?;
            attempt += 1;
            wait *= 4;
        }
    }
}

/// What goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// What is being fetched ("commits", "trees", "files", "objects", ...), or "waiting".
    pub what: &'static str,
    /// Bytes received since this began.
    pub bytes: u64,
    /// Objects received since this began.
    pub objects: u64,
    /// What the server says it is doing, or why one waits.
    pub detail: Option<String>,
}

impl Activity {
    /// Nothing is fetched meanwhile.
    pub fn is_waiting(&self) -> bool {
        self.what == "waiting"
    }
}

/// A branch and its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The branch without `refs/heads/`; `HEAD` where that is no branch.
    pub branch: String,
    /// The newest commit.
    pub commit: ObjectId,
}

/// The newest commit of `branch`, or of the default branch, of the repository at `url`.
///
/// # Errors
/// `NotFound` if there is no such repository or branch, or no commit; else those of the network
/// and the server.
pub fn remote_head(url: &str, branch: Option<&str>, net: &Network) -> Result<Head, GitError> {
    let wire = Wire::new(net);
    wire.begin("commits");
    let refs = net.retry(&wire, || list(url, branch, net, &wire))?;
    let missing = |what: String| at(url, GitError::new(GitErrorKind::NotFound, what));
    if let Some(branch) = branch {
        let wanted = format!("refs/heads/{branch}");
        let found = refs.iter().find_map(|found| commit_of(found, &wanted));
        let commit = found.ok_or_else(|| missing(format!("it has no branch `{branch}`")))?;
        return Ok(Head { branch: branch.to_string(), commit });
    }
    let commit = refs.iter().find_map(|found| commit_of(found, "HEAD"));
    let Some(commit) = commit else {
        return Err(missing("it has no commits on its default branch".to_string()));
    };
    let branch = refs.iter().find_map(|found| match found {
        Ref::Symbolic { full_ref_name, target, .. } if full_ref_name == "HEAD" => {
            Some(target.to_string())
        }
        _ => None,
    });
    let branch = branch.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
    Ok(Head { branch: branch.unwrap_or("HEAD").to_string(), commit })
}

/// The commit of a reference, if it is called `name`.
fn commit_of(found: &Ref, name: &str) -> Option<ObjectId> {
    match found {
        Ref::Peeled { full_ref_name, object, .. }
        | Ref::Direct { full_ref_name, object }
        | Ref::Symbolic { full_ref_name, object, .. } => {
            (full_ref_name == name && !object.is_null()).then_some(*object)
        }
        Ref::Unborn { .. } => None,
    }
}

/// The references that matter; servers of older protocols send all they have.
fn list(
    url: &str,
    branch: Option<&str>,
    net: &Network,
    wire: &Arc<Wire>,
) -> Result<Vec<Ref>, GitError> {
    let mut link = Link::open(url, net, wire)?;
    if let Some(refs) = link.handshake.refs.take() {
        return Ok(refs);
    }
    let mut prefixes = RefPrefixes::new();
    prefixes.extend([match branch {
        Some(branch) => format!("refs/heads/{branch}").into(),
        None => "HEAD".into(),
    }]);
    let command = LsRefsCommand::new(Some(prefixes), &link.handshake.capabilities, agent());
    let mut meter = Meter::new(Arc::clone(wire));
    command
        .invoke_blocking(&mut link.transport, &mut meter, false)
        .map_err(|error| explain_gix(wire, url, &error))
}
