//! From the changed files of commits to changed methods.
//!
//! A method is changed by a commit if a line that the commit added lies in it, or a line that the
//! commit took away lay in it before: so a method that was moved is changed, one whose decorator
//! changed is not. A method is the same before and after if the file (renames followed), the
//! qualified name and the position among equal names are the same.

use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use gix::ObjectId;
use gix::objs::Kind;
use globset::GlobSet;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

use super::changes::{File, TreeChanges, tree_changes};
use super::commit::CommitText;
use super::error::{GitError, GitErrorKind};
use super::history::{Commit, History, Window, history, tree_of};
use super::limits::{CHANGED_BYTES, COMMITS_BEYOND, TreeLimits};
use super::lines::{Hunk, hunks, overlap};
use super::renames::renames;
use super::repository::{Objects, Repository};
use super::sources::{Source, Sources};
use super::threads::{guarded, pool};
use galeras_python::OutlineMethod;

/// Commits that one thread mines at a time: neighbours share files.
const CHUNK: usize = 32;
/// Commits whose trees one thread compares at a time: neighbours share trees.
const PART: usize = 256;

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
struct PlannedCommit {
    commit: Commit,
    changes: Result<TreeChanges, GitError>,
}

/// The commits to mine, with their files.
#[derive(Default)]
pub struct MinePlan {
    /// By committer date.
    commits: Vec<PlannedCommit>,
    /// Commits that cannot be mined: id, rule and reason.
    refused: Vec<(ObjectId, &'static str, String)>,
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

/// What is said of a commit in every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitFacts {
    /// The id in hexadecimal digits.
    pub id: String,
    /// The committer's date in seconds since 1970.
    pub committed: i64,
    /// The author's date, if it can be read.
    pub authored: Option<i64>,
    /// The message without white space around it.
    pub message: String,
}

/// A method that a commit changed.
#[derive(Clone, Copy, Debug)]
pub struct ChangedMethod<'a> {
    /// The file after the commit.
    pub path: &'a str,
    /// Its names, place and position, after the commit.
    pub method: OutlineMethod<'a>,
    /// Its text after the commit.
    pub code: &'a str,
    /// Its text before, if it was there.
    pub code_before: Option<&'a str>,
    /// Lines of it that were added, and lines that were taken away.
    pub changed_lines: u32,
}

/// Where mined methods go. One for each thread.
pub trait Sink: Send {
    /// Takes a method.
    ///
    /// # Errors
    /// If the sink takes no more; the thread then stops mining.
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError>;
    /// Takes a commit, or a file of it, that could not be mined: the rule it broke, as a stable
    /// word, and the reason, as a sentence.
    ///
    /// # Errors
    /// If the sink takes no more; the thread then stops mining.
    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<(), GitError>;
    /// Hands on what the sink still holds: nothing more comes.
    ///
    /// # Errors
    /// If it cannot be handed on.
    fn end(&mut self) -> Result<(), GitError>;
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
    let compare = |part: &[Commit]| {
        let mut objects = repository.objects();
        let mut changes = |commit: &Commit| {
            let before = commit.parent.map(|id| tree_of(&mut objects, id)).transpose()?;
            let (after, limits) = (commit.tree, &TreeLimits::DEFAULT);
            tree_changes(&mut objects, before, after, &options.include, limits)
        };
        let mut results = Vec::with_capacity(part.len());
        for commit in part {
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
    let changes: Result<Vec<_>, GitError> =
        pool(options.jobs)?.install(|| commits.par_chunks(PART).map(compare).collect());
    let changes = changes?;
    plan.in_window = commits.len();
    for changed in changes.iter().flatten().flatten() {
        for (suffix, files) in &changed.passed_over {
            *plan.passed_over.entry(suffix.clone()).or_default() += files;
        }
    }
    for (commit, changes) in commits.into_iter().zip(changes.into_iter().flatten()) {
        if changes.as_ref().map_or(true, |changes| !changes.is_empty()) {
            plan.commits.push(PlannedCommit { commit, changes });
        }
    }
    Ok(plan)
}

/// Mines the planned commits on as many threads as there are sinks, and gives the methods of each
/// commit to one of them; which one is not determined. `done` takes the number of commits that
/// were finished since its last call, from any of the threads.
///
/// At most one commit per thread is under way, and a sink that blocks holds its thread back: what
/// is in memory does not grow with the history.
///
/// # Errors
/// `Interrupted` if `interrupt` is set, and what a sink returns. Damaged objects are refusals.
pub fn mine<S: Sink>(
    repository: &Repository,
    plan: &MinePlan,
    options: &MineOptions,
    mut sinks: Vec<S>,
    interrupt: &AtomicBool,
    done: &(dyn Fn(usize) + Sync),
) -> Result<(), GitError> {
    if let Some(sink) = sinks.first_mut() {
        for (id, rule, reason) in &plan.refused {
            sink.refused(&id.to_string(), None, rule, reason)?;
        }
    }
    let sources = Sources::new(options.max_file_bytes, options.nested);
    let next = AtomicUsize::new(0);
    let work = |mut sink: S| {
        let mut miner = Miner { objects: repository.objects(), sources: &sources, options };
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = plan.commits.get(start..).filter(|rest| !rest.is_empty()) else {
                return sink.end();
            };
            for planned in rest.iter().take(CHUNK) {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(GitError::interrupted());
                }
                miner.commit(planned, &mut sink)?;
                done(1);
            }
        }
    };
    // A pool of its own, as a sink that waits for its reader blocks its thread.
    let pool = pool(sinks.len())?;
    let mine_all = || pool.install(|| sinks.into_par_iter().with_max_len(1).map(work).collect());
    let ended: Vec<_> = guarded(|| Ok(mine_all()))?;
    // All threads have ended before the first error is returned.
    ended.into_iter().collect()
}

/// One thread at work.
struct Miner<'a> {
    objects: Objects,
    sources: &'a Sources,
    options: &'a MineOptions,
}

impl Miner<'_> {
    fn commit(&mut self, planned: &PlannedCommit, sink: &mut dyn Sink) -> Result<(), GitError> {
        let id = planned.commit.id;
        let changes = match &planned.changes {
            Ok(changes) => changes,
            Err(error) => {
                return sink.refused(&id.to_string(), None, rule(error), &error.to_string());
            }
        };
        let facts = match facts(&mut self.objects, &planned.commit) {
            Ok(facts) => facts,
            Err(error) => {
                return sink.refused(&id.to_string(), None, rule(&error), &error.to_string());
            }
        };
        let deleted: Vec<File> = match changes.added.is_empty() {
            true => Vec::new(),
            false => changes.deleted.iter().chain(&changes.deleted_others).cloned().collect(),
        };
        let comparable: HashSet<ObjectId> =
            changes.added.iter().chain(&changes.deleted).map(|file| file.blob).collect();
        let origins = {
            let objects = &mut self.objects;
            let limit = self.options.max_file_bytes;
            renames(&deleted, &changes.added, |blob| {
                if !comparable.contains(&blob) {
                    return Ok(None);
                }
                let large = objects.size(blob)? > limit;
                // A size is only true of an object that is what it should be.
                let bytes = objects.bytes(blob, Kind::Blob)?;
                Ok((!large).then(|| bytes.to_vec()))
            })
        };
        let origins = match origins {
            Ok(origins) => origins,
            Err(error) => {
                let reason = format!("renamed files cannot be told: {error}");
                return sink.refused(&id.to_string(), None, rule(&error), &reason);
            }
        };
        for (file, origin) in changes.added.iter().zip(origins) {
            let before = origin.map(|at| deleted[at].blob);
            if before != Some(file.blob) {
                self.file(&facts, before, file, sink)?;
            }
        }
        for (before, file) in &changes.modified {
            self.file(&facts, Some(*before), file, sink)?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        commit: &CommitFacts,
        before: Option<ObjectId>,
        file: &File,
        sink: &mut dyn Sink,
    ) -> Result<(), GitError> {
        let after = match self.sources.get(&mut self.objects, file.blob)? {
            Ok(source) => source,
            Err((rule, reason)) => {
                return sink.refused(&commit.id, Some(&file.path), rule, &reason);
            }
        };
        let before = match before {
            None => None,
            Some(blob) => match self.sources.get(&mut self.objects, blob)? {
                Ok(source) => Some(source),
                Err((rule, reason)) => {
                    let reason = format!("the version before: {reason}");
                    return sink.refused(&commit.id, Some(&file.path), rule, &reason);
                }
            },
        };
        match self.methods(commit, before.as_deref(), &after, &file.path, sink)? {
            Ok(()) => Ok(()),
            Err((rule, reason)) => sink.refused(&commit.id, Some(&file.path), rule, &reason),
        }
    }

    /// Hands on the changed methods of a file; a refusal comes before the first of them.
    fn methods(
        &self,
        commit: &CommitFacts,
        before: Option<&Source>,
        after: &Source,
        path: &str,
        sink: &mut dyn Sink,
    ) -> Result<Result<(), super::sources::Refusal>, GitError> {
        let new = match after.outline(self.sources) {
            Ok(outline) => outline,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(before) = before else {
            for method in new.methods() {
                let changed = ChangedMethod {
                    path,
                    method,
                    code: text(after, &method),
                    code_before: None,
                    changed_lines: method.end_line - method.start_line + 1,
                };
                sink.method(commit, changed)?;
            }
            return Ok(Ok(()));
        };
        let hunks = hunks(&before.text, &after.text);
        if hunks.is_empty() {
            return Ok(Ok(()));
        }
        let old = match before.outline(self.sources) {
            Ok(outline) => outline,
            Err((rule, reason)) => {
                return Ok(Err((rule, format!("the version before: {reason}"))));
            }
        };
        let old: HashMap<(&str, u32), OutlineMethod<'_>> =
            old.methods().map(|m| ((m.qualified_name, m.ordinal), m)).collect();
        for method in new.methods() {
            let origin = old.get(&(method.qualified_name, method.ordinal));
            let changed_lines = changed_lines(&hunks, &method, origin);
            if changed_lines > 0 {
                let changed = ChangedMethod {
                    path,
                    method,
                    code: text(after, &method),
                    code_before: origin.map(|origin| text(before, origin)),
                    changed_lines,
                };
                sink.method(commit, changed)?;
            }
        }
        Ok(Ok(()))
    }
}

/// The rule that a commit breaks which cannot be mined.
fn rule(error: &GitError) -> &'static str {
    match error.kind {
        GitErrorKind::Malformed => "tree",
        GitErrorKind::Limit => "limit",
        _ => "object",
    }
}

fn text<'a>(source: &'a Source, method: &OutlineMethod<'_>) -> &'a str {
    source.text.get(method.start_byte as usize..method.end_byte as usize).unwrap_or_default()
}

/// Lines that came into a method, and lines that went out of what it was before.
fn changed_lines(
    hunks: &[Hunk],
    method: &OutlineMethod<'_>,
    origin: Option<&OutlineMethod<'_>>,
) -> u32 {
    let after = hunks.iter().map(|hunk| hunk.after.clone());
    let added = overlap(after, method.start_line, method.end_line);
    let before = hunks.iter().map(|hunk| hunk.before.clone());
    let removed = origin.map_or(0, |old| overlap(before, old.start_line, old.end_line));
    added + removed
}

fn facts(objects: &mut Objects, commit: &Commit) -> Result<CommitFacts, GitError> {
    let text = CommitText::read(commit.id, objects.bytes(commit.id, Kind::Commit)?)?;
    Ok(CommitFacts {
        id: commit.id.to_string(),
        committed: commit.committed,
        authored: text.authored,
        message: text.message(),
    })
}
