//! Finds the commits at the tips of branches: asks several servers at a time, or reads folders.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::repository_access::{blocking, check_consent, open};
use galeras_base::digest::Digest;
use galeras_git::{
    Activity, GitError, GitErrorKind, Head, Network, Repository, RepositoryLocation, guarded,
    remote_head,
};
use galeras_operator::worker_threads::StopOnDrop;
use galeras_operator::{Consent, LowerContext, ServerAddress, StepError, Tell, redirect_check};

const AT_ONCE: usize = 8;

/// A repository whose head is not known yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnresolvedRepository {
    /// The name in tables.
    pub(super) repo: String,
    pub(super) address: String,
    /// Further columns as an object.
    pub(super) facts: Value,
    pub(super) origin: Origin,
    /// The default branch, if already known.
    pub(super) known_branch: Option<String>,
}

/// The source of a repository's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The workflow.
    Listed,
    /// A search on a server of this machine.
    FoundHere,
    /// A search on another server.
    FoundElsewhere,
}

/// A repository without a commit to start from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct HeadlessRepository {
    repo: String,
    clone_url: String,
    rule: &'static str,
    reason: String,
}

/// The repositories with and without a head.
#[derive(Default)]
pub(super) struct ResolvedHeads {
    pub(super) rows: Vec<Value>,
    pub(super) headless: Vec<HeadlessRepository>,
    /// The number of repositories without a head that the next run asks again.
    pub(super) retry: u64,
}

/// Finds the tip of the branch, or of the default branch, of every repository. Answers are stored
/// in the file `memory`, so that an interrupted run does not ask again.
pub(super) async fn resolve(
    repositories: Vec<UnresolvedRepository>,
    base: &Path,
    branch: Option<&str>,
    memory: Option<&Path>,
    cx: &LowerContext,
) -> Result<ResolvedHeads, StepError> {
    let stop = StopOnDrop::default();
    let tell = Arc::clone(&cx.tell);
    let warned = Mutex::new(HashSet::new());
    let waits = Arc::new(move |activity: Activity| {
        if let Some(warning) = activity.warning() {
            // A server sends the same message for every repository.
            let mut warned = warned.lock().unwrap_or_else(PoisonError::into_inner);
            if warned.insert(warning.to_string()) {
                tell(Tell::Warning(warning.to_string()));
            }
        } else if activity.is_waiting() {
            tell(Tell::Waiting(activity.detail.unwrap_or_default()));
        }
    });
    let redirects = redirect_check(Arc::clone(&cx.env.consent));
    let network = Network::new(stop.flag(), waits, redirects);
    let mut memory = memory.map(HeadMemory::open).transpose()?;
    let known = memory.as_mut().map(|memory| std::mem::take(&mut memory.known));
    let known = known.unwrap_or_default();
    let total = repositories.len();
    let mut answers = futures::stream::iter(repositories)
        .map(|repository| {
            let known = known.get(&repository.repo).cloned();
            let (network, base) = (network.clone(), base.to_path_buf());
            let branch = branch.map(str::to_string);
            let consent = Arc::clone(&cx.env.consent);
            async move {
                let head = match known {
                    Some(head) => Ok((head, true)),
                    None => {
                        let asked = ask(&repository, base, branch, network, consent).await;
                        asked.map(|head| (head, false))
                    }
                };
                (repository, head)
            }
        })
        .buffer_unordered(AT_ONCE);
    let mut resolved = ResolvedHeads::default();
    let mut done = 0;
    while let Some((repository, head)) = answers.next().await {
        if cx.env.cancel.is_cancelled() {
            return Err(StepError::interrupted());
        }
        done += 1;
        (cx.tell)(Tell::Activity(format!("head {done} of {total}: {}", repository.repo)));
        match head {
            Ok((head, known)) => {
                if let (Some(memory), false) = (&mut memory, known) {
                    memory.keep(&repository.repo, &head)?;
                }
                resolved.rows.push(row(repository, head));
            }
            Err(error) => {
                let passes = [GitErrorKind::Transient, GitErrorKind::NotAgreed];
                let retry = passes.contains(&error.kind);
                let again = if retry { " (the next run tries again)" } else { "" };
                let warning = format!("{}: {}{again}", repository.repo, error.message);
                (cx.tell)(Tell::Warning(warning));
                resolved.retry += u64::from(retry);
                let UnresolvedRepository { repo, address, .. } = repository;
                let clone_url = galeras_git::shown_url(&address);
                let (rule, reason) = ("reachable", error.message);
                resolved.headless.push(HeadlessRepository { repo, clone_url, rule, reason });
            }
        }
    }
    cx.retry.fetch_add(resolved.retry, std::sync::atomic::Ordering::Relaxed);
    Ok(resolved)
}

async fn ask(
    repository: &UnresolvedRepository,
    base: std::path::PathBuf,
    branch: Option<String>,
    network: Network,
    consent: Arc<dyn Consent>,
) -> Result<Tip, GitError> {
    let address = repository.address.clone();
    may_be_asked(&address, repository.origin)?;
    let asked = blocking(move || {
        let location = RepositoryLocation::parse(&address, &base)?;
        check_consent(&location, consent.as_ref())?;
        match location {
            RepositoryLocation::Folder(folder) => {
                guarded(|| open(&folder, consent.as_ref())?.head(branch.as_deref()))
            }
            RepositoryLocation::Remote(url) => remote_head(&url, branch.as_deref(), &network),
        }
    });
    let Head { branch, commit } = asked.await?;
    // GitHub may have named the branch that the server calls HEAD.
    let branch = match (&repository.known_branch, branch.as_str()) {
        (Some(known), "HEAD") => known.clone(),
        _ => branch,
    };
    Ok((branch, commit.to_string()))
}

fn row(repository: UnresolvedRepository, (branch, commit): Tip) -> Value {
    let mut row = repository.facts;
    if let Some(map) = row.as_object_mut() {
        map.insert("repo".into(), repository.repo.into());
        map.insert("clone_url".into(), galeras_git::shown_url(&repository.address).into());
        map.insert("default_branch".into(), branch.into());
        map.insert("head_sha".into(), commit.into());
    }
    row
}

/// Refuses an address that a search must not lead to, since an unknown server may answer there.
fn may_be_asked(address: &str, origin: Origin) -> Result<(), GitError> {
    let is_here = || ServerAddress::of(address).is_some_and(|server| server.is_loopback());
    let problem = match origin {
        Origin::Listed => return Ok(()),
        _ if !is_web(address) => "which is not an http(s) URL",
        Origin::FoundElsewhere if is_here() => "which is on this machine, and the server is not",
        Origin::FoundElsewhere | Origin::FoundHere => return Ok(()),
    };
    let shown: String = address.chars().filter(|c| !c.is_control()).collect();
    let message = format!("the search gives it the address `{shown}`, {problem}");
    Err(GitError::new(GitErrorKind::Other, message))
}

/// An address from a server leads to a server: not to a folder of this machine, nor to a program.
fn is_web(address: &str) -> bool {
    let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// The heads of folders as texts that change with them.
pub(super) fn local(folders: &[&str], base: &Path, branch: Option<&str>) -> Vec<String> {
    let head = |folder: &&str| {
        let head = match RepositoryLocation::parse(folder, base)? {
            RepositoryLocation::Folder(path) => guarded(|| Repository::open(&path)?.head(branch))?,
            RepositoryLocation::Remote(_) => return Ok(String::new()),
        };
        Ok(format!("{} {}", head.branch, head.commit))
    };
    let text = |head: Result<String, GitError>| head.unwrap_or_else(|error| error.message);
    folders.iter().map(|folder| text(head(folder))).collect()
}

/// Branch and commit.
type Tip = (String, String);

/// The heads that an interrupted search already knows, in a file next to its journal: a line for
/// each, after the line's digest. A truncated or damaged line is asked for again.
struct HeadMemory {
    known: HashMap<String, Tip>,
    file: File,
}

impl HeadMemory {
    /// Opens or creates the memory.
    ///
    /// # Errors
    /// If it cannot be written.
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let content = std::fs::read(path).unwrap_or_default();
        let known = content.split(|byte| *byte == b'\n').filter_map(remembered).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // A truncated line must not run into the next one.
        writeln!(file)?;
        Ok(Self { known, file })
    }

    /// Remembers a head.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn keep(&mut self, repo: &str, (branch, commit): &Tip) -> io::Result<()> {
        let answer = json!([repo, branch, commit]).to_string();
        // One write: a kill leaves a whole line or a part that its digest rejects.
        let line = format!("{} {answer}\n", Digest::of(answer.as_bytes()));
        self.file.write_all(line.as_bytes())
    }
}

/// The answer in an undamaged line.
fn remembered(line: &[u8]) -> Option<(String, Tip)> {
    let at = line.iter().position(|byte| *byte == b' ')?;
    let (digest, answer) = (line.get(..at)?, line.get(at + 1..)?);
    if Digest::of(answer).to_string().as_bytes() != digest {
        return None;
    }
    let (repo, branch, commit) = serde_json::from_slice(answer).ok()?;
    Some((repo, (branch, commit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_leads_to_servers_and_from_elsewhere_not_to_this_machine() {
        use Origin::{FoundElsewhere, FoundHere, Listed};
        let folders = ["/srv/r.git", "file:///srv/r.git", "ssh://git@h/r", "git@h:r"];
        let own = ["http://127.0.0.1:3000/r", "https://localhost/r", "http://[::1]/r"];
        let others = ["https://github.com/psf/black.git", "http://git.example.org/r"];
        let asked = |address: &str, origin| may_be_asked(address, origin).is_ok();
        for address in folders {
            assert!(asked(address, Listed), "{address}");
            assert!(!asked(address, FoundHere) && !asked(address, FoundElsewhere), "{address}");
        }
        for address in own {
            assert!(asked(address, Listed) && asked(address, FoundHere), "{address}");
            assert!(!asked(address, FoundElsewhere), "{address}");
        }
        for address in others {
            assert!(asked(address, FoundHere) && asked(address, FoundElsewhere), "{address}");
        }
    }

    fn tip(commit: &str) -> Tip {
        ("main".to_string(), commit.to_string())
    }

    #[test]
    fn no_changed_byte_and_no_cut_gives_another_head() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search/heads.jsonl");
        let mut memory = HeadMemory::open(&path).unwrap();
        memory.keep("a/b", &tip("0123")).unwrap();
        memory.keep("c/d", &tip("4567")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let known = HeadMemory::open(&path).unwrap();
        let known = known.known;
        assert_eq!((known.get("a/b"), known.get("c/d")), (Some(&tip("0123")), Some(&tip("4567"))));
        let right = |memory: &HeadMemory| {
            let sound =
                |repo, commit| memory.known.get(repo).is_none_or(|known| *known == tip(commit));
            assert!(sound("a/b", "0123") && sound("c/d", "4567"));
            memory.known.keys().all(|repo| ["a/b", "c/d"].contains(&repo.as_str()))
        };
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).unwrap();
            assert!(right(&HeadMemory::open(&path).unwrap()), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            let mut cut = HeadMemory::open(&path).unwrap();
            assert!(right(&cut), "cut at {at}");
            // Lines after a truncated one are remembered.
            cut.keep("e/f", &tip("89ab")).unwrap();
            assert_eq!(HeadMemory::open(&path).unwrap().known.get("e/f"), Some(&tip("89ab")));
        }
    }
}
