//! All files of one commit, as a checkout would have them.

use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::Kind;
use globset::GlobSet;

use super::changes::tree_changes;
use super::error::{GitError, GitErrorKind, Result};
use super::history::tree_of;
use super::limits::TreeLimits;
use super::remote::{Fetcher, Network};
use super::repository::Repository;

/// A file of a commit: its path, and its content.
pub type CommitFile = (Arc<str>, Vec<u8>);

/// The files of a commit that `include` matches, in the order of their paths, without links and
/// submodules. The error is `Damaged` if an object is missing, `Limit` if the tree is beyond the limits of
/// mining or the files have more than `most` bytes.
pub fn commit_files(
    repository: &Repository,
    commit: ObjectId,
    include: &GlobSet,
    most: u64,
) -> Result<Vec<CommitFile>> {
    let mut objects = repository.objects();
    let mut files = Vec::new();
    let mut bytes: u64 = 0;
    for (path, blob) in listed(repository, commit, include)? {
        bytes = bytes.saturating_add(objects.size(blob)?);
        if bytes > most {
            let message = format!("the files of commit {commit} have more than {} MB", most >> 20);
            return Err(GitError::limit(message));
        }
        files.push((path, objects.bytes(blob, Kind::Blob)?.to_vec()));
    }
    Ok(files)
}

/// Fetches the files of a commit that `include` matches into the bare repository `folder`, which mining
/// may have filled in part. Errors are those of [`Fetcher`] and [`commit_files`].
pub fn fetch_commit(
    url: &str,
    folder: &Path,
    commit: ObjectId,
    include: &GlobSet,
    network: &Network,
) -> Result<()> {
    let mut fetcher = Fetcher::open(url, folder, network)?;
    fetcher.commits(commit)?;
    let tree = tree_of(&mut Repository::open(folder)?.objects(), commit)?;
    fetcher.trees(commit, &[tree])?;
    let files = listed(&Repository::open(folder)?, commit, include)?;
    let blobs: Vec<ObjectId> = files.into_iter().map(|(_, blob)| blob).collect();
    fetcher.files(commit, &blobs).map(drop)
}

/// The paths and contents of the files.
fn listed(
    repository: &Repository,
    commit: ObjectId,
    include: &GlobSet,
) -> Result<Vec<(Arc<str>, ObjectId)>> {
    let mut objects = repository.objects();
    let tree = tree_of(&mut objects, commit)?;
    let all = tree_changes(&mut objects, None, tree, include, &TreeLimits::DEFAULT);
    let all = all.map_err(|error| match error.kind {
        GitErrorKind::Limit => GitError::limit(format!("the tree of commit {commit} is too large")),
        _ => error,
    })?;
    Ok(all.added.into_iter().map(|file| (file.path, file.blob)).collect())
}
