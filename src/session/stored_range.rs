//! A range of the rows of a stored table, by position: only the pages of the file that hold them
//! are read, from a disk or a bucket.
//!
//! Does not live here: single rows (`stored_rows`), whole tables (`scan`).

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, lit};
use futures::future::BoxFuture;
use futures::{TryFutureExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::scan::check_stored;
use crate::digest::Digest;
use crate::operator::{TableSchema, is_virtual};
use crate::store::Store;

/// Rows of the artifact `blob`, `len` from position `start` on (fewer at the end), as a table of the
/// planned schema that is held in memory; `step` fills the virtual column that names the step a
/// row comes from.
///
/// # Errors
/// If the file cannot be read, or lacks a column.
pub async fn scan_range(
    session: &SessionContext,
    store: &Store,
    blob: &Digest,
    (table, step): (&TableSchema, &str),
    (start, len): (u64, u64),
) -> Result<DataFrame> {
    check_stored(store, blob)?;
    let file = StoredObject { objects: store.object_store(), path: store.blob_path(blob) };
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    let rows = ParquetRecordBatchStreamBuilder::new_with_options(file, options)
        .await?
        .with_offset(positions(start)?)
        .with_limit(positions(len)?)
        .build()?;
    let schema = table.stored();
    let batches: Vec<RecordBatch> = rows
        .map_err(DataFusionError::from)
        .and_then(|batch| planned(batch, &schema))
        .try_collect()
        .await?;
    let stored = session.read_table(Arc::new(MemTable::try_new(schema, vec![batches])?))?;
    if !table.schema.fields().iter().any(|field| is_virtual(field)) {
        return Ok(stored);
    }
    stored.select(table.schema.fields().iter().map(|field| match is_virtual(field) {
        true => lit(step).alias(field.name()),
        false => Expr::Column(Column::from_name(field.name())),
    }))
}

/// A file of the store, of which only what is asked for is read.
struct StoredObject {
    objects: Arc<dyn ObjectStore>,
    path: Path,
}

impl AsyncFileReader for StoredObject {
    fn get_bytes(
        &mut self,
        range: Range<u64>,
    ) -> BoxFuture<'_, std::result::Result<Bytes, ParquetError>> {
        let read = self.objects.get_range(&self.path, range);
        Box::pin(read.map_err(|error| ParquetError::External(Box::new(error))))
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, std::result::Result<Arc<ParquetMetaData>, ParquetError>> {
        Box::pin(async move {
            let about = self.objects.head(&self.path).await;
            let about = about.map_err(|error| ParquetError::External(Box::new(error)))?;
            let reader =
                ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
            Ok(Arc::new(reader.load_and_finish(self, about.size).await?))
        })
    }
}

fn positions(rows: u64) -> Result<usize> {
    usize::try_from(rows).map_err(|_| DataFusionError::Execution("too many rows".into()))
}

/// The columns as they were planned, whatever else the file has.
async fn planned(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| {
        let column = batch.column(batch.schema_ref().index_of(field.name())?);
        Ok(cast(column, field.data_type())?)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow::array::{AsArray, StringArray};

    use super::*;
    use crate::session::{open_table, session};

    #[tokio::test]
    async fn the_ranges_of_a_table_are_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().to_string_lossy()).await.unwrap();
        let ids: StringArray = (0..10_000).map(|i| Some(format!("{i:06}"))).collect();
        let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef)]).unwrap();
        let rows = session(2).read_batch(batch.clone()).unwrap();
        let table = TableSchema::new(batch.schema(), None);
        let open = open_table(rows, &table).await.unwrap();
        let stored = open.store("out", &store, 2, |_| {}, || {}).await.unwrap();
        let mut found = Vec::new();
        for start in (0..12_000).step_by(700) {
            let session = session(1);
            let about = (&table, "step");
            let df = scan_range(&session, &store, &stored.blob, about, (start, 700)).await.unwrap();
            for batch in df.collect().await.unwrap() {
                let ids = batch.column(0).as_string::<i32>();
                found.extend(ids.iter().map(|id| id.unwrap().to_string()));
            }
        }
        assert_eq!(found, (0..10_000).map(|i| format!("{i:06}")).collect::<Vec<_>>());
    }
}
