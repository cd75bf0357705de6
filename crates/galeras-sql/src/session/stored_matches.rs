//! Which rows of a stored table meet a condition: row groups side by side, and of them only the
//! columns that the condition is about.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::open::session;
use galeras_store::TableFile;

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use datafusion::logical_expr::lit;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::session::column;

    #[test]
    fn the_bits_of_all_row_groups_stand_one_after_another() {
        let rows = 0..1_000_i64;
        let numbers = Int64Array::from_iter(rows.clone().map(|n| (n % 7 != 0).then_some(n)));
        let texts = StringArray::from_iter_values(rows.map(|n| format!("row {n}")));
        let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let small = WriterProperties::builder().set_max_row_group_row_count(Some(97)).build();
        let mut writer =
            ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(small)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let table = Arc::new(TableFile::open(file.into_file()).unwrap());
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
}
