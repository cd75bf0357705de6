//! From the changed files of commits to changed methods.
//!
//! A method is changed by a commit if a line that the commit added lies in it, or a line that the
//! commit took away lay in it before: so a method that was moved is changed, one whose decorator
//! changed is not. A method is the same before and after if the file (renames followed), the
//! qualified name and the position among equal names are the same.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gix::ObjectId;
use gix::objs::Kind;

use super::changes::File;
use super::commit::CommitText;
use super::error::{GitError, GitErrorKind};
use super::history::Commit;
use super::limits::PairLimits;
use super::lines::{Hunk, hunks, overlap};
use super::plan::{CommitChanges, MineOptions, MinePlan};
use super::renames::renames;
use super::repository::{Objects, Repository};
use super::sources::{Source, Sources};
use super::threads::guarded;
use galeras_python::{Ends, Outline, OutlineMethod};

/// The columns of a commit, which all of its rows share.
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

/// Where the methods of a piece go.
pub trait Sink {
    /// Takes a method.
    ///
    /// # Errors
    /// If the sink takes no more; the piece then ends.
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError>;
    /// Takes a commit, or a file of it, that could not be mined: the rule it broke, as a stable
    /// word, and the reason, as a sentence.
    ///
    /// # Errors
    /// If the sink takes no more; the piece then ends.
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

/// A repository whose planned commits are mined, piece by piece, by as many threads as call.
pub struct Mining {
    repository: Repository,
    plan: MinePlan,
    options: Arc<MineOptions>,
    sources: Sources,
    /// The object readers of threads that have ended, with full caches, for the next threads.
    idle: Mutex<Vec<Objects>>,
}

impl Mining {
    /// Prepares to mine `plan`, with the options that it was made with.
    pub fn new(repository: Repository, plan: MinePlan, options: Arc<MineOptions>) -> Self {
        let sources = Sources::new(options.max_file_bytes, options.nested);
        Self { repository, plan, options, sources, idle: Mutex::default() }
    }

    /// The commits to mine.
    pub fn plan(&self) -> &MinePlan {
        &self.plan
    }

    /// Mines a piece of the plan on this thread. `done` takes the number of commits that were
    /// finished since its last call. The refusals of the plan itself come with the first piece.
    ///
    /// One commit is in memory at a time, and a sink that blocks stops the thread, so that memory does
    /// not grow with the history.
    ///
    /// # Errors
    /// `Interrupted` if `interrupt` is set, and what the sink returns. Damaged objects are
    /// refusals.
    pub fn mine(
        &self,
        piece: usize,
        sink: &mut dyn Sink,
        interrupt: &AtomicBool,
        done: &dyn Fn(usize),
    ) -> Result<(), GitError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = idle().pop().unwrap_or_else(|| self.repository.objects());
        let mut miner = Miner { objects, sources: &self.sources, options: &self.options };
        guarded(|| {
            miner.piece(&self.plan, piece, sink, interrupt, done)?;
            sink.end()
        })?;
        idle().push(miner.objects);
        Ok(())
    }
}

/// One thread at work.
struct Miner<'a> {
    objects: Objects,
    sources: &'a Sources,
    options: &'a MineOptions,
}

impl Miner<'_> {
    fn piece(
        &mut self,
        plan: &MinePlan,
        piece: usize,
        sink: &mut dyn Sink,
        interrupt: &AtomicBool,
        done: &dyn Fn(usize),
    ) -> Result<(), GitError> {
        if piece == 0 {
            for (id, rule, reason) in &plan.refused {
                sink.refused(&id.to_string(), None, rule, reason)?;
            }
        }
        let compared = match plan.kept(piece) {
            Some(_) => Vec::new(),
            None => plan.changes(&mut self.objects, piece, &self.options.include, interrupt)?,
        };
        let changes = plan.kept(piece).unwrap_or(&compared);
        // Packs make older contents from newer ones: the newer ones are at hand then.
        for (commit, changes) in plan.piece(piece).iter().zip(changes).rev() {
            if interrupt.load(Ordering::Relaxed) {
                return Err(GitError::interrupted());
            }
            if changes.as_ref().map_or(true, |changes| !changes.is_empty()) {
                self.commit(commit, changes, sink)?;
            }
            done(1);
        }
        Ok(())
    }

    fn commit(
        &mut self,
        commit: &Commit,
        changes: &CommitChanges,
        sink: &mut dyn Sink,
    ) -> Result<(), GitError> {
        let id = commit.id;
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => {
                return sink.refused(&id.to_string(), None, rule(error), &error.to_string());
            }
        };
        let facts = match facts(&mut self.objects, commit) {
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
            renames(&deleted, &changes.added, &PairLimits::DEFAULT, |blob| {
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
                let reason = format!("renamed files cannot be found: {error}");
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
        let ends = before.map(|before| Ends::of(&before.text, &after.text));
        let new = match after.outline(self.sources, before.zip(ends.as_ref())) {
            Ok(outline) => outline,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (Some(before), Some(ends)) = (before, ends) else {
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
        let hunks = hunks(&ends);
        if hunks.is_empty() {
            return Ok(Ok(()));
        }
        let old = match before.outline(self.sources, Some((after, &ends.turned()))) {
            Ok(outline) => outline,
            Err((rule, reason)) => {
                return Ok(Err((rule, format!("the version before: {reason}"))));
            }
        };
        for (method, origin, changed_lines) in changed(new, old, &hunks) {
            let changed = ChangedMethod {
                path,
                method,
                code: text(after, &method),
                code_before: origin.map(|origin| text(before, &origin)),
                changed_lines,
            };
            sink.method(commit, changed)?;
        }
        Ok(Ok(()))
    }
}

/// The methods that gained or lost lines, with their earlier versions and the number of these lines.
fn changed<'a>(
    new: &'a Outline,
    old: &'a Outline,
    hunks: &[Hunk],
) -> Vec<(OutlineMethod<'a>, Option<OutlineMethod<'a>>, u32)> {
    let lines = |ranges: &[Range<u32>], method: &OutlineMethod<'_>| {
        overlap(ranges, method.start_line, method.end_line)
    };
    let added: Vec<Range<u32>> = hunks.iter().map(|hunk| hunk.after.clone()).collect();
    let removed: Vec<Range<u32>> = hunks.iter().map(|hunk| hunk.before.clone()).collect();
    let name = |method: &OutlineMethod<'a>| (method.qualified_name, method.ordinal);
    // Most methods are in none of them.
    let lost: HashMap<(&str, u32), u32> = old
        .methods()
        .map(|method| (name(&method), lines(&removed, &method)))
        .filter(|(_, lines)| *lines > 0)
        .collect();
    let mut changed = Vec::new();
    for method in new.methods() {
        let came = lines(&added, &method);
        let went = if lost.is_empty() { None } else { lost.get(&name(&method)) };
        if came > 0 || went.is_some() {
            changed.push((method, None, came + went.copied().unwrap_or_default()));
        }
    }
    let mut wanted: HashMap<(&str, u32), usize> =
        changed.iter().enumerate().map(|(at, (method, ..))| (name(method), at)).collect();
    for method in old.methods() {
        if wanted.is_empty() {
            break;
        }
        if let Some(at) = wanted.remove(&name(&method)) {
            changed[at].1 = Some(method);
        }
    }
    changed
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

fn facts(objects: &mut Objects, commit: &Commit) -> Result<CommitFacts, GitError> {
    let text = CommitText::read(commit.id, objects.bytes(commit.id, Kind::Commit)?)?;
    Ok(CommitFacts {
        id: commit.id.to_string(),
        committed: commit.committed,
        authored: text.authored,
        message: text.message(),
    })
}
