//! The study that is shown: its plan and the states of its steps, reloaded after changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::future::BoxFuture;
use tokio::sync::Mutex;

use super::indexes::Indexes;
use crate::Surveyed;
use crate::runs::past_runs;
use galeras_base::digest::Digest;
use galeras_engine::plan::{Input, Plan};
use galeras_engine::runner::RunError;
use galeras_operator::Consent;
use galeras_store::{LockGuard, RunRecord, Store};

/// The time for which a view of the store is reused.
const FRESH: Duration = Duration::from_millis(400);

/// Plans the workflow again. The error is for people.
pub type PlanAgain = Box<dyn Fn() -> BoxFuture<'static, Result<Plan, String>> + Send + Sync>;

/// The study that a server shows.
pub struct Study {
    pub(super) file: PathBuf,
    /// The store's location as typed.
    cache: String,
    plan_again: PlanAgain,
    /// Ratings are written where the workflow names.
    pub(super) consent: Arc<dyn Consent>,
    pub(super) store: Store,
    seen: Mutex<Seen>,
    pub(super) indexes: Indexes,
}

struct Seen {
    snapshot: Arc<Snapshot>,
    at: Instant,
}

/// The study at one point in time.
pub(super) struct Snapshot {
    pub(super) surveyed: Surveyed,
    /// The reason why the current workflow cannot be planned; the plan is then the previous one.
    pub(super) problem: String,
    /// The runs of the file, newest first.
    pub(super) runs: Vec<RunRecord>,
    stamp: Stamp,
}

/// The files that planning depends on, with their sizes and times.
type Stamp = Vec<(PathBuf, u64, Option<SystemTime>)>;

impl Study {
    /// The study of the workflow in `file` with its first plan.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn open(
        file: PathBuf,
        plan: Plan,
        store: Store,
        cache: &str,
        plan_again: PlanAgain,
        consent: Arc<dyn Consent>,
    ) -> Result<Self, RunError> {
        let stamp = stamp(&file, &plan);
        let snapshot = look(&file, &store, cache, Arc::new(plan), String::new(), stamp).await?;
        let seen = Mutex::new(Seen { snapshot: Arc::new(snapshot), at: Instant::now() });
        let (cache, indexes) = (cache.to_string(), Indexes::default());
        Ok(Self { file, cache, plan_again, consent, store, seen, indexes })
    }

    /// The current study, or a recent snapshot.
    pub(super) async fn snapshot(&self) -> Result<Arc<Snapshot>, RunError> {
        self.snapshot_within(FRESH).await
    }

    /// A snapshot that is at most this old.
    pub(super) async fn snapshot_within(&self, age: Duration) -> Result<Arc<Snapshot>, RunError> {
        let mut seen = self.seen.lock().await;
        if seen.at.elapsed() < age {
            return Ok(Arc::clone(&seen.snapshot));
        }
        let old = &seen.snapshot;
        let now = stamp(&self.file, &old.surveyed.plan);
        let (plan, problem) = match now == old.stamp {
            true => (Arc::clone(&old.surveyed.plan), old.problem.clone()),
            false => match (self.plan_again)().await {
                Ok(plan) => (Arc::new(plan), String::new()),
                Err(problem) => (Arc::clone(&old.surveyed.plan), problem),
            },
        };
        let stamp = stamp(&self.file, &plan);
        let fresh = look(&self.file, &self.store, &self.cache, plan, problem, stamp).await?;
        let fresh = Arc::new(fresh);
        *seen = Seen { snapshot: Arc::clone(&fresh), at: Instant::now() };
        Ok(fresh)
    }

    /// Keeps results from being removed.
    pub(super) async fn reading(&self) -> Result<LockGuard, RunError> {
        Ok(self.store.reading_lock().await?)
    }
}

impl Snapshot {
    /// The table with that name, if it is completely stored; otherwise the missing parts, in words.
    pub(super) fn table(&self, name: &str) -> Result<Input, String> {
        let input = self.surveyed.table(name).map_err(|error| error.to_string())?;
        self.stored(&input)?;
        Ok(input)
    }

    pub(super) fn stored(&self, input: &Input) -> Result<(), String> {
        let states = &self.surveyed.states;
        let missing = input.tables.iter().find(|table| states[table.step].manifest.is_none());
        match missing {
            None => Ok(()),
            Some(table) => {
                let step = &self.surveyed.plan.steps[table.step].name;
                Err(format!("{step} is not computed yet for the current workflow"))
            }
        }
    }

    /// The stored file of a table with only one file, with its digest and rows.
    pub(super) fn only_blob(&self, input: &Input) -> Option<(Digest, u64)> {
        let [table] = input.tables.as_slice() else { return None };
        if input.united {
            return None;
        }
        self.surveyed.stored(table.step, table.port).map(|port| (port.blob, port.rows))
    }

    /// The same, if the file is on this disk.
    pub(super) fn local_blob(&self, input: &Input) -> Option<(Digest, u64)> {
        let file = |blob: &Digest| self.surveyed.store.local_blob(blob);
        self.only_blob(input).filter(|(blob, _)| file(blob).is_some_and(|file| file.is_file()))
    }

    /// The address of the events that make a page reload.
    pub(super) fn events(&self) -> String {
        super::answer::address("/events", &[("mark", &self.mark())])
    }

    /// A text that changes when a page of the study would change.
    pub(super) fn mark(&self) -> String {
        let states: Vec<String> = self
            .surveyed
            .states
            .iter()
            .map(|state| match &state.manifest {
                Some(manifest) => manifest.ports.iter().map(|port| port.blob.short()).collect(),
                None => String::from("-"),
            })
            .collect();
        let runs: Vec<String> = self
            .runs
            .iter()
            .take(3)
            .map(|run| format!("{} {:?} {}", run.id, run.status, run.steps.len()))
            .collect();
        let all = format!("{states:?} {runs:?} {} {:?}", self.problem, self.stamp);
        Digest::of(all.as_bytes()).short()
    }
}

async fn look(
    file: &Path,
    store: &Store,
    cache: &str,
    plan: Arc<Plan>,
    problem: String,
    stamp: Stamp,
) -> Result<Snapshot, RunError> {
    let _reading = store.reading_lock().await?;
    let surveyed = Surveyed::unlocked(plan, store.clone(), cache).await?;
    let runs = past_runs(file, store).await?;
    Ok(Snapshot { surveyed, problem, runs, stamp })
}

/// The sizes and times of the workflow file, and of local files and folders that steps read.
fn stamp(file: &Path, plan: &Plan) -> Stamp {
    let mut stamp = Stamp::new();
    let mut add = |path: &Path| {
        let about = std::fs::metadata(path).ok();
        let size = about.as_ref().map_or(0, std::fs::Metadata::len);
        stamp.push((path.to_path_buf(), size, about.and_then(|about| about.modified().ok())));
    };
    add(file);
    add(&file.with_file_name("galeras.lock"));
    for (_, path) in plan.steps.iter().flat_map(|step| step.step.local_files()) {
        add(&path);
        let Ok(entries) = std::fs::read_dir(&path) else { continue };
        let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        inside.sort();
        inside.iter().take(1000).for_each(|path| add(path));
    }
    stamp
}
