//! Computes one step, here or on the engine.

use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

use super::context::StepContext;
use super::error::RunError;
use super::input::StoredInput;
use super::key::{StepKey, StepManifests, step_key};
use super::row_step::RowInput;
use super::spread::{Engine, spread};
use super::step_work::{StepResult, StepWork, perform_rows};
use crate::plan::{Plan, PlannedStep};
use galeras_base::digest::Digest;
use galeras_operator::{StepError, StepErrorKind};
use galeras_sql::session::guarded;
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
    let StepResult { artifacts, counts } = result;
    // A file that changed while it was read may have given a mixture of both versions.
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

/// Computes these rows of a row step and stores their tables without a manifest.
pub(super) async fn compute_rows(
    step: &PlannedStep,
    recipe: Digest,
    input: RowInput,
    cx: &StepContext,
    turn: OwnedSemaphorePermit,
) -> Result<Vec<PortArtifact>, RunError> {
    require_consent(step, cx)?;
    let gave_up = |panic| format!("a library gave up while rows were computed: {panic}");
    let computed = perform_rows(&*step.step, recipe, input, cx, turn);
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
