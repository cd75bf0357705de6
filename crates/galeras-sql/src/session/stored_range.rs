//! A range of the rows of a stored table, by position: only the pages of the files that hold them
//! are read, from a disk or a bucket.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use futures::future::BoxFuture;
use futures::{TryFutureExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::scan::{check_stored, with_step};
use super::small_table::Planned;
use galeras_base::digest::Digest;
use galeras_operator::TableSchema;
use galeras_store::Store;

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8192;

/// Rows of the artifact `blob`, `len` from position `start` on (fewer at the end), as a table of the
/// planned schema that is held in memory; `step` fills the virtual column that names the step a
/// row comes from.
///
/// # Errors
/// If a file cannot be read, or the table lacks a column.
pub async fn scan_range(
    session: &SessionContext,
    store: &Store,
    blob: &Digest,
    (table, step): (&TableSchema, &str),
    (start, len): (u64, u64),
) -> Result<DataFrame> {
    let (object, metadata) = stored_footer(store, blob).await?;
    let schema = table.stored();
    let planned = Planned::new(metadata.schema(), &schema, None)?;
    let rows = |rows: u64| {
        usize::try_from(rows).map_err(|_| DataFusionError::Execution("too many rows".into()))
    };
    let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(object, metadata);
    let mask = ProjectionMask::roots(builder.parquet_schema(), planned.columns.iter().copied());
    let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
    let stream = builder.with_offset(rows(start)?).with_limit(rows(len)?).build()?;
    let batches = stream.map_err(DataFusionError::from);
    let batches = batches.and_then(async |batch| planned.batch(&batch));
    let batches: Vec<RecordBatch> = batches.try_collect().await?;
    let stored = session.read_table(Arc::new(MemTable::try_new(schema, vec![batches])?))?;
    with_step(stored, table, step)
}

/// A file of the store, and its footer.
///
/// # Errors
/// If it is missing or damaged.
pub(super) async fn stored_footer(
    store: &Store,
    blob: &Digest,
) -> Result<(StoredObject, ArrowReaderMetadata)> {
    check_stored(store, blob)?;
    let mut object = StoredObject { objects: store.object_store(), path: store.blob_path(blob) };
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    let metadata = ArrowReaderMetadata::load_async(&mut object, options).await?;
    Ok((object, metadata))
}

/// A file of the store, of which only the parts that are asked for are read.
#[derive(Clone, Debug)]
pub(super) struct StoredObject {
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

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, std::result::Result<Vec<Bytes>, ParquetError>> {
        Box::pin(async move {
            let read = self.objects.get_ranges(&self.path, &ranges).await;
            read.map_err(|error| ParquetError::External(Box::new(error)))
        })
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

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, StringArray};

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
