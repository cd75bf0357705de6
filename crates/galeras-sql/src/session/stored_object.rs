//! A stored table in a store of objects, a folder or a bucket, of which only what is asked for is
//! read: its own file, and those that hold columns of it.
//!
//! Does not live here: as a table of a plan (`layered_table`), a range of rows (`stored_range`).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::{SchemaRef, UInt64Type};
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use futures::future::BoxFuture;
use futures::{Stream, StreamExt, TryFutureExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStream};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use galeras_base::digest::Digest;
use galeras_store::Store;
use galeras_store::table_file::{Layers, Layout, Zip, check_footer, gather, row_selection};

/// A table whose footers are read.
#[derive(Debug)]
pub(super) struct StoredObject {
    own: ObjectFile,
    others: Vec<ObjectFile>,
    layout: Layout,
}

/// Rows of a row group, as ranges of the table.
pub(super) type GroupRows = (usize, Vec<Range<u64>>);

impl StoredObject {
    /// Reads the footers of the file `blob` and of those that it refers to.
    ///
    /// # Errors
    /// If one is missing or damaged.
    pub(super) async fn open(store: &Store, blob: &Digest) -> Result<Self> {
        let own = ObjectFile::open(store, blob).await?;
        let layers = Layers::of(own.metadata.metadata())?;
        let mut others = Vec::new();
        for digest in layers.iter().flat_map(|layers| &layers.files) {
            others.push(ObjectFile::open(store, digest).await?);
        }
        let footers: Vec<&ArrowReaderMetadata> = others.iter().map(|file| &file.metadata).collect();
        let layout = Layout::new(&own.metadata, layers.as_ref(), &footers)?;
        Ok(Self { own, others, layout })
    }

    /// The columns of the table.
    pub(super) fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// The positions of the rows of each row group.
    pub(super) fn groups(&self) -> &[Range<u64>] {
        self.layout.groups()
    }

    /// The footer of the own file, and which column of it a column is; `None` if the column is
    /// elsewhere in some row groups.
    pub(super) fn own_column(&self, column: usize) -> Option<(&ParquetMetaData, usize)> {
        let is_own = (0..self.groups().len()).all(|at| self.layout.place(at, column).is_none());
        is_own.then(|| (self.own.metadata.metadata().as_ref(), self.layout.own_root(column)))
    }

    /// These columns, as places in the schema, of these rows, so many at a time at most.
    pub(super) fn read(
        self: Arc<Self>,
        columns: Vec<usize>,
        parts: Vec<GroupRows>,
        batch: usize,
    ) -> impl Stream<Item = Result<RecordBatch>> {
        let reading = Reading { table: self, columns, parts: parts.into(), batch, open: None };
        futures::stream::try_unfold(reading, |mut reading| async move {
            Ok(reading.next().await?.map(|batch| (batch, reading)))
        })
    }

    async fn listed(&self, group: usize, columns: &[usize]) -> Result<Vec<Option<UInt64Array>>> {
        let mut listed = vec![None; self.layout.slots()];
        let needed = self.layout.needed_slots(group, columns);
        if needed.is_empty() {
            return Ok(listed);
        }
        let roots: Vec<usize> = needed.iter().map(|(_, root)| *root).collect();
        let rows = self.groups()[group].clone();
        let count = positions(rows.end - rows.start)?;
        let mut batches = self.own.stream(&roots, &[rows], count.max(1))?;
        let Some(batch) = batches.next().await.transpose()? else { return Ok(listed) };
        for ((slot, _), column) in needed.iter().zip(batch.columns()) {
            listed[*slot] = column.as_primitive_opt::<UInt64Type>().cloned();
        }
        Ok(listed)
    }
}

/// Rows that are being read.
struct Reading {
    table: Arc<StoredObject>,
    columns: Vec<usize>,
    parts: VecDeque<GroupRows>,
    batch: usize,
    open: Option<(Zip, Vec<SourceRows>)>,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some((zip, streams)) = &mut self.open else {
                let Some((group, wanted)) = self.parts.pop_front() else { return Ok(None) };
                let (table, columns) = (Arc::clone(&self.table), self.columns.clone());
                self.open = Some(open_group(table, columns, group, wanted, self.batch).await?);
                continue;
            };
            let mut ended = false;
            while let Some(source) = zip.hungry() {
                match streams[source].next().await? {
                    Some(batch) => zip.feed(source, batch),
                    None => {
                        zip.end()?;
                        ended = true;
                        break;
                    }
                }
            }
            if ended {
                self.open = None;
                continue;
            }
            return Ok(Some(zip.next()?));
        }
    }
}

/// Rows of one file.
enum SourceRows {
    Stream(ParquetRecordBatchStream<Object>),
    /// All of them at once, in the order in which they are wanted.
    Gathered(Option<RecordBatch>),
}

impl SourceRows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Stream(rows) => Ok(rows.next().await.transpose()?),
            Self::Gathered(rows) => Ok(rows.take()),
        }
    }
}

async fn open_group(
    table: Arc<StoredObject>,
    columns: Vec<usize>,
    group: usize,
    wanted: Vec<Range<u64>>,
    batch: usize,
) -> Result<(Zip, Vec<SourceRows>)> {
    let listed = table.listed(group, &columns).await?;
    let sources = table.layout.sources(group, &columns, &wanted, &listed)?;
    let schema = table.layout.project(&columns)?;
    let zip = Zip::new(schema, batch, sources.iter().map(|source| source.places.clone()));
    let mut streams = Vec::with_capacity(sources.len());
    for source in sources {
        let file = source.file.map_or(&table.own, |at| &table.others[at]);
        let rows = file.stream(&source.roots, &source.ranges, batch)?;
        streams.push(match source.order {
            None => SourceRows::Stream(rows),
            Some(order) => {
                let batches: Vec<RecordBatch> = rows.try_collect().await?;
                SourceRows::Gathered(gather(&batches, &order)?)
            }
        });
    }
    Ok((zip, streams))
}

/// One file.
#[derive(Debug)]
struct ObjectFile {
    object: Object,
    metadata: ArrowReaderMetadata,
    groups: Vec<Range<u64>>,
}

impl ObjectFile {
    async fn open(store: &Store, blob: &Digest) -> Result<Self> {
        check_stored(store, blob)?;
        let mut object = Object { objects: store.object_store(), path: store.blob_path(blob) };
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load_async(&mut object, options).await?;
        let groups = galeras_store::table_file::group_rows(&metadata);
        Ok(Self { object, metadata, groups })
    }

    fn stream(
        &self,
        roots: &[usize],
        ranges: &[Range<u64>],
        batch: usize,
    ) -> Result<ParquetRecordBatchStream<Object>> {
        let (groups, selection) = row_selection(&self.groups, ranges);
        let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.object.clone(),
            self.metadata.clone(),
        );
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        let builder = builder.with_projection(mask).with_row_groups(groups).with_batch_size(batch);
        let is_all = selection.iter().all(|selector| !selector.skip);
        Ok(match is_all {
            true => builder.build()?,
            false => builder.with_row_selection(selection).build()?,
        })
    }
}

/// A file of the store, of which only what is asked for is read.
#[derive(Clone, Debug)]
struct Object {
    objects: Arc<dyn ObjectStore>,
    path: Path,
}

impl AsyncFileReader for Object {
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

fn positions(rows: u64) -> Result<usize> {
    usize::try_from(rows).map_err(|_| DataFusionError::Execution("too many rows".into()))
}

/// A damaged footer is an error here, before a library trusts what it says.
pub(super) fn check_stored(store: &Store, blob: &Digest) -> Result<()> {
    match store.local_blob(blob).filter(|file| file.exists()) {
        Some(file) => check_footer(&file).map_err(|why| damaged(&file, &why)),
        None => Ok(()),
    }
}

/// The error of a stored table that cannot be read.
fn damaged(file: &std::path::Path, why: &str) -> DataFusionError {
    let file = file.display();
    DataFusionError::Execution(format!(
        "the stored table {file} is damaged: {why}; `galeras cache verify --repair` removes it, and \
         the next run computes it again"
    ))
}
