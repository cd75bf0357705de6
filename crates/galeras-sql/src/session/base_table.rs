//! A stored table that may hold columns of a new one: which columns both have, and in which files the
//! rows of it are.
//!
//! Does not live here: which of its rows the new table has (`base_rows`, `base_lookup`).

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::datatypes::SchemaRef;
use parquet::errors::{ParquetError, Result};

use galeras_base::digest::Digest;
use galeras_store::table_file::{Rows, TableFile};

/// A file of which fewer rows than one in so many are needed is not referred to: whoever wants these
/// would have to fetch and go through all of it.
pub(super) const SPARSE: u64 = 2;
/// So many rows of a base are looked at before it is given up.
pub(super) const LOOK: u64 = 1 << 16;

/// A stored table that may hold columns of a new one.
#[derive(Clone, Debug)]
pub struct BaseTable {
    /// The digest of its own file.
    pub blob: Digest,
    /// The columns by which it is sorted.
    pub key: Vec<String>,
}

/// A column of both tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// Its place in the new table.
    pub(super) own: usize,
    /// Its place in the base.
    pub(super) base: usize,
}

/// Such a table whose footers are read.
pub(super) struct Base {
    pub(super) table: Arc<TableFile>,
    blob: Digest,
    pub(super) shared: Vec<Shared>,
}

/// For each of some row groups the other file that has a column, and which rows of it.
pub(super) type Places = Vec<Option<(usize, Rows)>>;

/// Rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Traced {
    pub(super) blob: Digest,
    pub(super) positions: Vec<u64>,
}

impl Base {
    /// The base and the columns that it shares with a table of this schema, but for its key: that
    /// says which row groups have a row.
    pub(super) fn new(
        table: Arc<TableFile>,
        blob: Digest,
        schema: &SchemaRef,
        key: &[String],
    ) -> Self {
        let theirs = Arc::clone(table.schema());
        let mut shared = Vec::new();
        for (own, field) in schema.fields().iter().enumerate() {
            if let Ok(base) = theirs.index_of(field.name())
                && theirs.field(base).data_type() == field.data_type()
                && !key.contains(field.name())
            {
                shared.push(Shared { own, base });
            }
        }
        Self { table, blob, shared }
    }

    /// In which files, and where in them, the base has a column, for each row group that holds some of
    /// these rows, which are in order: columns of which this is equal are traced alike.
    pub(super) fn places(&self, column: usize, positions: &[u64]) -> Places {
        let groups = self.table.groups();
        let group = |at: &u64| groups.partition_point(|rows| rows.end <= *at);
        let Some((first, last)) = positions.first().zip(positions.last()) else {
            return Vec::new();
        };
        let touched = group(first)..(group(last) + 1).min(groups.len());
        let place = |group| self.table.layout().place(group, column);
        touched.map(|group| place(group).map(|place| (place.file, place.rows))).collect()
    }

    /// Where these rows of the base, which are in order, have a column: the file, and the positions in
    /// it. `None` if it is in one file for some of them and in another for others.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub(super) fn trace(&self, column: usize, positions: &[u64]) -> Result<Option<Traced>> {
        let groups = self.table.groups();
        let mut traced: Option<(Digest, Vec<u64>)> = None;
        let mut left = positions;
        while let Some(first) = left.first() {
            let group = groups.partition_point(|rows| rows.end <= *first);
            let rows = groups.get(group).cloned().ok_or_else(beyond)?;
            let (here, after) = left.split_at(left.partition_point(|at| *at < rows.end));
            left = after;
            let place = self.table.layout().place(group, column);
            let blob = match place {
                Some(place) => *self.table.others().get(place.file).ok_or_else(beyond)?,
                None => self.blob,
            };
            let (known, found) =
                traced.get_or_insert_with(|| (blob, Vec::with_capacity(positions.len())));
            if *known != blob {
                return Ok(None);
            }
            match place.map(|place| place.rows) {
                None => found.extend(here),
                Some(Rows::From(start)) => {
                    found.extend(here.iter().map(|at| at - rows.start + start));
                }
                Some(Rows::Listed(slot) | Rows::Gathered(slot)) => {
                    let listed = self.table.listed(group, &[column])?;
                    let listed = listed.get(slot).and_then(Option::as_ref).ok_or_else(beyond)?;
                    found.extend(mapped(listed, here, &rows)?);
                }
            }
        }
        Ok(traced.map(|(blob, positions)| Traced { blob, positions }))
    }
}

fn mapped(listed: &UInt64Array, positions: &[u64], rows: &Range<u64>) -> Result<Vec<u64>> {
    let found = positions.iter().map(|at| {
        let at = usize::try_from(at - rows.start)?;
        listed.values().get(at).copied().ok_or_else(beyond)
    });
    found.collect()
}

/// Whether values are the same. Floats by their bits: what is read back must be what was written.
pub(super) fn same(one: &ArrayRef, other: &ArrayRef) -> bool {
    one.to_data() == other.to_data()
}

fn beyond() -> ParquetError {
    ParquetError::General("a stored table has rows beyond its end".into())
}
