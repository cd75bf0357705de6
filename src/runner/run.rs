//! The scheduler: independent steps side by side, failures kept to what depends on them.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span};

use super::check::{check, violation};
use super::compute::compute;
use super::context::{Resources, StepContext, Surroundings};
use super::error::RunError;
use super::key::step_key;
use super::lookup::{Lookup, UnsoundFiles, lookup, retry_reason};
use super::output;
use super::reason::RunHistory;
use super::results::RunResults;
use crate::digest::Digest;
use crate::event::{EventSink, PortSummary, Reason, RunEvent, RunStatus, StepStatus, StepSummary};
use crate::operator::Consent;
use crate::plan::Plan;
use crate::scratch::sweep;
use crate::store::{Manifest, RunRecord, RunSettings, Scrutiny, Store, StoreErrorKind};
use crate::workflow::AssertSeverity;

/// How to run a plan.
pub struct RunOptions {
    /// Threads, which are also the steps that are computed side by side, and memory.
    pub resources: Resources,
    /// The positions of the steps that are wanted, with all they need; `None` for all.
    pub select: Option<Vec<usize>>,
    /// The positions of steps that are computed even if their result is stored.
    pub force: HashSet<usize>,
    /// Whether output files are written.
    pub outputs: bool,
    /// What later commands go by, if it is this run that they go by.
    pub remembered: Option<RunSettings>,
    /// After a failure go on with the steps that do not depend on it.
    pub keep_going: bool,
    /// The folder of the output files.
    pub out: PathBuf,
    /// Cancelled to stop the run.
    pub cancel: CancellationToken,
    /// What the user agreed to: a step that may do anything else to the machine fails.
    pub consent: Arc<dyn Consent>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
}

/// How a run ended, and what it left.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// How the run as a whole ended.
    pub status: RunStatus,
    /// How the wanted steps ended, in the order of the plan.
    pub steps: Vec<StepSummary>,
    /// The stored results by position in the plan; `None` for a step that was not wanted, or
    /// that has no result that may be passed on.
    pub manifests: Vec<Option<Arc<Manifest>>>,
}

/// What a step's task returns.
struct FinishedStep {
    summary: StepSummary,
    manifest: Option<Arc<Manifest>>,
    failure: Option<RunStatus>,
}

/// Runs the plan against the store.
pub async fn run(plan: Arc<Plan>, store: Store, options: RunOptions) -> RunOutcome {
    let started = Instant::now();
    let mut record = RunRecord::new(plan.name.as_str(), plan.file.as_str());
    record.params = plan.params.clone().into();
    record.remember(options.remembered.as_ref());
    let runner = Arc::new(Runner {
        history: RunHistory::new(&store, &plan.name),
        computing: Arc::new(Semaphore::new(options.resources.jobs.max(1))),
        recipes: Mutex::default(),
        recorded: tokio::sync::OnceCell::new(),
        record: record.clone(),
        results: RunResults::new(plan.steps.len()),
        plan,
        store,
        options,
    });
    let names = runner.plan.steps.iter().map(|s| s.name.clone()).collect();
    runner.options.events.send(RunEvent::Started {
        workflow: runner.plan.name.clone(),
        run: record.id.clone(),
        steps: names,
    });
    // What killed runs left goes while the steps run; it may be large.
    let swept = tokio::task::spawn_blocking(sweep);
    let lock = runner.store.shared_lock().await;
    let (mut status, steps, manifests) = match &lock {
        Ok(_) => runner.schedule().await,
        Err(error) => {
            runner.warn(None, error.to_string());
            (RunStatus::CacheFailed, Vec::new(), Vec::new())
        }
    };
    if runner.options.outputs && (status == RunStatus::Ok || runner.options.keep_going) {
        let written = runner.outputs(&manifests).await;
        if status == RunStatus::Ok {
            status = written;
        }
    }
    if let Ok(folders @ 1..) = swept.await {
        debug!(folders, "temporary folders of killed runs removed");
    }
    let seconds = started.elapsed().as_secs_f64();
    record.status = Some(status);
    record.steps = steps.clone();
    record.seconds = seconds;
    if let Err(error) = runner.store.put_run(&record).await
        && status != RunStatus::CacheFailed
    {
        let all_hits = steps.iter().all(|s| s.status == StepStatus::Hit);
        if !(all_hits && error.kind() == StoreErrorKind::ReadOnly) {
            runner.warn(None, format!("the run is not recorded: {error}"));
        }
    }
    runner.options.events.send(RunEvent::Finished { status, steps: steps.clone(), seconds });
    RunOutcome { status, steps, manifests }
}

struct Runner {
    plan: Arc<Plan>,
    store: Store,
    options: RunOptions,
    history: RunHistory,
    computing: Arc<Semaphore>,
    /// One lock for each recipe that this run computes.
    recipes: Mutex<HashMap<Digest, Arc<Mutex<()>>>>,
    /// The run is recorded when its first step is computed, so that a kill leaves a trace.
    recorded: tokio::sync::OnceCell<()>,
    record: RunRecord,
    results: RunResults,
}

/// Steps whose tasks are there at the same time; few of them compute.
const TASKS: usize = 256;

impl Runner {
    fn warn(&self, step: Option<String>, message: String) {
        tracing::warn!("{message}");
        self.options.events.send(RunEvent::Warning { step, message });
    }

    async fn schedule(
        self: &Arc<Self>,
    ) -> (RunStatus, Vec<StepSummary>, Vec<Option<Arc<Manifest>>>) {
        let count = self.plan.steps.len();
        let wanted: Vec<bool> = match &self.options.select {
            None => vec![true; count],
            Some(steps) => {
                let needed = self.plan.with_ancestors(steps);
                (0..count).map(|i| needed.contains(&i)).collect()
            }
        };
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
        let mut ready: Vec<usize> = (0..count).filter(|i| wanted[*i] && waiting[*i] == 0).collect();
        ready.reverse();
        loop {
            let stop = self.options.cancel.is_cancelled()
                || (status != RunStatus::Ok && !self.options.keep_going)
                || status == RunStatus::CacheFailed;
            while !stop && tasks.len() < TASKS {
                let Some(i) = ready.pop() else { break };
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
                () = self.options.cancel.cancelled(), if !tasks.is_empty() => {
                    // Dropping a task ends it at its next await; what it wrote so far are
                    // finished parts and temporary files.
                    tasks.shutdown().await;
                    None
                }
            };
            let ended = match joined {
                None => break,
                Some(Ok((id, finished))) => running.remove(&id).map(|i| (i, finished)),
                Some(Err(error)) => {
                    running.remove(&error.id()).map(|i| (i, self.panicked(i, error)))
                }
            };
            match ended {
                None => status = RunStatus::Failed,
                Some((i, finished)) => {
                    self.options.events.send(RunEvent::StepFinished(finished.summary.clone()));
                    summaries[i] = Some(finished.summary);
                    // A table that fails its tests is not passed on, nor written as an output.
                    let result = finished.manifest.filter(|_| finished.failure.is_none());
                    self.results.put(i, result);
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
        if self.options.cancel.is_cancelled() {
            status = RunStatus::Interrupted;
        }
        for i in (0..count).filter(|i| wanted[*i]) {
            if summaries[i].is_none() {
                let summary = self.summary(i, StepStatus::Skipped);
                self.options.events.send(RunEvent::StepFinished(summary.clone()));
                summaries[i] = Some(summary);
            }
        }
        (status, summaries.into_iter().flatten().collect(), self.results.take())
    }

    /// The end of a step whose task panicked: a defect, but only of this step.
    fn panicked(&self, i: usize, error: tokio::task::JoinError) -> FinishedStep {
        let mut summary = self.summary(i, StepStatus::Failed);
        summary.detail = Some(format!("a defect in the operator: {error}"));
        FinishedStep { summary, manifest: None, failure: Some(RunStatus::Failed) }
    }

    fn summary(&self, i: usize, status: StepStatus) -> StepSummary {
        StepSummary {
            step: self.plan.steps[i].name.clone(),
            status,
            reason: None,
            detail: None,
            rows: 0,
            computed_rows: 0,
            reused_rows: 0,
            digest: None,
            ports: Vec::new(),
            seconds: 0.0,
            key: None,
        }
    }

    async fn step(&self, i: usize) -> FinishedStep {
        let started = Instant::now();
        let mut done = self.results.of(self.plan.steps[i].upstream());
        let mut summary = self.summary(i, StepStatus::Hit);
        let result = self.manifest(i, &done, &mut summary).await;
        summary.seconds = started.elapsed().as_secs_f64();
        let manifest = match result {
            Ok(manifest) => Arc::new(manifest),
            Err(error) => {
                summary.status = StepStatus::Failed;
                summary.detail = Some(error.explained());
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
        let failure = self.checks(i, &done, &mut summary).await;
        summary.seconds = started.elapsed().as_secs_f64();
        FinishedStep { summary, manifest: Some(manifest), failure }
    }

    /// The stored result of a step: found, or computed. If that fails because a stored file
    /// of an input is damaged, the input is computed again first.
    async fn manifest(
        &self,
        i: usize,
        done: &[Option<Arc<Manifest>>],
        summary: &mut StepSummary,
    ) -> Result<Manifest, RunError> {
        match self.attempt(i, done, summary).await {
            Err(RunError::Step(error)) => match self.repaired_inputs(i, done).await? {
                Some(done) => self.attempt(i, &done, summary).await,
                None => Err(error.into()),
            },
            other => other,
        }
    }

    /// One attempt at the stored result of a step. No lock outlives it.
    async fn attempt(
        &self,
        i: usize,
        done: &[Option<Arc<Manifest>>],
        summary: &mut StepSummary,
    ) -> Result<Manifest, RunError> {
        let step = &self.plan.steps[i];
        let step_key = tokio::task::block_in_place(|| step_key(&self.plan, step, done))?;
        let key = step_key.preimage.key();
        debug!(%key, version = step_key.preimage.version, "action key");
        let forced = self.options.force.contains(&i);
        let mut stored = if forced { Lookup::Miss } else { lookup(&self.store, &key).await? };
        match stored {
            Lookup::Hit(manifest) if manifest.retry_rows == 0 => {
                debug!("hit");
                return Ok(*manifest);
            }
            _ => {}
        }
        let turn = Arc::clone(&self.computing).acquire_owned().await;
        let turn = turn.map_err(|_| RunError::Interrupted)?;
        let waits = || {
            self.warn(Some(step.name.clone()), "waiting for another run of the same step".into());
        };
        // One at a time computes a recipe; the other then finds the rows in the store. Steps of
        // this run queue up first, so that the lock is only ever held by another run.
        let recipe = step_key.preimage.recipe();
        let queue = Arc::clone(self.recipes.lock().await.entry(recipe).or_default());
        let _queue = queue.lock().await;
        let name = recipe.to_string();
        let _lock = self.store.lock(&name, waits).await?;
        if !forced {
            stored = lookup(&self.store, &key).await?;
        }
        let (reason, detail) = match stored {
            Lookup::Hit(manifest) if manifest.retry_rows == 0 => {
                debug!("hit: another run has computed it meanwhile");
                return Ok(*manifest);
            }
            Lookup::Hit(manifest) => (Reason::PrevFailed, Some(retry_reason(&manifest))),
            _ if forced => (Reason::Forced, None),
            Lookup::Incomplete(files) => {
                self.warn(Some(step.name.clone()), format!("{files}; computing again"));
                self.forget_descendants(&step.name, &files.damaged).await?;
                (Reason::BlobMissing, Some(files.to_string()))
            }
            Lookup::Miss => self.history.explain(step, &step_key).await,
        };
        debug!(reason = reason.code(), detail = detail.as_deref(), %recipe, "runs");
        self.recorded
            .get_or_init(|| async {
                let _ = self.store.put_run(&self.record).await;
            })
            .await;
        summary.status = StepStatus::Ran;
        summary.reason = Some(reason);
        summary.detail = detail.clone();
        self.options.events.send(RunEvent::StepStarted {
            step: step.name.clone(),
            reason,
            detail,
            total: None,
        });
        let RunOptions { events, cancel, consent, resources, .. } = &self.options;
        let surroundings = Surroundings { events, cancel, consent, resources: *resources };
        let cx = StepContext::new(&self.plan, step, &self.store, surroundings, forced)?;
        compute(&self.plan, i, &step_key, done, &cx, turn).await
    }

    /// The manifests of the inputs of a step, after those with damaged files were computed
    /// again; `None` if no file is damaged.
    async fn repaired_inputs(
        &self,
        i: usize,
        done: &[Option<Arc<Manifest>>],
    ) -> Result<Option<Vec<Option<Arc<Manifest>>>>, RunError> {
        // What the inputs themselves were computed from is needed as well.
        let mut done = self.results.beside(done);
        let mut repaired = false;
        for upstream in self.plan.steps[i].upstream() {
            let Some(manifest) = done[upstream].clone() else { continue };
            let unsound = self.store.unsound_blobs(&manifest, Scrutiny::Hashed).await?;
            if unsound.is_empty() {
                continue;
            }
            let name = self.plan.steps[upstream].name.clone();
            let unsound = UnsoundFiles::of(unsound);
            self.warn(Some(name.clone()), format!("{unsound}; computing again"));
            self.store.forget(&manifest.key).await?;
            self.forget_descendants(&name, &unsound.damaged).await?;
            let mut summary = self.summary(upstream, StepStatus::Ran);
            done[upstream] =
                Some(Arc::new(Box::pin(self.manifest(upstream, &done, &mut summary)).await?));
            repaired = true;
        }
        Ok(repaired.then_some(done))
    }

    /// What was computed from damaged files of this step is computed anew, whenever it was: the
    /// damage may be older.
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

    /// Runs the data tests; the worst outcome counts.
    async fn checks(
        &self,
        i: usize,
        done: &[Option<Arc<Manifest>>],
        summary: &mut StepSummary,
    ) -> Option<RunStatus> {
        let mut failure = None;
        for test in &self.plan.steps[i].checks {
            let problem = match check(&self.plan, i, test, &self.store, done).await {
                Ok(None) => continue,
                Ok(Some(problem)) => problem,
                Err(error) => {
                    summary.status = StepStatus::Failed;
                    summary.detail = Some(error.explained());
                    return Some(RunStatus::Failed);
                }
            };
            let message = violation(test, &problem);
            let severity = test.severity;
            self.options.events.send(RunEvent::Assertion {
                step: self.plan.steps[i].name.clone(),
                severity: if severity == AssertSeverity::Error { "error" } else { "warn" }.into(),
                message: message.clone(),
            });
            if severity == AssertSeverity::Error {
                summary.status = StepStatus::Failed;
                summary.detail = Some(format!("assertion failed: {message}"));
                failure = Some(RunStatus::AssertFailed);
            }
        }
        failure
    }

    async fn outputs(&self, done: &[Option<Arc<Manifest>>]) -> RunStatus {
        let mut status = RunStatus::Ok;
        for planned in &self.plan.outputs {
            let complete =
                planned.input.tables.iter().all(|t| done.get(t.step).is_some_and(Option::is_some));
            if !complete {
                continue;
            }
            match output::write(&self.plan, planned, &self.options.out, &self.store, done).await {
                Ok(written) => self.options.events.send(RunEvent::Output {
                    output: planned.name.clone(),
                    path: written.path.display().to_string(),
                    rows: written.rows,
                    written: written.written,
                }),
                Err(error) => {
                    let message = format!("output {}: {}", planned.name, error.explained());
                    self.warn(None, message);
                    let rows = matches!(error, RunError::Rows(_));
                    let failed = if rows { RunStatus::Failed } else { RunStatus::CacheFailed };
                    status = status.worse(failed);
                }
            }
        }
        status
    }
}
