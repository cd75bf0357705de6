//! A window of input rows: which of them have a result, which are fresh, and both joined.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{filter_record_batch, interleave};
use arrow::datatypes::{Schema, SchemaRef};

use super::super::error::RunError;
use super::input::InputBatch;
use super::results::Results;
use super::{RowKey, digests, row_key};
use crate::id::ROW_DIGEST;
use crate::operator::StepError;

/// Which columns go where.
pub(super) struct Columns {
    /// What the operator is given: the digest, and the columns that it reads.
    read: SchemaRef,
    /// Where these columns are in the input, without the digest.
    read_at: Vec<usize>,
    /// Where the produced columns are in a result.
    produced_at: Vec<usize>,
    /// The columns of the input, and the produced ones.
    joined: SchemaRef,
}

impl Columns {
    /// For an input and results of these columns, of which the operator is given `read`.
    pub(super) fn new(
        input: &SchemaRef,
        produced: &SchemaRef,
        read: SchemaRef,
    ) -> Result<Self, RunError> {
        let digest_at = produced.index_of(ROW_DIGEST)?;
        let produced_at = (0..produced.fields().len()).filter(|at| *at != digest_at);
        let produced_at: Vec<usize> = produced_at.collect();
        let mut fields = input.fields().to_vec();
        fields.extend(produced_at.iter().map(|at| Arc::clone(&produced.fields()[*at])));
        let names = read.fields().iter().skip(1);
        let read_at: Result<_, _> = names.map(|field| input.index_of(field.name())).collect();
        Ok(Self { read_at: read_at?, read, produced_at, joined: Arc::new(Schema::new(fields)) })
    }

    pub(super) fn read(&self) -> &SchemaRef {
        &self.read
    }

    pub(super) fn joined(&self) -> &SchemaRef {
        &self.joined
    }
}

/// Where the result of a row is.
#[derive(Clone, Copy)]
enum Origin {
    /// In one of the known batches.
    Known { batch: usize, row: usize },
    /// It is computed now.
    Fresh(RowKey),
}

/// Some rows of the input on their way to the ports.
pub(super) struct Window {
    input: Vec<InputBatch>,
    /// For each row of the input.
    origins: Vec<Origin>,
    /// Batches of stored parts.
    known: Vec<RecordBatch>,
    fresh: Vec<RecordBatch>,
    reused: u64,
}

impl Window {
    /// Looks up the rows.
    pub(super) async fn new(
        input: Vec<InputBatch>,
        columns: &Columns,
        results: &mut Results<'_>,
    ) -> Result<Self, RunError> {
        results.tick();
        let rows = input.iter().map(|batch| batch.keys.len()).sum();
        let mut origins = Vec::with_capacity(rows);
        let (mut known, mut fresh, mut reused) = (Vec::new(), Vec::new(), 0);
        let mut batches: HashMap<(usize, usize), usize> = HashMap::new();
        // What was found for a row of this window, and whether an earlier run had computed it.
        let mut seen: HashMap<RowKey, (Origin, bool)> = HashMap::new();
        for batch in &input {
            let mut is_fresh = vec![false; batch.keys.len()];
            for (row, is_fresh) in is_fresh.iter_mut().enumerate() {
                let key = row_key(&batch.keys, row);
                if let Some((origin, earlier)) = seen.get(&key) {
                    reused += u64::from(*earlier);
                    origins.push(*origin);
                    continue;
                }
                let (origin, earlier) = match results.find(&key).await? {
                    Some(found) => {
                        let batch = *batches.entry(found.at).or_insert_with(|| {
                            known.push(found.batch.clone());
                            known.len() - 1
                        });
                        (Origin::Known { batch, row: found.row }, found.reused)
                    }
                    None => {
                        *is_fresh = true;
                        (Origin::Fresh(key), false)
                    }
                };
                reused += u64::from(earlier);
                seen.insert(key, (origin, earlier));
                origins.push(origin);
            }
            if is_fresh.contains(&true) {
                let mut arrays: Vec<ArrayRef> = vec![Arc::new(batch.keys.clone())];
                let read = columns.read_at.iter().map(|at| Arc::clone(batch.rows.column(*at)));
                arrays.extend(read);
                let rows = RecordBatch::try_new(Arc::clone(&columns.read), arrays)?;
                fresh.push(match is_fresh.contains(&false) {
                    true => filter_record_batch(&rows, &BooleanArray::from(is_fresh))?,
                    false => rows,
                });
            }
        }
        Ok(Self { input, origins, known, fresh, reused })
    }

    /// The rows that have to be computed, each digest once.
    pub(super) fn fresh_rows(&self) -> &[RecordBatch] {
        &self.fresh
    }

    /// Rows of the input whose result is of an earlier run.
    pub(super) fn reused(&self) -> u64 {
        self.reused
    }

    /// The other rows of the input.
    pub(super) fn computed(&self) -> u64 {
        self.origins.len() as u64 - self.reused
    }

    /// The rows of the input with their results, in the order of the input.
    pub(super) fn join(
        &self,
        evaluated: &[RecordBatch],
        columns: &Columns,
    ) -> Result<Vec<RecordBatch>, RunError> {
        let mut computed: HashMap<RowKey, (usize, usize)> = HashMap::new();
        for (at, batch) in evaluated.iter().enumerate() {
            let keys = digests(batch)?;
            let places = (0..keys.len()).map(|row| (row_key(keys, row), row));
            computed.extend(places.map(|(key, row)| (key, (self.known.len() + at, row))));
        }
        let sources: Vec<&RecordBatch> = self.known.iter().chain(evaluated).collect();
        let produced: Vec<Vec<&dyn Array>> = columns
            .produced_at
            .iter()
            .map(|at| sources.iter().map(|batch| batch.column(*at).as_ref()).collect())
            .collect();
        let mut origins = self.origins.iter();
        let mut joined = Vec::with_capacity(self.input.len());
        for batch in &self.input {
            let rows = batch.keys.len();
            let mut places = Vec::with_capacity(rows);
            for origin in origins.by_ref().take(rows) {
                places.push(match origin {
                    Origin::Known { batch, row } => (*batch, *row),
                    Origin::Fresh(key) => *computed.get(key).ok_or_else(|| {
                        StepError::new("a defect: the operator gave no result for a row")
                    })?,
                });
            }
            let mut arrays = batch.rows.columns().to_vec();
            for column in &produced {
                arrays.push(interleave(column, &places)?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let schema = Arc::clone(&columns.joined);
            joined.push(RecordBatch::try_new_with_options(schema, arrays, &options)?);
        }
        Ok(joined)
    }
}
