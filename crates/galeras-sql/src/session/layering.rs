//! What of a new table is stored already: columns that one of the step's inputs has for the same
//! rows are left to its file.
//!
//! Decided anew for each row group, by the values: whatever an operator does, what is read back is
//! what it gave. Does not live here: finding the rows (`base_rows`), the format (`table_file`).

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;

use super::base_lookup::BaseLookup;
use super::base_rows::BaseRows;
use super::base_table::{Base, BaseTable, Places, SPARSE, Traced};
use galeras_base::digest::Digest;
use galeras_store::Store;
use galeras_store::table_file::{
    Elsewhere, LAYERS, Layers, Rows, elsewhere_name, is_reserved, positions_name,
};

/// Fewer bytes in memory are not worth another file to open.
const WORTH_BYTES: usize = 64 << 10;

/// The tables that a new one may refer to, and its key.
#[derive(Clone, Debug)]
pub struct Bases {
    pub store: Store,
    pub tables: Vec<BaseTable>,
    pub key: Vec<String>,
}

/// A table that leaves columns to other files while it is written.
pub(super) struct Layering {
    base: Base,
    finder: Finder,
    /// The columns of the table that are left, as positions in the base's list of shared ones.
    left: Vec<usize>,
    schema: SchemaRef,
    layers: Layers,
    /// The first group, as it was found.
    first: Option<Vec<Found>>,
}

/// How rows are found in a base.
enum Finder {
    Rows(Box<BaseRows>),
    Lookup(BaseLookup),
}

/// Shared columns, as positions in [`Layering::left`], and where they are.
struct Found {
    columns: Vec<usize>,
    traced: Traced,
}

impl Layering {
    /// Looks for the rows of the first row group in the bases. `None` if what is found is not worth
    /// the look.
    ///
    /// # Errors
    /// If a base cannot be read.
    pub(super) fn begin(
        bases: &Bases,
        schema: &SchemaRef,
        group: &[RecordBatch],
    ) -> Result<Option<Self>> {
        let bytes: usize = group.iter().map(RecordBatch::get_array_memory_size).sum();
        if bytes < WORTH_BYTES || schema.fields().iter().any(|field| is_reserved(field.name())) {
            return Ok(None);
        }
        let mut best: Option<(usize, Self)> = None;
        for table in &bases.tables {
            let Some(file) = bases.store.table_file(&table.blob)? else { continue };
            let base = Base::new(Arc::new(file), table.blob, schema, &bases.key);
            if base.shared.is_empty() {
                continue;
            }
            let first = first(&base, table, bases, schema, group)?;
            let Some((finder, (equal, positions))) = first else { continue };
            let bytes = |at: &usize| -> usize {
                let own = base.shared[*at].own;
                group.iter().map(|batch| batch.column(own).get_array_memory_size()).sum()
            };
            let left: Vec<usize> = (0..equal.len()).filter(|at| equal[*at]).collect();
            let worth = left.iter().map(bytes).sum();
            if worth < WORTH_BYTES || best.as_ref().is_some_and(|(known, _)| *known >= worth) {
                continue;
            }
            let found = trace(&base, &left, &vec![true; left.len()], &positions)?;
            if let Some(layering) = Self::new((base, finder), left, found, schema) {
                best = Some((worth, layering));
            }
        }
        Ok(best.map(|(_, layering)| layering))
    }

    fn new(
        (base, finder): (Base, Finder),
        left: Vec<usize>,
        found: Vec<Found>,
        schema: &SchemaRef,
    ) -> Option<Self> {
        // What is partly in one file and partly in another is stored.
        let mut kept: Vec<usize> =
            found.iter().flat_map(|part| part.columns.iter().copied()).collect();
        kept.sort_unstable();
        if kept.is_empty() {
            return None;
        }
        let place = |at: &usize| kept.binary_search(at).unwrap_or_default();
        let found: Vec<Found> = found
            .into_iter()
            .map(|part| Found { columns: part.columns.iter().map(place).collect(), ..part })
            .collect();
        let left: Vec<usize> = kept.iter().map(|at| left[*at]).collect();
        let own: Vec<usize> = left.iter().map(|at| base.shared[*at].own).collect();
        let files: Vec<Digest> = found.iter().map(|part| part.traced.blob).collect();
        let columns = own.iter().map(|at| schema.field(*at).name().clone()).collect();
        let required = (0..own.len()).filter(|at| !schema.field(own[*at]).is_nullable()).collect();
        let fields =
            schema.fields().iter().enumerate().map(|(at, field)| match own.contains(&at) {
                true => {
                    let name = elsewhere_name(field.name());
                    Arc::new(field.as_ref().clone().with_name(name).with_nullable(true))
                }
                false => Arc::clone(field),
            });
        let positions = (0..files.len())
            .map(|at| Arc::new(Field::new(positions_name(at), DataType::UInt64, true)));
        let fields: Vec<_> = fields.chain(positions).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let layers = Layers::new(files, columns, required);
        Some(Self { base, finder, left, schema, layers, first: Some(found) })
    }

    /// The columns of the file.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The names of its columns of positions.
    pub(super) fn positions(&self) -> impl Iterator<Item = String> {
        (0..self.layers.files.len()).map(positions_name)
    }

    /// The batches of the next row group without what is elsewhere.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub(super) fn group(&mut self, group: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
        let found = match self.first.take() {
            Some(found) => found,
            None => match find(&self.base, &mut self.finder, &group)? {
                None => Vec::new(),
                Some((equal, positions)) => {
                    let equal: Vec<bool> = self.left.iter().map(|at| equal[*at]).collect();
                    trace(&self.base, &self.left, &equal, &positions)?
                }
            },
        };
        let mut parts = Vec::new();
        let mut slots: Vec<Option<UInt64Array>> = vec![None; self.layers.files.len()];
        let mut lists: Vec<(usize, Vec<u64>)> = Vec::new();
        for Found { columns, traced: Traced { blob, positions } } in found {
            // A file that the first row group did not refer to has no place in the footer.
            let Some(file) = self.layers.files.iter().position(|known| *known == blob) else {
                continue;
            };
            let run = positions.first().zip(positions.last());
            let rows = match run {
                Some((first, _)) if positions.iter().zip(*first..).all(|(at, run)| *at == run) => {
                    Rows::From(*first)
                }
                _ => match lists.iter().find(|(_, known)| *known == positions) {
                    Some((slot, known)) => listed(*slot, known),
                    None => {
                        let rows = listed(file, &positions);
                        slots[file] = Some(UInt64Array::from(positions.clone()));
                        lists.push((file, positions));
                        rows
                    }
                },
            };
            parts.push(Elsewhere { file, columns, rows });
        }
        let gone: Vec<usize> = parts
            .iter()
            .flat_map(|part| &part.columns)
            .map(|at| self.base.shared[self.left[*at]].own)
            .collect();
        self.layers.groups.push(parts);
        let mut start = 0;
        let batches = group.into_iter().map(|batch| {
            let rows = batch.num_rows();
            let own =
                batch.columns().iter().enumerate().map(|(at, column)| match gone.contains(&at) {
                    true => new_null_array(column.data_type(), rows),
                    false => Arc::clone(column),
                });
            let positions = slots.iter().map(|slot| match slot {
                Some(positions) => Arc::new(positions.slice(start, rows)) as ArrayRef,
                None => new_null_array(&DataType::UInt64, rows),
            });
            let columns = own.chain(positions).collect();
            start += rows;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
        });
        batches.collect()
    }

    /// What the footer says, and the files that the table needs.
    pub(super) fn finish(self) -> (KeyValue, Vec<Digest>) {
        let text = serde_json::to_string(&self.layers).unwrap_or_default();
        (KeyValue::new(LAYERS.to_string(), text), self.layers.files)
    }
}

/// The rows of a file at the positions in a column.
fn listed(slot: usize, positions: &[u64]) -> Rows {
    match positions.is_sorted_by(|one, next| one < next) {
        true => Rows::Listed(slot),
        false => Rows::Gathered(slot),
    }
}

/// Whether the shared columns are equal in all rows of a row group, and where the base has these rows.
type FoundRows = (Vec<bool>, Vec<u64>);

/// How the rows of the first row group are found in a base, and what is found.
type FirstRows = (Finder, FoundRows);

fn first(
    base: &Base,
    table: &BaseTable,
    bases: &Bases,
    schema: &SchemaRef,
    group: &[RecordBatch],
) -> Result<Option<FirstRows>> {
    if !bases.key.is_empty()
        && table.key == bases.key
        && let Some(rows) = BaseRows::open(base, schema, &bases.key)?
    {
        let mut finder = Finder::Rows(Box::new(rows));
        if let Some(found) = find(base, &mut finder, group)? {
            return Ok(Some((finder, found)));
        }
    }
    let Some(lookup) = BaseLookup::open(base, &table.key, schema, group.first())? else {
        return Ok(None);
    };
    let mut finder = Finder::Lookup(lookup);
    let found = find(base, &mut finder, group)?;
    Ok(found.map(|found| (finder, found)))
}

/// `None` if the base lacks a row of the group.
fn find(base: &Base, finder: &mut Finder, group: &[RecordBatch]) -> Result<Option<FoundRows>> {
    let rows = match finder {
        Finder::Rows(rows) => rows,
        Finder::Lookup(lookup) => return lookup.find(base, group),
    };
    let mut equal = vec![true; base.shared.len()];
    let mut positions = Vec::with_capacity(group.iter().map(RecordBatch::num_rows).sum());
    for batch in group {
        if !rows.find(batch, &base.shared, &mut equal, &mut positions)? {
            return Ok(None);
        }
    }
    Ok(Some((equal, positions)))
}

/// Where the columns that are equal are, by file; `left` are positions in the base's shared ones.
fn trace(base: &Base, left: &[usize], equal: &[bool], positions: &[u64]) -> Result<Vec<Found>> {
    // Positions may come in any order, and several times; what a base says goes by its own.
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let rank = |at: &u64| sorted.binary_search(at).unwrap_or(0);
    let mut found: Vec<Found> = Vec::new();
    let mut known: Vec<(Places, Option<Traced>)> = Vec::new();
    for (at, shared) in left.iter().enumerate().filter(|(at, _)| equal[*at]) {
        let column = base.shared[*shared].base;
        let places = base.places(column, &sorted);
        let traced = match known.iter().find(|(other, _)| *other == places) {
            Some((_, traced)) => traced.clone(),
            None => {
                let traced = base.trace(column, &sorted)?.filter(is_dense).map(|traced| {
                    let positions = positions.iter().map(|at| traced.positions[rank(at)]).collect();
                    Traced { positions, ..traced }
                });
                known.push((places, traced.clone()));
                traced
            }
        };
        let Some(traced) = traced else { continue };
        match found.iter_mut().find(|part| part.traced.blob == traced.blob) {
            Some(part) if part.traced == traced => part.columns.push(at),
            // Other rows of the same file: stored.
            Some(_) => {}
            None => found.push(Found { columns: vec![at], traced }),
        }
    }
    Ok(found)
}

/// Whether not too much lies between these rows of a file.
fn is_dense(traced: &Traced) -> bool {
    let ends = traced.positions.iter().min().zip(traced.positions.iter().max());
    let span = ends.map_or(0, |(first, last)| last - first);
    span <= SPARSE * traced.positions.len() as u64
}
