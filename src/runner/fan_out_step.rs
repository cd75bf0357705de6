//! Rows that are long work each: what is made of a row is stored when it is complete, and
//! taken from there ever after.
//!
//! What is made streams from the operator into a part of its own (see `row` for parts of many
//! rows), so a row may be larger than memory. Does not live here: rows that are computed in
//! microseconds (`row`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use futures::StreamExt;
use tokio::sync::{Mutex, mpsc};

use super::error::RunError;
use super::step::StepContext;
use crate::digest::Digest;
use crate::functions::{RowDigest, call};
use crate::id::ROW_DIGEST;
use crate::operator::{FanOutContext, FanOutError, FanOutStep, Ports, StepError};
use crate::session::{column, encode, scan_files};
use crate::store::{MemoPart, timestamp};

/// Rows that are worked on side by side; most of that time they wait for a network.
const AT_ONCE: usize = 4;
/// Batches between the operator and the encoder.
const QUEUE: usize = 4;

/// What came of a step.
pub(super) struct EachResult {
    /// The output ports, over stored tables.
    pub(super) ports: Ports,
    /// Input rows that were worked on now.
    pub(super) computed: u64,
    /// Input rows that had been worked on before.
    pub(super) reused: u64,
}

/// A row to work on.
struct Row {
    digest: String,
    label: String,
    batch: RecordBatch,
}

/// Works on the rows that no earlier result is known of, and opens the tables of all.
pub(super) async fn run(
    cx: &StepContext,
    each: &dyn FanOutStep,
    input: DataFrame,
    recipe: Digest,
) -> Result<EachResult, RunError> {
    let rows = load(each, input.clone()).await?;
    let mut known: HashMap<String, Digest> = HashMap::new();
    if !cx.forced {
        for part in cx.store.memo_parts(&recipe).await? {
            if let Some(row) = part.row {
                known.insert(row, part.blob);
            }
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
        .map(|row| one(cx, each, &context, row, &recipe))
        .buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some(made) = work.next().await {
        blobs.push(made?);
        done += 1;
        cx.progress(done);
    }
    drop(work);
    // Equal tables, of repositories without a change for example, are one blob.
    blobs.sort_unstable();
    blobs.dedup();
    let made = if blobs.is_empty() {
        cx.lower.session.read_table(Arc::new(MemTable::try_new(step.output_schema(), vec![vec![]])?))?
    } else {
        scan_files(&cx.lower.session, &cx.store, &blobs, step.output_schema())?
    };
    Ok(EachResult { ports: each.ports(input, made)?, computed, reused })
}

/// The input rows, each digest once.
async fn load(each: &dyn FanOutStep, input: DataFrame) -> Result<Vec<Row>, RunError> {
    let digest = call::<RowDigest>(each.reads().iter().map(|name| column(name)).collect());
    let batches = input.with_column(ROW_DIGEST, digest)?.collect().await?;
    let mut rows: Vec<Row> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for mut batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
        let digests = batch.remove_column(batch.num_columns() - 1);
        let digests = digests.as_fixed_size_binary();
        let labels = batch
            .column_by_name(each.label())
            .and_then(|column| column.as_string_opt::<i32>().cloned())
            .ok_or_else(|| StepError::new(format!("the column `{}` is no text", each.label())))?;
        for at in 0..batch.num_rows() {
            let hex: String = digests.value(at).iter().map(|b| format!("{b:02x}")).collect();
            if seen.insert(hex.clone()) {
                let label = labels.value(at).to_string();
                rows.push(Row { digest: hex, label, batch: batch.slice(at, 1) });
            }
        }
    }
    Ok(rows)
}

/// Works on a row and stores what is made of it, or that it failed.
async fn one(
    cx: &StepContext,
    each: &dyn FanOutStep,
    context: &FanOutContext<'_>,
    row: Row,
    recipe: &Digest,
) -> Result<Digest, RunError> {
    let (out, made) = mpsc::channel(QUEUE);
    let writing = Writing::start(cx, step.output_schema(), made)?;
    let (label, digest) = (row.label.clone(), row.digest);
    let error = match each.each(context, row.batch.clone(), out).await {
        Ok(()) => {
            return writing.finish(cx, recipe, Some(digest)).await;
        }
        Err(error) => error,
    };
    if cx.lower.cancel.is_cancelled() {
        return Err(RunError::Interrupted);
    }
    writing.abandon().await;
    cx.warn(format!("{label}: {}{}", error.reason, again(&error)));
    let (out, made) = mpsc::channel(1);
    let writing = Writing::start(cx, step.output_schema(), made)?;
    // If the encoder is gone, `finish` says why.
    let _ = out.send(each.failed(&row.batch, &error)?).await;
    drop(out);
    if error.retry {
        cx.lower.retry.fetch_add(1, Ordering::Relaxed);
    }
    writing.finish(cx, recipe, (!error.retry).then_some(digest)).await
}

fn again(error: &FanOutError) -> &'static str {
    if error.retry { " (the next run tries again)" } else { "" }
}

/// A table on its way to the store.
struct Writing {
    encoder: tokio::task::JoinHandle<Result<(crate::store::BlobWriter, u64), StepError>>,
}

impl Writing {
    fn start(
        cx: &StepContext,
        schema: SchemaRef,
        mut made: mpsc::Receiver<RecordBatch>,
    ) -> Result<Self, RunError> {
        let blob = cx.store.blob_writer()?;
        let encoder = tokio::task::spawn_blocking(move || {
            let mut rows = 0;
            let blob = encode(blob, schema, 1, || {
                let batch = made.blocking_recv();
                rows += batch.as_ref().map_or(0, |batch: &RecordBatch| batch.num_rows() as u64);
                batch
            })?;
            Ok((blob, rows))
        });
        Ok(Self { encoder })
    }

    /// Commits the table; as a part of the recipe, if it is the result of a row.
    async fn finish(
        self,
        cx: &StepContext,
        recipe: &Digest,
        row: Option<String>,
    ) -> Result<Digest, RunError> {
        let panicked = |_| StepError::new("a writer thread panicked");
        let (blob, rows) = self.encoder.await.map_err(panicked)??;
        let (blob, bytes) = blob.commit(&cx.store).await?;
        if row.is_some() {
            let part = MemoPart { blob, bytes, rows, created: timestamp(), row };
            cx.store.put_memo_part(recipe, &part).await?;
        }
        Ok(blob)
    }

    /// Waits for the end of the thread and drops what it wrote.
    async fn abandon(self) {
        let _ = self.encoder.await;
    }
}
