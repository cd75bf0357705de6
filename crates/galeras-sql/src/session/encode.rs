//! Batches as Parquet, for a blob of the store: row groups whose columns are encoded side by side.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, new_empty_array};
use arrow::datatypes::{FieldRef, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use tokio::task::JoinHandle;

use galeras_base::digest::Digest;
use galeras_operator::StepError;
use galeras_operator::worker_threads::{on_thread, pool};
use galeras_store::{BlobWriter, Store, StoreError};

/// Rows per Parquet row group: some tens of megabytes of methods, held until it is encoded. Tests
/// have several in small tables.
const ROW_GROUP_ROWS: usize = if cfg!(test) { 1024 } else { 32 * 1024 };

/// Bytes of texts and numbers from which on a row group ends early: texts of a megabyte would take
/// 32 GB until it is encoded.
const ROW_GROUP_BYTES: usize = if cfg!(test) { 8 << 20 } else { 1 << 30 };

/// From here on a higher level takes much more time and saves little.
const ZSTD_LEVEL: i32 = 3;
/// The bytes that a file takes on most disks at least.
const BLOCK: usize = 4 << 10;
/// Bytes of the distinct values of a column in a row group. The writer stores further values without
/// the dictionary.
const DICTIONARY_BYTES: usize = 8 << 20;

/// A blob that a thread encodes. Dropped before it is finished, it leaves nothing in the store.
pub struct BlobEncoding {
    encoder: JoinHandle<Result<EncodedBlob, StepError>>,
}

/// An encoded blob that is not in the store yet.
pub struct EncodedBlob {
    writer: BlobWriter,
    rows: u64,
}

/// A blob in the store.
pub struct StoredBlob {
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
    /// The rows in it.
    pub rows: u64,
}

impl BlobEncoding {
    /// Starts to encode the batches that `next` gives, until there is none left. The columns of a row
    /// group are encoded on up to `threads` threads.
    ///
    /// # Errors
    /// If the store takes no new blob.
    pub fn start(
        store: &Store,
        schema: SchemaRef,
        threads: usize,
        next: impl FnMut() -> Option<RecordBatch> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let blob = store.blob_writer()?;
        let encode = move || encoded(blob, schema, threads, next);
        Ok(Self { encoder: tokio::task::spawn_blocking(encode) })
    }

    /// As [`Self::start`], for a `next` that waits for batches.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn start_waiting(
        store: &Store,
        schema: SchemaRef,
        threads: usize,
        next: impl FnMut() -> Option<RecordBatch> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let blob = store.blob_writer()?;
        let encode = move || encoded(blob, schema, threads, next);
        Ok(Self { encoder: tokio::spawn(on_thread(encode)) })
    }

    /// Waits until all batches are encoded.
    ///
    /// # Errors
    /// If a batch does not have the columns of the schema, or the disk fails.
    pub async fn finish(self) -> Result<EncodedBlob, StepError> {
        self.encoder.await.map_err(|_| StepError::new("a writer thread panicked"))?
    }

    /// Waits for the end of the thread and drops what it wrote.
    pub async fn abandon(self) {
        // The result is of no use any more.
        let _ = self.encoder.await;
    }
}

impl EncodedBlob {
    /// Puts the blob into the store.
    ///
    /// # Errors
    /// If it cannot be made durable or be given its name.
    pub async fn commit(self, store: &Store) -> Result<StoredBlob, StoreError> {
        let (digest, bytes) = self.writer.commit(store).await?;
        Ok(StoredBlob { digest, bytes, rows: self.rows })
    }
}

fn encoded(
    blob: BlobWriter,
    schema: SchemaRef,
    threads: usize,
    next: impl FnMut() -> Option<RecordBatch>,
) -> Result<EncodedBlob, StepError> {
    let (writer, rows) = encode(blob, schema, threads, next)?;
    Ok(EncodedBlob { writer, rows })
}

/// Encodes the batches that `next` gives, until there is none left, on so many threads. Returns the
/// number of rows.
pub(super) fn encode<W: Write + Send>(
    mut out: W,
    schema: SchemaRef,
    threads: usize,
    mut next: impl FnMut() -> Option<RecordBatch>,
) -> Result<(W, u64), StepError> {
    let mut batches = group(&mut next);
    let properties = properties_of(&batches);
    let writer = ArrowWriter::try_new(&mut out, Arc::clone(&schema), Some(properties))?;
    let (mut file, factory) = writer.into_serialized_writer()?;
    let (mut number, mut rows) = (0, 0);
    while !batches.is_empty() {
        rows += batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        let writers = factory.create_column_writers(number)?;
        let chunks = encode_group(&schema, writers, &batches, threads)?;
        let mut row_group = file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut row_group)?;
        }
        row_group.close()?;
        number += 1;
        batches = group(&mut next);
    }
    // Flushes, to keep the system's error; `into_inner` would keep only its text.
    file.close()?;
    Ok((out, rows))
}

/// The batches of the next row group; none if there are no more rows.
fn group(next: &mut impl FnMut() -> Option<RecordBatch>) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    let (mut rows, mut bytes) = (0, 0);
    while rows < ROW_GROUP_ROWS && bytes < ROW_GROUP_BYTES {
        let Some(batch) = next() else { break };
        if batch.num_rows() > 0 {
            rows += batch.num_rows();
            bytes += flat_bytes(&batch);
            batches.push(batch);
        }
    }
    batches
}

/// How a file is written whose first row group has these batches.
fn properties_of(batches: &[RecordBatch]) -> WriterProperties {
    let compression = match fits_a_block(batches) {
        true => Compression::UNCOMPRESSED,
        false => Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default()),
    };
    WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by("galeras".to_string())
        .build()
}

/// Returns true if the rows fit a block of a disk uncompressed. Compressing them saves nothing, and
/// its fixed cost per column is most of the work.
fn fits_a_block(batches: &[RecordBatch]) -> bool {
    let mut columns = batches.iter().flat_map(RecordBatch::columns);
    columns.all(|column| !column.data_type().is_nested())
        && batches.iter().map(RecordBatch::num_rows).sum::<usize>() < ROW_GROUP_ROWS
        && batches.iter().map(flat_bytes).sum::<usize>() <= BLOCK
}

/// The bytes of the columns without lists: what the lists of a slice hold is not known without a look
/// at each.
fn flat_bytes(batch: &RecordBatch) -> usize {
    let flat = batch.columns().iter().filter(|column| !column.data_type().is_nested());
    flat.map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum()
}

/// One column of a row group with the writers of its leaves.
struct ColumnChunk<'a> {
    at: usize,
    field: &'a FieldRef,
    writers: Vec<ArrowColumnWriter>,
    bytes: usize,
}

/// The encoded leaves of the columns, in order.
fn encode_group(
    schema: &SchemaRef,
    writers: Vec<ArrowColumnWriter>,
    batches: &[RecordBatch],
    threads: usize,
) -> Result<Vec<ArrowColumnChunk>, StepError> {
    let mut writers = writers.into_iter();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (at, field) in schema.fields().iter().enumerate() {
        let leaves = compute_leaves(field, &new_empty_array(field.data_type()))?.len();
        let bytes = batches.iter().map(|b| b.column(at).get_buffer_memory_size()).sum();
        let writers = writers.by_ref().take(leaves).collect();
        columns.push(ColumnChunk { at, field, writers, bytes });
    }
    let encode = |column: ColumnChunk<'_>| (column.at, encode_column(column, batches));
    // To start a thread takes longer than to encode a few kilobytes, and a workflow may have ten
    // thousand small tables.
    let small = columns.iter().map(|column| column.bytes).sum::<usize>() < SMALL_BYTES;
    let mut encoded: Vec<_> = match threads <= 1 || small {
        true => columns.into_iter().map(encode).collect(),
        false => {
            // The largest are taken first.
            columns.sort_by_key(|column| std::cmp::Reverse(column.bytes));
            let pool = pool(threads.min(columns.len()))?;
            pool.install(|| columns.into_par_iter().with_max_len(1).map(encode).collect())
        }
    };
    encoded.sort_by_key(|(at, _)| *at);
    let mut chunks = Vec::new();
    for (_, leaves) in encoded {
        chunks.extend(leaves?);
    }
    Ok(chunks)
}

/// Below this the columns of a row group are encoded by one thread.
const SMALL_BYTES: usize = 64 << 10;

fn encode_column(
    mut column: ColumnChunk<'_>,
    batches: &[RecordBatch],
) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
    for batch in batches {
        let leaves = compute_leaves(column.field, batch.column(column.at))?;
        for (writer, leaf) in column.writers.iter_mut().zip(&leaves) {
            writer.write(leaf)?;
        }
    }
    column.writers.into_iter().map(ArrowColumnWriter::close).collect()
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        ArrayRef, Int64Array, ListBuilder, StringArray, StringBuilder, StructArray,
    };
    use arrow::datatypes::{DataType, Field, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::metadata::ColumnChunkMetaData;

    use super::*;

    fn batch(start: i64, rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(start..start + rows));
        let mut lists = ListBuilder::new(StringBuilder::new());
        for n in start..start + rows {
            lists.append_value((0..n % 3).map(|i| (i > 0).then(|| format!("{n}-{i}"))));
        }
        let inner = Field::new("inner", DataType::Utf8, true);
        let texts = StringArray::from_iter(
            (start..start + rows).map(|n| (n % 2 == 0).then(|| format!("text {n}"))),
        );
        let nested = StructArray::from(vec![(Arc::new(inner), Arc::new(texts) as ArrayRef)]);
        let columns: Vec<(&str, ArrayRef)> =
            vec![("n", numbers), ("list", Arc::new(lists.finish())), ("nested", Arc::new(nested))];
        let schema = Schema::new(
            columns
                .iter()
                .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
                .collect::<Vec<_>>(),
        );
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
    }

    #[test]
    fn what_is_written_on_any_number_of_threads_is_read_back() {
        let schema = batch(0, 1).schema();
        for threads in [1, 2, 5] {
            let batches: Vec<_> = (0..40).map(|i| batch(i * 1000, 1000)).collect();
            let mut rest = batches.clone().into_iter();
            let encoded = encode(Vec::new(), schema.clone(), threads, || rest.next());
            let (bytes, _) = encoded.unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
                .unwrap()
                .with_batch_size(1000)
                .build()
                .unwrap();
            let read: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
            let whole = |b: &[RecordBatch]| arrow::compute::concat_batches(&schema, b).unwrap();
            assert_eq!(whole(&read), whole(&batches));
        }
    }

    #[test]
    fn an_empty_table_is_a_valid_file() {
        let (bytes, _) = encode(Vec::new(), batch(0, 1).schema(), 2, || None).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.build().unwrap().count(), 0);
    }

    #[test]
    fn only_what_fits_a_block_is_not_compressed() {
        let flat = |start, rows| batch(start, rows).project(&[0]).unwrap();
        for (batch, compressed) in [
            (flat(0, 500), false),
            // In any slice.
            (flat(0, 5000).slice(100, 500), false),
            (flat(0, 520), true),
            (batch(0, 10), true),
        ] {
            let schema = batch.schema();
            let mut rest = vec![batch].into_iter();
            let (bytes, _) = encode(Vec::new(), schema, 1, || rest.next()).unwrap();
            let bytes = bytes::Bytes::from(bytes);
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
            let columns = reader.metadata().row_group(0).columns();
            let are =
                |column: &ColumnChunkMetaData| column.compression() != Compression::UNCOMPRESSED;
            assert!(columns.iter().all(|column| are(column) == compressed), "{columns:?}");
        }
    }

    #[test]
    fn long_texts_make_row_groups_of_fewer_rows() {
        let text = "x".repeat(1 << 20);
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(vec![text; 20]));
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let mut rest = (0..20).map(|at| batch.slice(at, 1));
        let (bytes, encoded) = encode(Vec::new(), batch.schema(), 1, || rest.next()).unwrap();
        let bytes = bytes::Bytes::from(bytes);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let groups = reader.metadata().row_groups().iter();
        let rows: Vec<i64> = groups.map(|group| group.num_rows()).collect();
        assert_eq!((encoded, rows), (20, vec![8, 8, 4]));
    }
}
