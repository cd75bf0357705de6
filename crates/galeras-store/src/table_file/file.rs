//! A stored table on this disk whose footers are read: what of it to decode.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::{SchemaRef, UInt64Type};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::PageIndexPolicy;

use super::layers::Layers;
use super::layout::{Layout, group_rows};
use super::positioned::PositionedFile;
use super::selection::row_selection;
use super::zip::{Zip, gather};
use galeras_base::digest::Digest;

/// A file on this disk.
#[derive(Debug)]
pub enum FileSource {
    /// One that has a name.
    Path(PathBuf),
    /// One that may have none.
    Open(Arc<File>),
}

impl FileSource {
    fn open(&self) -> io::Result<PositionedFile> {
        PositionedFile::new(match self {
            Self::Path(path) => Arc::new(File::open(path)?),
            Self::Open(file) => Arc::clone(file),
        })
    }
}

/// A file, and its footer with the places of its pages.
#[derive(Debug)]
struct PlainFile {
    source: FileSource,
    metadata: ArrowReaderMetadata,
    groups: Vec<Range<u64>>,
}

impl PlainFile {
    fn open(source: FileSource) -> Result<Self> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&source.open()?, options)?;
        let groups = group_rows(&metadata);
        Ok(Self { source, metadata, groups })
    }

    /// These columns of these rows, in the order of the file, so many at a time.
    fn reader(
        &self,
        roots: &[usize],
        ranges: &[Range<u64>],
        batch: usize,
    ) -> Result<ParquetRecordBatchReader> {
        let (groups, selection) = row_selection(&self.groups, ranges);
        let file = self.source.open()?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        let builder = builder.with_projection(mask).with_row_groups(groups).with_batch_size(batch);
        // Rows one after the other need no look at each page.
        let is_all = selection.iter().all(|selector| !selector.skip);
        match is_all {
            true => builder.build(),
            false => builder.with_row_selection(selection).build(),
        }
    }

    /// How many bytes the values of a column of texts or of bytes have in memory, if the file says
    /// so.
    fn text_bytes(&self, root: usize) -> Option<u64> {
        let metadata = self.metadata.metadata();
        let leaves = self.metadata.parquet_schema();
        let leaf =
            (0..leaves.num_columns()).find(|leaf| leaves.get_column_root_idx(*leaf) == root)?;
        let groups = metadata.row_groups().iter();
        let bytes = groups.map(|group| group.column(leaf).unencoded_byte_array_data_bytes());
        bytes.map(|bytes| bytes.and_then(|bytes| u64::try_from(bytes).ok())).sum()
    }
}

/// A stored table on this disk: its own file, and those that hold columns of it.
#[derive(Debug)]
pub struct TableFile {
    own: PlainFile,
    others: Vec<PlainFile>,
    digests: Vec<Digest>,
    layout: Layout,
}

impl TableFile {
    /// Reads the footers of a file and of those that it refers to, which `find` finds.
    ///
    /// # Errors
    /// If one cannot be read, or says what cannot be.
    pub fn open(
        source: FileSource,
        mut find: impl FnMut(&Digest) -> io::Result<FileSource>,
    ) -> Result<Self> {
        let own = PlainFile::open(source)?;
        let layers = Layers::of(own.metadata.metadata())?;
        let digests: Vec<Digest> =
            layers.iter().flat_map(|layers| layers.files.iter().copied()).collect();
        let others = digests.iter().map(|digest| PlainFile::open(find(digest)?));
        let others = others.collect::<Result<Vec<_>>>()?;
        let footers: Vec<&ArrowReaderMetadata> = others.iter().map(|file| &file.metadata).collect();
        let layout = Layout::new(&own.metadata, layers.as_ref(), &footers)?;
        Ok(Self { own, others, digests, layout })
    }

    /// A file that refers to no other.
    ///
    /// # Errors
    /// If it cannot be read, or refers to others.
    pub fn alone(source: FileSource) -> Result<Self> {
        Self::open(source, |digest| {
            let cause = format!("it needs the file {digest}");
            Err(io::Error::new(io::ErrorKind::NotFound, cause))
        })
    }

    /// The columns of the table.
    pub fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.layout.groups().last().map_or(0, |rows| rows.end)
    }

    /// The positions of the rows of each row group.
    pub fn groups(&self) -> &[Range<u64>] {
        self.layout.groups()
    }

    /// The digests of the other files that it refers to.
    pub fn others(&self) -> &[Digest] {
        &self.digests
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The places of columns in the schema.
    pub fn columns(&self, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
        let fields = self.schema().fields().iter().enumerate();
        fields.filter(|(_, field)| wanted(field.name())).map(|(at, _)| at).collect()
    }

    /// How many bytes the values of a column of texts or of bytes have in memory at most, if the
    /// files say so.
    pub fn text_bytes(&self, column: usize) -> Option<u64> {
        let mut places: Vec<(usize, usize)> = Vec::new();
        for group in 0..self.groups().len() {
            let place = self.layout.place(group, column).map(|place| (place.file, place.root));
            places.extend(place.filter(|place| !places.contains(place)));
        }
        let others = places.iter().map(|(file, root)| self.others[*file].text_bytes(*root));
        let own = self.own.text_bytes(self.layout.own_root(column));
        others.chain([own]).sum()
    }

    /// These columns, as places in the schema, of the rows in these ranges, which are in order, so
    /// many at a time at most.
    ///
    /// # Errors
    /// If there is no such row.
    pub fn read(
        self: &Arc<Self>,
        columns: &[usize],
        ranges: &[Range<u64>],
        batch: usize,
    ) -> Result<TableRows> {
        let rows = self.rows();
        if let Some(last) = ranges.last().filter(|range| range.end > rows) {
            let at = last.end - 1;
            return Err(ParquetError::General(format!("there is no row {at} of {rows}")));
        }
        let mut parts: Vec<(usize, Vec<Range<u64>>)> = Vec::new();
        let mut left = ranges.iter().filter(|range| !range.is_empty()).cloned().peekable();
        for (group, rows) in self.groups().iter().enumerate() {
            let mut wanted = Vec::new();
            while let Some(range) = left.peek_mut().filter(|range| range.start < rows.end) {
                wanted.push(range.start..range.end.min(rows.end));
                if range.end > rows.end {
                    range.start = rows.end;
                    break;
                }
                left.next();
            }
            if !wanted.is_empty() {
                parts.push((group, wanted));
            }
        }
        parts.reverse();
        let schema = self.layout.project(columns)?;
        let (table, columns) = (Arc::clone(self), columns.to_vec());
        Ok(TableRows { table, columns, schema, batch: batch.max(1), parts, open: None })
    }

    /// The positions of the rows of a row group in other files, by slot: of those that these columns
    /// need.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn listed(&self, group: usize, columns: &[usize]) -> Result<Vec<Option<UInt64Array>>> {
        let mut listed = vec![None; self.layout.slots()];
        let needed = self.layout.needed_slots(group, columns);
        if needed.is_empty() {
            return Ok(listed);
        }
        let roots: Vec<usize> = needed.iter().map(|(_, root)| *root).collect();
        let rows = self.groups()[group].clone();
        let count = usize::try_from(rows.end - rows.start)?;
        let mut batches = self.own.reader(&roots, &[rows], count.max(1))?;
        let Some(batch) = batches.next().transpose()? else { return Ok(listed) };
        for ((slot, _), column) in needed.iter().zip(batch.columns()) {
            listed[*slot] = column.as_primitive_opt::<UInt64Type>().cloned();
        }
        Ok(listed)
    }
}

/// Rows of one file.
enum SourceRows {
    Reader(ParquetRecordBatchReader),
    /// All of them at once, in the order in which they are wanted.
    Gathered(Option<RecordBatch>),
}

impl Iterator for SourceRows {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Reader(rows) => rows.next(),
            Self::Gathered(rows) => rows.take().map(Ok),
        }
    }
}

/// Rows of a table, batch by batch.
pub struct TableRows {
    table: Arc<TableFile>,
    columns: Vec<usize>,
    schema: SchemaRef,
    batch: usize,
    /// The row groups that are still to be read, the next one last.
    parts: Vec<(usize, Vec<Range<u64>>)>,
    open: Option<(Zip, Vec<SourceRows>)>,
}

impl TableRows {
    /// The columns that were asked for.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some((zip, readers)) = &mut self.open else {
                let Some((group, wanted)) = self.parts.pop() else { return Ok(None) };
                self.open = Some(self.group(group, &wanted)?);
                continue;
            };
            let mut ended = false;
            while let Some(source) = zip.hungry() {
                match readers[source].next().transpose()? {
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
            return zip.next().map(Some);
        }
    }

    fn group(&self, group: usize, wanted: &[Range<u64>]) -> Result<(Zip, Vec<SourceRows>)> {
        let table = &self.table;
        let listed = table.listed(group, &self.columns)?;
        let sources = table.layout.sources(group, &self.columns, wanted, &listed)?;
        let readers = sources.iter().map(|source| {
            let file = source.file.map_or(&table.own, |at| &table.others[at]);
            let rows = file.reader(&source.roots, &source.ranges, self.batch)?;
            let Some(order) = &source.order else { return Ok(SourceRows::Reader(rows)) };
            let batches = rows.collect::<std::result::Result<Vec<_>, _>>()?;
            Ok(SourceRows::Gathered(gather(&batches, order)?))
        });
        let readers = readers.collect::<Result<Vec<_>>>()?;
        let places = sources.into_iter().map(|source| source.places);
        Ok((Zip::new(Arc::clone(&self.schema), self.batch, places), readers))
    }
}

impl Iterator for TableRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
