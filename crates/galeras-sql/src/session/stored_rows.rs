//! Single rows of a stored table by their positions: only the pages of the file that hold them are
//! read, however large it is.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader as _, UInt64Array};
use arrow::compute::{concat_batches, take_record_batch};
use parquet::errors::Result;

use galeras_store::TableFile;

/// The rows at these positions (from 0, each less than the number of rows), in the order given, with
/// the columns of these names that the table has.
///
/// # Errors
/// If a file cannot be read or a position is beyond its end.
pub fn stored_rows(
    table: &Arc<TableFile>,
    positions: &[u64],
    columns: &[&str],
) -> Result<RecordBatch> {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let ranges: Vec<_> = sorted.iter().map(|at| *at..at.saturating_add(1)).collect();
    let columns = table.columns(|name| columns.contains(&name));
    let rows = table.read(&columns, &ranges, sorted.len())?;
    let schema = rows.schema();
    let batches = rows.collect::<std::result::Result<Vec<_>, _>>()?;
    let found = concat_batches(&schema, &batches)?;
    let place = |position: &u64| sorted.binary_search(position).unwrap_or(0) as u64;
    let order: UInt64Array = positions.iter().map(place).collect();
    Ok(take_record_batch(&found, &order)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
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
        let table = Arc::new(TableFile::open(file.into_file()).unwrap());
        let found = stored_rows(&table, &wanted, &["n", "t", "none"]).unwrap();
        let numbers = found.column(0).as_primitive::<Int64Type>();
        assert_eq!(numbers.values().iter().map(|n| *n as u64).collect::<Vec<_>>(), wanted);
        assert_eq!(found.column(1).as_string::<i32>().value(2), "row 64");
        assert_eq!(stored_rows(&table, &[], &["t"]).unwrap().num_rows(), 0);
        assert_eq!(stored_rows(&table, &[1], &["t"]).unwrap().num_columns(), 1);
        stored_rows(&table, &[10_000], &["t"]).unwrap_err();
    }
}
