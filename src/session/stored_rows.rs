//! Single rows of a stored table by their positions: only the pages of the file that hold them are
//! read, however large it is.

use std::path::Path;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take_record_batch};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::errors::{ParquetError, Result};

use super::stored_file::StoredFile;

/// The rows at these positions (from 0, each less than the number of rows), in the order given, with
/// the columns of these names that the file has.
///
/// # Errors
/// If the file cannot be read or a position is beyond its end.
pub fn stored_rows(file: &Path, positions: &[u64], columns: &[&str]) -> Result<RecordBatch> {
    let stored = StoredFile::open(file)?;
    let roots = stored.roots(|name| columns.contains(&name));
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let rows = stored.rows();
    if let Some(last) = sorted.last().filter(|last| **last >= rows) {
        return Err(ParquetError::General(format!("there is no row {last} of {rows}")));
    }
    let (groups, selection) = selection(&stored, &sorted);
    let reader = stored.reader(&roots, groups, Some(selection), sorted.len().max(1))?;
    let schema = arrow::array::RecordBatchReader::schema(&reader);
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>()?;
    let found = concat_batches(&schema, &batches)?;
    let place = |position: &u64| sorted.binary_search(position).unwrap_or(0) as u64;
    let order: UInt64Array = positions.iter().map(place).collect();
    Ok(take_record_batch(&found, &order)?)
}

/// The row groups that hold rows at these positions, which are in order, and what to skip and what
/// to read of them. Groups without such a row are not looked at: each of their columns would be
/// gone through page by page.
fn selection(stored: &StoredFile, sorted: &[u64]) -> (Vec<usize>, RowSelection) {
    let mut groups = Vec::new();
    let mut selectors: Vec<RowSelector> = Vec::new();
    let mut left = sorted;
    for (group, rows) in stored.group_rows().into_iter().enumerate() {
        let (inside, after) = left.split_at(left.partition_point(|at| *at < rows.end));
        left = after;
        if inside.is_empty() {
            continue;
        }
        groups.push(group);
        let mut next = rows.start;
        for at in inside {
            selectors.push(RowSelector::skip(usize::try_from(at - next).unwrap_or(usize::MAX)));
            selectors.push(RowSelector::select(1));
            next = at + 1;
        }
        selectors.push(RowSelector::skip(usize::try_from(rows.end - next).unwrap_or(usize::MAX)));
    }
    // Selectors of no rows are dropped, and neighbours of one kind joined.
    (groups, selectors.into_iter().collect())
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
