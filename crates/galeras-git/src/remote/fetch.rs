//! The objects of a repository, as far as they are wanted, and the commits of its branches.

use std::collections::HashSet;
use std::path::Path;

use gix::ObjectId;

use super::folder::Folder;
use super::git::{REMOTE, Remote, Task};
use super::network::Network;
use crate::error::{GitError, GitErrorKind, Result};
use crate::limits::{PACK_MEMORY, REFERENCES_MEMORY};

/// How many files are requested at once.
const BATCH: usize = 20_000;

/// How many trees are requested at once. More requests would send common folders again.
const TREES: usize = 150_000;

/// A branch and its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The branch without `refs/heads/`; `HEAD` if that does not name a branch.
    pub branch: String,
    /// The newest commit.
    pub commit: ObjectId,
}

/// The newest commit of `branch` (a name without `refs/heads/`), or of the default branch, of the
/// repository at `url` (http, https, git or ssh), as `git ls-remote` reports it. The error is
/// `NotFound` if there is no such repository or branch, or no commit; `Denied` if the server denies
/// access; `Transient` if git is missing, or if the network or the server still fails at the last
/// attempt; `NotAgreed` if the server redirects to one that needs consent; `Interrupted`.
pub fn remote_head(url: &str, branch: Option<&str>, net: &Network) -> Result<Head> {
    let mut remote = Remote::new(url, net)?;
    remote.begin("commits");
    let wanted = branch.map_or("HEAD".to_string(), |branch| format!("refs/heads/{branch}"));
    let arguments = vec!["ls-remote", "--symref", "--", REMOTE, &wanted];
    let task = Task { arguments, input: String::new(), folders: None, memory: REFERENCES_MEMORY };
    let output = remote.run(&task)?;
    let output = String::from_utf8_lossy(&output);
    // A pattern of ls-remote also matches the ends of other names.
    let mut of_wanted = output.lines().filter_map(|line| {
        let (value, name) = line.split_once('\t')?;
        (name == wanted).then_some(value)
    });
    let target = of_wanted.clone().find_map(|value| value.strip_prefix("ref: refs/heads/"));
    let commit = of_wanted.find(|value| !value.starts_with("ref: "));
    let Some(commit) = commit.filter(|id| id.bytes().any(|digit| digit != b'0')) else {
        let what = match branch {
            Some(branch) => format!("it has no branch `{branch}`"),
            None => "it has no commits on its default branch".to_string(),
        };
        return Err(remote.explained(GitError::new(GitErrorKind::NotFound, what)));
    };
    let commit = ObjectId::from_hex(commit.as_bytes()).map_err(|_| {
        let what = "the names of its objects are not SHA-1 (`git` also has SHA-256), and only SHA-1 \
                    can be read";
        remote.explained(GitError::other(what))
    })?;
    let branch = branch.or(target).unwrap_or("HEAD").to_string();
    Ok(Head { branch, commit })
}

/// The size of a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchSize {
    /// Bytes of packs.
    pub bytes: u64,
    /// Objects.
    pub objects: u64,
}

/// Fetches from one repository into one folder, which it locks as long as it lives.
pub struct Fetcher {
    remote: Remote,
    folder: Folder,
    reused: bool,
    /// [`BATCH`], except in tests.
    pub(super) batch: usize,
}

impl Fetcher {
    /// Opens the bare repository in the folder `dir`, or creates it. The server is not asked yet.
    /// Waits while another process fetches into the folder, and reads the packs that are there
    /// once, to verify their checksums. The error is `Transient` if git is missing or too old,
    /// `Interrupted` if the flag is set while waiting, `Damaged` if a pack in the folder is not
    /// what was written or if a folder is where a file should be, `Other` if the file system fails.
    pub fn open(url: &str, dir: &Path, net: &Network) -> Result<Self> {
        let remote = Remote::new(url, net)?;
        let folder = Folder::open(dir, &remote)?;
        let reused = !folder.packs.is_empty();
        Ok(Self { remote, folder, reused, batch: BATCH })
    }

    /// The folder: a bare repository. Open it again after fetching, to see new packs.
    pub fn dir(&self) -> &Path {
        &self.folder.path
    }

    /// Returns true if the folder had objects when it was opened. The disk may have changed what
    /// an earlier run has left.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// Returns true if the object is in the folder.
    pub fn contains(&self, id: &gix::oid) -> bool {
        self.folder.contains(id)
    }

    /// Fetches `head` and all its ancestors, without trees and files. A server that cannot leave
    /// them out sends all. Requests nothing if the commits are there. The error is `NotFound` if
    /// the server does not have `head`, `Damaged` if its pack is corrupt; else as [`remote_head`].
    pub fn commits(&mut self, head: ObjectId) -> Result<FetchSize> {
        self.remote.begin("commits");
        let mut received = FetchSize::default();
        if self.folder.contains(&head) {
            return Ok(received);
        }
        let haves = self.folder.tips.clone();
        self.parts(head, &[head], &haves, "--filter=tree:0", &mut received)?;
        self.folder.add_tip(head)?;
        Ok(received)
    }

    /// Fetches those of the trees `ids` that are not in the folder, with all trees below them. A
    /// server that does not send single objects sends all of `head`. The error is `NotFound` if the
    /// server does not have an object; else as [`Self::commits`].
    pub fn trees(&mut self, head: ObjectId, ids: &[ObjectId]) -> Result<FetchSize> {
        self.objects(head, ids, "trees", TREES)
    }

    /// Fetches those of the files `ids` that are not in the folder, in batches, each of which stays
    /// if a later one fails. A server that does not send single objects sends all of `head`. Errors
    /// are those of [`Self::trees`].
    pub fn files(&mut self, head: ObjectId, ids: &[ObjectId]) -> Result<FetchSize> {
        self.objects(head, ids, "files", self.batch)
    }

    fn objects(
        &mut self,
        head: ObjectId,
        ids: &[ObjectId],
        what: &'static str,
        batch: usize,
    ) -> Result<FetchSize> {
        let mut seen = HashSet::new();
        let missing = ids.iter().filter(|id| !self.folder.contains(id) && seen.insert(**id));
        let missing: Vec<ObjectId> = missing.copied().collect();
        self.remote.begin(what);
        let mut received = FetchSize::default();
        for wants in missing.chunks(batch) {
            if !self.parts(head, wants, &[], "--filter=blob:none", &mut received)? {
                break;
            }
        }
        match missing.iter().find(|id| !self.folder.contains(id)) {
            Some(id) => Err(self.missing(*id)),
            None => Ok(received),
        }
    }

    /// Requests parts of a repository, or all of `head` from a server that does not send parts;
    /// returns true if it sends them.
    fn parts(
        &mut self,
        head: ObjectId,
        wants: &[ObjectId],
        haves: &[ObjectId],
        filter: &str,
        received: &mut FetchSize,
    ) -> Result<bool> {
        match self.request(wants, haves, &[filter], received) {
            Err(error) if error.kind == GitErrorKind::NotServed => {
                self.remote.begin("objects");
                self.request(&[head], &[], &["--refetch", "--no-filter"], received)?;
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    fn request(
        &mut self,
        wants: &[ObjectId],
        haves: &[ObjectId],
        options: &[&str],
        received: &mut FetchSize,
    ) -> Result<()> {
        self.folder.reset_git_dir(haves)?;
        let mut arguments = vec!["fetch", "--quiet", "--progress", "--no-tags"];
        arguments.extend(["--no-write-fetch-head", "--no-auto-maintenance", "--stdin"]);
        arguments.extend(["--no-recurse-submodules"]);
        arguments.extend(options);
        arguments.extend(["--", REMOTE]);
        let input = wants.iter().map(|id| format!("{id}\n")).collect();
        let (git_dir, objects) = (self.folder.git_dir(), self.folder.objects());
        let folders = Some((&*git_dir, &*objects));
        let task = Task { arguments, input, folders, memory: PACK_MEMORY };
        self.remote.run(&task)?;
        let (bytes, objects) = self.folder.adopt()?;
        received.bytes += bytes;
        received.objects += objects;
        self.remote.count(received.bytes, received.objects);
        match wants.first().filter(|id| !self.folder.contains(id)) {
            Some(id) => Err(self.missing(*id)),
            None => Ok(()),
        }
    }

    fn missing(&self, id: ObjectId) -> GitError {
        let message = format!("the server did not send the object {id}");
        self.remote.explained(GitError::new(GitErrorKind::NotFound, message))
    }
}
