//! Reads columns and ranges of rows of a stored table.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::TryStreamExt as _;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::{ChunkReader, Length};

use super::backend::{Backend, blocking};
use super::content_store::Store;
use super::error::StoreError;
use super::object_name::blob_name;
use galeras_base::digest::Digest;

impl Store {
    /// The table in this blob; `None` if the store is not a folder. Fails if the file cannot be
    /// read.
    pub fn table_file(&self, blob: &Digest) -> Result<Option<TableFile>> {
        let Some(path) = self.local_blob(blob) else { return Ok(None) };
        TableFile::open(File::open(path)?).map(Some)
    }

    /// A blob's file, or a copy of the blob in a nameless file; `None` if it does not exist.
    pub async fn open_blob(&self, blob: &Digest) -> Result<Option<File>, StoreError> {
        open(self, &blob_name(blob)).await
    }
}

/// The file of an object, or a copy of the object in a nameless file; `None` if it does not exist.
pub(super) async fn open(store: &Store, name: &str) -> Result<Option<File>, StoreError> {
    match &store.inner.backend {
        Backend::Folder(folder) => {
            let path = folder.path(name);
            blocking(move || match File::open(&path) {
                Ok(file) => Ok(Some(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(StoreError::at("read", &path, error)),
            })
            .await
        }
        Backend::Bucket(_) => {
            let failed = |error| StoreError::at("write", &std::env::temp_dir(), error);
            let Some(mut chunks) = store.chunks(name).await? else { return Ok(None) };
            let mut file = tempfile::tempfile().map_err(failed)?;
            while let Some(chunk) = chunks.try_next().await? {
                file.write_all(&chunk).map_err(failed)?;
            }
            file.rewind().map_err(failed)?;
            Ok(Some(file))
        }
    }
}

/// A Parquet file, and its footer with the positions of its pages.
#[derive(Debug)]
pub struct TableFile {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    /// The positions of the rows of each row group.
    groups: Vec<Range<u64>>,
}

impl TableFile {
    /// Reads the footer of a file.
    pub fn open(file: File) -> Result<Self> {
        let file = PositionedFile { length: file.metadata()?.len(), file: Arc::new(file) };
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        let mut groups = Vec::new();
        let mut start = 0_u64;
        for group in metadata.metadata().row_groups() {
            let end = start.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
            groups.push(start..end);
            start = end;
        }
        Ok(Self { file, metadata, groups })
    }

    /// The columns of the table.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.groups.last().map_or(0, |rows| rows.end)
    }

    /// The positions of the rows of each row group.
    pub fn groups(&self) -> &[Range<u64>] {
        &self.groups
    }

    /// The positions of columns in the schema.
    pub fn columns(&self, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
        let fields = self.schema().fields().iter().enumerate();
        fields.filter(|(_, field)| wanted(field.name())).map(|(at, _)| at).collect()
    }

    /// The size in memory of the values of a column of texts or bytes, if the file has that number.
    pub fn text_bytes(&self, column: usize) -> Option<u64> {
        let leaves = self.metadata.parquet_schema();
        let is_of = |leaf: &usize| leaves.get_column_root_idx(*leaf) == column;
        let leaf = (0..leaves.num_columns()).find(is_of)?;
        let groups = self.metadata.metadata().row_groups().iter();
        let bytes = groups.map(|group| group.column(leaf).unencoded_byte_array_data_bytes());
        bytes.map(|bytes| bytes.and_then(|bytes| u64::try_from(bytes).ok())).sum()
    }

    /// Reads columns, given by their positions in the schema and in its order, of ordered ranges of
    /// rows, at most `batch` rows at a time. Fails if there is no such row.
    pub fn read(
        &self,
        columns: &[usize],
        ranges: &[Range<u64>],
        batch: usize,
    ) -> Result<ParquetRecordBatchReader> {
        let rows = self.rows();
        if let Some(last) = ranges.last().filter(|range| range.end > rows) {
            let at = last.end - 1;
            return Err(ParquetError::General(format!("there is no row {at} of {rows}")));
        }
        let (groups, selection) = row_selection(&self.groups, ranges);
        let (file, metadata) = (self.file.clone(), self.metadata.clone());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let builder =
            builder.with_projection(mask).with_row_groups(groups).with_batch_size(batch.max(1));
        // To select every row would only cost time.
        let skips = selection.iter().any(|selector| selector.skip);
        if skips { builder.with_row_selection(selection).build() } else { builder.build() }
    }
}

/// The row groups with rows of these ordered ranges, and the selection of the rows in them. Other
/// groups are left out: the reader would visit all their pages.
fn row_selection(groups: &[Range<u64>], ranges: &[Range<u64>]) -> (Vec<usize>, RowSelection) {
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let total = groups.last().map_or(0, |group| count(group.end));
    let ranges = ranges.iter().map(|range| count(range.start)..count(range.end));
    let mut rest = RowSelection::from_consecutive_ranges(ranges, total);
    let parts = groups.iter().map(|group| rest.split_off(count(group.end - group.start)));
    let chosen = parts.enumerate().filter(|(_, part)| part.selects_any());
    let (chosen, parts): (Vec<usize>, Vec<RowSelection>) = chosen.unzip();
    (chosen, parts.into_iter().collect())
}

/// A file that is read at positions, so that several readers can share it.
#[derive(Clone, Debug)]
struct PositionedFile {
    file: Arc<File>,
    length: u64,
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(FileFrom { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A footer may have any length in it, so no more memory is used than the file is long.
        let left = usize::try_from(self.length.saturating_sub(start)).unwrap_or(usize::MAX);
        if length > left {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A file from a position on.
struct FileFrom {
    file: Arc<File>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn ranges_are_cut_at_the_ends_of_row_groups() {
        let groups = [0..10, 10..20, 20..30, 30..35];
        let selectors = |ranges: &[Range<u64>]| {
            let (chosen, selection) = row_selection(&groups, ranges);
            let all = selection.iter().map(|one| (one.skip, one.row_count)).collect::<Vec<_>>();
            (chosen, all)
        };
        assert_eq!(selectors(&[]), (vec![], vec![]));
        assert_eq!(selectors(&[5..5]), (vec![], vec![]));
        let rows = vec![(true, 3), (false, 1), (true, 4), (false, 4), (true, 10), (false, 3)];
        assert_eq!(selectors(&[3..4, 8..12, 32..35]), (vec![0, 1, 3], rows));
        assert_eq!(selectors(&[0..35]), (vec![0, 1, 2, 3], vec![(false, 35)]));
        assert_eq!(selectors(&[10..20]), (vec![1], vec![(false, 10)]));
    }
}
