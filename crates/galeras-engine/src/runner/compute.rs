//! Computes one step, here or on the engine: opens inputs, lowers the operator, stores its tables
//! and then the manifest.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use datafusion::dataframe::DataFrame;
use futures::future::try_join_all;
use tokio::sync::OwnedSemaphorePermit;

use super::context::StepContext;
use super::error::RunError;
use super::input::StoredInput;
use super::key::{StepKey, StepManifests, step_key};
use super::row_step::{RowCounts, RowInput, RowRun};
use super::spread::{Engine, spread};
use super::{fan_out_step, paid_step, row_step};
use crate::locked;
use crate::plan::{Plan, PlannedStep};
use galeras_base::digest::Digest;
use galeras_operator::{BoundStep, Lowering, Port, Ports, StepError, StepErrorKind};
use galeras_sql::session::{OpenTable, guarded, open_table, ordered_session};
use galeras_store::{MANIFEST_VERSION, Manifest, ManifestLabels, PortArtifact, timestamp};
use galeras_workflow::quote;

/// Computes a step and stores its result, the manifest last. A panic is an error of this step:
/// usually a library that reads a damaged file.
pub(super) async fn compute(
    plan: &Plan,
    at: usize,
    key: &StepKey,
    done: &StepManifests,
    (cx, engine): (&StepContext, &dyn Engine),
    turn: OwnedSemaphorePermit,
) -> Result<Manifest, RunError> {
    let panic = match guarded(computed(plan, at, key, done, (cx, engine), turn)).await {
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

/// Adds the name of the file to an error if the step reads one file and no table: a library that
/// reads it knows at most the line.
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
    (cx, engine): (&StepContext, &dyn Engine),
    turn: OwnedSemaphorePermit,
) -> Result<Manifest, RunError> {
    let started = Instant::now();
    let step = &plan.steps[at];
    require_consent(step, cx)?;
    let inputs = step.inputs.iter().map(|input| StoredInput::of(plan, input, done));
    let inputs = inputs.collect::<Result<_, _>>()?;
    let work = StepWork { bound: &*step.step, inputs, recipe: key.preimage.recipe() };
    let result = match spread(step, &work, cx, engine).await? {
        Some(result) => result,
        None => work.perform(cx, turn).await?,
    };
    // A file that changed while it was read may have given a mixture of both versions.
    let key_now = step_key(plan, step, done)?;
    if key_now.preimage.files != key.preimage.files {
        return Err(StepError::new("a file changed while it was being read")
            .help("run again when it no longer changes")
            .into());
    }
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
        computed_rows: result.computed,
        reused_rows: result.reused,
        retry_rows: cx.lower.retry.load(Ordering::Relaxed),
        ports: result.artifacts,
        reads: cx.all_reads(),
    };
    cx.store.put_manifest(&manifest).await?;
    let Manifest { computed_rows: computed, reused_rows: reused, retry_rows: retry, .. } = manifest;
    tracing::debug!(rows = rows_of(&manifest.ports), computed, reused, retry, "result stored");
    Ok(manifest)
}

/// Computes these rows of a row step and stores their tables without a manifest.
pub(super) async fn compute_rows(
    step: &PlannedStep,
    recipe: Digest,
    input: RowInput,
    cx: &StepContext,
    turn: OwnedSemaphorePermit,
) -> Result<Vec<PortArtifact>, RunError> {
    require_consent(step, cx)?;
    let Lowering::Row(row) = step.step.lowering() else {
        return Err(StepError::new("a defect: the step does not compute row by row").into());
    };
    let computed = async {
        let run = row_step::open(cx, row, input, recipe).await?;
        let writer = PortWriter { bound: &*step.step, cx, turn: Mutex::new(Some(turn)) };
        Ok::<_, RunError>(writer.row_ports(run).await?.0)
    };
    let gave_up = |panic| format!("a library gave up while rows were computed: {panic}");
    guarded(computed).await.map_err(|panic| StepError::new(gave_up(panic)))?
}

fn require_consent(step: &PlannedStep, cx: &StepContext) -> Result<(), RunError> {
    for demand in step.step.demands() {
        if let Some(refused) = cx.lower.env.consent.refusal(&demand.access) {
            let message = format!("the step {}", refused.message);
            return Err(StepError::new(message).help(refused.help).into());
        }
    }
    Ok(())
}

/// A step whose inputs are stored.
pub(super) struct StepWork<'a> {
    /// The operator, bound to its arguments.
    pub(super) bound: &'a dyn BoundStep,
    pub(super) inputs: Vec<StoredInput>,
    /// The recipe of its results for single rows.
    pub(super) recipe: Digest,
}

pub(super) struct StepResult {
    pub(super) artifacts: Vec<PortArtifact>,
    /// Computed and reused work, in the unit of the step.
    pub(super) computed: u64,
    pub(super) reused: u64,
}

/// The rows of the main table.
pub(super) fn rows_of(artifacts: &[PortArtifact]) -> u64 {
    artifacts.first().map_or(0, |table| table.rows)
}

impl StepWork<'_> {
    /// Does the work. `turn` ends when only the disk is busy, so that concurrent steps wait for it
    /// together.
    pub(super) async fn perform(
        &self,
        cx: &StepContext,
        turn: OwnedSemaphorePermit,
    ) -> Result<StepResult, RunError> {
        let writer = PortWriter { bound: self.bound, cx, turn: Mutex::new(Some(turn)) };
        let recipe = self.recipe;
        let session = match self.bound.lowering() {
            // Keeps the order of stored rows.
            Lowering::Row(_) => ordered_session(cx.lower.env.jobs),
            Lowering::FanOut(_) | Lowering::Paid(_) | Lowering::Table(_) => {
                cx.lower.session.clone()
            }
        };
        let mut inputs = BTreeMap::new();
        for input in &self.inputs {
            cx.reads(input.blobs());
            inputs.insert(input.port.clone(), input.open(&session, &cx.store)?);
        }
        let (artifacts, computed, reused) = match self.bound.lowering() {
            Lowering::Row(row) => {
                let order = match self.inputs.as_slice() {
                    [input] => input.order(),
                    _ => Vec::new(),
                };
                let rows = inputs.into_values().next();
                let input = RowInput { rows, stored: self.stored_rows(), order };
                let run = row_step::open(cx, row, input, recipe).await?;
                let (artifacts, counts) = writer.row_ports(run).await?;
                (artifacts, counts.computed, counts.reused)
            }
            Lowering::FanOut(fan_out) => {
                let input = inputs.into_values().next();
                let input = input.ok_or_else(|| StepError::new("the operator needs an input"))?;
                let (ports, computed, reused) =
                    fan_out_step::run(cx, fan_out, input, recipe).await?;
                (writer.ports(ports, false).await?, computed, reused)
            }
            Lowering::Paid(paid) => {
                let result = paid_step::run(cx, paid, inputs, recipe).await?;
                (writer.ports(result.ports, false).await?, result.computed, result.reused)
            }
            Lowering::Table(table) => {
                let ports = table.lower(&cx.lower, inputs).await?;
                let artifacts = writer.ports(ports, true).await?;
                let rows = rows_of(&artifacts);
                (artifacts, rows, 0)
            }
        };
        Ok(StepResult { artifacts, computed, reused })
    }

    /// The rows of its inputs; `None` for a step without inputs.
    pub(super) fn stored_rows(&self) -> Option<u64> {
        let tables = self.inputs.iter().flat_map(|input| &input.tables);
        tables.map(|table| table.stored.rows).reduce(|rows, more| rows + more)
    }

    /// The stored bytes of its inputs.
    pub(super) fn stored_bytes(&self) -> u64 {
        let tables = self.inputs.iter().flat_map(|input| &input.tables);
        tables.map(|table| table.stored.bytes).sum()
    }
}

struct PortWriter<'a> {
    bound: &'a dyn BoundStep,
    cx: &'a StepContext,
    /// The turn of the step to compute, which ends when its last table is encoded.
    turn: Mutex<Option<OwnedSemaphorePermit>>,
}

impl PortWriter<'_> {
    async fn open(&self, name: &str, df: DataFrame) -> Result<OpenTable, RunError> {
        Ok(open_table(df, &self.port(name)?.table).await?)
    }

    fn port(&self, name: &str) -> Result<&Port, StepError> {
        let missing = || StepError::new(format!("the operator has no port {name}"));
        self.bound.ports().iter().find(|port| port.name == name).ok_or_else(missing)
    }

    /// Stores the tables in turn. With `counts`, the rows of the first are the progress of the
    /// step.
    async fn ports(&self, ports: Ports, counts: bool) -> Result<Vec<PortArtifact>, RunError> {
        let (store, threads) = (&self.cx.store, self.cx.lower.env.jobs);
        let mut tables = Vec::with_capacity(ports.len());
        for (at, (name, df)) in ports.into_iter().enumerate() {
            let rows = AtomicU64::new(0);
            let on_rows = |n| {
                let before = rows.fetch_add(n, Ordering::Relaxed);
                if counts && at == 0 {
                    self.cx.progress(before + n);
                }
            };
            let table = self.open(name, df).await?;
            tables.push(table.encode(name, store, threads, on_rows).await?);
        }
        locked(&self.turn).take();
        Ok(try_join_all(tables.into_iter().map(|table| table.commit(store))).await?)
    }

    /// Stores the tables of a row step while its rows are computed.
    async fn row_ports(
        &self,
        mut run: RowRun<'_>,
    ) -> Result<(Vec<PortArtifact>, RowCounts), RunError> {
        let mut tables = Vec::with_capacity(run.ports.len());
        for (name, df) in std::mem::take(&mut run.ports) {
            tables.push((name, self.open(name, df).await?));
        }
        let left = AtomicUsize::new(tables.len());
        let on_encoded = || {
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                locked(&self.turn).take();
            }
        };
        let mut stored = Vec::with_capacity(tables.len());
        for (name, table) in tables {
            stored.push(table.store(
                name,
                &self.cx.store,
                self.cx.lower.env.jobs,
                |_| {},
                on_encoded,
            ));
        }
        let stored = async { Ok::<_, RunError>(try_join_all(stored).await?) };
        let (counts, artifacts) = tokio::try_join!(run.compute(), stored)?;
        Ok((artifacts, counts))
    }
}
