//! The rows of a stored table in the order of one of its columns.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use parquet::errors::Result;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use galeras_store::TableFile;

/// The most rows that are put in order: some 700 MB of numbers with their places.
const MOST_ROWS: u64 = 32 << 20;

/// The most bytes of texts that are put in order: all of them are in memory.
const MOST_BYTES: u64 = 1 << 30;

/// The positions (from 0) of the rows of a table in the order of a column, rows without a value last,
/// rows of one value in the order of the table. Nothing if it has no such column, or more in it
/// than the memory should hold.
///
/// # Errors
/// If a file cannot be read.
pub fn stored_order(
    stored: &Arc<TableFile>,
    column: &str,
    descending: bool,
) -> Result<Option<Vec<u32>>> {
    let roots = stored.columns(|name| name == column);
    let [root] = roots.as_slice() else { return Ok(None) };
    let data_type = stored.schema().field(*root).data_type();
    let is_small = data_type.is_primitive()
        || *data_type == DataType::Boolean
        || stored.text_bytes(*root).is_some_and(|bytes| bytes <= MOST_BYTES);
    if data_type.is_nested() || stored.rows() > MOST_ROWS || !is_small {
        return Ok(None);
    }
    let read = stored.groups().par_iter().map(|rows| {
        let count = usize::try_from(rows.end - rows.start)?;
        let batches = stored.read(&roots, std::slice::from_ref(rows), count)?;
        batches.map(|batch| Ok(batch?.remove_column(0))).collect::<Result<Vec<ArrayRef>>>()
    });
    let groups = read.collect::<Result<Vec<_>>>()?;
    let options = SortOptions { descending, nulls_first: false };
    let field = SortField::new_with_options(data_type.clone(), options);
    let converter = RowConverter::new(vec![field])?;
    let count = u32::try_from(stored.rows())?;
    let mut values = converter.empty_rows(count as usize, 0);
    for array in groups.into_iter().flatten() {
        converter.append(&mut values, &[array])?;
    }
    let mut order: Vec<u32> = (0..count).collect();
    order.par_sort_by(|one, other| values.row(*one as usize).cmp(&values.row(*other as usize)));
    Ok(Some(order))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow::array::{
        Array, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampMicrosecondArray,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use proptest::prelude::*;

    use super::*;

    fn table(array: ArrayRef) -> Arc<TableFile> {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let small = WriterProperties::builder().set_max_row_group_row_count(Some(7)).build();
        let mut writer =
            ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(small)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Arc::new(TableFile::open(file.into_file()).unwrap())
    }

    /// The order of Arrow, in which rows of one value are put in the order of the table.
    fn expected(array: &ArrayRef, descending: bool) -> Vec<u32> {
        let options = SortOptions { descending, nulls_first: false };
        let ranks = arrow::compute::rank(array, Some(options)).unwrap();
        let mut rows: Vec<u32> = (0..array.len() as u32).collect();
        rows.sort_by_key(|row| (array.is_null(*row as usize), ranks[*row as usize]));
        rows
    }

    fn check(array: ArrayRef) {
        let table = table(Arc::clone(&array));
        for descending in [false, true] {
            let found = stored_order(&table, "x", descending).unwrap().unwrap();
            assert_eq!(found, expected(&array, descending), "{array:?} {descending}");
        }
    }

    #[test]
    fn every_kind_of_value_is_in_order_and_absent_ones_are_last() {
        let floats =
            [0.0, -0.0, f64::NAN, 1.5, f64::NEG_INFINITY, -2.0, f64::INFINITY, 1.5, -f64::NAN];
        let numbers = [3, i64::MIN, -1, i64::MAX, 0, 3, 2, -1, 9, 10];
        let some = |n: &i64| (n % 3 != 0).then_some(*n);
        check(Arc::new(Float64Array::from(floats.to_vec())));
        check(Arc::new(Int64Array::from(numbers.to_vec())));
        check(Arc::new(Int64Array::from_iter(numbers.iter().map(some))));
        check(Arc::new(BooleanArray::from_iter(numbers.iter().map(|n| some(n).map(|n| n > 0)))));
        check(Arc::new(TimestampMicrosecondArray::from_iter(numbers.iter().map(some))));
        let decimals = numbers.iter().map(|n| some(n).map(i128::from));
        check(Arc::new(Decimal128Array::from_iter(decimals)));
        check(Arc::new(Int64Array::from(Vec::<i64>::new())));
        check(Arc::new(StringArray::from(vec![None::<&str>; 20])));
    }

    #[test]
    fn texts_that_begin_alike_are_told_apart_however_long_they_are() {
        let long = "x".repeat(100_000);
        let mut texts: Vec<String> = (0..40).map(|n| format!("{long}{}", n % 9)).collect();
        texts.extend((0..40).map(|n| long[..n * 3].to_string()));
        texts.extend(["\0", "", "\0\0", "a\0", "a", "a\0b"].map(str::to_string));
        check(Arc::new(StringArray::from(texts)));
        // Enough to be sorted by several threads.
        let many = (0..6_000).map(|n| format!("https://example.org/{}", n * 7919 % 1000));
        check(Arc::new(StringArray::from_iter_values(many)));
    }

    #[test]
    fn what_is_no_column_or_a_list_has_no_order() {
        let table = table(Arc::new(Int64Array::from(vec![1])));
        assert_eq!(stored_order(&table, "y", false).unwrap(), None);
    }

    proptest! {
        #[test]
        fn texts_are_in_order(texts in prop::collection::vec(
            prop::option::of("(ab?|\u{0}|b{0,9}|é){0,4}"), 0..60
        )) {
            check(Arc::new(StringArray::from(texts)));
        }
    }
}
