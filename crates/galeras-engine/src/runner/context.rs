//! The context of a running step: the store, its sessions, a folder for temporary files, and its
//! events.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use datafusion::execution::context::SessionContext;

use super::error::RunError;
use crate::locked;
use crate::plan::{Plan, PlannedStep};
use crate::trust::consent_folders;
use galeras_base::digest::Digest;
use galeras_base::memory_guard::{ActiveWork, active};
use galeras_base::scratch::LazyScratch;
use galeras_chat::Budget;
use galeras_operator::event::{EventSink, RunEvent};
use galeras_operator::{BoundStep, LowerContext, Lowering, RunEnv, Tell};
use galeras_sql::session::{StoredBlob, bounded_session, session, spilling_session};
use galeras_store::{MemoPart, RecipeParts, Store, StoreLocation, timestamp};

/// A step without its plan.
#[derive(Clone, Copy)]
pub(super) struct StepTask<'a> {
    pub(super) name: &'a str,
    pub(super) bound: &'a dyn BoundStep,
    /// The folder of its workflow file.
    pub(super) base: &'a Path,
    /// The folder for downloads.
    pub(super) downloads: &'a Path,
}

impl<'a> StepTask<'a> {
    pub(super) fn of(plan: &'a Plan, step: &'a PlannedStep) -> Self {
        let bound = step.step.as_ref();
        Self { name: &step.name, bound, base: &step.base, downloads: &plan.downloads }
    }
}

/// The sorts of a step get one of this many parts of the memory: its threads need the rest.
const SORTS: usize = 4;
/// Steps whose stored inputs are not larger sort in memory: creating a session that can use files
/// takes milliseconds, and a workflow may have thousands of small steps.
const SMALL_BYTES: u64 = 4 << 20;

/// The context of a running step.
pub(super) struct StepContext {
    pub(super) name: String,
    pub(super) store: Store,
    pub(super) lower: LowerContext,
    /// The inputs are small.
    small: bool,
    /// The stored files that the result is computed from.
    reads: Mutex<BTreeSet<Digest>>,
    /// While there is a context, the memory guard names the step.
    _active: ActiveWork,
}

impl StepContext {
    pub(super) fn new(
        task: &StepTask<'_>,
        store: &Store,
        env: &RunEnv,
        budget: Arc<Budget>,
        input_bytes: Option<u64>,
        forced: bool,
    ) -> Result<Self, RunError> {
        let &RunEnv { jobs, memory, .. } = env;
        let scratch = LazyScratch::default();
        let small = input_bytes.is_some_and(|bytes| bytes <= SMALL_BYTES);
        let bounded = || -> Result<_, RunError> {
            Ok(bounded_session(jobs, memory / SORTS, scratch.path()?)?)
        };
        let lower = LowerContext {
            session: match task.bound.lowering() {
                Lowering::FanOut(_) => bounded()?,
                Lowering::Table(table) if table.bounded() && !small => bounded()?,
                Lowering::Table(_) if !small => {
                    spilling_session(jobs, memory / SORTS, scratch.path()?)?
                }
                Lowering::Row(_) | Lowering::Paid(_) | Lowering::Table(_) => session(jobs),
            },
            scratch,
            base: task.base.to_path_buf(),
            downloads: task.downloads.to_path_buf(),
            env: env.clone(),
            forced,
            budget,
            sealed: folder_of(store)
                .into_iter()
                .chain([task.downloads.to_path_buf()])
                .chain(consent_folders())
                .collect(),
            retry: Arc::default(),
            tell: event_sender(task.name, task.bound.work_unit(), &env.events),
        };
        Ok(Self {
            name: task.name.to_string(),
            store: store.clone(),
            lower,
            small,
            reads: Mutex::default(),
            _active: active(task.name),
        })
    }

    /// A session that keeps the order of rows, computes on one thread, and sorts within the memory
    /// of the step.
    pub(super) fn one_thread(&self) -> Result<SessionContext, RunError> {
        if self.small {
            return Ok(session(1));
        }
        Ok(bounded_session(1, self.lower.env.memory / SORTS, self.lower.scratch.path()?)?)
    }

    /// Records that the result is computed from these stored files, among others.
    pub(super) fn reads(&self, blobs: impl IntoIterator<Item = Digest>) {
        locked(&self.reads).extend(blobs);
    }

    /// All recorded files, sorted.
    pub(super) fn all_reads(&self) -> Vec<Digest> {
        let reads = locked(&self.reads);
        reads.iter().copied().collect()
    }

    /// The finished parts of a recipe that may be used; their use is recorded. Damaged ones are
    /// reported and removed with the results computed from them. A forced step uses none.
    pub(super) async fn parts(&self, recipe: &Digest) -> Result<Vec<MemoPart>, RunError> {
        if self.lower.forced {
            return Ok(Vec::new());
        }
        let RecipeParts { sound, damaged } = self.store.memo_parts(recipe).await?;
        if !damaged.is_empty() {
            for blob in &damaged {
                self.warn(format!("part {} is damaged; computing again", blob.short()));
            }
            self.store.forget_descendants(&damaged).await?;
        }
        self.reads(sound.iter().map(|part| part.blob));
        Ok(sound)
    }

    /// Sends how much there is to compute and how much is reused, in the unit of the step.
    pub(super) fn total(&self, total: u64, reused: u64) {
        (self.lower.tell)(Tell::Total { work: total, reused });
    }

    pub(super) fn progress(&self, done: u64) {
        (self.lower.tell)(Tell::Progress(done));
    }

    pub(super) fn warn(&self, message: String) {
        (self.lower.tell)(Tell::Warning(message));
    }
}

/// The folder of a store, if it is in one.
pub(super) fn folder_of(store: &Store) -> Option<PathBuf> {
    match StoreLocation::parse(store.location()) {
        Ok(StoreLocation::Folder(folder)) => std::path::absolute(folder).ok(),
        _ => None,
    }
}

/// The interval between activities of a step.
const ACTIVITY: Duration = Duration::from_millis(100);

/// Sends the messages of a step as events.
fn event_sender(
    step: &str,
    unit: &'static str,
    events: &Arc<dyn EventSink>,
) -> Arc<dyn Fn(Tell) + Send + Sync> {
    let (events, step) = (Arc::clone(events), step.to_string());
    let last_sent: Mutex<Option<Instant>> = Mutex::new(None);
    // Operators may call this from their own threads, outside the span of the step.
    let span = tracing::Span::current();
    Arc::new(move |tell| {
        let _entered = span.enter();
        let step = step.clone();
        events.send(match tell {
            Tell::Activity(text) => {
                tracing::trace!("{text}");
                let mut last_sent = locked(&last_sent);
                if last_sent.is_some_and(|sent| sent.elapsed() < ACTIVITY) {
                    return;
                }
                *last_sent = Some(Instant::now());
                RunEvent::Activity { step, text, waiting: false }
            }
            Tell::Waiting(text) => {
                tracing::debug!("waits: {text}");
                RunEvent::Activity { step, text, waiting: true }
            }
            Tell::Warning(message) => {
                tracing::warn!("{message}");
                RunEvent::Warning { step: Some(step), message }
            }
            Tell::Total { work, reused } => {
                tracing::debug!(to_compute = work, reused, unit, "work");
                RunEvent::StepTotal { step, unit, total: work, reused }
            }
            Tell::Progress(done) => RunEvent::Progress { step, unit, done },
        });
    })
}

/// Makes a stored blob a part of the recipe. `row` is the digest of the input row, if the part is
/// the result of only one, or names a piece of that result.
pub(super) async fn commit_part(
    store: &Store,
    recipe: &Digest,
    blob: StoredBlob,
    row: Option<String>,
) -> Result<(), RunError> {
    let StoredBlob { digest, bytes, rows } = blob;
    let part = MemoPart { blob: digest, bytes, rows, created: timestamp(), row };
    store.put_memo_part(recipe, &part).await?;
    tracing::debug!(blob = %digest.short(), rows, bytes, "part committed");
    Ok(())
}
