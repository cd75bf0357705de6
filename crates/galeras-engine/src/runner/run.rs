//! The scheduler: runs independent steps concurrently; a failure stops only its dependents.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;
use tracing::{Instrument, debug, info_span};

use super::check::check_all;
use super::compute::compute;
use super::context::{StepContext, StepTask};
use super::error::RunError;
use super::freed_memory::give_back;
use super::history::RunHistory;
use super::input::input_size;
use super::key::{StepManifests, step_key};
use super::lookup::{Lookup, UnsoundFiles, lookup, reason_to_run, retry_reason, unfit};
use super::lost_rows::empty_input;
use super::output::{OutputOptions, OutputWriter};
use super::progress::RunProgress;
use super::remote::{Fetched, Remote};
use super::spending::{RunSpending, may_cost};
use super::spread::Engine;
use super::wave::{Wave, Waves};
use crate::locked;
use crate::plan::Plan;
use crate::trust::DataFlow;
use galeras_base::digest::Digest;
use galeras_base::scratch::{create_private, sweep};
use galeras_operator::event::{
    EventSink, PortSummary, Reason, RunEvent, RunStatus, StepStatus, StepSummary,
};
use galeras_operator::{RunEnv, StepError};
use galeras_store::{Manifest, RunRecord, RunSettings, Store, VerifyLevel};

/// The options of a run.
pub struct RunOptions {
    /// The environment of the steps. Its threads are also the number of steps computed at once,
    /// which share its memory. Of the events, the caller sends the last one,
    /// [`RunOutcome::finished`].
    pub env: RunEnv,
    /// The positions of the wanted steps, to which their ancestors are added; `None` for all.
    pub select: Option<Vec<usize>>,
    /// The positions of steps that are computed even if their result is stored.
    pub force: HashSet<usize>,
    /// Options for output files; `None` to write none.
    pub outputs: Option<OutputOptions>,
    /// The settings for later commands, if they refer to this run.
    pub remembered: Option<RunSettings>,
    /// Continue after a failure with the steps that do not depend on it.
    pub keep_going: bool,
    /// Computes the steps.
    pub engine: Arc<dyn Engine>,
    /// Another source of results.
    pub remote: Option<Arc<Remote>>,
    /// The start of the process, from which the time of the run counts.
    pub started: Instant,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The status of the whole run.
    pub status: RunStatus,
    /// The ends of the wanted steps, in plan order.
    pub steps: Vec<StepSummary>,
    /// The stored results by position in the plan; `None` for a step that was not wanted, or
    /// without a valid result.
    pub manifests: Vec<Option<Arc<Manifest>>>,
}

impl RunOutcome {
    /// The last event of the run, to be sent when everything else is done.
    pub fn finished(&self, started: Instant) -> RunEvent {
        let seconds = started.elapsed().as_secs_f64();
        RunEvent::Finished { status: self.status, steps: self.steps.clone(), seconds }
    }
}

struct FinishedStep {
    summary: StepSummary,
    manifest: Option<Arc<Manifest>>,
    failure: Option<RunStatus>,
}

/// A step on its way to a result.
struct Attempt {
    summary: StepSummary,
    /// Its start, after waiting for its turn if it is computed.
    began: Instant,
}

/// Runs the plan against the store.
pub async fn run(plan: Arc<Plan>, store: Store, mut options: RunOptions) -> RunOutcome {
    let started = options.started;
    let mut record = RunRecord::new(plan.name.as_str(), plan.file.as_str());
    record.params = plan.params.clone().into();
    record.settings = options.remembered.clone().unwrap_or_default();
    let mut wanted = vec![options.select.is_none(); plan.steps.len()];
    let selected = options.select.as_deref().unwrap_or_default();
    plan.with_ancestors(selected).into_iter().for_each(|at| wanted[at] = true);
    let slots = options.env.jobs.max(1);
    let events = Arc::clone(&options.env.events);
    let progress = Arc::new(RunProgress::new(events, Arc::clone(&plan), &wanted, slots));
    options.env.events = Arc::clone(&progress) as Arc<dyn EventSink>;
    let runner = Arc::new(Runner {
        flow: DataFlow::of(&plan, &*options.env.consent),
        history: Arc::new(RunHistory::new(&store, &plan)),
        computing: Arc::new(Semaphore::new(slots)),
        recipes: Mutex::default(),
        recorded: OnceCell::new(),
        record: record.clone(),
        results: Mutex::new(vec![None; plan.steps.len()]),
        spending: RunSpending::new(&plan),
        waves: Mutex::default(),
        progress,
        wanted,
        plan,
        store,
        options,
    });
    let steps = runner.plan.steps.iter().zip(&runner.wanted).filter(|(_, wanted)| **wanted);
    runner.env().events.send(RunEvent::Started {
        workflow: runner.plan.name.clone(),
        run: record.id.clone(),
        steps: steps.map(|(step, _)| step.name.clone()).collect(),
    });
    let _ = create_private(&runner.plan.downloads); // Whoever writes there says what is wrong.
    // The files of killed runs are removed while the steps run, as they may be large.
    let swept = tokio::task::spawn_blocking(sweep);
    let _freed = give_back(runner.env().memory);
    let lock = runner.store.shared_lock().await;
    let (mut status, steps, manifests) = match &lock {
        Ok(_) => runner.schedule().await,
        Err(error) => {
            runner.warn(None, error.to_string());
            (RunStatus::CacheFailed, Vec::new(), Vec::new())
        }
    };
    if let Some(options) = &runner.options.outputs
        && (status == RunStatus::Ok || runner.options.keep_going)
    {
        let (plan, store, events) = (&*runner.plan, &runner.store, &*runner.env().events);
        let (run, done) = (record.id.as_str(), manifests.as_slice());
        let written = OutputWriter { plan, store, options, run, done }.write_all(events).await;
        if status == RunStatus::Ok {
            status = written;
        }
    }
    if let Some(remote) = &runner.options.remote {
        let Fetched { files, bytes } = remote.fetched();
        let from = remote.location().to_string();
        runner.env().events.send(RunEvent::Fetched { remote: from, files, bytes });
    }
    runner.account(&manifests);
    if let Ok(folders @ 1..) = swept.await {
        debug!(folders, "temporary folders of killed runs removed");
    }
    runner.progress.end();
    record.status = Some(status);
    record.steps = steps.clone();
    record.seconds = started.elapsed().as_secs_f64();
    if let Err(error) = runner.store.put_run(&record).await
        && status != RunStatus::CacheFailed
    {
        let all_hits = steps.iter().all(|s| s.status == StepStatus::Hit);
        if !(all_hits && error.is_forbidden()) {
            runner.warn(None, format!("the run is not recorded: {error}"));
        }
    }
    runner.store.settle().await;
    RunOutcome { status, steps, manifests }
}

pub(super) struct Runner {
    pub(super) plan: Arc<Plan>,
    pub(super) store: Store,
    pub(super) options: RunOptions,
    wanted: Vec<bool>,
    flow: DataFlow,
    /// Receives the events, and forwards them.
    progress: Arc<RunProgress>,
    history: Arc<RunHistory>,
    computing: Arc<Semaphore>,
    /// One lock for each recipe that this run computes.
    recipes: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
    /// The run is recorded when its first step is computed, so that a killed run is visible.
    recorded: OnceCell<()>,
    record: RunRecord,
    /// The results so far that may be passed on, by position in the plan.
    results: Mutex<Vec<Option<Arc<Manifest>>>>,
    pub(super) spending: RunSpending,
    /// The wave in which each step that may cost money started.
    pub(super) waves: Mutex<HashMap<usize, Arc<Wave>>>,
}

/// The number of concurrent tasks; few of them compute.
const TASKS: usize = 256;

impl Runner {
    pub(super) fn env(&self) -> &RunEnv {
        &self.options.env
    }

    pub(super) fn warn(&self, step: Option<String>, message: String) {
        tracing::warn!("{message}");
        self.env().events.send(RunEvent::Warning { step, message });
    }

    async fn schedule(
        self: &Arc<Self>,
    ) -> (RunStatus, Vec<StepSummary>, Vec<Option<Arc<Manifest>>>) {
        let (count, wanted) = (self.plan.steps.len(), &self.wanted);
        let mut downstream: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut waiting = vec![0; count];
        for (i, step) in self.plan.steps.iter().enumerate().filter(|(i, _)| wanted[*i]) {
            let upstream: HashSet<usize> = step.upstream().collect();
            waiting[i] = upstream.len();
            upstream.into_iter().for_each(|u| downstream[u].push(i));
        }
        let mut summaries: Vec<Option<StepSummary>> = vec![None; count];
        let mut status = RunStatus::Ok;
        let mut tasks: JoinSet<FinishedStep> = JoinSet::new();
        let mut running: HashMap<tokio::task::Id, usize> = HashMap::new();
        let asks = (0..count).filter(|i| wanted[*i] && may_cost(&self.plan, *i));
        let needs = asks.map(|i| {
            let mut needs = self.plan.with_ancestors(&[i]);
            needs.retain(|need| *need != i);
            (i, needs)
        });
        let mut waves = Waves::new(count, needs.collect());
        let mut ready: Vec<usize> = (0..count).filter(|i| wanted[*i] && waiting[*i] == 0).collect();
        ready.reverse();
        loop {
            let stop = self.env().cancel.is_cancelled()
                || (status != RunStatus::Ok && !self.options.keep_going)
                || status == RunStatus::CacheFailed;
            while !stop && tasks.len() < TASKS {
                let Some(i) = ready.pop() else {
                    let Some(wave) = waves.release() else { break };
                    ready = self.starts(&wave);
                    continue;
                };
                if waves.park(i) {
                    continue;
                }
                let runner = Arc::clone(self);
                let planned = &self.plan.steps[i];
                let operator = planned.operator.descriptor().name;
                let span = info_span!("step", name = planned.name.as_str(), operator);
                let work = async move { runner.step(i).await };
                let task = tasks.spawn(work.instrument(span));
                running.insert(task.id(), i);
            }
            let joined = tokio::select! {
                joined = tasks.join_next_with_id() => joined,
                () = self.env().cancel.cancelled(), if !tasks.is_empty() => {
                    // Dropping a task ends it at its next await; it leaves finished parts and
                    // temporary files.
                    tasks.shutdown().await;
                    None
                }
            };
            let ended = match joined {
                None => break,
                Some(Ok((id, finished))) => running.remove(&id).map(|i| (i, finished)),
                // A defect, but only of this step.
                Some(Err(error)) => running.remove(&error.id()).map(|i| {
                    let mut summary = self.summary(i, StepStatus::Failed);
                    summary.detail = Some(format!("a defect in the operator: {error}"));
                    let failure = Some(RunStatus::Failed);
                    (i, FinishedStep { summary, manifest: None, failure })
                }),
            };
            match ended {
                None => status = RunStatus::Failed,
                Some((i, finished)) => {
                    self.env().events.send(RunEvent::StepFinished(finished.summary.clone()));
                    summaries[i] = Some(finished.summary);
                    waves.ended(i, finished.failure.is_some());
                    // A table that fails its tests is neither passed on nor written as an output.
                    let result = finished.manifest.filter(|_| finished.failure.is_none());
                    locked(&self.results)[i] = result;
                    match finished.failure {
                        Some(failure) => status = status.worse(failure),
                        None => {
                            for next in &downstream[i] {
                                waiting[*next] -= 1;
                                if waiting[*next] == 0 {
                                    ready.push(*next);
                                }
                            }
                        }
                    }
                }
            }
        }
        if self.env().cancel.is_cancelled() {
            status = RunStatus::Interrupted;
        }
        for i in (0..count).filter(|i| wanted[*i]) {
            if summaries[i].is_none() {
                let summary = self.summary(i, StepStatus::Skipped);
                self.env().events.send(RunEvent::StepFinished(summary.clone()));
                summaries[i] = Some(summary);
            }
        }
        (
            status,
            summaries.into_iter().flatten().collect(),
            std::mem::take(&mut *locked(&self.results)),
        )
    }

    fn summary(&self, i: usize, status: StepStatus) -> StepSummary {
        let step = &self.plan.steps[i];
        StepSummary::new(&step.name, status, step.step.work_unit())
    }

    async fn step(&self, i: usize) -> FinishedStep {
        let mut done = self.inputs_of(i);
        let mut attempt =
            Attempt { summary: self.summary(i, StepStatus::Hit), began: Instant::now() };
        let result = self.manifest(i, &done, &mut attempt).await;
        let Attempt { mut summary, began } = attempt;
        summary.seconds = began.elapsed().as_secs_f64();
        let manifest = match result {
            Ok(manifest) => Arc::new(manifest),
            Err(error) => {
                summary.status = StepStatus::Failed;
                let mut detail = error.explained();
                if let Some(cause) = empty_input(&self.plan, &locked(&self.results), i) {
                    detail = format!("{detail}\n{cause}");
                }
                summary.detail = Some(detail);
                debug!("failed: {error}");
                let failure = match &error {
                    _ if error.is_interruption() => RunStatus::Interrupted,
                    _ if error.blames_disk() => RunStatus::CacheFailed,
                    _ => RunStatus::Failed,
                };
                return FinishedStep { summary, manifest: None, failure: Some(failure) };
            }
        };
        summary.key = Some(manifest.key);
        summary.ports = manifest
            .ports
            .iter()
            .map(|p| PortSummary { port: p.port.clone(), digest: p.digest, rows: p.rows })
            .collect();
        if let Some(main) = manifest.ports.first() {
            summary.rows = main.rows;
            summary.digest = Some(main.digest);
        }
        match summary.status {
            StepStatus::Hit => summary.reused_rows = manifest.computed_rows + manifest.reused_rows,
            _ => {
                summary.computed_rows = manifest.computed_rows;
                summary.reused_rows = manifest.reused_rows;
            }
        }
        done[i] = Some(Arc::clone(&manifest));
        let failure =
            check_all(&self.plan, i, &self.store, &done, &*self.env().events, &mut summary).await;
        summary.seconds = began.elapsed().as_secs_f64();
        FinishedStep { summary, manifest: Some(manifest), failure }
    }

    /// The stored or computed result of a step. If that fails because a stored file of an input is
    /// damaged, the input is recomputed first.
    async fn manifest(
        &self,
        i: usize,
        done: &StepManifests,
        attempt: &mut Attempt,
    ) -> Result<Manifest, RunError> {
        match self.attempt(i, done, attempt).await {
            Err(RunError::Step(error)) => match self.repaired_inputs(i, done).await? {
                Some(done) => self.attempt(i, &done, attempt).await,
                None => Err(error.into()),
            },
            other => other,
        }
    }

    /// The ports that outputs need. A report may show every table.
    fn written_ports(&self, i: usize) -> HashSet<&str> {
        let Some(_) = &self.options.outputs else { return HashSet::new() };
        if self.plan.report.file.is_some() && self.options.select.is_none() {
            return self.plan.steps[i].step.ports().iter().map(|port| port.name).collect();
        }
        let tables = self.plan.outputs.iter().flat_map(|output| &output.input.tables);
        tables.filter(|table| table.step == i).map(|table| table.port).collect()
    }

    /// One attempt to find or compute a step's result. Releases all locks.
    async fn attempt(
        &self,
        i: usize,
        done: &StepManifests,
        attempt: &mut Attempt,
    ) -> Result<Manifest, RunError> {
        let step = &self.plan.steps[i];
        let step_key = tokio::task::block_in_place(|| step_key(&self.plan, step, done))?;
        let key = step_key.preimage.key();
        let remote = self.options.remote.as_ref();
        debug!(%key, version = step_key.preimage.version, "action key");
        let forced = self.options.force.contains(&i);
        let mut stored = match forced {
            true => Lookup::Miss,
            false => lookup(&self.store, step, &key).await?,
        };
        if let Lookup::Hit(manifest) = stored {
            debug!("hit");
            return Ok(*manifest);
        }
        if let (Some(remote), false) = (remote, forced)
            && let Some(manifest) =
                remote.manifest(&self.plan, i, &key, Some(&*self.env().events)).await
        {
            let ports = self.written_ports(i);
            let (plan, store, events) = (&self.plan, &self.store, &*self.env().events);
            if remote.take(plan, i, &manifest, &ports, store, events).await? {
                debug!("hit of the remote");
                attempt.summary.remote = true;
                return Ok((*manifest).clone());
            }
        }
        if let Some(remote) = remote
            && !remote.fetch_inputs(&self.plan, i, done, &self.store, &*self.env().events).await?
        {
            // First the missing inputs are computed, then this step.
            return Err(StepError::new("tables of its inputs are missing").into());
        }
        self.say_what_is_asked(i).await;
        self.progress.queued(i);
        let turn = Arc::clone(&self.computing).acquire_owned().await;
        let turn = turn.map_err(|_| RunError::Interrupted)?;
        let waits = || {
            self.warn(Some(step.name.clone()), "waiting for another run of the same step".into());
        };
        // Only one run computes a recipe at a time; the other then finds the rows in the store.
        // Steps of this run queue up first, so that only another run can hold the lock.
        let recipe = step_key.preimage.recipe();
        let queue = Arc::clone(locked(&self.recipes).entry(recipe).or_default());
        let _queue = queue.lock().await;
        let name = recipe.to_string();
        let _lock = self.store.lock(&name, waits).await?;
        if !forced {
            stored = lookup(&self.store, step, &key).await?;
        }
        let (reason, detail) = match stored {
            Lookup::Hit(manifest) => {
                debug!("hit: another run has computed it meanwhile");
                return Ok(*manifest);
            }
            Lookup::Retry(manifest) => (Reason::PrevFailed, Some(retry_reason(&manifest))),
            _ if forced => (Reason::Forced, None),
            Lookup::Incomplete(files) => {
                self.warn(Some(step.name.clone()), format!("{files}; computing again"));
                self.forget_descendants(&step.name, &files.damaged).await?;
                (Reason::BlobMissing, Some(files.to_string()))
            }
            Lookup::Unfit(cause) => {
                let detail = unfit(&cause);
                self.warn(Some(step.name.clone()), format!("{detail}; computing again"));
                (Reason::BlobMissing, Some(detail))
            }
            Lookup::Miss => reason_to_run(&self.history, step, &step_key).await,
        };
        debug!(reason = reason.code(), detail = detail.as_deref(), %recipe, "runs");
        self.recorded
            .get_or_init(|| async {
                let _ = self.store.put_run(&self.record).await;
                self.progress.begin(&self.history, &self.store, &self.options.force);
            })
            .await;
        attempt.began = Instant::now();
        attempt.summary.status = StepStatus::Ran;
        attempt.summary.reason = Some(reason);
        attempt.summary.detail = detail.clone();
        self.env().events.send(RunEvent::StepStarted {
            step: step.name.clone(),
            reason,
            detail,
            unit: step.step.work_unit(),
        });
        let budget = self.spending.budget(i);
        let beside = self.plan.independent_of(i, &self.wanted, self.env().jobs.max(1) - 1);
        let memory = self.env().memory / (beside + 1);
        let consent = self.flow.consent(i, &self.env().consent);
        let env = RunEnv { memory, consent, ..self.env().clone() };
        let bytes = input_size(step, done).map(|(_, bytes)| bytes);
        let task = StepTask::of(&self.plan, step);
        let cx = StepContext::new(&task, &self.store, &env, budget, bytes, forced)?;
        let engine = &*self.options.engine;
        compute(&self.plan, i, &step_key, done, (&cx, engine), turn).await
    }

    /// The results that a step reads, by position in the plan, and `None` elsewhere: copying all of
    /// them for every step would take quadratic time.
    pub(super) fn inputs_of(&self, step: usize) -> Vec<Option<Arc<Manifest>>> {
        let results = locked(&self.results);
        let mut found = vec![None; results.len()];
        self.plan.steps[step].upstream().for_each(|at| found[at].clone_from(&results[at]));
        found
    }

    /// The manifests of a step's inputs, after those with damaged files were recomputed; `None` if
    /// no file is damaged.
    async fn repaired_inputs(
        &self,
        i: usize,
        done: &StepManifests,
    ) -> Result<Option<Vec<Option<Arc<Manifest>>>>, RunError> {
        // The inputs' own inputs are also needed.
        let mut done: Vec<_> = {
            let results = locked(&self.results);
            let both = done.iter().zip(results.iter());
            both.map(|(known, stored)| known.clone().or_else(|| stored.clone())).collect()
        };
        let mut repaired = false;
        for upstream in self.plan.steps[i].upstream() {
            let Some(manifest) = done[upstream].clone() else { continue };
            let unsound = self.store.unsound_blobs(&manifest, VerifyLevel::Hashed).await?;
            if unsound.is_empty() {
                continue;
            }
            let name = self.plan.steps[upstream].name.clone();
            let unsound = UnsoundFiles::of(unsound);
            self.warn(Some(name.clone()), format!("{unsound}; computing again"));
            self.store.forget(&manifest.key).await?;
            self.forget_descendants(&name, &unsound.damaged).await?;
            let summary = self.summary(upstream, StepStatus::Ran);
            let mut again = Attempt { summary, began: Instant::now() };
            done[upstream] =
                Some(Arc::new(Box::pin(self.manifest(upstream, &done, &mut again)).await?));
            repaired = true;
        }
        Ok(repaired.then_some(done))
    }

    /// Removes everything ever computed from these damaged files, as the damage may be old.
    async fn forget_descendants(&self, step: &str, damaged: &[Digest]) -> Result<(), RunError> {
        if damaged.is_empty() {
            return Ok(());
        }
        let forgotten = self.store.forget_descendants(damaged).await?;
        if !forgotten.steps.is_empty() {
            let steps = forgotten.steps.join(", ");
            let message = format!("what was computed from damaged files is forgotten: {steps}");
            self.warn(Some(step.to_string()), message);
        }
        Ok(())
    }
}
