//! A window of input rows in their stored order, each with its digest: reads them in a separate
//! task, finds their results, lists the new ones, and joins both.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, RecordBatch, RecordBatchOptions,
};
use arrow::compute::{filter_record_batch, interleave};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::super::error::RunError;
use super::results::{Found, FoundPlace, Results};
use super::{RowKey, digests, row_key};
use galeras_base::id::ROW_DIGEST;
use galeras_operator::StepError;

pub(super) struct Columns {
    /// The operator's input: the digest and the columns that it reads.
    pub(super) read: SchemaRef,
    /// The positions of these columns in the input, without the digest.
    read_at: Vec<usize>,
    /// The positions of the produced columns in a result.
    produced_at: Vec<usize>,
    /// The columns of the input and the produced ones.
    pub(super) joined: SchemaRef,
}

impl Columns {
    /// For an input and results with these columns, of which the operator reads `read`.
    pub(super) fn new(
        input: &SchemaRef,
        produced: &SchemaRef,
        read: SchemaRef,
    ) -> Result<Self, RunError> {
        let digest_at = produced.index_of(ROW_DIGEST)?;
        let produced_at = (0..produced.fields().len()).filter(|at| *at != digest_at);
        let produced_at: Vec<usize> = produced_at.collect();
        let mut fields = input.fields().to_vec();
        fields.extend(produced_at.iter().map(|at| Arc::clone(&produced.fields()[*at])));
        let names = read.fields().iter().skip(1);
        let read_at: Result<_, _> = names.map(|field| input.index_of(field.name())).collect();
        Ok(Self { read_at: read_at?, read, produced_at, joined: Arc::new(Schema::new(fields)) })
    }
}

/// The source of a row's result.
#[derive(Clone, Copy)]
enum Origin {
    /// In one of the known batches.
    Known { batch: usize, row: usize },
    /// It is computed now.
    Fresh(RowKey),
}

/// Some input rows on their way to the ports.
pub(super) struct Window {
    input: Vec<InputBatch>,
    /// For each input row.
    origins: Vec<Origin>,
    /// Batches of stored parts.
    known: Vec<RecordBatch>,
    /// The rows to compute, each digest once.
    pub(super) fresh: Vec<RecordBatch>,
    /// The number of input rows with a result of an earlier run.
    pub(super) reused: u64,
}

impl Window {
    pub(super) async fn new(
        input: Vec<InputBatch>,
        columns: &Columns,
        results: &mut Results<'_>,
    ) -> Result<Self, RunError> {
        results.tick();
        // Each digest once, with its position for each row.
        let mut keys: Vec<RowKey> = Vec::new();
        let mut numbers = Vec::with_capacity(input.iter().map(|batch| batch.keys.len()).sum());
        let mut seen: HashMap<RowKey, usize> = HashMap::with_capacity(numbers.capacity());
        for batch in &input {
            for row in 0..batch.keys.len() {
                let key = row_key(&batch.keys, row);
                numbers.push(*seen.entry(key).or_insert_with(|| {
                    keys.push(key);
                    keys.len() - 1
                }));
            }
        }
        let Found { batches: known, places } = results.find(&keys).await?;
        let (mut fresh, mut reused) = (Vec::new(), 0);
        let mut origins = Vec::with_capacity(numbers.len());
        // The next digest to occur for the first time.
        let mut next = 0;
        for batch in &input {
            let mut is_fresh = vec![false; batch.keys.len()];
            for is_fresh in &mut is_fresh {
                let number = numbers[origins.len()];
                *is_fresh = number == next && places[number].is_none();
                next += usize::from(number == next);
                reused += u64::from(places[number].is_some_and(|place| place.reused));
                origins.push(match places[number] {
                    Some(FoundPlace { batch, row, .. }) => Origin::Known { batch, row },
                    None => Origin::Fresh(keys[number]),
                });
            }
            if is_fresh.contains(&true) {
                let mut arrays: Vec<ArrayRef> = vec![Arc::new(batch.keys.clone())];
                let read = columns.read_at.iter().map(|at| Arc::clone(batch.rows.column(*at)));
                arrays.extend(read);
                let rows = RecordBatch::try_new(Arc::clone(&columns.read), arrays)?;
                fresh.push(match is_fresh.contains(&false) {
                    true => filter_record_batch(&rows, &BooleanArray::from(is_fresh))?,
                    false => rows,
                });
            }
        }
        Ok(Self { input, origins, known, fresh, reused })
    }

    /// The number of the other input rows.
    pub(super) fn computed(&self) -> u64 {
        self.origins.len() as u64 - self.reused
    }

    /// The input rows with their results, in the order of the input.
    pub(super) fn join(
        &self,
        evaluated: &[RecordBatch],
        columns: &Columns,
    ) -> Result<Vec<RecordBatch>, RunError> {
        let mut computed: HashMap<RowKey, (usize, usize)> = HashMap::new();
        for (at, batch) in evaluated.iter().enumerate() {
            let keys = digests(batch)?;
            let places = (0..keys.len()).map(|row| (row_key(keys, row), row));
            computed.extend(places.map(|(key, row)| (key, (self.known.len() + at, row))));
        }
        let sources: Vec<&RecordBatch> = self.known.iter().chain(evaluated).collect();
        let produced: Vec<Vec<&dyn Array>> = columns
            .produced_at
            .iter()
            .map(|at| sources.iter().map(|batch| batch.column(*at).as_ref()).collect())
            .collect();
        let mut origins = self.origins.iter();
        let mut joined = Vec::with_capacity(self.input.len());
        for batch in &self.input {
            let rows = batch.keys.len();
            let mut places = Vec::with_capacity(rows);
            for origin in origins.by_ref().take(rows) {
                places.push(match origin {
                    Origin::Known { batch, row } => (*batch, *row),
                    Origin::Fresh(key) => *computed.get(key).ok_or_else(|| {
                        StepError::new("a defect: the operator gave no result for a row")
                    })?,
                });
            }
            let mut arrays = batch.rows.columns().to_vec();
            for column in &produced {
                arrays.push(interleave(column, &places)?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let schema = Arc::clone(&columns.joined);
            joined.push(RecordBatch::try_new_with_options(schema, arrays, &options)?);
        }
        Ok(joined)
    }
}

/// The least rows of a window, except at the end.
pub(super) const MIN_ROWS: usize = 1024;
/// A window ends at the batch that reaches this number of rows ...
pub(super) const MAX_ROWS: usize = 16 * 1024;
/// ... or of bytes.
const MAX_BYTES: usize = 16 << 20;
const QUEUE: usize = 4;

pub(super) struct InputBatch {
    pub(super) rows: RecordBatch,
    pub(super) keys: FixedSizeBinaryArray,
}

pub(super) struct InputReader {
    batches: mpsc::Receiver<Result<InputBatch>>,
    _task: AbortOnDropHandle<()>,
}

impl InputReader {
    /// Starts to read; `digest` computes the digest of a row.
    pub(super) fn start(source: DataFrame, digest: Expr) -> Result<Self> {
        let rows = source.with_column(ROW_DIGEST, digest)?;
        let (out, batches) = mpsc::channel(QUEUE);
        let task = tokio::spawn(async move {
            if let Err(error) = read(rows, &out).await {
                // Without a receiver the rows are not needed.
                let _ = out.send(Err(error)).await;
            }
        });
        Ok(Self { batches, _task: AbortOnDropHandle::new(task) })
    }

    /// The next rows, about `wanted` unless they are large; `None` at the end.
    pub(super) async fn next(&mut self, wanted: usize) -> Result<Option<Vec<InputBatch>>> {
        let (mut window, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < wanted && bytes < MAX_BYTES {
            let Some(batch) = self.batches.recv().await else { break };
            let batch = batch?;
            rows += batch.keys.len();
            bytes += batch.rows.columns().iter().map(super::results::own_bytes).sum::<usize>();
            window.push(batch);
        }
        Ok((!window.is_empty()).then_some(window))
    }
}

/// Sends the partitions in order, which is the stored order of the rows.
async fn read(rows: DataFrame, out: &mpsc::Sender<Result<InputBatch>>) -> Result<()> {
    for mut partition in rows.execute_stream_partitioned().await? {
        while let Some(batch) = partition.next().await {
            let mut rows = batch?;
            if rows.num_rows() == 0 {
                continue;
            }
            let keys = rows.remove_column(rows.num_columns() - 1);
            let keys = keys.as_fixed_size_binary_opt().cloned().ok_or_else(|| {
                DataFusionError::Internal("the digest of a row is not binary".into())
            })?;
            if out.send(Ok(InputBatch { rows, keys })).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
