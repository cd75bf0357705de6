//! Computes items of jobs: reads the order from the store, binds the step as the coordinator did,
//! and stores parts, tables and the outcome.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::super::compute::StepWork;
use super::super::context::{StepContext, StepTask};
use super::super::error::RunError;
use super::super::fan_out_step::{self, OpenedRows, Share};
use super::super::freed_memory::give_back;
use super::super::row_step::{self, RowInput};
use super::order::{
    BEGUN, DONE, Failure, JobOrder, ORDER, Outcome, StepOrder, WorkItem, build_stamp,
};
use crate::locked;
use galeras_chat::Budget;
use galeras_operator::event::{EventSink, RunEvent};
use galeras_operator::{
    BindContext, BoundStep, FullConsent, Lowering, Pins, Registry, RunEnv, StepError, StepErrorKind,
};
use galeras_sql::session::{guarded, ordered_session, planning_session};
use galeras_store::{Store, StoreError};

/// The most attempts at an item without an outcome: the item may kill its executors.
const ATTEMPTS: usize = 3;
/// The number of orders kept in memory.
const ORDERS: usize = 16;
/// The time for which a full disk or an unreachable store is remembered ...
const LATELY: Duration = Duration::from_secs(60);
/// ... and for which an item is left to others, if none of them starts it ...
const UNBEGUN: Duration = Duration::from_secs(3);
/// ... or finishes it, as that executor may be dead.
const UNENDED: Duration = Duration::from_secs(120);
/// The interval between checks of the store.
const LOOK: Duration = Duration::from_millis(200);

/// A process, or a part of one, that computes items one by one.
pub struct Worker {
    name: String,
    build: String,
    registry: Registry,
    store: Store,
    downloads: PathBuf,
    /// Threads and bytes of memory of an item.
    jobs: usize,
    memory: usize,
    orders: Mutex<Vec<(String, Arc<Job>)>>,
    /// The time of the last failure that other executors may not have.
    failed: Mutex<Option<Instant>>,
}

/// The file of an item that was started.
#[derive(Serialize, Deserialize)]
struct Attempt {
    executor: String,
}

struct Job {
    order: JobOrder,
    /// The step, or the reason why it cannot be bound here.
    step: Result<Box<dyn BoundStep>, Failure>,
    opened: OpenedRows,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker with this name on a store. `downloads` is a folder for fetched files; an item
    /// gets `jobs` threads and `memory` bytes.
    pub fn new(
        name: String,
        registry: Registry,
        store: Store,
        downloads: PathBuf,
        (jobs, memory): (usize, usize),
    ) -> Self {
        let build = build_stamp(&registry);
        let (orders, failed) = (Mutex::default(), Mutex::default());
        Self { name, build, registry, store, downloads, jobs, memory, orders, failed }
    }

    /// Returns freed memory to the system until the handle is dropped.
    pub fn give_memory_back(&self) -> AbortOnDropHandle<()> {
        give_back(self.memory.saturating_mul(self.jobs))
    }

    /// Computes an item of a job, unless it is done, and stores its outcome.
    ///
    /// # Errors
    /// If the store fails, so that the outcome is unknown.
    pub async fn perform(&self, job: &str, item: u32) -> Result<(), StoreError> {
        let done = format!("{DONE}/{item}");
        if self.store.work::<Outcome>(job, &done).await?.is_some() {
            return Ok(());
        }
        let Some(found) = self.job(job).await? else { return Ok(()) };
        let failed_lately = locked(&self.failed).is_some_and(|at| at.elapsed() < LATELY);
        if failed_lately && self.left_to_others(job, item).await? {
            return Ok(());
        }
        let started = Instant::now();
        let begun = format!("{BEGUN}/{item}");
        let before = self.store.work_names(job, &begun).await?;
        let attempt = self.store.new_job();
        let this = Attempt { executor: self.name.clone() };
        self.store.put_work(job, &format!("{begun}/{attempt}"), &this).await?;
        let warnings = Arc::new(Warnings::default());
        let ended = match before.len() {
            attempts @ ATTEMPTS.. => {
                let who = self.beginners(job, &begun).await?.join(", ");
                let message =
                    format!("it was started {attempts} times, by {who}, without a result");
                let help = "it may take more memory than an executor has: give them more, or fewer \
                            slots each";
                Err(final_failure(message).help(help))
            }
            _ => caught(self.computed(&found, item, &warnings)).await,
        };
        let mut outcome = ended
            .unwrap_or_else(|failure| Outcome { failure: Some(failure), ..Outcome::default() });
        // Other executors may not have this failure.
        let here = outcome.failure.as_ref().is_some_and(|failure| failure.again);
        *locked(&self.failed) = here.then(Instant::now);
        outcome.executor = self.name.clone();
        outcome.seconds = started.elapsed().as_secs_f64();
        outcome.warnings = std::mem::take(&mut *locked(&warnings.0));
        self.store.put_work(job, &done, &outcome).await?;
        self.store.forget_work(job, &format!("{begun}/{attempt}")).await
    }

    /// Waits for others to compute an item: an executor that fails at once would otherwise take
    /// most of the items. False if none does.
    async fn left_to_others(&self, job: &str, item: u32) -> Result<bool, StoreError> {
        let (done, begun) = (format!("{DONE}/{item}"), format!("{BEGUN}/{item}"));
        let since = Instant::now();
        loop {
            sleep(LOOK).await;
            let over = self.store.work::<JobOrder>(job, ORDER).await?.is_none();
            if over || self.store.work::<Outcome>(job, &done).await?.is_some() {
                return Ok(true);
            }
            let who = self.beginners(job, &begun).await?;
            let others = who.iter().any(|executor| *executor != self.name);
            if since.elapsed() > if others { UNENDED } else { UNBEGUN } {
                return Ok(false);
            }
        }
    }

    /// The executors that started an item without an outcome.
    async fn beginners(&self, job: &str, begun: &str) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for attempt in self.store.work_names(job, begun).await? {
            let attempt = self.store.work::<Attempt>(job, &format!("{begun}/{attempt}")).await?;
            names.extend(attempt.map(|attempt| attempt.executor));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Computes an item.
    async fn computed(
        &self,
        job: &Job,
        item: u32,
        warnings: &Arc<Warnings>,
    ) -> Result<Outcome, Failure> {
        let JobOrder { step: StepOrder { name, base, recipe, inputs, .. }, items, fresh, .. } =
            &job.order;
        let step = &**job.step.as_ref().map_err(Failure::clone)?;
        let item = items.get(item as usize);
        let item = item.ok_or_else(|| final_failure("the job has no such item"))?;
        let (base, downloads) = (Path::new(base), self.downloads.as_path());
        let task = StepTask { name, bound: step, base, downloads };
        let env = RunEnv {
            jobs: self.jobs,
            memory: self.memory,
            consent: Arc::new(FullConsent),
            cancel: CancellationToken::new(),
            events: Arc::clone(warnings) as Arc<dyn EventSink>,
        };
        let budget = Budget::unlimited();
        let cx = StepContext::new(&task, &self.store, &env, budget, None, *fresh)?;
        let no_input = || StepError::new("a defect: the step of the job has no input");
        let mut outcome = Outcome::default();
        match (item, step.lowering()) {
            (WorkItem::Whole, _) => {
                let turn = Arc::new(Semaphore::new(1)).acquire_owned().await;
                let turn = turn.map_err(|_| RunError::Interrupted)?;
                let work = StepWork { bound: step, inputs: inputs.clone(), recipe: *recipe };
                let result = work.perform(&cx, turn).await?;
                (outcome.computed, outcome.reused) = (result.computed, result.reused);
                outcome.tables = Some(result.artifacts);
            }
            (&WorkItem::Rows { table, start, len }, Lowering::Row(row)) => {
                let input = inputs.first().ok_or_else(no_input)?;
                let session = ordered_session(cx.lower.env.jobs);
                let rows = input.open_rows(&session, &cx.store, (table, start, len)).await?;
                let input = RowInput { rows: Some(rows), stored: None, order: Vec::new() };
                let counts = row_step::fill(&cx, row, input, *recipe).await?;
                (outcome.computed, outcome.reused) = (counts.computed, counts.reused);
            }
            (WorkItem::Share { row, share, of, .. }, Lowering::FanOut(fan_out)) => {
                let input = inputs.first().ok_or_else(no_input)?;
                let input = input.open(&cx.lower.session, &cx.store)?;
                let share = (row.as_str(), Share { share: *share, of: *of });
                let filled =
                    fan_out_step::fill(&cx, fan_out, input, *recipe, share, &job.opened).await?;
                outcome.computed = filled
                    .map_err(|error| Failure { only_there: true, ..final_failure(error.reason) })?;
            }
            _ => return Err(final_failure("a defect: the item does not fit the step")),
        }
        outcome.retry = cx.lower.retry.load(Ordering::Relaxed);
        outcome.reads = cx.all_reads();
        Ok(outcome)
    }

    /// A job with its bound step, cached for all its items; `None` if the job is over.
    async fn job(&self, job: &str) -> Result<Option<Arc<Job>>, StoreError> {
        let known = |orders: &[(String, Arc<Job>)]| {
            orders.iter().find(|(name, _)| name == job).map(|(_, job)| Arc::clone(job))
        };
        if let Some(job) = known(&locked(&self.orders)) {
            return Ok(Some(job));
        }
        let order: Option<JobOrder> = self.store.work(job, ORDER).await?;
        let Some(order) = order else { return Ok(None) };
        let step = match order.build == self.build {
            true => caught(self.bound(&order.step)).await,
            false => Err(final_failure(format!(
                "{} is {}, but the run is of {}",
                self.name, self.build, order.build
            ))
            .help("start executors of the same build as the run")),
        };
        let found = Arc::new(Job { order, step, opened: OpenedRows::default() });
        let mut orders = locked(&self.orders);
        if orders.len() >= ORDERS {
            orders.remove(0);
        }
        // Open repositories use memory, and few jobs have any.
        orders.iter().for_each(|(_, job)| locked(&job.opened).clear());
        orders.push((job.to_string(), Arc::clone(&found)));
        Ok(Some(found))
    }

    async fn bound(&self, order: &StepOrder) -> Result<Box<dyn BoundStep>, Failure> {
        let operator = self.registry.get(&order.operator);
        let operator = operator.filter(|found| found.descriptor().version == order.version);
        let Some(operator) = operator else {
            let message = format!("there is no operator {} here", order.operator);
            return Err(final_failure(message));
        };
        let schemas = order.inputs.iter().map(|input| (input.port.clone(), input.schema.clone()));
        let cx = BindContext {
            session: planning_session(),
            inputs: schemas.collect::<BTreeMap<_, _>>(),
            base: PathBuf::from(&order.base),
            downloads: self.downloads.clone(),
            pins: Arc::new(Pins::default()),
            registration: None,
            consent: Arc::new(FullConsent),
        };
        let step = operator.bind(&order.arguments, &cx).await.map_err(|errors| {
            let errors: Vec<String> = errors.into_iter().map(|error| error.message).collect();
            final_failure(format!("the step cannot be bound here: {}", errors.join("; ")))
        })?;
        if step.args() != order.bound_args {
            return Err(final_failure("the arguments of the step mean something else here"));
        }
        Ok(step)
    }
}

/// A panic is a failure of the item.
async fn caught<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let gave_up = |panic| Err(final_failure(format!("a library gave up: {panic}")));
    guarded(work).await.unwrap_or_else(gave_up)
}

fn final_failure(message: impl Into<String>) -> Failure {
    Failure { message: message.into(), help: None, again: false, only_there: false }
}

impl Failure {
    fn help(self, help: &str) -> Self {
        Self { help: Some(help.to_string()), ..self }
    }
}

impl<E: Into<RunError>> From<E> for Failure {
    fn from(error: E) -> Self {
        failure_of(&error.into())
    }
}

/// Only this disk may be full, and a store may become reachable again.
fn failure_of(error: &RunError) -> Failure {
    let again = match error {
        RunError::Store(_) | RunError::Interrupted => true,
        RunError::Step(error) => matches!(
            error.kind(),
            StepErrorKind::DiskFull
                | StepErrorKind::ReadOnlyDisk
                | StepErrorKind::Io
                | StepErrorKind::Store
                | StepErrorKind::Interrupted
        ),
        RunError::Rows(_) | RunError::Occupied(_) => false,
    };
    let explained = error.explained();
    let (message, help) = match explained.split_once("\nhelp: ") {
        Some((message, help)) => (message.to_string(), Some(help.to_string())),
        None => (explained, disk_help(error)),
    };
    Failure { message, help, again, only_there: false }
}

/// The error does not name the full disk.
fn disk_help(error: &RunError) -> Option<String> {
    let RunError::Step(error) = error else { return None };
    let temporary = std::env::temp_dir();
    let temporary = temporary.display();
    (error.kind() == StepErrorKind::DiskFull).then(|| {
        format!("make room for that executor's temporary files, in {temporary} (TMPDIR), or in the store")
    })
}

/// Keeps the warnings of an item for its outcome.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl EventSink for Warnings {
    fn send(&self, event: RunEvent) {
        if let RunEvent::Warning { message, .. } = event {
            locked(&self.0).push(message);
        }
    }
}
