//! Batches of rows from several files, put side by side.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::errors::{ParquetError, Result};

/// Batches of rows in another order, rows as often as they are named there.
pub fn gather(
    batches: &[RecordBatch],
    order: &UInt32Array,
) -> std::result::Result<Option<RecordBatch>, ArrowError> {
    let Some(first) = batches.first() else { return Ok(None) };
    take_record_batch(&concat_batches(&first.schema(), batches)?, order).map(Some)
}

/// The columns of a table as they come from several sources, each in batches of its own size.
pub struct Zip {
    schema: SchemaRef,
    /// The most rows that are given at a time.
    most: usize,
    sources: Vec<Pending>,
}

struct Pending {
    /// Where its columns are in the schema.
    places: Vec<usize>,
    rows: Option<RecordBatch>,
}

impl Zip {
    /// A table of this schema from sources whose columns have these places in it.
    pub fn new(
        schema: SchemaRef,
        most: usize,
        places: impl IntoIterator<Item = Vec<usize>>,
    ) -> Self {
        let sources = places.into_iter().map(|places| Pending { places, rows: None }).collect();
        Self { schema, most, sources }
    }

    /// A source of which the next batch is needed, if there is one.
    pub fn hungry(&self) -> Option<usize> {
        self.sources.iter().position(|source| source.rows.is_none())
    }

    /// Takes the next batch of a source.
    pub fn feed(&mut self, source: usize, batch: RecordBatch) {
        self.sources[source].rows = (batch.num_rows() > 0).then_some(batch);
    }

    /// A source has ended: all must have.
    ///
    /// # Errors
    /// If another one still has rows.
    pub fn end(&self) -> Result<()> {
        match self.sources.iter().all(|source| source.rows.is_none()) {
            true => Ok(()),
            false => Err(ParquetError::General("it refers to rows that other files lack".into())),
        }
    }

    /// As many rows as all sources have by now; there is none that is hungry.
    ///
    /// # Errors
    /// If a file has other columns than it should.
    pub fn next(&mut self) -> Result<RecordBatch> {
        let counts = self.sources.iter().filter_map(|source| source.rows.as_ref());
        let rows = counts.map(RecordBatch::num_rows).min().unwrap_or(0).min(self.most);
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.schema.fields().len()];
        for source in &mut self.sources {
            let Some(batch) = source.rows.take() else { continue };
            for (place, column) in source.places.iter().zip(batch.columns()) {
                columns[*place] = Some(column.slice(0, rows));
            }
            if batch.num_rows() > rows {
                source.rows = Some(batch.slice(rows, batch.num_rows() - rows));
            }
        }
        let missing = || ParquetError::General("a column has no source".into());
        let columns = columns.into_iter().map(|column| column.ok_or_else(missing));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}
