//! The rows of a stored table that the rows of a new table name in one of their columns, as an answer
//! names its prompt.
//!
//! Only for small tables: their keys are in memory, and whoever reads the new table goes back and
//! forth in them. Does not live here: tables of the same key (`base_rows`), what is done about it
//! (`layering`).

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{concat, concat_batches, take};
use arrow::datatypes::{DataType, SchemaRef};
use parquet::errors::Result;

use super::base_table::{Base, same};

/// The most rows of a base, and the most bytes of the columns that it shares: they are in memory.
const MOST_ROWS: u64 = 1 << 16;
const MOST_BYTES: usize = 64 << 20;

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8192;

/// A base whose rows are found by their ids.
pub(super) struct BaseLookup {
    rows: HashMap<String, u32>,
    /// The shared columns.
    columns: Vec<ArrayRef>,
    /// The column of the new table that names a row of the base.
    reference: usize,
}

impl BaseLookup {
    /// The rows of a base with this key that a table with this first batch names; `None` if it names
    /// none, or the base is large.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub(super) fn open(
        base: &Base,
        base_key: &[String],
        schema: &SchemaRef,
        first: Option<&RecordBatch>,
    ) -> Result<Option<Self>> {
        let ([key], Some(first)) = (base_key, first) else { return Ok(None) };
        let Ok(key) = base.table.schema().index_of(key) else { return Ok(None) };
        let is_text = |data_type: &DataType| *data_type == DataType::Utf8;
        if base.table.rows() > MOST_ROWS
            || !is_text(base.table.schema().field(key).data_type())
            || first.num_rows() == 0
        {
            return Ok(None);
        }
        let mut rows = HashMap::new();
        let all = 0..base.table.rows();
        for batch in base.table.read(&[key], &[all], BATCH_ROWS)? {
            let ids = batch?.column(0).as_string::<i32>().clone();
            for id in &ids {
                let at = u32::try_from(rows.len())?;
                rows.insert(id.unwrap_or_default().to_string(), at);
            }
        }
        let names = |at: &usize| {
            is_text(schema.field(*at).data_type()) && {
                let texts = first.column(*at).as_string::<i32>();
                texts.is_valid(0) && rows.contains_key(texts.value(0))
            }
        };
        let Some(reference) = (0..schema.fields().len()).find(names) else { return Ok(None) };
        let shared: Vec<usize> = base.shared.iter().map(|column| column.base).collect();
        let (mut batches, mut bytes) = (Vec::new(), 0);
        let all = 0..base.table.rows();
        for batch in base.table.read(&shared, &[all], BATCH_ROWS)? {
            let batch = batch?;
            bytes += batch.get_array_memory_size();
            if bytes > MOST_BYTES {
                return Ok(None);
            }
            batches.push(batch);
        }
        let Some(columns) = batches.first().map(RecordBatch::schema) else { return Ok(None) };
        let columns = concat_batches(&columns, &batches)?.columns().to_vec();
        Ok(Some(Self { rows, columns, reference }))
    }

    /// The positions of the rows that a row group names, and which of the shared columns have the same
    /// values; `None` if a row names none.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub(super) fn find(
        &self,
        base: &Base,
        group: &[RecordBatch],
    ) -> Result<Option<(Vec<bool>, Vec<u64>)>> {
        let mut positions = Vec::new();
        for batch in group {
            let names: &StringArray = batch.column(self.reference).as_string::<i32>();
            for name in names {
                match name.and_then(|name| self.rows.get(name)) {
                    Some(at) => positions.push(*at),
                    None => return Ok(None),
                }
            }
        }
        let order = UInt32Array::from(positions.clone());
        let mut equal = Vec::with_capacity(base.shared.len());
        for (column, theirs) in base.shared.iter().zip(&self.columns) {
            let own: Vec<&dyn Array> =
                group.iter().map(|batch| batch.column(column.own).as_ref()).collect();
            equal.push(same(&concat(&own)?, &take(theirs, &order, None)?));
        }
        Ok(Some((equal, positions.into_iter().map(u64::from).collect())))
    }
}
