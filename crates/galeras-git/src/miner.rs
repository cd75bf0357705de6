//! From the changed files of commits to changed methods.
//!
//! A method is changed by a commit if a line that the commit added lies in it, or a line that
//! the commit took away lay in it before: so a method that was moved is changed, one whose
//! decorator changed is not. A method is the same before and after if the file (renames
//! followed), the qualified name and the position among equal names are the same.
//!
//! Does not live here: rows and columns (`operators::mine`).

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gix::ObjectId;
use gix::objs::Kind;
use globset::GlobSet;

use super::changes::{File, TreeChanges, TreeDiff};
use super::commit::CommitText;
use super::error::GitError;
use super::history::{Commit, Window, history, tree_of};
use super::lines::{Hunk, hunks, overlap};
use super::renames::renames;
use super::repository::{Objects, Repository};
use super::sources::{Source, Sources};
use galeras_python::OutlineMethod;

/// Commits that one thread takes at a time: neighbours share files.
const CHUNK: usize = 32;

/// What to mine.
pub struct MineOptions {
    /// Committer dates.
    pub window: Window,
    /// Whether commits with several parents count, against the first.
    pub merges: bool,
    /// Whether functions inside of functions are methods of their own.
    pub nested: bool,
    /// The paths.
    pub include: GlobSet,
    /// Longer files are refused.
    pub max_file_bytes: u64,
    /// Threads.
    pub jobs: usize,
}

/// A commit that changed files of interest.
struct PlannedCommit {
    commit: Commit,
    changes: Result<TreeChanges, GitError>,
}

/// The commits to mine, with their files.
#[derive(Default)]
pub struct Plan {
    /// By committer date.
    commits: Vec<PlannedCommit>,
    /// Commits that cannot be mined: id, rule and reason.
    refused: Vec<(ObjectId, &'static str, String)>,
}

impl Plan {
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
    /// A method.
    ///
    /// # Errors
    /// To stop.
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError>;
    /// A commit, or a file of it, that could not be mined.
    ///
    /// # Errors
    /// To stop.
    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<(), GitError>;
    /// Nothing more comes.
    ///
    /// # Errors
    /// If what was taken cannot be handed on.
    fn end(&mut self) -> Result<(), GitError>;
}

/// The trees that [`plan`] will compare, as far as the commits are there.
///
/// # Errors
/// As [`history`].
pub fn trees(
    repository: &Repository,
    head: ObjectId,
    options: &MineOptions,
    interrupt: &AtomicBool,
) -> Result<Vec<ObjectId>, GitError> {
    let found = history(repository, head, options.window, options.merges, interrupt)?;
    let mut objects = repository.objects();
    let mut trees = Vec::with_capacity(2 * found.commits.len());
    for commit in &found.commits {
        trees.push(commit.tree);
        if let Some(parent) = commit.parent {
            trees.push(tree_of(&mut objects, parent)?);
        }
    }
    trees.sort_unstable();
    trees.dedup();
    Ok(trees)
}

/// The commits of the window that changed files of interest, with these files.
///
/// # Errors
/// As [`history`]; a damaged tree only refuses its commit.
pub fn plan(
    repository: &Repository,
    head: ObjectId,
    options: &MineOptions,
    interrupt: &AtomicBool,
) -> Result<Plan, GitError> {
    let found = history(repository, head, options.window, options.merges, interrupt)?;
    let mut plan = Plan::default();
    let cut = "the clone is shallow: what the commit changed is not known";
    plan.refused.extend(found.cut_off.iter().map(|id| (*id, "history", cut.to_string())));
    let undated = "the committer's date cannot be read";
    plan.refused.extend(found.undated.iter().map(|id| (*id, "date", undated.to_string())));
    let commits = found.commits;
    let changes: Vec<_> = side_by_side(options.jobs, commits.len(), interrupt, |range| {
        let mut objects = repository.objects();
        let mut diff = TreeDiff::default();
        let changes = |commit: &Commit| {
            let before = commit.parent.map(|id| tree_of(&mut objects, id)).transpose()?;
            diff.changes(&mut objects, before, commit.tree, &options.include)
        };
        commits[range].iter().map(changes).collect::<Vec<_>>()
    })?;
    for (commit, changes) in commits.into_iter().zip(changes.into_iter().flatten()) {
        if changes.as_ref().map_or(true, |changes| !changes.is_empty()) {
            plan.commits.push(PlannedCommit { commit, changes });
        }
    }
    Ok(plan)
}

/// Mines the planned commits on as many threads as there are sinks; `done` is told of finished
/// commits.
///
/// # Errors
/// Of kind `Interrupted`, and what a sink returns. Damaged objects are refusals.
pub fn mine<S: Sink>(
    repository: &Repository,
    plan: &Plan,
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
    std::thread::scope(|scope| {
        let threads: Vec<_> = sinks.into_iter().map(|sink| scope.spawn(|| work(sink))).collect();
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(GitError::damaged("a miner thread panicked")))
        });
        // All are joined before the first error is returned.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// The results of `work` on parts of `0..count`, in order.
fn side_by_side<R: Send>(
    jobs: usize,
    count: usize,
    interrupt: &AtomicBool,
    work: impl Fn(std::ops::Range<usize>) -> R + Sync,
) -> Result<Vec<R>, GitError> {
    const PART: usize = 256;
    let parts = count.div_ceil(PART);
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..parts).map(|_| None).collect::<Vec<Option<R>>>());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, parts.max(1)) {
            scope.spawn(|| {
                loop {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= parts || interrupt.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = work(part * PART..count.min((part + 1) * PART));
                    results.lock().unwrap_or_else(PoisonError::into_inner)[part] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().collect::<Option<Vec<R>>>().ok_or_else(GitError::interrupted)
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
                return sink.refused(&id.to_string(), None, "object", &error.to_string());
            }
        };
        let facts = match facts(&mut self.objects, &planned.commit) {
            Ok(facts) => facts,
            Err(error) => {
                return sink.refused(&id.to_string(), None, "object", &error.to_string());
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
                let small = comparable.contains(&blob)
                    && objects.size(blob).is_ok_and(|size| size <= limit);
                small.then(|| objects.bytes(blob, Kind::Blob).ok().map(<[u8]>::to_vec)).flatten()
            })
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
