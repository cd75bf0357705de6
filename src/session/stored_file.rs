//! A stored table whose footer is read: what of it to decode.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::Result;
use parquet::file::metadata::PageIndexPolicy;

/// A file on this disk, and its footer with the places of its pages.
pub(super) struct StoredFile {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
}

impl StoredFile {
    /// Reads the footer of a file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&File::open(path)?, options)?;
        Ok(Self { path: path.to_path_buf(), metadata })
    }

    /// The columns of the file.
    pub(super) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// The rows of the file.
    pub(super) fn rows(&self) -> u64 {
        self.group_rows().last().map_or(0, |rows| rows.end)
    }

    /// The positions of the rows of each row group.
    pub(super) fn group_rows(&self) -> Vec<Range<u64>> {
        let mut end = 0;
        let groups = self.metadata.metadata().row_groups().iter();
        let rows = groups.map(|group| {
            let start = end;
            end += u64::try_from(group.num_rows()).unwrap_or(0);
            start..end
        });
        rows.collect()
    }

    /// The places of columns in the schema.
    pub(super) fn roots(&self, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
        let fields = self.schema().fields().iter().enumerate();
        fields.filter(|(_, field)| wanted(field.name())).map(|(at, _)| at).collect()
    }

    /// How many bytes the values of a column of texts or of bytes have in memory, if the file says
    /// so.
    pub(super) fn text_bytes(&self, root: usize) -> Option<u64> {
        let metadata = self.metadata.metadata();
        let leaves = self.metadata.parquet_schema();
        let leaf =
            (0..leaves.num_columns()).find(|leaf| leaves.get_column_root_idx(*leaf) == root)?;
        let groups = metadata.row_groups().iter();
        let bytes = groups.map(|group| group.column(leaf).unencoded_byte_array_data_bytes());
        bytes.map(|bytes| bytes.and_then(|bytes| u64::try_from(bytes).ok())).sum()
    }

    /// The rows of these row groups, all or those that are selected, with these columns in the
    /// order of the file, so many at a time.
    pub(super) fn reader(
        &self,
        roots: &[usize],
        groups: Vec<usize>,
        selection: Option<RowSelection>,
        batch: usize,
    ) -> Result<ParquetRecordBatchReader> {
        let file = File::open(&self.path)?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        let builder = builder.with_projection(mask).with_row_groups(groups).with_batch_size(batch);
        match selection {
            Some(selection) => builder.with_row_selection(selection).build(),
            None => builder.build(),
        }
    }
}
