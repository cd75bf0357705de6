//! Computes one step: opens its inputs, lowers it, stores its tables, and the manifest last.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use futures::future::try_join_all;
use tokio::sync::OwnedSemaphorePermit;

use super::context::StepContext;
use super::error::RunError;
use super::input::{blobs, input_order, input_size, open};
use super::key::{StepKey, StepManifests, step_key};
use super::row_step::{RowCounts, RowInput, RowRun};
use super::{fan_out_step, paid_step, row_step};
use crate::digest::Digest;
use crate::operator::{Lowering, Port, Ports, StepError, StepErrorKind};
use crate::plan::{Plan, PlannedStep};
use crate::session::{guarded, open_table, ordered_session};
use crate::store::{MANIFEST_VERSION, Manifest, ManifestLabels, PortArtifact, timestamp};
use crate::workflow::quote;

/// Computes a step and stores its result; the manifest comes last. Its turn to compute ends when it
/// only waits for the disk: steps side by side wait together for what each would wait for alone. A
/// panic on the way is an error of this step: mostly a library that reads a damaged file.
pub(super) async fn compute(
    plan: &Plan,
    at: usize,
    key: &StepKey,
    done: &StepManifests,
    cx: &StepContext,
    turn: OwnedSemaphorePermit,
) -> Result<Manifest, RunError> {
    let panic = match guarded(computed(plan, at, key, done, cx, turn)).await {
        Ok(ended) => return ended.map_err(|error| with_file(error, &plan.steps[at], key)),
        Err(panic) => panic,
    };
    let error = StepError::new(format!("a library gave up while the step was computed: {panic}"));
    let files: Vec<String> = key.files.iter().map(|file| format!("`{}`", file.name)).collect();
    if files.is_empty() {
        return Err(error.into());
    }
    Err(error.help(format!("{} may be damaged", files.join(", "))).into())
}

/// A library that reads a file knows the line at best: of a step that reads one file and no table,
/// the error names it.
fn with_file(error: RunError, step: &PlannedStep, key: &StepKey) -> RunError {
    match (error, key.files.as_slice()) {
        (RunError::Step(error), [file])
            if error.kind() == StepErrorKind::DataFusion && step.inputs.is_empty() =>
        {
            error.while_doing(&format!("cannot read {}", quote(&file.name))).into()
        }
        (error, _) => error,
    }
}

async fn computed(
    plan: &Plan,
    at: usize,
    key: &StepKey,
    done: &StepManifests,
    cx: &StepContext,
    turn: OwnedSemaphorePermit,
) -> Result<Manifest, RunError> {
    let started = Instant::now();
    let step = &plan.steps[at];
    require_consent(step, cx)?;
    let mut inputs = BTreeMap::new();
    let session = match step.step.lowering() {
        // Keeps the order of stored rows.
        Lowering::Row(_) => ordered_session(cx.jobs),
        Lowering::FanOut(_) | Lowering::Paid(_) | Lowering::Table(_) => cx.lower.session.clone(),
    };
    for input in &step.inputs {
        cx.reads(blobs(input, done));
        let df = open(&session, &cx.store, plan, input, done)?;
        inputs.insert(input.port.clone(), df);
    }
    let turn = Turn::new(turn);
    let writer = PortWriter { step, cx, turn: &turn };
    let (artifacts, counts) = match step.step.lowering() {
        Lowering::Row(row) => {
            let input = inputs.into_values().next();
            let stored = input_size(step, done).map(|(rows, _)| rows);
            let input = RowInput { rows: input, stored, order: input_order(step, done) };
            let run = row_step::open(cx, row, input, key.preimage.recipe()).await?;
            let (artifacts, counts) = writer.row_ports(run).await?;
            (artifacts, Some((counts.computed, counts.reused)))
        }
        Lowering::FanOut(fan_out) => {
            let input = inputs.into_values().next();
            let input = input.ok_or_else(|| StepError::new("the operator needs an input"))?;
            let recipe = key.preimage.recipe();
            let result = fan_out_step::run(cx, fan_out, input, recipe).await?;
            (writer.ports(result.ports, false).await?, Some((result.computed, result.reused)))
        }
        Lowering::Paid(paid) => {
            let recipe = key.preimage.recipe();
            let result = paid_step::run(cx, paid, inputs, recipe).await?;
            (writer.ports(result.ports, false).await?, Some((result.computed, result.reused)))
        }
        Lowering::Table(table) => {
            (writer.ports(table.lower(&cx.lower, inputs).await?, true).await?, None)
        }
    };
    // A file that changed while it was read may have given a mixture of both.
    let key_now = step_key(plan, step, done)?;
    if key_now.preimage.files != key.preimage.files {
        return Err(StepError::new("a file changed while it was being read")
            .help("run again when it no longer changes")
            .into());
    }
    let rows = artifacts.first().map_or(0, |a| a.rows);
    let (computed_rows, reused_rows) = counts.unwrap_or((rows, 0));
    let manifest = Manifest {
        format: MANIFEST_VERSION,
        key: key.preimage.key(),
        preimage: key.preimage.clone(),
        labels: ManifestLabels {
            step: step.name.clone(),
            workflow: plan.name.clone(),
            file_names: key.files.iter().map(|f| f.name.clone()).collect(),
        },
        created: timestamp(),
        seconds: started.elapsed().as_secs_f64(),
        computed_rows,
        reused_rows,
        retry_rows: cx.lower.retry.load(Ordering::Relaxed),
        ports: artifacts,
        reads: cx.all_reads(),
    };
    cx.store.put_manifest(&manifest).await?;
    tracing::debug!(
        rows,
        computed = computed_rows,
        reused = reused_rows,
        retry = manifest.retry_rows,
        "result stored"
    );
    Ok(manifest)
}

/// Computes just these rows of a row step and stores their tables, of which no manifest tells.
pub(super) async fn compute_rows(
    step: &PlannedStep,
    recipe: Digest,
    input: RowInput,
    cx: &StepContext,
    turn: OwnedSemaphorePermit,
) -> Result<Vec<PortArtifact>, RunError> {
    let Lowering::Row(row) = step.step.lowering() else {
        return Err(StepError::new("a defect: the step does not compute row by row").into());
    };
    require_consent(step, cx)?;
    let turn = Turn::new(turn);
    let writer = PortWriter { step, cx, turn: &turn };
    let computed = async {
        let run = row_step::open(cx, row, input, recipe).await?;
        Ok::<_, RunError>(writer.row_ports(run).await?.0)
    };
    let gave_up = |panic| format!("a library gave up while rows were computed: {panic}");
    guarded(computed).await.map_err(|panic| StepError::new(gave_up(panic)))?
}

fn require_consent(step: &PlannedStep, cx: &StepContext) -> Result<(), RunError> {
    for demand in step.step.demands() {
        if let Some(refused) = cx.lower.consent.refusal(&demand.access) {
            let message = format!("the step {}", refused.message);
            return Err(StepError::new(message).help(refused.help).into());
        }
    }
    Ok(())
}

/// The turn of a step to compute, which ends when its last table is encoded.
struct Turn(Mutex<Option<OwnedSemaphorePermit>>);

impl Turn {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Mutex::new(Some(permit)))
    }

    fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Stores the tables of a step.
struct PortWriter<'a> {
    step: &'a PlannedStep,
    cx: &'a StepContext,
    turn: &'a Turn,
}

impl PortWriter<'_> {
    fn port(&self, name: &str) -> Result<&Port, StepError> {
        let missing = || StepError::new(format!("the operator has no port {name}"));
        self.step.port(name).ok_or_else(missing)
    }

    /// One table after the other. The rows of the first are the progress of the step, if `counts`.
    async fn ports(&self, ports: Ports, counts: bool) -> Result<Vec<PortArtifact>, RunError> {
        let mut artifacts = Vec::with_capacity(ports.len());
        let last = ports.len().saturating_sub(1);
        for (at, (name, df)) in ports.into_iter().enumerate() {
            let rows = AtomicU64::new(0);
            let on_rows = |n| {
                let before = rows.fetch_add(n, Ordering::Relaxed);
                if counts && at == 0 {
                    self.cx.progress(before + n);
                }
            };
            let on_encoded = || {
                if at == last {
                    self.turn.end();
                }
            };
            let table = open_table(df, &self.port(name)?.table).await?;
            let (store, threads) = (&self.cx.store, self.cx.jobs);
            artifacts.push(table.store(name, store, threads, on_rows, on_encoded).await?);
        }
        Ok(artifacts)
    }

    /// All tables of a row step while its rows are computed.
    async fn row_ports(
        &self,
        mut run: RowRun<'_>,
    ) -> Result<(Vec<PortArtifact>, RowCounts), RunError> {
        let mut tables = Vec::with_capacity(run.ports.len());
        for (name, df) in std::mem::take(&mut run.ports) {
            tables.push((name, open_table(df, &self.port(name)?.table).await?));
        }
        let left = AtomicUsize::new(tables.len());
        let on_encoded = || {
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.turn.end();
            }
        };
        let mut stored = Vec::with_capacity(tables.len());
        for (name, table) in tables {
            stored.push(table.store(name, &self.cx.store, self.cx.jobs, |_| {}, on_encoded));
        }
        let stored = async { Ok::<_, RunError>(try_join_all(stored).await?) };
        let (counts, artifacts) = tokio::try_join!(run.compute(), stored)?;
        Ok((artifacts, counts))
    }
}
