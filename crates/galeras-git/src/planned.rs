//! What there is to mine: the commits of a window that changed files of interest, with these
//! files, cut into pieces.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use gix::ObjectId;
use globset::GlobSet;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::changes::{TreeChanges, tree_changes};
use super::error::{GitError, GitErrorKind};
use super::history::{Commit, History, Window, history, tree_of};
use super::limits::{CHANGED_BYTES, COMMITS_BEYOND, TreeLimits};
use super::repository::{Objects, Repository};
use super::threads::pool;

/// Commits whose trees one thread compares at a time: neighbours share trees.
const PART: usize = 512;
/// Files that a piece changes, about: half a second of work. Tests are small.
const PIECE_FILES: usize = if cfg!(test) { 3 } else { 512 };

/// What to mine.
pub struct MineOptions {
    /// The committer dates of the commits to mine.
    pub window: Window,
    /// Whether commits with several parents count, against the first.
    pub merges: bool,
    /// Whether functions inside of functions are methods of their own.
    pub nested: bool,
    /// The paths of the files to mine, from the root of the repository.
    pub include: GlobSet,
    /// The longest file in bytes; longer ones are refused.
    pub max_file_bytes: u64,
    /// How many threads [`plan`] compares trees on.
    pub jobs: usize,
}

/// A commit that changed files of interest.
pub(super) struct PlannedCommit {
    pub(super) commit: Commit,
    pub(super) changes: Result<TreeChanges, GitError>,
}

/// The commits to mine, with their files.
#[derive(Default)]
pub struct MinePlan {
    /// By committer date.
    commits: Vec<PlannedCommit>,
    /// Commits that cannot be mined: id, rule and reason. They belong to the first piece.
    pub(super) refused: Vec<(ObjectId, &'static str, String)>,
    /// Ranges of `commits`, the newest first.
    pieces: Vec<Range<usize>>,
    /// The commits of the window, whatever they changed.
    in_window: usize,
    /// How many files they added or modified that `include` does not match, by suffix.
    passed_over: BTreeMap<Box<str>, u64>,
}

impl MinePlan {
    /// How many commits the window has, those that changed no file of interest included.
    pub fn in_window(&self) -> usize {
        self.in_window
    }

    /// How many files the commits of the window added or modified that `include` does not match, by
    /// suffix (`.java`; empty for names without one). A file counts once for each commit.
    pub fn passed_over(&self) -> &BTreeMap<Box<str>, u64> {
        &self.passed_over
    }

    /// How many commits are to be mined.
    pub fn commits(&self) -> usize {
        self.commits.len()
    }

    /// How many pieces the commits are cut into, at least one. They are mined by themselves, in any
    /// order; the cut depends on what the commits changed and on nothing else.
    pub fn pieces(&self) -> usize {
        self.pieces.len().max(1)
    }

    /// The ids of all commits of a piece, those that cannot be mined included.
    pub fn piece_ids(&self, piece: usize) -> impl Iterator<Item = ObjectId> {
        let refused = if piece == 0 { self.refused.as_slice() } else { &[] };
        let planned = self.piece(piece).iter().map(|planned| planned.commit.id);
        refused.iter().map(|(id, _, _)| *id).chain(planned)
    }

    /// The commits of a piece, by date.
    pub(super) fn piece(&self, piece: usize) -> &[PlannedCommit] {
        let range = self.pieces.get(piece).cloned().unwrap_or_default();
        self.commits.get(range).unwrap_or_default()
    }

    /// The contents that mining needs, each once.
    pub fn blobs(&self) -> Vec<ObjectId> {
        let changes = self.commits.iter().filter_map(|planned| planned.changes.as_ref().ok());
        let mut blobs: Vec<_> = changes.flat_map(TreeChanges::blobs).collect();
        blobs.sort_unstable();
        blobs.dedup();
        blobs
    }

    /// Why a commit cannot be mined, if that is an object that is missing or damaged.
    pub fn damage(&self) -> Option<&GitError> {
        let errors = self.commits.iter().filter_map(|planned| planned.changes.as_ref().err());
        errors.into_iter().find(|error| error.kind == GitErrorKind::Damaged)
    }
}

/// The trees that [`plan`] will compare, each once: those of the commits of the window and of
/// their first parents. Reads commits only, so that the trees can be fetched afterwards.
///
/// # Errors
/// `Damaged` if a commit that is reachable from `head` is missing or cannot be decoded;
/// `Interrupted` if `interrupt` is set.
pub fn trees(
    repository: &Repository,
    head: ObjectId,
    options: &MineOptions,
    interrupt: &AtomicBool,
) -> Result<Vec<ObjectId>, GitError> {
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

/// The commits of the window that changed files of interest, with these files. Compares trees on
/// as many threads as `options` says.
///
/// # Errors
/// As [`trees`]; a damaged tree only refuses its commit, and so does one that is not what git
/// writes. `Limit` if the commits change more than fits in memory, or if too many of them are
/// beyond the limits of one commit.
pub fn plan(
    repository: &Repository,
    head: ObjectId,
    options: &MineOptions,
    interrupt: &AtomicBool,
) -> Result<MinePlan, GitError> {
    let History { commits, cut_off, undated } =
        history(repository, head, options.window, options.merges, interrupt)?;
    let mut plan = MinePlan::default();
    let cut = "the clone is shallow: what the commit changed is not known";
    plan.refused.extend(cut_off.into_iter().map(|id| (id, "history", cut.to_string())));
    let unreadable = "the committer's date cannot be read";
    plan.refused.extend(undated.into_iter().map(|id| (id, "date", unreadable.to_string())));
    let (kept, beyond) = (AtomicU64::new(0), AtomicUsize::new(0));
    let compare = |objects: &mut Objects, part: &[Commit]| {
        let mut changes = |commit: &Commit| {
            let before = commit.parent.map(|id| tree_of(objects, id)).transpose()?;
            let (after, limits) = (commit.tree, &TreeLimits::DEFAULT);
            tree_changes(objects, before, after, &options.include, limits)
        };
        let mut results = Vec::with_capacity(part.len());
        // Packs make older trees from newer ones: the newer ones are at hand then.
        for commit in part.iter().rev() {
            let result = changes(commit);
            let bytes = result.as_ref().map_or(0, TreeChanges::bytes);
            let bytes = kept.fetch_add(bytes, Ordering::Relaxed) + bytes;
            let limit = result.as_ref().is_err_and(|error| error.kind == GitErrorKind::Limit);
            let limits = beyond.fetch_add(usize::from(limit), Ordering::Relaxed);
            if interrupt.load(Ordering::Relaxed) {
                return Err(GitError::interrupted());
            }
            // Whichever thread comes there first: that one of them does is certain.
            if bytes > CHANGED_BYTES || (limit && limits >= COMMITS_BEYOND) {
                let message = format!(
                    "its commits change too much: more than {COMMITS_BEYOND} of them are beyond the \
                     limits of one commit, or the changed paths take more than {} MB",
                    CHANGED_BYTES >> 20
                );
                return Err(GitError::limit(message));
            }
            results.push(result);
        }
        Ok(results)
    };
    let parts: Vec<_> = commits.chunks(PART).collect();
    let left = AtomicUsize::new(parts.len());
    let work = |_| {
        let mut objects = repository.objects();
        let mut compared = Vec::new();
        let take = |left: usize| left.checked_sub(1);
        while let Ok(left) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            compared.push((left - 1, compare(&mut objects, parts[left - 1])?));
        }
        Ok(compared)
    };
    let threads = options.jobs.clamp(1, parts.len().max(1));
    let all = || (0..threads).into_par_iter().with_max_len(1).map(work).collect();
    let compared: Vec<Result<Vec<_>, GitError>> = pool(threads)?.install(all);
    let compared = compared.into_iter().collect::<Result<Vec<_>, GitError>>()?;
    let mut compared: Vec<_> = compared.into_iter().flatten().collect();
    compared.sort_unstable_by_key(|(part, _)| *part);
    let changes = compared.into_iter().flat_map(|(_, changes)| changes.into_iter().rev());
    plan.in_window = commits.len();
    for (commit, changes) in commits.iter().zip(changes) {
        for (suffix, files) in changes.iter().flat_map(|changes| &changes.passed_over) {
            *plan.passed_over.entry(suffix.clone()).or_default() += files;
        }
        if changes.as_ref().map_or(true, |changes| !changes.is_empty()) {
            plan.commits.push(PlannedCommit { commit: commit.clone(), changes });
        }
    }
    plan.pieces = in_pieces(&plan.commits);
    Ok(plan)
}

/// Ranges of commits that change [`PIECE_FILES`] files each, or a little more, the newest first.
fn in_pieces(commits: &[PlannedCommit]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut end, mut files) = (commits.len(), 0);
    for (at, planned) in commits.iter().enumerate().rev() {
        files += planned.changes.as_ref().map_or(1, TreeChanges::mined);
        if files >= PIECE_FILES || at == 0 {
            pieces.push(at..end);
            (end, files) = (at, 0);
        }
    }
    pieces
}
