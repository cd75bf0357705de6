//! The rows of a stored table that a new table has, too, both being sorted by the same key: found by
//! going through both at once.
//!
//! Does not live here: tables with other keys (`base_lookup`), what is done about it (`layering`).

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, Rows as KeyRows, SortField};
use parquet::errors::Result;

use super::base_table::{Base, LOOK, SPARSE, Shared, same};
use galeras_store::table_file::TableRows;

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8192;

/// A base that is gone through once, from its first row to its last.
pub(super) struct BaseRows {
    keys: KeyColumns,
    rows: TableRows,
    batch: Option<(RecordBatch, KeyRows)>,
    /// The position of the first row of the batch, and the next row to look at within it.
    start: u64,
    at: usize,
    /// Rows that were found.
    found: u64,
    /// The base has too many other rows.
    sparse: bool,
}

/// The columns of the key in the new table and in the batches of the base.
struct KeyColumns {
    own: Vec<usize>,
    converter: RowConverter,
}

impl KeyColumns {
    fn rows(&self, batch: &RecordBatch, columns: &[usize]) -> Result<KeyRows> {
        let columns: Vec<ArrayRef> =
            columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        Ok(self.converter.convert_columns(&columns)?)
    }
}

impl BaseRows {
    /// The rows of a base for a table of this schema; `None` if it has no such key.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub(super) fn open(base: &Base, schema: &SchemaRef, key: &[String]) -> Result<Option<Self>> {
        let theirs = base.table.schema();
        let (mut own_key, mut base_key, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for name in key {
            let places = (schema.index_of(name), theirs.index_of(name));
            let (Ok(own), Ok(at)) = places else { return Ok(None) };
            let data_type = schema.field(own).data_type();
            if theirs.field(at).data_type() != data_type {
                return Ok(None);
            }
            own_key.push(own);
            base_key.push(at);
            fields.push(SortField::new(data_type.clone()));
        }
        let shared = base.shared.iter().map(|column| column.base);
        let columns: Vec<usize> = base_key.into_iter().chain(shared).collect();
        let all = 0..base.table.rows();
        let rows = base.table.read(&columns, &[all], BATCH_ROWS)?;
        let keys = KeyColumns { own: own_key, converter: RowConverter::new(fields)? };
        let (start, at, found) = (0, 0, 0);
        Ok(Some(Self { keys, rows, batch: None, start, at, found, sparse: false }))
    }

    /// Finds the rows of a batch, which follow those of the batch before: their positions go to
    /// `positions`, and `equal` keeps the shared columns that have the same values. False if a row is
    /// not in the base, or the base has too many others.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub(super) fn find(
        &mut self,
        own: &RecordBatch,
        shared: &[Shared],
        equal: &mut [bool],
        positions: &mut Vec<u64>,
    ) -> Result<bool> {
        let own_keys = self.keys.rows(own, &self.keys.own)?;
        let mut row = 0;
        while row < own.num_rows() && !self.sparse {
            if self.batch.is_none() && !self.load()? {
                return Ok(false);
            }
            let Some((batch, keys)) = &self.batch else { return Ok(false) };
            let (first, mut here) = (row, Vec::new());
            let mut missing = false;
            while row < own.num_rows() && self.at < batch.num_rows() {
                match keys.row(self.at).cmp(&own_keys.row(row)) {
                    Ordering::Less => self.at += 1,
                    Ordering::Equal => {
                        here.push(u32::try_from(self.at)?);
                        self.at += 1;
                        row += 1;
                    }
                    Ordering::Greater => {
                        missing = true;
                        break;
                    }
                }
            }
            if missing {
                return Ok(false);
            }
            let own_rows = own.slice(first, row - first);
            compare(&own_rows, batch, &here, (shared, self.keys.own.len()), equal)?;
            positions.extend(here.iter().map(|at| self.start + u64::from(*at)));
            self.found += here.len() as u64;
            if self.at == batch.num_rows() {
                self.start += batch.num_rows() as u64;
                self.batch = None;
            }
            self.sparse = self.start > LOOK && self.found * SPARSE < self.start;
        }
        Ok(!self.sparse)
    }

    fn load(&mut self) -> Result<bool> {
        let Some(batch) = self.rows.next().transpose()? else { return Ok(false) };
        let columns: Vec<usize> = (0..self.keys.own.len()).collect();
        // Columns come in the order in which they were asked for.
        let keys = self.keys.rows(&batch, &columns)?;
        self.at = 0;
        self.batch = Some((batch, keys));
        Ok(true)
    }
}

/// Clears the columns whose values differ in one of these rows.
fn compare(
    own: &RecordBatch,
    base: &RecordBatch,
    here: &[u32],
    (shared, keys): (&[Shared], usize),
    equal: &mut [bool],
) -> Result<()> {
    let Some((first, last)) = here.first().zip(here.last()) else { return Ok(()) };
    let is_run = (last - first) as usize + 1 == here.len();
    let rows = UInt32Array::from(here.to_vec());
    for (at, column) in shared.iter().enumerate() {
        if !equal[at] {
            continue;
        }
        let values = base.column(keys + at);
        let values = match is_run {
            true => values.slice(*first as usize, here.len()),
            false => take(values, &rows, None)?,
        };
        equal[at] = same(own.column(column.own), &values);
    }
    Ok(())
}
