//! Tables into artifacts: cast to stored types, sorted by key, checked for duplicate keys,
//! hashed and written as Parquet.
//!
//! Hashing and encoding run on threads of their own, behind bounded channels, while the plan
//! computes the next rows. Does not live here: files and names (`cache`).

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast};
use futures::StreamExt;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cache::{BlobWriter, CacheError, PortArtifact, Store};
use crate::digest::{ColumnDigest, TableHasher, table_digest};
use crate::operator::{StepError, TableSchema, stored_type};

/// Rows per Parquet row group: some tens of megabytes of methods.
const ROW_GROUP_ROWS: usize = 32 * 1024;
/// Batches that may wait for a writer thread.
const QUEUE: usize = 8;

/// Why a table was not stored.
#[derive(Debug, thiserror::Error)]
pub enum Stored {
    /// The rows could not be computed or are not a valid table.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The store failed.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl From<datafusion::error::DataFusionError> for Stored {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        Self::Step(error.into())
    }
}

/// The column of exactly that name (SQL's rules of case and quoting do not apply).
pub fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// Computes `df` and stores it as the artifact of `port`, in the order of its key.
///
/// `on_rows` is told the number of rows of each finished batch.
pub async fn store_table(
    df: DataFrame,
    port: &str,
    table: &TableSchema,
    store: &Store,
    on_rows: impl Fn(u64),
) -> Result<PortArtifact, Stored> {
    let schema = table.stored();
    let fields = df.schema().as_arrow().clone();
    let columns = schema.fields().iter().map(|field| {
        let expr = column(field.name());
        match fields.field_with_name(field.name()) {
            Ok(found) if found.data_type() == field.data_type() => expr,
            _ => cast(expr, field.data_type().clone()).alias(field.name()),
        }
    });
    let key: Vec<String> =
        table.key.iter().filter(|name| schema.field_with_name(name).is_ok()).cloned().collect();
    let df = df
        .select(columns.collect::<Vec<_>>())?
        .sort(key.iter().map(|name| column(name).sort(true, true)).collect())?;
    let mut stream = df.execute_stream().await?;
    let mut duplicates = DuplicateKeys::new(&schema, &key)?;
    let mut sink = ArtifactSink::new(store, Arc::clone(&schema))?;
    while let Some(batch) = stream.next().await {
        let batch = conform(batch?, &schema)?;
        duplicates.check(&batch)?;
        on_rows(batch.num_rows() as u64);
        if !sink.send(batch).await {
            break;
        }
    }
    sink.finish(store, port, key).await
}

/// The batch under the declared schema; fails if a column that may not be null has nulls.
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
                arrow::compute::cast(array, field.data_type())
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The threads that hash and encode batches into one blob.
pub(crate) struct ArtifactSink {
    to_hasher: mpsc::Sender<RecordBatch>,
    to_writer: mpsc::Sender<RecordBatch>,
    hasher: JoinHandle<Result<(Vec<ColumnDigest>, u64), StepError>>,
    writer: JoinHandle<Result<BlobWriter, StepError>>,
}

impl ArtifactSink {
    fn new(store: &Store, schema: SchemaRef) -> Result<Self, CacheError> {
        let blob = store.blob_writer()?;
        let (to_hasher, mut hash_queue) = mpsc::channel::<RecordBatch>(QUEUE);
        let (to_writer, mut write_queue) = mpsc::channel::<RecordBatch>(QUEUE);
        let hash_schema = Arc::clone(&schema);
        let hasher = tokio::task::spawn_blocking(move || {
            let mut hasher = TableHasher::new(&hash_schema);
            while let Some(batch) = hash_queue.blocking_recv() {
                hasher.update(&batch).map_err(|e| StepError::new(e.to_string()))?;
            }
            Ok(hasher.finish())
        });
        let writer = tokio::task::spawn_blocking(move || {
            encode(blob, schema, || write_queue.blocking_recv())
        });
        Ok(Self { to_hasher, to_writer, hasher, writer })
    }

    /// Hands a batch on; false if a thread has ended early, which `finish` explains.
    async fn send(&mut self, batch: RecordBatch) -> bool {
        self.to_hasher.send(batch.clone()).await.is_ok() && self.to_writer.send(batch).await.is_ok()
    }

    async fn finish(
        self,
        store: &Store,
        port: &str,
        key: Vec<String>,
    ) -> Result<PortArtifact, Stored> {
        let Self { to_hasher, to_writer, hasher, writer } = self;
        drop((to_hasher, to_writer));
        let panicked = |_| StepError::new("a writer thread panicked");
        let blob = writer.await.map_err(panicked)?;
        let (columns, rows) = hasher.await.map_err(panicked)??;
        let (blob, bytes) = blob?.commit(store).await?;
        let digest = table_digest(&columns, rows);
        Ok(PortArtifact { port: port.to_string(), digest, blob, bytes, rows, key, columns })
    }
}

/// Encodes batches as Parquet until there is none left.
pub(crate) fn encode(
    blob: BlobWriter,
    schema: SchemaRef,
    mut next: impl FnMut() -> Option<RecordBatch>,
) -> Result<BlobWriter, StepError> {
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by("galeras".to_string())
        .build();
    let failed = |error: parquet::errors::ParquetError| StepError::new(error.to_string());
    let mut writer = ArrowWriter::try_new(blob, schema, Some(properties)).map_err(failed)?;
    while let Some(batch) = next() {
        writer.write(&batch).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

/// Finds neighbouring rows with equal keys in sorted batches.
struct DuplicateKeys {
    converter: RowConverter,
    columns: Vec<usize>,
    last: Option<(OwnedRow, RecordBatch)>,
}

impl DuplicateKeys {
    fn new(schema: &SchemaRef, key: &[String]) -> Result<Self, StepError> {
        let columns =
            key.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let fields = columns
            .iter()
            .map(|i| SortField::new(stored_type(schema.field(*i).data_type())))
            .collect();
        Ok(Self { converter: RowConverter::new(fields)?, columns, last: None })
    }

    fn check(&mut self, batch: &RecordBatch) -> Result<(), StepError> {
        if batch.num_rows() == 0 || self.columns.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = self.columns.iter().map(|i| Arc::clone(batch.column(*i))).collect();
        let rows = self.converter.convert_columns(&keys)?;
        if let Some((last, row)) = &self.last
            && last.row() == rows.row(0)
        {
            return Err(self.report(row, &batch.slice(0, 1)));
        }
        for i in 1..rows.num_rows() {
            if rows.row(i - 1) == rows.row(i) {
                return Err(self.report(&batch.slice(i - 1, 1), &batch.slice(i, 1)));
            }
        }
        let end = rows.num_rows() - 1;
        self.last = Some((rows.row(end).owned(), batch.slice(end, 1)));
        Ok(())
    }

    fn report(&self, one: &RecordBatch, other: &RecordBatch) -> StepError {
        let schema = one.schema();
        let names: Vec<&str> =
            self.columns.iter().map(|i| schema.field(*i).name().as_str()).collect();
        StepError::new(format!(
            "two rows have the same key ({}):\n  {}\n  {}",
            names.join(", "),
            row_text(one),
            row_text(other)
        ))
        .help("key columns must be unique together; choose other key columns or drop duplicates")
    }
}

/// One row as `{name: value, …}`, long values cropped.
fn row_text(row: &RecordBatch) -> String {
    const WIDTH: usize = 60;
    let options = arrow::util::display::FormatOptions::default().with_null("null");
    let values = row.columns().iter().zip(row.schema_ref().fields()).map(|(array, field)| {
        let text = arrow::util::display::ArrayFormatter::try_new(array, &options)
            .map(|f| f.value(0).to_string())
            .unwrap_or_default();
        let mut cropped: String = text.chars().take(WIDTH).collect();
        if cropped.len() < text.len() {
            cropped.push('…');
        }
        format!("{}: {}", field.name(), cropped.replace('\n', "\\n"))
    });
    format!("{{{}}}", values.collect::<Vec<_>>().join(", "))
}
