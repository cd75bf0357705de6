//! Fan-out: every input row becomes a table of its own, which takes minutes. The table of a row
//! is stored when it is complete, and taken from the store ever after.
//!
//! A table streams from the operator into a part of its own, so it may be larger than memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use futures::StreamExt;
use tokio::sync::{Mutex, mpsc};

use super::context::StepContext;
use super::error::RunError;
use super::parts::commit_part;
use crate::digest::Digest;
use crate::functions::{RowDigest, call};
use crate::id::ROW_DIGEST;
use crate::operator::{FanOutContext, FanOutError, FanOutStep, Ports, StepError};
use crate::session::{BlobEncoding, column, scan_files};

/// Rows that are worked on side by side; most of that time they wait for a network.
const AT_ONCE: usize = 4;
/// Batches between the operator and the encoder.
const QUEUE: usize = 4;

/// The result of a step.
pub(super) struct FanOutResult {
    /// The output ports, over stored tables.
    pub(super) ports: Ports,
    /// Input rows that were worked on now.
    pub(super) computed: u64,
    /// Input rows that had been worked on before.
    pub(super) reused: u64,
}

/// A row to work on.
struct InputRow {
    digest: String,
    label: String,
    batch: RecordBatch,
}

/// Works on the rows that no earlier result is known of, and opens the tables of all.
pub(super) async fn run(
    cx: &StepContext,
    step: &dyn FanOutStep,
    input: DataFrame,
    recipe: Digest,
) -> Result<FanOutResult, RunError> {
    let rows = load(step, input.clone()).await?;
    let mut known: HashMap<String, Digest> = HashMap::new();
    for part in cx.parts(&recipe).await? {
        if let Some(row) = part.row {
            known.insert(row, part.blob);
        }
    }
    let mut blobs = Vec::with_capacity(rows.len());
    let mut fresh = Vec::new();
    for row in rows {
        match known.get(&row.digest) {
            Some(blob) => blobs.push(*blob),
            None => fresh.push(row),
        }
    }
    let (computed, reused) = (fresh.len() as u64, blobs.len() as u64);
    cx.total(computed, reused);
    let context = FanOutContext { lower: &cx.lower, turn: Mutex::new(()) };
    let mut work = futures::stream::iter(fresh)
        .map(|row| expand(cx, step, &context, row, &recipe))
        .buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some(blob) = work.next().await {
        blobs.push(blob?);
        done += 1;
        cx.progress(done);
    }
    drop(work);
    // Equal tables, of repositories without a change for example, are one blob.
    blobs.sort_unstable();
    blobs.dedup();
    let expanded = if blobs.is_empty() {
        cx.lower
            .session
            .read_table(Arc::new(MemTable::try_new(step.output_schema(), vec![vec![]])?))?
    } else {
        scan_files(&cx.lower.session, &cx.store, &blobs, step.output_schema())?
    };
    Ok(FanOutResult { ports: step.ports(input, expanded)?, computed, reused })
}

/// The input rows, each digest once.
async fn load(step: &dyn FanOutStep, input: DataFrame) -> Result<Vec<InputRow>, RunError> {
    let digest = call::<RowDigest>(step.reads().iter().map(|name| column(name)).collect());
    let batches = input.with_column(ROW_DIGEST, digest)?.collect().await?;
    let mut rows: Vec<InputRow> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for mut batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
        let digests = batch.remove_column(batch.num_columns() - 1);
        let digests = digests.as_fixed_size_binary();
        let labels = batch
            .column_by_name(step.label())
            .and_then(|column| column.as_string_opt::<i32>().cloned())
            .ok_or_else(|| StepError::new(format!("the column `{}` is not text", step.label())))?;
        for at in 0..batch.num_rows() {
            let hex: String = digests.value(at).iter().map(|b| format!("{b:02x}")).collect();
            if seen.insert(hex.clone()) {
                let label = labels.value(at).to_string();
                rows.push(InputRow { digest: hex, label, batch: batch.slice(at, 1) });
            }
        }
    }
    Ok(rows)
}

/// Expands a row and stores its table, or the one that says that it failed.
async fn expand(
    cx: &StepContext,
    step: &dyn FanOutStep,
    context: &FanOutContext<'_>,
    row: InputRow,
    recipe: &Digest,
) -> Result<Digest, RunError> {
    let (out, batches) = mpsc::channel(QUEUE);
    let encoding = encode_received(cx, step.output_schema(), batches)?;
    let (label, digest) = (row.label.clone(), row.digest);
    let error = match step.expand(context, row.batch.clone(), out).await {
        Ok(()) => return store(cx, encoding, recipe, Some(digest)).await,
        Err(error) => error,
    };
    if cx.lower.cancel.is_cancelled() {
        return Err(RunError::Interrupted);
    }
    encoding.abandon().await;
    cx.warn(format!("{label}: {}{}", error.reason, again(&error)));
    let (out, batches) = mpsc::channel(1);
    let encoding = encode_received(cx, step.output_schema(), batches)?;
    // If the encoder is gone, `store` says why.
    let _ = out.send(step.failed(&row.batch, &error)?).await;
    drop(out);
    if error.retry {
        cx.lower.retry.fetch_add(1, Ordering::Relaxed);
    }
    store(cx, encoding, recipe, (!error.retry).then_some(digest)).await
}

fn again(error: &FanOutError) -> &'static str {
    if error.retry { " (the next run tries again)" } else { "" }
}

/// Encodes what the operator sends, on a thread of its own.
fn encode_received(
    cx: &StepContext,
    schema: SchemaRef,
    mut batches: mpsc::Receiver<RecordBatch>,
) -> Result<BlobEncoding, RunError> {
    Ok(BlobEncoding::start(&cx.store, schema, 1, move || batches.blocking_recv())?)
}

/// Commits the table; as a part of the recipe, if it is the result of a row.
async fn store(
    cx: &StepContext,
    encoding: BlobEncoding,
    recipe: &Digest,
    row: Option<String>,
) -> Result<Digest, RunError> {
    let blob = encoding.finish().await?.commit(&cx.store).await?;
    let digest = blob.digest;
    if row.is_some() {
        commit_part(&cx.store, recipe, blob, row).await?;
    }
    Ok(digest)
}
