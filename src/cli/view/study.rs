//! The study that is shown: its plan and the states of its steps, reloaded after changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use tokio::sync::Mutex;

use super::super::allow::trust;
use super::super::context::plan_file;
use super::super::{Settings, WorkflowArgs};
use super::indexes::Indexes;
use galeras_base::digest::Digest;
use galeras_engine::plan::{Input, Locking, Plan};
use galeras_engine::runner::{StepState, open, survey};
use galeras_store::{LockGuard, RunRecord, Store};
use galeras_study::hint;
use galeras_study::runs::past_runs;
use galeras_workflow::render;

/// The time for which a view of the store is reused.
const FRESH: Duration = Duration::from_millis(400);

pub(super) struct Study {
    args: WorkflowArgs,
    settings: Settings,
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
    pub(super) plan: Arc<Plan>,
    pub(super) states: Vec<StepState>,
    /// The reason why the current workflow cannot be planned; the plan is then the previous one.
    pub(super) problem: String,
    /// The runs of the file, newest first.
    pub(super) runs: Vec<RunRecord>,
    stamp: Stamp,
}

/// The files that planning depends on, with their sizes and times.
type Stamp = Vec<(PathBuf, u64, Option<SystemTime>)>;

impl Study {
    pub(super) async fn open(
        args: WorkflowArgs,
        settings: Settings,
        plan: Plan,
        store: Store,
    ) -> Result<Self, String> {
        let stamp = stamp(&args.file, &plan);
        let snapshot =
            Arc::new(look(&args.file, &store, Arc::new(plan), String::new(), stamp).await?);
        let seen = Mutex::new(Seen { snapshot, at: Instant::now() });
        Ok(Self { args, settings, store, seen, indexes: Indexes::default() })
    }

    /// The current study, or a recent snapshot.
    pub(super) async fn snapshot(&self) -> Result<Arc<Snapshot>, String> {
        self.snapshot_within(FRESH).await
    }

    /// A snapshot that is at most this old.
    pub(super) async fn snapshot_within(&self, age: Duration) -> Result<Arc<Snapshot>, String> {
        let mut seen = self.seen.lock().await;
        if seen.at.elapsed() < age {
            return Ok(Arc::clone(&seen.snapshot));
        }
        let old = &seen.snapshot;
        let now = stamp(&self.args.file, &old.plan);
        let (plan, problem) = match now == old.stamp {
            true => (Arc::clone(&old.plan), old.problem.clone()),
            false => match self.plan().await {
                Ok(plan) => (Arc::new(plan), String::new()),
                Err(problem) => (Arc::clone(&old.plan), problem),
            },
        };
        let stamp = stamp(&self.args.file, &plan);
        let fresh = Arc::new(look(&self.args.file, &self.store, plan, problem, stamp).await?);
        *seen = Seen { snapshot: Arc::clone(&fresh), at: Instant::now() };
        Ok(fresh)
    }

    async fn plan(&self) -> Result<Plan, String> {
        let consent = trust(&self.args.file, &self.args.set, &self.args.allow, None);
        let cache = &self.args.store.cache;
        let settings = self.settings.clone();
        let planned =
            plan_file(&self.args.file, settings, cache, Locking::Pinned, consent, Path::new("."));
        match planned.await {
            Ok((Some(plan), _)) => Ok(plan),
            Ok((None, diagnostics)) => Err(render(diagnostics.as_slice(), false, 100)),
            Err(_) => Err("the store cannot be used".to_string()),
        }
    }

    pub(super) fn command(&self, plan: &Plan) -> String {
        hint::command("run", &plan.file, &plan.set, &self.args.store.cache)
    }

    /// Keeps results from being removed.
    pub(super) async fn reading(&self) -> Result<LockGuard, String> {
        self.store.reading_lock().await.map_err(|error| error.to_string())
    }

    pub(super) fn file(&self) -> &Path {
        &self.args.file
    }
}

impl Snapshot {
    /// The table with that name, if it is completely stored; otherwise the missing parts, in words.
    pub(super) fn table(&self, name: &str) -> Result<Input, String> {
        let input = self.plan.table(name).map_err(|problem| {
            let help = problem.help.map(|help| format!("; {help}")).unwrap_or_default();
            format!("{}{help}", problem.message)
        })?;
        self.stored(&input)?;
        Ok(input)
    }

    pub(super) fn stored(&self, input: &Input) -> Result<(), String> {
        let missing = input.tables.iter().find(|table| self.states[table.step].manifest.is_none());
        match missing {
            None => Ok(()),
            Some(table) => {
                let step = &self.plan.steps[table.step].name;
                Err(format!("{step} is not computed yet for the current workflow"))
            }
        }
    }

    pub(super) fn data(
        &self,
        session: &SessionContext,
        store: &Store,
        input: &Input,
    ) -> Result<DataFrame, String> {
        let done: Vec<_> = self.states.iter().map(|state| state.manifest.clone()).collect();
        open(session, store, &self.plan, input, &done).map_err(|error| error.to_string())
    }

    /// The stored file of a table with only one file, with its digest and rows.
    pub(super) fn only_blob(&self, input: &Input) -> Option<(Digest, u64)> {
        let [table] = input.tables.as_slice() else { return None };
        if input.united {
            return None;
        }
        let manifest = self.states[table.step].manifest.as_ref()?;
        manifest.port(table.port).map(|port| (port.blob, port.rows))
    }

    pub(super) fn rows(&self, input: &Input) -> Option<u64> {
        let rows = input.tables.iter().map(|table| {
            let manifest = self.states[table.step].manifest.as_ref()?;
            manifest.port(table.port).map(|port| port.rows)
        });
        rows.sum()
    }

    /// The address of the events that make a page reload.
    pub(super) fn events(&self) -> String {
        super::address::address("/events", &[("mark", &self.mark())])
    }

    /// A text that changes when a page of the study would change.
    pub(super) fn mark(&self) -> String {
        let states: Vec<String> = self
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
    plan: Arc<Plan>,
    problem: String,
    stamp: Stamp,
) -> Result<Snapshot, String> {
    let _reading = store.reading_lock().await.map_err(|error| error.to_string())?;
    let states = survey(&plan, store, None).await.map_err(|error| error.to_string())?;
    let runs = past_runs(file, store).await.map_err(|error| error.to_string())?;
    Ok(Snapshot { plan, states, problem, runs, stamp })
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
