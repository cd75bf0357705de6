//! Where the columns of a table are: in its own file, or in others.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::errors::{ParquetError, Result};

use super::layers::{LAYERS, Layers, Rows, elsewhere_name, positions_name};

/// The columns of a table and where they are, as footers say it.
#[derive(Debug)]
pub struct Layout {
    schema: SchemaRef,
    groups: Vec<Range<u64>>,
    /// The place of each column in the own file.
    own: Vec<usize>,
    /// The places of the columns of positions in the own file.
    positions: Vec<usize>,
    /// For each row group the columns that are elsewhere.
    elsewhere: Vec<Vec<Option<Place>>>,
    /// The rows of each of the other files.
    rows: Vec<u64>,
}

/// Where a column of a row group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The other file, as a position in the list of them.
    pub file: usize,
    /// The column there.
    pub root: usize,
    /// The rows there.
    pub rows: Rows,
}

/// What is to be read of one file for some rows.
pub struct Source {
    /// The other file, as a position in the list of them; `None` is the own file.
    pub file: Option<usize>,
    /// Its columns, in its order.
    pub roots: Vec<usize>,
    /// Where these are among the columns that were asked for.
    pub places: Vec<usize>,
    /// Its rows.
    pub ranges: Vec<Range<u64>>,
    /// Which of these rows, counted without gaps, is each row that was asked for; `None` if they are
    /// the same, one for one.
    pub order: Option<UInt32Array>,
}

impl Layout {
    /// The layout of a file that refers to these others, in the order of [`Layers::files`].
    ///
    /// # Errors
    /// If a footer says what cannot be.
    pub fn new(
        own: &ArrowReaderMetadata,
        layers: Option<&Layers>,
        others: &[&ArrowReaderMetadata],
    ) -> Result<Self> {
        let groups = group_rows(own);
        let Some(layers) = layers else {
            let schema = Arc::clone(own.schema());
            let own = (0..schema.fields().len()).collect();
            let elsewhere = vec![Vec::new(); groups.len()];
            return Ok(Self {
                schema,
                groups,
                own,
                positions: Vec::new(),
                elsewhere,
                rows: Vec::new(),
            });
        };
        let (schema, own_roots, positions) = logical(own.schema(), layers)?;
        if layers.groups.len() != groups.len() || layers.files.len() != others.len() {
            return Err(wrong());
        }
        let rows: Vec<u64> = others.iter().map(|other| rows_of(other)).collect();
        let mut elsewhere = Vec::with_capacity(groups.len());
        for (group, parts) in groups.iter().zip(&layers.groups) {
            let mut places = vec![None; schema.fields().len()];
            for part in parts {
                let other = others.get(part.file).ok_or_else(wrong)?;
                match part.rows {
                    Rows::From(first) => {
                        let end = first.checked_add(group.end - group.start);
                        if end.is_none_or(|end| end > rows[part.file]) {
                            return Err(wrong());
                        }
                    }
                    Rows::Listed(slot) | Rows::Gathered(slot) if slot >= positions.len() => {
                        return Err(wrong());
                    }
                    Rows::Listed(_) | Rows::Gathered(_) => {}
                }
                for column in &part.columns {
                    let name = layers.columns.get(*column).ok_or_else(wrong)?;
                    let at = schema.index_of(name)?;
                    let root = root_of(other.schema(), name).ok_or_else(wrong)?;
                    if other.schema().field(root).data_type() != schema.field(at).data_type() {
                        return Err(wrong());
                    }
                    places[at] = Some(Place { file: part.file, root, rows: part.rows });
                }
            }
            elsewhere.push(places);
        }
        Ok(Self { schema, groups, own: own_roots, positions, elsewhere, rows })
    }

    /// The columns of the table.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The positions of the rows of each row group.
    pub fn groups(&self) -> &[Range<u64>] {
        &self.groups
    }

    /// Where a column of a row group is, if not in the own file.
    pub fn place(&self, group: usize, column: usize) -> Option<Place> {
        self.elsewhere[group].get(column).copied().flatten()
    }

    /// The column of the own file that is this one, whether it has its values or not.
    pub fn own_root(&self, column: usize) -> usize {
        self.own[column]
    }

    /// How many columns of positions there are.
    pub fn slots(&self) -> usize {
        self.positions.len()
    }

    /// The columns of positions that are needed to read columns of a row group, and where the own
    /// file has them, in the order of the file.
    pub fn needed_slots(&self, group: usize, columns: &[usize]) -> Vec<(usize, usize)> {
        let places = columns.iter().filter_map(|column| self.place(group, *column));
        let mut slots: Vec<(usize, usize)> = places
            .filter_map(|place| match place.rows {
                Rows::Listed(slot) | Rows::Gathered(slot) => Some((slot, self.positions[slot])),
                Rows::From(_) => None,
            })
            .collect();
        slots.sort_by_key(|(_, root)| *root);
        slots.dedup();
        slots
    }

    /// The columns of the table that are asked for.
    pub fn project(&self, columns: &[usize]) -> Result<SchemaRef> {
        Ok(Arc::new(self.schema.project(columns)?))
    }

    /// What to read for these columns of the rows of a row group in these ranges of the table, which
    /// are in order; `listed` has the positions of the group by slot, of those that are needed.
    ///
    /// # Errors
    /// If positions lie outside of the other file, or are not in order.
    pub fn sources(
        &self,
        group: usize,
        columns: &[usize],
        wanted: &[Range<u64>],
        listed: &[Option<UInt64Array>],
    ) -> Result<Vec<Source>> {
        // By file and rows: columns of one file may come from different rows of it.
        let mut sources: Vec<Wanted> = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let place = self.place(group, *column);
            let (from, root) = match place {
                Some(place) => (Some((place.file, place.rows)), place.root),
                None => (None, self.own[*column]),
            };
            match sources.iter_mut().find(|(known, _)| *known == from) {
                Some((_, roots)) => roots.push((root, at)),
                None => sources.push((from, vec![(root, at)])),
            }
        }
        if sources.is_empty() {
            sources.push((None, Vec::new()));
        }
        let start = self.groups[group].start;
        let found = sources.into_iter().map(|(from, mut roots)| {
            roots.sort_unstable();
            let mut order = None;
            let ranges = match from {
                None => wanted.to_vec(),
                Some((_, Rows::From(first))) => {
                    let moved = |at: u64| at - start + first;
                    wanted.iter().map(|range| moved(range.start)..moved(range.end)).collect()
                }
                Some((file, Rows::Listed(slot))) => {
                    let positions = listed.get(slot).and_then(Option::as_ref).ok_or_else(wrong)?;
                    mapped(positions, start, wanted, self.rows[file])?
                }
                Some((file, Rows::Gathered(slot))) => {
                    let positions = listed.get(slot).and_then(Option::as_ref).ok_or_else(wrong)?;
                    let (ranges, ranks) = gathered(positions, start, wanted, self.rows[file])?;
                    order = Some(ranks);
                    ranges
                }
            };
            let (roots, places) = roots.into_iter().unzip();
            Ok(Source { file: from.map(|(file, _)| file), roots, places, ranges, order })
        });
        found.collect()
    }
}

/// The positions of rows of a row group that starts at `start` as ranges of another file.
fn mapped(
    positions: &UInt64Array,
    start: u64,
    wanted: &[Range<u64>],
    rows: u64,
) -> Result<Vec<Range<u64>>> {
    if positions.null_count() > 0 {
        return Err(wrong());
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for range in wanted {
        let within = usize::try_from(range.start - start)?..usize::try_from(range.end - start)?;
        for position in positions.values().get(within).ok_or_else(wrong)? {
            match ranges.last_mut() {
                Some(last) if last.end == *position => last.end += 1,
                Some(last) if last.end > *position => return Err(wrong()),
                _ => ranges.push(*position..position.checked_add(1).ok_or_else(wrong)?),
            }
        }
    }
    match ranges.last().is_none_or(|last| last.end <= rows) {
        true => Ok(ranges),
        false => Err(wrong()),
    }
}

/// The other file and its rows, or the own file; the columns there, and their places among those that
/// are asked for.
type Wanted = (Option<(usize, Rows)>, Vec<(usize, usize)>);

/// The positions of rows of a row group that starts at `start`, in any order, as ranges of another
/// file, and which row of these each of them is.
fn gathered(
    positions: &UInt64Array,
    start: u64,
    wanted: &[Range<u64>],
    rows: u64,
) -> Result<(Vec<Range<u64>>, UInt32Array)> {
    if positions.null_count() > 0 {
        return Err(wrong());
    }
    let mut asked = Vec::new();
    for range in wanted {
        let within = usize::try_from(range.start - start)?..usize::try_from(range.end - start)?;
        asked.extend_from_slice(positions.values().get(within).ok_or_else(wrong)?);
    }
    let mut sorted = asked.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.last().is_some_and(|last| *last >= rows) {
        return Err(wrong());
    }
    let rank = |at: &u64| sorted.binary_search(at).map_or(0, |rank| rank as u32);
    let ranks = asked.iter().map(rank).collect();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for at in sorted {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => ranges.push(at..at + 1),
        }
    }
    Ok((ranges, ranks))
}

/// The columns of the table, where each of them is in the own file, and where the columns of
/// positions are.
fn logical(own: &SchemaRef, layers: &Layers) -> Result<(SchemaRef, Vec<usize>, Vec<usize>)> {
    let (mut fields, mut roots, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    for (root, field) in own.fields().iter().enumerate() {
        if *field.name() == positions_name(positions.len()) {
            if *field.data_type() != DataType::UInt64 {
                return Err(wrong());
            }
            positions.push(root);
            continue;
        }
        let left = layers.columns.iter().position(|name| elsewhere_name(name) == *field.name());
        let field = match left {
            Some(at) => {
                let nullable = !layers.required.contains(&at);
                field.as_ref().clone().with_name(&layers.columns[at]).with_nullable(nullable)
            }
            None => field.as_ref().clone(),
        };
        fields.push(Arc::new(field));
        roots.push(root);
    }
    // What is said of other files is not said of the table.
    let mut metadata = own.metadata().clone();
    metadata.remove(LAYERS);
    let schema = Schema::new_with_metadata(fields, metadata);
    Ok((Arc::new(schema), roots, positions))
}

/// Where a file has a column, under its own name or as one that it left to others in other row groups.
fn root_of(schema: &SchemaRef, name: &str) -> Option<usize> {
    schema.index_of(name).or_else(|_| schema.index_of(&elsewhere_name(name))).ok()
}

/// The positions of the rows of each row group of a file.
pub fn group_rows(metadata: &ArrowReaderMetadata) -> Vec<Range<u64>> {
    let mut end = 0_u64;
    let groups = metadata.metadata().row_groups().iter();
    let rows = groups.map(|group| {
        let start = end;
        end = end.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
        start..end
    });
    rows.collect()
}

fn rows_of(metadata: &ArrowReaderMetadata) -> u64 {
    group_rows(metadata).last().map_or(0, |rows| rows.end)
}

fn wrong() -> ParquetError {
    ParquetError::General("what it says of other files cannot be".into())
}
