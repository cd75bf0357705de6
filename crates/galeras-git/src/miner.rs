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

use super::changes::{File, TreeChanges};
use super::error::{GitError, GitErrorKind, Result};
use super::history::{Commit, CommitText};
use super::limits::PairLimits;
use super::lines::{Hunk, hunks, overlap};
use super::plan::{CommitChanges, MineOptions, MinePlan};
use super::renames::renames;
use super::repository::{Objects, Repository, guarded};
use super::sources::{Refusal, Source, Sources};
use galeras_python::{Outline, OutlineMethod};

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
    /// Takes a method. Fails if the sink takes no more; the piece then ends.
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<()>;
    /// Takes a commit, or a file of it, that could not be mined: the rule it broke, as a stable
    /// word, and the reason, as a sentence. Fails if the sink takes no more; the piece then ends.
    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<()>;
    /// Hands on what the sink still holds: nothing more comes. Fails if it cannot be handed on.
    fn end(&mut self) -> Result<()>;
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
    /// One commit is in memory at a time, and a sink that blocks stops the thread, so that memory
    /// does not grow with the history. The error is `Interrupted` if `interrupt` is set, or what
    /// the sink returns. Damaged objects are refusals.
    pub fn mine(
        &self,
        piece: usize,
        sink: &mut dyn Sink,
        interrupt: &AtomicBool,
        done: &dyn Fn(usize),
    ) -> Result<()> {
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
    ) -> Result<()> {
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
    ) -> Result<()> {
        let refuse = |sink: &mut dyn Sink, error: &GitError, reason: String| {
            let rule = match error.kind {
                GitErrorKind::Malformed => "tree",
                GitErrorKind::Limit => "limit",
                _ => "object",
            };
            sink.refused(&commit.id.to_string(), None, rule, &reason)
        };
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => return refuse(sink, error, error.to_string()),
        };
        let facts = match facts(&mut self.objects, commit) {
            Ok(facts) => facts,
            Err(error) => return refuse(sink, &error, error.to_string()),
        };
        let (deleted, origins) = match self.origins(changes) {
            Ok(origins) => origins,
            Err(error) => {
                return refuse(sink, &error, format!("renamed files cannot be found: {error}"));
            }
        };
        let added = changes.added.iter().zip(origins);
        let added = added.map(|(file, origin)| (origin.map(|at| deleted[at].blob), file));
        let modified = changes.modified.iter().map(|(before, file)| (Some(*before), file));
        for (before, file) in added.chain(modified) {
            if before == Some(file.blob) {
                continue;
            }
            match self.file(&facts, before, file, sink) {
                Ok(()) => {}
                Err(FileError::End(error)) => return Err(error),
                Err(FileError::Refused((rule, reason))) => {
                    sink.refused(&facts.id, Some(&file.path), rule, &reason)?;
                }
            }
        }
        Ok(())
    }

    /// The files that may have been renamed, and for each added file the position of its origin.
    fn origins(&mut self, changes: &TreeChanges) -> Result<(Vec<File>, Vec<Option<usize>>)> {
        let deleted: Vec<File> = match changes.added.is_empty() {
            true => Vec::new(),
            false => changes.deleted.iter().chain(&changes.deleted_others).cloned().collect(),
        };
        let comparable: HashSet<ObjectId> =
            changes.added.iter().chain(&changes.deleted).map(|file| file.blob).collect();
        let origins = renames(&deleted, &changes.added, &PairLimits::DEFAULT, |blob| {
            if !comparable.contains(&blob) {
                return Ok(None);
            }
            let large = self.objects.size(blob)? > self.options.max_file_bytes;
            // A size is only true of an object that is what it should be.
            let bytes = self.objects.bytes(blob, Kind::Blob)?;
            Ok((!large).then(|| bytes.to_vec()))
        });
        Ok((deleted, origins?))
    }

    /// Hands on the changed methods of a file; a refusal comes before the first of them.
    fn file(
        &mut self,
        commit: &CommitFacts,
        before: Option<ObjectId>,
        file: &File,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let earlier = |(rule, reason): Refusal| (rule, format!("the version before: {reason}"));
        let after = self.sources.get(&mut self.objects, file.blob)??;
        let before = match before {
            Some(blob) => Some(self.sources.get(&mut self.objects, blob)?.map_err(earlier)?),
            None => None,
        };
        let path = &*file.path;
        let new = after.outline(self.sources)?;
        let Some(before) = &before else {
            for method in new.methods() {
                let code = text(&after, &method);
                let changed_lines = method.end_line - method.start_line + 1;
                let changed =
                    ChangedMethod { path, method, code, code_before: None, changed_lines };
                sink.method(commit, changed)?;
            }
            return Ok(());
        };
        let hunks = hunks(&before.text, &after.text);
        if hunks.is_empty() {
            return Ok(());
        }
        let old = before.outline(self.sources);
        for (method, origin, changed_lines) in changed(new, old.map_err(earlier)?, &hunks) {
            let code = text(&after, &method);
            let code_before = origin.map(|origin| text(before, &origin));
            sink.method(commit, ChangedMethod { path, method, code, code_before, changed_lines })?;
        }
        Ok(())
    }
}

/// Why a file was not mined.
enum FileError {
    /// The piece ends.
    End(GitError),
    /// The file cannot be mined.
    Refused(Refusal),
}

impl From<GitError> for FileError {
    fn from(error: GitError) -> Self {
        Self::End(error)
    }
}

impl From<Refusal> for FileError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
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

fn text<'a>(source: &'a Source, method: &OutlineMethod<'_>) -> &'a str {
    source.text.get(method.start_byte as usize..method.end_byte as usize).unwrap_or_default()
}

fn facts(objects: &mut Objects, commit: &Commit) -> Result<CommitFacts> {
    let text = CommitText::read(commit.id, objects.bytes(commit.id, Kind::Commit)?)?;
    Ok(CommitFacts {
        id: commit.id.to_string(),
        committed: commit.committed,
        authored: text.authored,
        message: text.message(),
    })
}
