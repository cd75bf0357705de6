//! Tables into artifacts: cast to stored types, sorted by key, checked for duplicate keys, hashed
//! and written as Parquet.
//!
//! Another task hashes the rows and another thread encodes them, behind bounded channels, while the
//! plan computes the next rows, unless there are only a few.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::compute::CastOptions;
use arrow::datatypes::SchemaRef;
use arrow::row::{OwnedRow, RowConverter, SortField};
use arrow::util::display::FormatOptions;
use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, cast};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::calendar::check_times;
use super::encode::{BlobEncoding, EncodedBlob};
use galeras_base::digest::{ColumnDigest, table_digest};
use galeras_base::id::ID;
use galeras_base::terminal_escape::escape;
use galeras_operator::table_digest::TableHasher;
use galeras_operator::{StepError, TableSchema, stored_type};
use galeras_store::{PortArtifact, Store, StoreError, TableShape};
use galeras_workflow::quote;

/// Batches that may wait for a writer thread.
const QUEUE: usize = 8;

/// Below this a table is not handed over batch by batch.
const HELD_BYTES: usize = 64 << 10;

const STRICT: CastOptions<'static> =
    CastOptions { safe: false, format_options: FormatOptions::new() };

/// Why a table was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreTableError {
    /// The rows could not be computed or are not a valid table.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DataFusionError> for StoreTableError {
    fn from(error: DataFusionError) -> Self {
        Self::Step(error.into())
    }
}

/// The column of exactly that name (SQL's rules of case and quoting do not apply).
pub fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// The rows in the order of the key; as they are if there is none.
///
/// # Errors
/// If a column of the key is not there.
pub fn sorted_by_key(df: DataFrame, key: &[String]) -> Result<DataFrame, DataFusionError> {
    match key {
        [] => Ok(df),
        key => df.sort(key.iter().map(|name| column(name).sort(true, true)).collect()),
    }
}

/// A table that is on its way to the store: its plan is being executed.
pub struct OpenTable {
    rows: SendableRecordBatchStream,
    schema: SchemaRef,
    key: Vec<String>,
    shape: TableShape,
}

/// Begins to compute `df`, whose rows become the table, in the order of its key.
///
/// # Errors
/// If the plan cannot be made.
pub async fn open_table(df: DataFrame, table: &TableSchema) -> Result<OpenTable, StoreTableError> {
    let schema = table.stored();
    let fields = df.schema().as_arrow().clone();
    let columns = schema.fields().iter().map(|field| {
        let expr = column(field.name());
        match fields.field_with_name(field.name()) {
            Ok(computed) if computed.data_type() == field.data_type() => expr,
            _ => cast(expr, field.data_type().clone()).alias(field.name()),
        }
    });
    let key: Vec<String> =
        table.key.iter().filter(|name| schema.field_with_name(name).is_ok()).cloned().collect();
    // A plan whose rows come in this order is not sorted again.
    let df = sorted_by_key(df.select(columns.collect::<Vec<_>>())?, &key)?;
    Ok(OpenTable { rows: df.execute_stream().await?, schema, key, shape: TableShape::of(table) })
}

impl OpenTable {
    /// Stores the rows as the artifact of `port`, encoding on so many threads.
    ///
    /// Calls `on_rows` with the number of rows of each finished batch, and `on_encoded` when only
    /// the disk is left.
    ///
    /// # Errors
    /// If the plan fails, a column that may not be null has nulls, two rows have the same key, or
    /// the store cannot be written.
    pub async fn store(
        self,
        port: &str,
        store: &Store,
        threads: usize,
        on_rows: impl Fn(u64),
        on_encoded: impl FnOnce(),
    ) -> Result<PortArtifact, StoreTableError> {
        let encoded = self.encode(port, store, threads, on_rows).await?;
        on_encoded();
        encoded.commit(store).await
    }

    /// Computes the rows and encodes them, on so many threads: all of [`OpenTable::store`] but for
    /// the wait for the disk.
    ///
    /// # Errors
    /// Those of [`OpenTable::store`].
    pub async fn encode(
        mut self,
        port: &str,
        store: &Store,
        threads: usize,
        on_rows: impl Fn(u64),
    ) -> Result<EncodedTable, StoreTableError> {
        let mut order = KeyOrder::new(&self.schema, &self.key)?;
        let (mut held, mut bytes) = (Vec::new(), 0);
        let mut sink: Option<ArtifactSink> = None;
        while let Some(batch) = self.rows.next().await {
            let batch = conform(batch?, &self.schema)?;
            order.check(&batch)?;
            on_rows(batch.num_rows() as u64);
            bytes += batch.get_array_memory_size();
            held.push(batch);
            if sink.is_none() && bytes < HELD_BYTES {
                continue;
            }
            let sink = match &mut sink {
                Some(sink) => sink,
                None => {
                    let schema = Arc::clone(&self.schema);
                    sink.insert(ArtifactSink::new(store, schema, threads)?)
                }
            };
            if !sink.send_all(&mut held).await {
                break;
            }
        }
        let (blob, columns, rows) = match sink {
            Some(sink) => sink.finish().await?,
            None => small(store, &self.schema, held).await?,
        };
        let (port, key, shape) = (port.to_string(), self.key, self.shape);
        Ok(EncodedTable { port, key, columns, rows, blob, shape })
    }
}

/// A table whose file is complete, but neither durable nor in the store.
pub struct EncodedTable {
    port: String,
    key: Vec<String>,
    columns: Vec<ColumnDigest>,
    rows: u64,
    blob: EncodedBlob,
    shape: TableShape,
}

impl EncodedTable {
    /// Puts it into the store.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn commit(self, store: &Store) -> Result<PortArtifact, StoreTableError> {
        let Self { port, key, columns, rows, blob, shape } = self;
        let blob = blob.commit(store).await?;
        store.note_shape(&blob.digest, &shape);
        let digest = table_digest(&columns, rows);
        let (bytes, blob) = (blob.bytes, blob.digest);
        Ok(PortArtifact { port, digest, blob, bytes, rows, key, columns })
    }
}

/// The batch under the declared schema; fails if a column that may not be null has nulls, or one
/// of times has some that cannot be written.
fn conform(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, StepError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(array, field)| {
            if array.data_type() == field.data_type() {
                Ok(Arc::clone(array))
            } else {
                // A value that does not fit is an error, not a null.
                arrow::compute::cast_with_options(array, field.data_type(), &STRICT)
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    check_times(&batch).map_err(StepError::refused)?;
    Ok(batch)
}

/// The task that hashes batches and the thread that encodes them into one blob.
pub(super) struct ArtifactSink {
    to_hasher: mpsc::Sender<RecordBatch>,
    to_writer: mpsc::Sender<RecordBatch>,
    hasher: JoinHandle<Result<(Vec<ColumnDigest>, u64), StepError>>,
    writer: BlobEncoding,
}

impl ArtifactSink {
    fn new(store: &Store, schema: SchemaRef, threads: usize) -> Result<Self, StoreError> {
        let (to_hasher, mut hash_queue) = mpsc::channel::<RecordBatch>(QUEUE);
        let (to_writer, mut write_queue) = mpsc::channel::<RecordBatch>(QUEUE);
        let hash_schema = Arc::clone(&schema);
        let next = move || write_queue.blocking_recv();
        let writer = BlobEncoding::start_waiting(store, schema, threads, next)?;
        let hasher = tokio::spawn(async move {
            let mut hasher = TableHasher::new(&hash_schema);
            while let Some(batch) = hash_queue.recv().await {
                hasher.update(&batch).map_err(|e| StepError::new(e.to_string()))?;
            }
            Ok::<_, StepError>(hasher.finish())
        });
        Ok(Self { to_hasher, to_writer, hasher, writer })
    }

    /// Hands batches on; false if a thread has ended early, which `finish` explains.
    async fn send_all(&mut self, batches: &mut Vec<RecordBatch>) -> bool {
        for batch in batches.drain(..) {
            if self.to_hasher.send(batch.clone()).await.is_err()
                || self.to_writer.send(batch).await.is_err()
            {
                return false;
            }
        }
        true
    }

    /// The file, and the digests and the number of the rows.
    async fn finish(self) -> Result<(EncodedBlob, Vec<ColumnDigest>, u64), StoreTableError> {
        let Self { to_hasher, to_writer, hasher, writer } = self;
        drop((to_hasher, to_writer));
        let encoded = writer.finish().await;
        let panicked = |_| StepError::new("a writer thread panicked");
        // An error in the rows explains more than the failed write.
        let (columns, rows) = hasher.await.map_err(panicked)??;
        Ok((encoded?, columns, rows))
    }
}

/// The file, the digests and the number of rows that are few: to hand them to a thread that hashes
/// them takes longer than to hash them.
async fn small(
    store: &Store,
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<(EncodedBlob, Vec<ColumnDigest>, u64), StoreTableError> {
    let mut hasher = TableHasher::new(schema);
    for batch in &batches {
        hasher.update(batch).map_err(|e| StepError::new(e.to_string()))?;
    }
    let (columns, rows) = hasher.finish();
    let mut batches = batches.into_iter();
    let next = move || batches.next();
    let writer = BlobEncoding::start(store, Arc::clone(schema), 1, next)?;
    Ok((writer.finish().await?, columns, rows))
}

/// Finds neighbouring rows with equal keys in sorted batches, and batches that are not sorted.
struct KeyOrder {
    /// The places of the key columns.
    columns: Vec<usize>,
    converter: RowConverter,
    last: Option<(OwnedRow, RecordBatch)>,
}

impl KeyOrder {
    fn new(schema: &SchemaRef, key: &[String]) -> Result<Self, StepError> {
        let columns =
            key.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let fields =
            columns.iter().map(|at| SortField::new(stored_type(schema.field(*at).data_type())));
        Ok(Self { converter: RowConverter::new(fields.collect())?, columns, last: None })
    }

    fn check(&mut self, batch: &RecordBatch) -> Result<(), StepError> {
        if batch.num_rows() == 0 || self.columns.is_empty() {
            return Ok(());
        }
        let schema = batch.schema_ref();
        let mut ids = self.columns.iter().filter(|at| schema.field(**at).name() == ID);
        if ids.any(|at| batch.column(*at).null_count() > 0) {
            return Err(StepError::refused("the column `id` has nulls")
                .help("every row needs an id; drop these rows or give another key"));
        }
        let keys: Vec<_> = self.columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let rows = self.converter.convert_columns(&keys)?;
        if let Some((last, row)) = &self.last {
            self.ascends(last.row().cmp(&rows.row(0)), || (row.clone(), batch.slice(0, 1)))?;
        }
        for at in 1..rows.num_rows() {
            let pair = || (batch.slice(at - 1, 1), batch.slice(at, 1));
            self.ascends(rows.row(at - 1).cmp(&rows.row(at)), pair)?;
        }
        let end = rows.num_rows() - 1;
        self.last = Some((rows.row(end).owned(), batch.slice(end, 1)));
        Ok(())
    }

    /// Fails unless the first of two rows is less.
    fn ascends(
        &self,
        order: Ordering,
        pair: impl FnOnce() -> (RecordBatch, RecordBatch),
    ) -> Result<(), StepError> {
        match order {
            Ordering::Less => Ok(()),
            Ordering::Equal => {
                let (one, other) = pair();
                Err(self.report(&one, &other))
            }
            // The plan promised rows in the order of the key.
            Ordering::Greater => {
                Err(StepError::new("a defect: the rows do not come in the order of their key"))
            }
        }
    }

    fn report(&self, one: &RecordBatch, other: &RecordBatch) -> StepError {
        let schema = one.schema();
        let shown = |row: &RecordBatch, columns: &[usize]| {
            let values = columns.iter().map(|at| {
                let name = escape(schema.field(*at).name());
                format!("{name}: {}", value_text(row.column(*at)))
            });
            values.collect::<Vec<_>>().join(", ")
        };
        let (key, mut others): (Vec<usize>, Vec<usize>) =
            (0..one.num_columns()).partition(|at| self.columns.contains(at));
        let key = shown(one, &key);
        // Columns that differ show the surplus row, or the column that the key lacks.
        let differs = |at: &usize| value_text(one.column(*at)) != value_text(other.column(*at));
        let differing: Vec<usize> = others.iter().copied().filter(differs).take(SHOWN).collect();
        if differing.is_empty() {
            others.truncate(SHOWN);
            let rest = match others.is_empty() {
                true => String::new(),
                false => format!(":\n  {}", shown(one, &others)),
            };
            let message = format!("two rows are equal and have the key {key}{rest}");
            return StepError::refused(message).help(
                "a key must be unique: remove the repetition, with SELECT DISTINCT for instance; if \
                 each row counts, as several answers to a prompt do, `position` of `read` numbers \
                 them",
            );
        }
        let (first, second) = (shown(one, &differing), shown(other, &differing));
        let names = differing.iter().map(|at| quote(schema.field(*at).name()));
        let message = format!("two rows have the key {key}:\n  {first}\n  {second}");
        StepError::refused(message).help(format!(
            "a key must be unique: keep one of the rows, or take what tells them apart into the \
             key, which is {}",
            names.collect::<Vec<_>>().join(" or ")
        ))
    }
}

/// Columns of a row that are shown.
const SHOWN: usize = 4;

/// A value in the words of a message, long ones cropped.
fn value_text(array: &dyn Array) -> String {
    const WIDTH: usize = 60;
    let options = arrow::util::display::FormatOptions::default().with_null("null");
    let text = arrow::util::display::ArrayFormatter::try_new(array, &options)
        .map(|f| f.value(0).to_string())
        .unwrap_or_default();
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", escape(&text[..end])),
        None => escape(&text),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn batch(ids: &[&str]) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("id", DataType::Utf8, false)]);
        let column = Arc::new(StringArray::from(ids.to_vec()));
        RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap()
    }

    fn check(batches: &[&[&str]]) -> Result<(), StepError> {
        let schema = batch(&[]).schema();
        let mut duplicates = KeyOrder::new(&schema, &["id".to_string()]).unwrap();
        batches.iter().try_for_each(|ids| duplicates.check(&batch(ids)))
    }

    #[test]
    fn equal_keys_are_found_within_and_between_batches() {
        assert!(check(&[&["a", "b"], &[], &["c", "d"]]).is_ok());
        for batches in [&[&["a", "a"][..]][..], &[&["a", "b"], &[], &["b", "c"]]] {
            let message = check(batches).unwrap_err().to_string();
            assert!(message.contains("the key id: "), "{message}");
        }
    }

    #[test]
    fn rows_out_of_order_are_a_defect() {
        for batches in [&[&["b", "a"][..]][..], &[&["a", "c"], &[], &["b"]]] {
            let message = check(batches).unwrap_err().to_string();
            assert!(message.contains("a defect"), "{message}");
        }
    }

    #[tokio::test]
    async fn a_table_is_stored_in_the_order_of_its_key_whatever_order_it_comes_in() {
        let store = Store::open("memory://").await.unwrap();
        let table = TableSchema::new(batch(&[]).schema(), None);
        let mut digests = Vec::new();
        for ids in [["a", "b", "c"], ["c", "a", "b"]] {
            let df = crate::session::session(2).read_batch(batch(&ids)).unwrap();
            let open = open_table(df, &table).await.unwrap();
            let stored = open.store("out", &store, 2, |_| {}, || {}).await.unwrap();
            digests.push((stored.digest, stored.rows));
        }
        assert_eq!(digests[0], digests[1]);
    }
}
