//! The commits of a window, cut into pieces, and the files that they changed.

use std::collections::{BTreeMap, HashSet};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gix::ObjectId;
use globset::GlobSet;

use super::changes::{TreeChanges, tree_changes};
use super::error::{GitError, GitErrorKind, Result};
use super::history::{Commit, History, Window, history, tree_of};
use super::limits::{CHANGED_BYTES, COMMITS_BEYOND, TreeLimits};
use super::repository::{Objects, Repository, guarded};

/// Commits of a piece: half a second of work, mostly. Tests are small.
const PIECE_COMMITS: usize = if cfg!(test) { 3 } else { 96 };

/// Options of mining.
pub struct MineOptions {
    /// The committer dates of the commits to mine.
    pub window: Window,
    /// Include commits with several parents, compared with the first.
    pub merges: bool,
    /// Functions inside of functions are separate methods.
    pub nested: bool,
    /// The paths of the files to mine, from the root of the repository.
    pub include: GlobSet,
    /// The longest file in bytes; longer ones are refused.
    pub max_file_bytes: u64,
    /// How many threads [`MinePlan::compare`] compares trees on.
    pub jobs: usize,
}

/// The changes of a commit, or the reason why it cannot be mined.
pub(super) type CommitChanges = Result<TreeChanges>;

/// The commits to mine. Their changes are found piece by piece when they are needed, or for all
/// commits in advance.
#[derive(Default)]
pub struct MinePlan {
    /// By committer date.
    commits: Vec<Commit>,
    /// Commits that cannot be mined: id, rule and reason. They belong to the first piece.
    pub(super) refused: Vec<(ObjectId, &'static str, String)>,
    /// The changes of each piece, where they are kept.
    kept: Vec<OnceLock<Vec<CommitChanges>>>,
    compared: Mutex<CompareState>,
}

/// Results of the trees that were compared.
#[derive(Default)]
struct CompareState {
    /// Pieces whose trees were.
    pieces: HashSet<usize>,
    /// Commits that changed files of interest.
    commits: usize,
    /// Commits beyond the limits of one commit.
    beyond: usize,
    /// Bytes of changed paths that are kept.
    bytes: u64,
    /// How many files were added or modified that `include` does not match, by suffix.
    passed_over: BTreeMap<Box<str>, u64>,
}

impl MinePlan {
    /// How many commits the window has, those that changed no file of interest included.
    pub fn commits(&self) -> usize {
        self.commits.len()
    }

    /// If no commit changed a file of interest, and the trees of every commit were compared: how
    /// many files they added or modified that `include` does not match, by suffix (`.java`; empty
    /// for names without one). A file counts once for each commit.
    pub fn nothing_changed(&self) -> Option<BTreeMap<Box<str>, u64>> {
        let compared = self.compared();
        let all = compared.pieces.len() == self.pieces();
        (all && compared.commits == 0).then(|| compared.passed_over.clone())
    }

    /// How many pieces the commits are cut into, at least one. They are mined independently, in any
    /// order; the cut depends on the commits and on nothing else.
    pub fn pieces(&self) -> usize {
        self.commits.len().div_ceil(PIECE_COMMITS).max(1)
    }

    /// The ids of every commit of a piece, also of those that cannot be mined.
    pub fn piece_ids(&self, piece: usize) -> impl Iterator<Item = ObjectId> {
        let refused = if piece == 0 { self.refused.as_slice() } else { &[] };
        refused.iter().map(|(id, _, _)| *id).chain(self.piece(piece).iter().map(|commit| commit.id))
    }

    /// The commits of a piece, by date; those of the first piece are the newest.
    pub(super) fn piece(&self, piece: usize) -> &[Commit] {
        self.commits.rchunks(PIECE_COMMITS).nth(piece).unwrap_or_default()
    }

    /// The changes of the commits of a piece, if they are kept.
    pub(super) fn kept(&self, piece: usize) -> Option<&[CommitChanges]> {
        self.kept.get(piece)?.get().map(Vec::as_slice)
    }

    fn compared(&self) -> MutexGuard<'_, CompareState> {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The changes of the commits of a piece.
    pub(super) fn changes(
        &self,
        objects: &mut Objects,
        piece: usize,
        include: &GlobSet,
        interrupt: &AtomicBool,
    ) -> Result<Vec<CommitChanges>> {
        let mut results = Vec::new();
        let mut bytes = 0;
        // Packs make older trees from newer ones: the newer ones are at hand then.
        for commit in self.piece(piece).iter().rev() {
            if interrupt.load(Ordering::Relaxed) {
                return Err(GitError::interrupted());
            }
            let result = commit_changes(objects, commit, include);
            bytes += result.as_ref().map_or(0, TreeChanges::bytes);
            let limit = result.as_ref().is_err_and(|error| error.kind == GitErrorKind::Limit);
            let beyond = {
                let mut compared = self.compared();
                compared.beyond += usize::from(limit);
                compared.beyond
            };
            // Whichever thread comes there first: that one of them does is certain.
            if bytes > CHANGED_BYTES || (limit && beyond > COMMITS_BEYOND) {
                return Err(too_much());
            }
            results.push(result);
        }
        results.reverse();
        let mut compared = self.compared();
        if compared.pieces.insert(piece) {
            for changes in &results {
                for (suffix, files) in changes.iter().flat_map(|changes| &changes.passed_over) {
                    *compared.passed_over.entry(suffix.clone()).or_default() += files;
                }
                let changed = changes.as_ref().map_or(true, |changes| !changes.is_empty());
                compared.commits += usize::from(changed);
            }
        }
        Ok(results)
    }

    /// Finds the changes of all commits, and keeps them. Compares trees on `options.jobs` threads.
    /// The error is `Interrupted` if `interrupt` is set; `Limit` if the commits change more than
    /// fits in memory, or if too many of them are beyond the limits of one commit. A damaged tree
    /// only refuses its commit, and so does one that is not what git writes.
    pub fn compare(
        &self,
        repository: &Repository,
        options: &MineOptions,
        interrupt: &AtomicBool,
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut objects = repository.objects();
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                let Some(kept) = self.kept.get(piece) else { return Ok(()) };
                let changes = self.changes(&mut objects, piece, &options.include, interrupt)?;
                let bytes: u64 = changes.iter().flatten().map(TreeChanges::bytes).sum();
                let all = {
                    let mut compared = self.compared();
                    compared.bytes += bytes;
                    compared.bytes
                };
                if all > CHANGED_BYTES {
                    return Err(too_much());
                }
                kept.get_or_init(|| changes);
            }
        };
        std::thread::scope(|scope| {
            let threads = 0..options.jobs.clamp(1, self.pieces());
            let threads: Vec<_> = threads.map(|_| scope.spawn(|| guarded(work))).collect();
            let mut ended = threads.into_iter().map(|thread| thread.join());
            ended.try_for_each(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    /// The changes that are kept.
    fn all_kept(&self) -> impl Iterator<Item = &CommitChanges> {
        self.kept.iter().filter_map(OnceLock::get).flatten()
    }

    /// The contents that mining needs, each once, after [`MinePlan::compare`].
    pub fn blobs(&self) -> Vec<ObjectId> {
        let mut blobs: Vec<_> = self.all_kept().flatten().flat_map(TreeChanges::blobs).collect();
        blobs.sort_unstable();
        blobs.dedup();
        blobs
    }

    /// Why a commit cannot be mined, if that is an object that is missing or damaged: after
    /// [`MinePlan::compare`].
    pub fn damage(&self) -> Option<&GitError> {
        let errors = self.all_kept().filter_map(|changes| changes.as_ref().err());
        errors.into_iter().find(|error| error.kind == GitErrorKind::Damaged)
    }
}

fn commit_changes(objects: &mut Objects, commit: &Commit, include: &GlobSet) -> CommitChanges {
    let before = commit.parent.map(|id| tree_of(objects, id)).transpose()?;
    tree_changes(objects, before, commit.tree, include, &TreeLimits::DEFAULT)
}

fn too_much() -> GitError {
    GitError::limit(format!(
        "its commits change too much: more than {COMMITS_BEYOND} of them are beyond the limits of one \
         commit, or the changed paths take more than {} MB",
        CHANGED_BYTES >> 20
    ))
}

/// The trees that are compared, each once: those of the commits of the window and of their first
/// parents. Reads commits only, so that the trees can be fetched afterwards. The error is `Damaged`
/// if a commit that is reachable from `head` is missing or cannot be decoded; `Interrupted` if
/// `interrupt` is set.
pub fn trees(
    repository: &Repository,
    head: ObjectId,
    options: &MineOptions,
    interrupt: &AtomicBool,
) -> Result<Vec<ObjectId>> {
    let History { commits, .. } =
        history(repository, head, options.window, options.merges, interrupt)?;
    let mut objects = repository.objects();
    let mut trees = Vec::with_capacity(2 * commits.len());
    for commit in &commits {
        trees.push(commit.tree);
        if let Some(parent) = commit.parent {
            trees.push(tree_of(&mut objects, parent)?);
        }
    }
    trees.sort_unstable();
    trees.dedup();
    Ok(trees)
}

/// The commits of the window. Reads commits only. Errors are those of [`trees`].
pub fn plan(
    repository: &Repository,
    head: ObjectId,
    options: &MineOptions,
    interrupt: &AtomicBool,
) -> Result<MinePlan> {
    let History { commits, cut_off, undated } =
        history(repository, head, options.window, options.merges, interrupt)?;
    let mut plan = MinePlan { commits, ..MinePlan::default() };
    let cut = "the clone is shallow: what the commit changed is not known";
    plan.refused.extend(cut_off.into_iter().map(|id| (id, "history", cut.to_string())));
    let unreadable = "the committer's date cannot be read";
    plan.refused.extend(undated.into_iter().map(|id| (id, "date", unreadable.to_string())));
    plan.kept.resize_with(plan.pieces(), OnceLock::new);
    Ok(plan)
}
