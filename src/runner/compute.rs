//! Computes one step: opens its inputs, lowers it, stores its tables, and the manifest last.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

use super::context::StepContext;
use super::error::RunError;
use super::input::{blobs, open};
use super::key::{StepKey, StepManifests, step_key};
use super::{fan_out_step, paid_step, row_step};
use crate::operator::{Lowering, Ports, StepError};
use crate::plan::Plan;
use crate::session::{TableHints, guarded, ordered_session, store_table};
use crate::store::{MANIFEST_VERSION, Manifest, ManifestLabels, timestamp};

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
        Ok(ended) => return ended,
        Err(panic) => panic,
    };
    let error = StepError::new(format!("a library gave up while the step was computed: {panic}"));
    let files: Vec<String> = key.files.iter().map(|file| format!("`{}`", file.name)).collect();
    if files.is_empty() {
        return Err(error.into());
    }
    Err(error.help(format!("{} may be damaged", files.join(", "))).into())
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
    for demand in step.step.demands() {
        if let Some(refused) = cx.lower.consent.refusal(&demand.access) {
            let message = format!("the step {}", refused.message);
            return Err(StepError::new(message).help(refused.help).into());
        }
    }
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
    let mut pending = row_step::PendingPart::default();
    let (ports, counts): (Ports, Option<(u64, u64)>) = match step.step.lowering() {
        Lowering::Row(row) => {
            let input = inputs.into_values().next();
            let recipe = key.preimage.recipe();
            let result = row_step::run(cx, row, input, recipe).await?;
            pending = result.pending;
            (result.ports, Some((result.computed, result.reused)))
        }
        Lowering::FanOut(fan_out) => {
            let input = inputs.into_values().next();
            let input = input.ok_or_else(|| StepError::new("the operator needs an input"))?;
            let recipe = key.preimage.recipe();
            let result = fan_out_step::run(cx, fan_out, input, recipe).await?;
            (result.ports, Some((result.computed, result.reused)))
        }
        Lowering::Paid(paid) => {
            let recipe = key.preimage.recipe();
            let result = paid_step::run(cx, paid, inputs, recipe).await?;
            (result.ports, Some((result.computed, result.reused)))
        }
        Lowering::Table(table) => (table.lower(&cx.lower, inputs).await?, None),
    };
    let sorted = matches!(step.step.lowering(), Lowering::Row(_));
    let hints = TableHints { threads: cx.jobs, sorted };
    let mut artifacts = Vec::with_capacity(ports.len());
    let (mut turn, mut left) = (Some(turn), ports.len());
    for (name, df) in ports {
        left -= 1;
        let port = step
            .port(name)
            .ok_or_else(|| StepError::new(format!("the operator has no port {name}")))?;
        let first = artifacts.is_empty() && counts.is_none();
        let rows = AtomicU64::new(0);
        let on_rows = |n| {
            let before = rows.fetch_add(n, Ordering::Relaxed);
            if first {
                cx.progress(before + n);
            }
        };
        let on_encoded = || turn = turn.take().filter(|_| left > 0);
        let artifact =
            store_table(df, name, &port.table, &cx.store, hints, on_rows, on_encoded).await?;
        artifacts.push(artifact);
    }
    pending.finish().await?;
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
