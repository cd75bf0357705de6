//! Rows of a stored table: those at some positions, those that meet a condition, and all in the order
//! of a column. Only the columns and the pages that are needed are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBufferBuilder, RecordBatch, RecordBatchReader as _,
    UInt64Array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{SortOptions, concat_batches, take_record_batch};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use parquet::errors::ParquetError;
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::open::session;
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
) -> Result<RecordBatch, ParquetError> {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let ranges: Vec<_> = sorted.iter().map(|at| *at..at.saturating_add(1)).collect();
    let columns = table.columns(|name| columns.contains(&name));
    let rows = table.read(&columns, &ranges, sorted.len())?;
    let schema = rows.schema();
    let batches = rows.collect::<Result<Vec<_>, _>>()?;
    let found = concat_batches(&schema, &batches)?;
    let place = |position: &u64| sorted.binary_search(position).unwrap_or(0) as u64;
    let order: UInt64Array = positions.iter().map(place).collect();
    Ok(take_record_batch(&found, &order)?)
}

/// Rows that are decoded at a time: texts of some kilobytes are some megabytes.
const BATCH_ROWS: usize = 4096;

/// For each row of the table whether it meets the condition; a condition that is neither true nor
/// false is not met. Nothing if the table has not all of its columns.
///
/// # Errors
/// If a file cannot be read, or the condition cannot be computed.
pub fn stored_matches(stored: &Arc<TableFile>, condition: &Expr) -> Result<Option<BooleanBuffer>> {
    let columns = condition.column_refs();
    let names: BTreeSet<&str> = columns.iter().map(|column| column.name()).collect();
    let roots = stored.columns(|name| names.contains(name));
    if roots.len() != names.len() {
        return Ok(None);
    }
    let schema = DFSchema::try_from(stored.schema().project(&roots)?)?;
    let condition = session(1).create_physical_expr(condition.clone(), &schema)?;
    let found = (0..stored.groups().len())
        .into_par_iter()
        .map(|group| matches(stored, &roots, group, &condition))
        .collect::<Result<Vec<BooleanBuffer>>>()?;
    let mut all = BooleanBufferBuilder::new(found.iter().map(BooleanBuffer::len).sum());
    found.iter().for_each(|part| all.append_buffer(part));
    Ok(Some(all.finish()))
}

/// The matches of one row group.
fn matches(
    stored: &Arc<TableFile>,
    roots: &[usize],
    group: usize,
    condition: &Arc<dyn PhysicalExpr>,
) -> Result<BooleanBuffer> {
    let mut found = BooleanBufferBuilder::new(0);
    let rows = stored.groups()[group].clone();
    for batch in stored.read(roots, &[rows], BATCH_ROWS)? {
        let batch = batch?;
        let values = condition.evaluate(&batch)?.into_array(batch.num_rows())?;
        let values = values.as_boolean();
        match values.nulls() {
            Some(known) => found.append_buffer(&(values.values() & known.inner())),
            None => found.append_buffer(values.values()),
        }
    }
    Ok(found.finish())
}

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
) -> Result<Option<Vec<u32>>, ParquetError> {
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
        batches.map(|batch| Ok(batch?.remove_column(0))).collect::<Result<Vec<_>, ParquetError>>()
    });
    let groups = read.collect::<Result<Vec<Vec<ArrayRef>>, ParquetError>>()?;
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
mod tests {
    use arrow::array::{
        BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray,
        TimestampMicrosecondArray,
    };
    use arrow::datatypes::Int64Type;
    use datafusion::logical_expr::lit;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
    use proptest::prelude::*;

    use super::*;
    use crate::session::column;

    fn written(
        columns: &[(&str, ArrayRef)],
        properties: WriterPropertiesBuilder,
    ) -> Arc<TableFile> {
        let columns = columns.iter().map(|(name, array)| (*name, Arc::clone(array), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let properties = Some(properties.build());
        let mut writer =
            ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), properties).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Arc::new(TableFile::open(file.into_file()).unwrap())
    }

    /// A table with row groups of so many rows.
    fn table(columns: &[(&str, ArrayRef)], rows: usize) -> Arc<TableFile> {
        written(columns, WriterProperties::builder().set_max_row_group_row_count(Some(rows)))
    }

    #[test]
    fn rows_come_in_the_order_that_was_asked_for() {
        let numbers = Int64Array::from_iter_values(0..10_000);
        let texts = StringArray::from_iter_values((0..10_000).map(|n| format!("row {n}")));
        let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
        let pages = WriterProperties::builder()
            .set_max_row_group_row_count(Some(1_000))
            .set_data_page_row_count_limit(64)
            .set_write_batch_size(64);
        let table = written(&columns, pages);
        let wanted = [9_999, 0, 64, 63, 5_000, 5_001, 0];
        let found = stored_rows(&table, &wanted, &["n", "t", "none"]).unwrap();
        let numbers = found.column(0).as_primitive::<Int64Type>();
        assert_eq!(numbers.values().iter().map(|n| *n as u64).collect::<Vec<_>>(), wanted);
        assert_eq!(found.column(1).as_string::<i32>().value(2), "row 64");
        assert_eq!(stored_rows(&table, &[], &["t"]).unwrap().num_rows(), 0);
        assert_eq!(stored_rows(&table, &[1], &["t"]).unwrap().num_columns(), 1);
        stored_rows(&table, &[10_000], &["t"]).unwrap_err();
    }

    #[test]
    fn the_bits_of_all_row_groups_stand_one_after_another() {
        let rows = 0..1_000_i64;
        let numbers = Int64Array::from_iter(rows.clone().map(|n| (n % 7 != 0).then_some(n)));
        let texts = StringArray::from_iter_values(rows.map(|n| format!("row {n}")));
        let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
        let table = table(&columns, 97);
        let found = |condition: Expr| -> Option<Vec<usize>> {
            let found = stored_matches(&table, &condition).unwrap()?;
            assert_eq!(found.len(), 1_000);
            Some(found.set_indices().collect())
        };
        let some = found(column("n").gt(lit(990)).and(column("t").ilike(lit("ROW 99%")))).unwrap();
        assert_eq!(some, [991, 992, 993, 995, 996, 997, 998, 999]);
        assert_eq!(found(column("n").is_null()).unwrap().len(), 143);
        assert_eq!(found(lit("a").eq(lit("a"))).unwrap().len(), 1_000);
        assert_eq!(found(lit(false)).unwrap().len(), 0);
        assert_eq!(found(column("none").is_null()), None);
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
        let table = table(&[("x", Arc::clone(&array))], 7);
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
        let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let table = table(&[("x", one)], 7);
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
