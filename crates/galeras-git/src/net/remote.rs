//! What a server says about a repository.
//!
//! Which commit a branch is at.

use std::sync::Arc;

use gix::ObjectId;
use gix_protocol::LsRefsCommand;
use gix_protocol::handshake::Ref;
use gix_protocol::ls_refs::RefPrefixes;

use super::explain::{at, explain_gix};
use super::link::{Link, agent};
use super::meter::Meter;
use super::network::Network;
use super::wire::Wire;
use crate::error::{GitError, GitErrorKind};

/// A branch and its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The branch without `refs/heads/`; `HEAD` if that does not name a branch.
    pub branch: String,
    /// The newest commit.
    pub commit: ObjectId,
}

/// The newest commit of `branch` (a name without `refs/heads/`), or of the default branch, of the
/// repository at `url` (http, https, git or ssh). Asks with `ls-refs` of git's protocol version 2
/// (gitprotocol-v2), and reads the advertised references of older servers.
///
/// # Errors
/// `NotFound` if there is no such repository or branch, or no commit; `Denied` if the server
/// refuses access; `Transient` if the network or the server still fails at the last attempt;
/// `Interrupted` if the flag of `net` is set.
pub fn remote_head(url: &str, branch: Option<&str>, net: &Network) -> Result<Head, GitError> {
    let wire = Wire::new(net);
    wire.begin("commits");
    let refs = wire.retry(|| list(url, branch, net, &wire))?;
    let missing = |what: String| at(url, GitError::new(GitErrorKind::NotFound, what));
    if let Some(branch) = branch {
        let wanted = format!("refs/heads/{branch}");
        let commit = refs.iter().find_map(|reference| commit_of(reference, &wanted));
        let commit = commit.ok_or_else(|| missing(format!("it has no branch `{branch}`")))?;
        return Ok(Head { branch: branch.to_string(), commit });
    }
    let commit = refs.iter().find_map(|reference| commit_of(reference, "HEAD"));
    let Some(commit) = commit else {
        return Err(missing("it has no commits on its default branch".to_string()));
    };
    let branch = refs.iter().find_map(|reference| match reference {
        Ref::Symbolic { full_ref_name, target, .. } if full_ref_name == "HEAD" => {
            Some(target.to_string())
        }
        _ => None,
    });
    let branch = branch.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
    Ok(Head { branch: branch.unwrap_or("HEAD").to_string(), commit })
}

/// The commit of a reference, if it is called `name`.
fn commit_of(reference: &Ref, name: &str) -> Option<ObjectId> {
    match reference {
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
