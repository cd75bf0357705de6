//! Single rows of a stored table by their positions: only the pages of the file that hold them are
//! read, however large it is.

use std::fs::File;
use std::path::Path;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take_record_batch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::PageIndexPolicy;

/// The rows at these positions (from 0, each less than the number of rows), in the order given, with
/// the columns of these names that the file has.
///
/// # Errors
/// If the file cannot be read or a position is beyond its end.
pub fn stored_rows(file: &Path, positions: &[u64], columns: &[&str]) -> Result<RecordBatch> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    let builder =
        ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(file)?, options)?;
    let roots: Vec<usize> = builder
        .schema()
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| columns.contains(&field.name().as_str()))
        .map(|(at, _)| at)
        .collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    if let Some(last) = sorted.last().filter(|last| **last >= rows) {
        return Err(ParquetError::General(format!("there is no row {last} of {rows}")));
    }
    let reader = builder
        .with_projection(mask)
        .with_row_selection(selection(&sorted))
        .with_batch_size(sorted.len().max(1))
        .build()?;
    let schema = arrow::array::RecordBatchReader::schema(&reader);
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>()?;
    let found = concat_batches(&schema, &batches)?;
    let place = |position: &u64| sorted.binary_search(position).unwrap_or(0) as u64;
    let order: UInt64Array = positions.iter().map(place).collect();
    Ok(take_record_batch(&found, &order)?)
}

/// What to skip and what to read, from positions in order.
fn selection(sorted: &[u64]) -> RowSelection {
    let mut selectors: Vec<RowSelector> = Vec::new();
    let mut next = 0;
    for position in sorted {
        let gap = usize::try_from(position - next).unwrap_or(usize::MAX);
        if gap > 0 {
            selectors.push(RowSelector::skip(gap));
        }
        selectors.push(RowSelector::select(1));
        next = position + 1;
    }
    selectors.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;

    #[test]
    fn rows_come_in_the_order_that_was_asked_for() {
        let numbers = Int64Array::from_iter_values(0..10_000);
        let texts = StringArray::from_iter_values((0..10_000).map(|n| format!("row {n}")));
        let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let small = WriterProperties::builder()
            .set_max_row_group_row_count(Some(1_000))
            .set_data_page_row_count_limit(64)
            .set_write_batch_size(64)
            .build();
        let mut writer =
            ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(small)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let wanted = [9_999, 0, 64, 63, 5_000, 5_001, 0];
        let found = stored_rows(file.path(), &wanted, &["n", "t", "none"]).unwrap();
        let numbers = found.column(0).as_primitive::<Int64Type>();
        assert_eq!(numbers.values().iter().map(|n| *n as u64).collect::<Vec<_>>(), wanted);
        assert_eq!(found.column(1).as_string::<i32>().value(2), "row 64");
        assert_eq!(stored_rows(file.path(), &[], &["t"]).unwrap().num_rows(), 0);
        assert_eq!(stored_rows(file.path(), &[1], &["t"]).unwrap().num_columns(), 1);
        stored_rows(file.path(), &[10_000], &["t"]).unwrap_err();
    }
}
