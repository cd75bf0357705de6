//! Reads columns and ranges of rows of a stored table on this disk.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::{ChunkReader, Length};

/// A Parquet file, and its footer with the places of its pages.
#[derive(Debug)]
pub struct TableFile {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    /// The positions of the rows of each row group.
    groups: Vec<Range<u64>>,
}

impl TableFile {
    /// Reads the footer of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(file: File) -> Result<Self> {
        let file = PositionedFile::new(file)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        let mut end = 0_u64;
        let groups = metadata.metadata().row_groups().iter();
        let groups = groups.map(|group| {
            let start = end;
            end = end.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
            start..end
        });
        let groups = groups.collect();
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

    /// The places of columns in the schema.
    pub fn columns(&self, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
        let fields = self.schema().fields().iter().enumerate();
        fields.filter(|(_, field)| wanted(field.name())).map(|(at, _)| at).collect()
    }

    /// How many bytes the values of a column of texts or of bytes have in memory, if the file says
    /// so.
    pub fn text_bytes(&self, column: usize) -> Option<u64> {
        let leaves = self.metadata.parquet_schema();
        let is_of = |leaf: &usize| leaves.get_column_root_idx(*leaf) == column;
        let leaf = (0..leaves.num_columns()).find(is_of)?;
        let groups = self.metadata.metadata().row_groups().iter();
        let bytes = groups.map(|group| group.column(leaf).unencoded_byte_array_data_bytes());
        bytes.map(|bytes| bytes.and_then(|bytes| u64::try_from(bytes).ok())).sum()
    }

    /// These columns, as places in the schema and in its order, of the rows in these ranges, which
    /// are in order, so many at a time at most.
    ///
    /// # Errors
    /// If there is no such row.
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
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.file.clone(),
            self.metadata.clone(),
        );
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let builder =
            builder.with_projection(mask).with_row_groups(groups).with_batch_size(batch.max(1));
        // Rows one after the other need no look at each page.
        let is_all = selection.iter().all(|selector| !selector.skip);
        match is_all {
            true => builder.build(),
            false => builder.with_row_selection(selection).build(),
        }
    }
}

/// The row groups that hold rows of these ranges, which are in order and do not overlap, and the rows
/// to skip and to read in them. Other groups are left out: the reader would walk all their pages.
fn row_selection(groups: &[Range<u64>], ranges: &[Range<u64>]) -> (Vec<usize>, RowSelection) {
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let mut chosen = Vec::new();
    let mut selectors: Vec<RowSelector> = Vec::new();
    let mut left = ranges.iter().filter(|range| !range.is_empty()).cloned().peekable();
    for (at, group) in groups.iter().enumerate() {
        let mut next = group.start;
        while let Some(range) = left.peek_mut().filter(|range| range.start < group.end) {
            let end = range.end.min(group.end);
            selectors.push(RowSelector::skip(count(range.start - next)));
            selectors.push(RowSelector::select(count(end - range.start)));
            next = end;
            if range.end > group.end {
                range.start = group.end;
                break;
            }
            left.next();
        }
        if next > group.start {
            chosen.push(at);
            selectors.push(RowSelector::skip(count(group.end - next)));
        }
    }
    // Selectors of no rows are dropped, and neighbours of one kind joined.
    (chosen, selectors.into_iter().collect())
}

/// A file that is read at positions: readers of one open file do not disturb each other.
#[derive(Clone, Debug)]
struct PositionedFile {
    file: Arc<File>,
    length: u64,
}

impl PositionedFile {
    fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), length })
    }
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
        // Never more memory than there is file: what a footer says may be anything.
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
        assert_eq!(
            selectors(&[3..4, 8..12, 32..35]),
            (
                vec![0, 1, 3],
                vec![(true, 3), (false, 1), (true, 4), (false, 4), (true, 10), (false, 3)]
            )
        );
        assert_eq!(selectors(&[0..35]), (vec![0, 1, 2, 3], vec![(false, 35)]));
        assert_eq!(selectors(&[10..20]), (vec![1], vec![(false, 10)]));
    }
}
