//! Row by row: rows that an earlier run has computed are taken from there.
//!
//! Every input row gets a digest of the columns that the operator reads. The operator's result
//! for a row is stored under that digest, in *parts*: Parquet files that are finished
//! while the step is still running, so that an interrupted run continues where it was. Parts
//! belong to a *recipe* (operator, version, arguments), not to an input table.
//!
//! The input and the results are held in memory while the step runs.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, RecordBatch, UInt32Array,
};
use arrow::compute::{filter_record_batch, interleave};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, lit};
use futures::StreamExt;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::context::StepContext;
use super::error::RunError;
use super::parts::commit_part;
use crate::digest::Digest;
use crate::functions::{RowDigest, call};
use crate::id::ROW_DIGEST;
use crate::operator::{Ports, RowStep, StepError, TableSchema};
use crate::session::{BlobEncoding, column, empty_table, scan_files, session};
use crate::store::{MemoPart, Store};

/// A part is finished after this time at the latest, so that not more than this is lost.
const PART_TIME: Duration = Duration::from_millis(500);
/// A part is finished when it has this many bytes in memory.
const PART_BYTES: usize = 64 << 20;
/// Rows that one thread computes at a time.
const CHUNK_ROWS: usize = 256;

/// The digest of a row.
type RowKey = [u8; RowDigest::BYTES as usize];

type KeySet = HashSet<RowKey, KeyHash>;
type KeyHash = BuildHasherDefault<FirstBytes>;

/// Row digests are uniform already: their first eight bytes are their hash.
#[derive(Default)]
struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for (at, byte) in bytes.iter().take(8).enumerate() {
            self.0 ^= u64::from(*byte) << (8 * at);
        }
    }
}

/// The result of a step.
pub(super) struct RowResult {
    /// The output ports, over tables in memory.
    pub(super) ports: Ports,
    /// Input rows that were computed now.
    pub(super) computed: u64,
    /// Input rows that had been computed before.
    pub(super) reused: u64,
    /// The last part, which may still be on its way to the store.
    pub(super) pending: PendingPart,
}

/// Parts that are being written.
#[derive(Default)]
pub(super) struct PendingPart(Option<JoinHandle<Result<(), RunError>>>);

impl PendingPart {
    /// Waits until they are stored.
    pub(super) async fn finish(&mut self) -> Result<(), RunError> {
        match self.0.take() {
            None => Ok(()),
            Some(handle) => match handle.await {
                Ok(result) => result,
                Err(_) => Err(StepError::new("a writer thread panicked").into()),
            },
        }
    }
}

/// Computes a row step, except for the ports' cheap projections.
pub(super) async fn run(
    cx: &StepContext,
    row: &dyn RowStep,
    input: Option<DataFrame>,
    recipe: Digest,
) -> Result<RowResult, RunError> {
    let source = match input {
        Some(df) => df,
        None => row.source(&cx.lower)?,
    };
    let reads = row.reads();
    let schema: SchemaRef = Arc::new(source.schema().as_arrow().clone());
    let produced_schema = produced_schema(&cx.lower.session, row, &schema)?;
    let (input, parts) =
        tokio::try_join!(load_input(source, &reads), load_parts(cx, &recipe, &produced_schema))?;
    let rows = input.rows();
    let known = KnownRows::of(cx, parts, &input);
    let (fresh, computed) = fresh_rows(&input, &reads, &known)?;
    let reused = rows - computed;
    cx.total(computed, reused);
    let wanted: usize = fresh.iter().map(RecordBatch::num_rows).sum();
    let (evaluated, pending) = evaluate(cx, row, fresh, recipe, &produced_schema).await?;
    if evaluated.iter().map(RecordBatch::num_rows).sum::<usize>() != wanted {
        let message = "a defect: the operator did not give exactly one row for each input row";
        return Err(StepError::new(message).into());
    }
    let joined = assemble(input, known, evaluated, &produced_schema)?;
    Ok(RowResult { ports: row.ports(joined)?, computed, reused, pending })
}

/// The input in memory, in the order in which it is stored, with the row digests apart.
struct LoadedInput {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    keys: Vec<FixedSizeBinaryArray>,
}

impl LoadedInput {
    fn rows(&self) -> u64 {
        self.batches.iter().map(|b| b.num_rows() as u64).sum()
    }

    fn keys(&self) -> impl Iterator<Item = RowKey> {
        self.keys.iter().flat_map(|array| (0..array.len()).map(|i| row_key(array, i)))
    }
}

fn row_key(array: &FixedSizeBinaryArray, row: usize) -> RowKey {
    let mut key = RowKey::default();
    key.copy_from_slice(array.value(row));
    key
}

/// The digest of the columns that are read. Without any, all rows are the same.
fn row_digest(reads: &[String]) -> Expr {
    let columns: Vec<Expr> = reads.iter().map(|name| column(name)).collect();
    call::<RowDigest>(if columns.is_empty() { vec![lit("")] } else { columns })
}

async fn load_input(source: DataFrame, reads: &[String]) -> Result<LoadedInput, RunError> {
    let digest = row_digest(reads);
    let schema: SchemaRef = Arc::new(source.schema().as_arrow().clone());
    let partitions = source.with_column(ROW_DIGEST, digest)?.collect_partitioned().await?;
    let mut batches = Vec::new();
    let mut keys = Vec::new();
    for mut batch in partitions.into_iter().flatten() {
        if batch.num_rows() > 0 {
            let last = batch.num_columns() - 1;
            keys.push(batch.remove_column(last).as_fixed_size_binary().clone());
            batches.push(batch);
        }
    }
    Ok(LoadedInput { schema, batches, keys })
}

/// The columns that the operator adds, with the digest in front.
fn produced_schema(
    session: &SessionContext,
    row: &dyn RowStep,
    input: &SchemaRef,
) -> Result<SchemaRef, RunError> {
    let empty = empty_table(session, &TableSchema::new(Arc::clone(input), None))?;
    let reads = row.reads();
    let digest = row_digest(&reads);
    let evaluated = row.evaluate(empty.with_column(ROW_DIGEST, digest)?)?;
    let fields = evaluated.schema().as_arrow().fields().clone();
    // The types must be those of a Parquet file that is read back.
    Ok(Arc::new(Schema::new(fields)))
}

/// Results of earlier runs: the rows that the input needs, in memory.
#[derive(Default)]
struct KnownRows {
    keys: KeySet,
    batches: Vec<RecordBatch>,
}

impl KnownRows {
    /// Those of the loaded parts that the input needs.
    fn of(cx: &StepContext, parts: Vec<LoadedPart>, input: &LoadedInput) -> Self {
        let mut known = Self::default();
        if parts.is_empty() {
            return known;
        }
        let needed: KeySet = input.keys().collect();
        for (part, batches) in parts {
            if let Err(error) = batches.and_then(|batches| known.add(batches, &needed)) {
                // A damaged part is a miss.
                cx.warn(format!("part {} cannot be read: {error}", part.blob.short()));
            }
        }
        known
    }

    /// Takes the rows of a part that are needed and not there yet.
    fn add(&mut self, batches: Vec<RecordBatch>, needed: &KeySet) -> Result<(), RunError> {
        let mut taken = KeySet::default();
        for batch in batches {
            let keys = digests(&batch)?;
            let keep: BooleanArray = (0..keys.len())
                .map(|i| {
                    let key = row_key(keys, i);
                    // Two parts with the same row hold the same result; one is enough.
                    let wanted = needed.contains(&key) && !self.keys.contains(&key);
                    if wanted {
                        taken.insert(key);
                    }
                    Some(wanted)
                })
                .collect();
            // A batch is copied only to leave out results that are there already, or if most
            // of it is of no use.
            let overlaps = (0..keys.len()).any(|i| self.keys.contains(&row_key(keys, i)));
            if overlaps || keep.true_count() < keep.len() / 2 {
                self.batches.push(filter_record_batch(&batch, &keep)?);
            } else {
                self.batches.push(batch);
            }
        }
        self.keys.extend(taken);
        Ok(())
    }
}

/// A part with its rows, or why they cannot be read.
type LoadedPart = (MemoPart, Result<Vec<RecordBatch>, RunError>);

/// All parts of the recipe, several at a time.
async fn load_parts(
    cx: &StepContext,
    recipe: &Digest,
    schema: &SchemaRef,
) -> Result<Vec<LoadedPart>, RunError> {
    let threads = cx.lower.session.copied_config().target_partitions();
    let parts = cx.parts(recipe).await?;
    let loaded = futures::stream::iter(parts).map(|part| async move {
        let batches = read_part(cx, &part, schema).await;
        (part, batches)
    });
    Ok(loaded.buffered(threads).collect().await)
}

async fn read_part(
    cx: &StepContext,
    part: &MemoPart,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>, RunError> {
    let df = scan_files(&cx.lower.session, &cx.store, &[part.blob], Arc::clone(schema))?;
    Ok(df.collect().await?)
}

fn digests(batch: &RecordBatch) -> Result<&FixedSizeBinaryArray, StepError> {
    batch
        .column_by_name(ROW_DIGEST)
        .and_then(|c| c.as_fixed_size_binary_opt())
        .ok_or_else(|| StepError::new("rows have lost their digest"))
}

/// The rows to compute, each digest once, as the columns that are read; and how many input
/// rows wait for them.
fn fresh_rows(
    input: &LoadedInput,
    reads: &[String],
    known: &KnownRows,
) -> Result<(Vec<RecordBatch>, u64), RunError> {
    let mut fresh = Vec::new();
    let mut seen = KeySet::default();
    let mut computed = 0;
    let mut fields: Vec<_> = Vec::with_capacity(reads.len() + 1);
    let digest = arrow::datatypes::DataType::FixedSizeBinary(RowDigest::BYTES);
    fields.push(Arc::new(arrow::datatypes::Field::new(ROW_DIGEST, digest, false)));
    let mut columns = Vec::with_capacity(reads.len());
    for name in reads {
        let at = input.schema.index_of(name)?;
        fields.push(Arc::clone(&input.schema.fields()[at]));
        columns.push(at);
    }
    let schema = Arc::new(Schema::new(fields));
    for (batch, keys) in input.batches.iter().zip(&input.keys) {
        let mask: BooleanArray = (0..keys.len())
            .map(|i| {
                let key = row_key(keys, i);
                if known.keys.contains(&key) {
                    return Some(false);
                }
                computed += 1;
                Some(seen.insert(key))
            })
            .collect();
        if mask.true_count() == 0 {
            continue;
        }
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(keys.clone())];
        arrays.extend(columns.iter().map(|at| Arc::clone(batch.column(*at))));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let batch = if mask.true_count() == mask.len() {
            batch
        } else {
            filter_record_batch(&batch, &mask)?
        };
        for start in (0..batch.num_rows()).step_by(CHUNK_ROWS) {
            fresh.push(batch.slice(start, CHUNK_ROWS.min(batch.num_rows() - start)));
        }
    }
    Ok((fresh, computed))
}

/// Computes the fresh rows on all threads, storing finished parts on the way.
async fn evaluate(
    cx: &StepContext,
    row: &dyn RowStep,
    fresh: Vec<RecordBatch>,
    recipe: Digest,
    schema: &SchemaRef,
) -> Result<(Vec<RecordBatch>, PendingPart), RunError> {
    let mut pending = PendingPart::default();
    let Some(first) = fresh.first() else { return Ok((Vec::new(), pending)) };
    let fresh_schema = first.schema();
    let threads = cx.lower.session.copied_config().target_partitions();
    let mut partitions = vec![Vec::new(); threads.min(fresh.len()).max(1)];
    let slots = partitions.len();
    for (at, batch) in fresh.into_iter().enumerate() {
        partitions[at % slots].push(batch);
    }
    let table = MemTable::try_new(fresh_schema, partitions)?;
    let df = row.evaluate(cx.lower.session.read_table(Arc::new(table))?)?;
    let mut stream = df.execute_stream().await?;
    let mut done = 0;
    let mut evaluated: Vec<RecordBatch> = Vec::new();
    let (mut part, mut bytes, mut since) = (Vec::new(), 0, Instant::now());
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        bytes += batch.columns().iter().map(slice_bytes).sum::<usize>();
        done += batch.num_rows() as u64;
        cx.progress(done);
        part.push(batch.clone());
        evaluated.push(batch);
        if since.elapsed() > PART_TIME || bytes > PART_BYTES {
            pending.finish().await?;
            pending = store_part(&cx.store, recipe, schema, std::mem::take(&mut part));
            (bytes, since) = (0, Instant::now());
        }
    }
    if !part.is_empty() {
        pending.finish().await?;
        pending = store_part(&cx.store, recipe, schema, part);
    }
    Ok((evaluated, pending))
}

/// The bytes of an array's own rows, which may be a slice of a larger buffer.
fn slice_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or(0)
}

fn store_part(
    store: &Store,
    recipe: Digest,
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> PendingPart {
    let (store, schema) = (store.clone(), Arc::clone(schema));
    let work = async move {
        let mut batches = batches.into_iter();
        let encoding = BlobEncoding::start(&store, schema, 1, move || batches.next())?;
        let blob = encoding.finish().await?.commit(&store).await?;
        commit_part(&store, &recipe, blob, None).await
    };
    PendingPart(Some(tokio::spawn(work.in_current_span())))
}

/// Where the results of each row digest are: batch and row.
struct Places {
    sorted: Vec<(RowKey, (usize, usize))>,
    ranges: HashMap<RowKey, (usize, usize), KeyHash>,
}

impl Places {
    fn of(results: &[RecordBatch]) -> Result<Self, StepError> {
        let mut sorted = Vec::with_capacity(results.iter().map(RecordBatch::num_rows).sum());
        for (at, batch) in results.iter().enumerate() {
            let keys = digests(batch)?;
            sorted.extend((0..keys.len()).map(|row| (row_key(keys, row), (at, row))));
        }
        sorted.sort_unstable();
        let mut ranges = HashMap::with_capacity_and_hasher(sorted.len(), KeyHash::default());
        let mut start = 0;
        for run in sorted.chunk_by(|a, b| a.0 == b.0) {
            ranges.insert(run[0].0, (start, start + run.len()));
            start += run.len();
        }
        Ok(Self { sorted, ranges })
    }

    fn of_row(&self, key: &RowKey) -> impl Iterator<Item = (usize, usize)> {
        let (start, end) = self.ranges.get(key).copied().unwrap_or_default();
        self.sorted[start..end].iter().map(|(_, place)| *place)
    }
}

/// The input rows with their results, in the order of the input. A row without a result is left
/// out.
fn assemble(
    input: LoadedInput,
    known: KnownRows,
    evaluated: Vec<RecordBatch>,
    schema: &SchemaRef,
) -> Result<DataFrame, RunError> {
    let mut results = known.batches;
    results.extend(evaluated);
    let places = Places::of(&results)?;
    let digest_at = schema.index_of(ROW_DIGEST)?;
    let produced: Vec<usize> = (0..schema.fields().len()).filter(|at| *at != digest_at).collect();
    let mut fields = input.schema.fields().to_vec();
    fields.extend(produced.iter().map(|at| Arc::clone(&schema.fields()[*at])));
    let joined_schema = Arc::new(Schema::new(fields));
    let columns: Vec<Vec<&dyn Array>> = produced
        .iter()
        .map(|at| results.iter().map(|b| b.column(*at).as_ref()).collect())
        .collect();
    let mut joined = Vec::with_capacity(input.batches.len());
    for (batch, keys) in input.batches.iter().zip(&input.keys) {
        let mut from_input: Vec<u32> = Vec::with_capacity(batch.num_rows());
        let mut from_results: Vec<(usize, usize)> = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            from_results.extend(places.of_row(&row_key(keys, row)));
            from_input.resize(from_results.len(), row as u32);
        }
        let same = from_input.len() == batch.num_rows()
            && from_input.iter().enumerate().all(|(i, row)| i == *row as usize);
        let batch = if same {
            batch.clone()
        } else {
            arrow::compute::take_record_batch(batch, &UInt32Array::from(from_input))?
        };
        let mut arrays = batch.columns().to_vec();
        for column in &columns {
            arrays.push(interleave(column, &from_results)?);
        }
        let options =
            arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        joined.push(RecordBatch::try_new_with_options(
            Arc::clone(&joined_schema),
            arrays,
            &options,
        )?);
    }
    // The projections of the ports are cheap: one thread keeps the order of the rows.
    let table = MemTable::try_new(joined_schema, vec![joined])?;
    Ok(session(1).read_table(Arc::new(table))?)
}
