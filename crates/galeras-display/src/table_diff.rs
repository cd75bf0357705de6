//! Compares two versions of a table row by row: added, removed and changed rows, and the changed
//! columns. Reads both once in key order, a batch of each in memory.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use futures::{Stream, StreamExt};

/// The differences between two versions of a table.
#[derive(Clone, Debug, Default)]
pub struct TableDiff {
    /// Rows whose key only the second has.
    pub added: u64,
    /// Rows whose key only the first has.
    pub removed: u64,
    /// Rows that both have, with another value in a column that both have.
    pub changed: u64,
    /// Rows that both have, with the same values.
    pub same: u64,
    /// The number of changed rows in which each column differs; without columns that never do.
    pub columns: Vec<(String, u64)>,
    /// The first rows that changed.
    pub examples: Vec<ChangedRow>,
}

/// A row that has changed.
#[derive(Clone, Debug)]
pub struct ChangedRow {
    /// Its key: one row of the key columns.
    pub key: RecordBatch,
    /// The old values: one row of the columns that differ.
    pub old: RecordBatch,
    /// The new values of the same columns.
    pub new: RecordBatch,
}

/// Compares two tables that are sorted by `key`, in ascending order with nulls first, and have no
/// key twice. Both must have all key columns, with the same types. Other columns are compared if
/// both tables have them with the same type. At most `examples` changed rows are kept.
///
/// # Errors
/// If a table cannot be read, or its columns cannot be compared.
pub async fn compare_tables<E: From<ArrowError>>(
    old: (SchemaRef, impl Stream<Item = Result<RecordBatch, E>> + Unpin),
    new: (SchemaRef, impl Stream<Item = Result<RecordBatch, E>> + Unpin),
    key: &[String],
    examples: usize,
) -> Result<TableDiff, E> {
    let converters = Converters::new(&old.0, &new.0, key)?;
    let mut old = Side::new(&old.0, &converters, old.1)?;
    let mut new = Side::new(&new.0, &converters, new.1)?;
    let mut differing = vec![0_u64; converters.columns.len()];
    let mut diff = TableDiff::default();
    old.advance(&converters).await?;
    new.advance(&converters).await?;
    loop {
        let order = match (old.key(), new.key()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(&b),
        };
        match order {
            Ordering::Less => diff.removed += 1,
            Ordering::Greater => diff.added += 1,
            Ordering::Equal => {
                let differ = old.differing(&new);
                if differ.is_empty() {
                    diff.same += 1;
                } else {
                    diff.changed += 1;
                    differ.iter().for_each(|column| differing[*column] += 1);
                    if diff.examples.len() < examples {
                        diff.examples.push(example(&old, &new, &differ)?);
                    }
                }
            }
        }
        if order != Ordering::Greater {
            old.advance(&converters).await?;
        }
        if order != Ordering::Less {
            new.advance(&converters).await?;
        }
    }
    let names = converters.columns.into_iter().map(|(name, _)| name);
    diff.columns = names.zip(differing).filter(|(_, rows)| *rows > 0).collect();
    Ok(diff)
}

struct Converters {
    key_names: Vec<String>,
    key: RowConverter,
    columns: Vec<(String, RowConverter)>,
}

impl Converters {
    fn new(old: &SchemaRef, new: &SchemaRef, key: &[String]) -> Result<Self, ArrowError> {
        let field = |name: &String| {
            old.field_with_name(name).map(|field| SortField::new(field.data_type().clone()))
        };
        let fields = key.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let mut columns = Vec::new();
        for field in old.fields().iter().filter(|field| !key.contains(field.name())) {
            let other = new.field_with_name(field.name()).map(|field| field.data_type());
            if other.is_ok_and(|other| other == field.data_type()) {
                let converter = RowConverter::new(vec![SortField::new(field.data_type().clone())])?;
                columns.push((field.name().clone(), converter));
            }
        }
        Ok(Self { key_names: key.to_vec(), key: RowConverter::new(fields)?, columns })
    }
}

/// One of the tables, at a row.
struct Side<S> {
    stream: S,
    key_places: Vec<usize>,
    /// The places of the compared columns.
    places: Vec<usize>,
    batch: Option<ComparableBatch>,
    row: usize,
}

struct ComparableBatch {
    rows: RecordBatch,
    keys: Rows,
    columns: Vec<Rows>,
}

impl<S, E> Side<S>
where
    S: Stream<Item = Result<RecordBatch, E>> + Unpin,
    E: From<ArrowError>,
{
    fn new(schema: &SchemaRef, converters: &Converters, stream: S) -> Result<Self, ArrowError> {
        let places = |names: &mut dyn Iterator<Item = &String>| {
            names.map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()
        };
        let key_places = places(&mut converters.key_names.iter())?;
        let places = places(&mut converters.columns.iter().map(|(name, _)| name))?;
        Ok(Self { stream, key_places, places, batch: None, row: 0 })
    }

    /// Moves to the next row, if there is one.
    async fn advance(&mut self, converters: &Converters) -> Result<(), E> {
        if let Some(batch) = &self.batch {
            self.row += 1;
            if self.row < batch.rows.num_rows() {
                return Ok(());
            }
        }
        self.batch = None;
        self.row = 0;
        while let Some(rows) = self.stream.next().await {
            let rows = rows?;
            if rows.num_rows() == 0 {
                continue;
            }
            let array = |at: &usize| Arc::clone(rows.column(*at));
            let keys: Vec<ArrayRef> = self.key_places.iter().map(array).collect();
            let keys = converters.key.convert_columns(&keys)?;
            let columns = self.places.iter().zip(&converters.columns);
            let columns = columns
                .map(|(at, (_, converter))| converter.convert_columns(&[array(at)]))
                .collect::<Result<Vec<_>, _>>()?;
            self.batch = Some(ComparableBatch { rows, keys, columns });
            break;
        }
        Ok(())
    }

    fn key(&self) -> Option<arrow::row::Row<'_>> {
        self.batch.as_ref().map(|batch| batch.keys.row(self.row))
    }

    fn differing<T>(&self, other: &Side<T>) -> Vec<usize> {
        let (Some(one), Some(two)) = (&self.batch, &other.batch) else { return Vec::new() };
        let pairs = one.columns.iter().zip(&two.columns).enumerate();
        pairs.filter(|(_, (a, b))| a.row(self.row) != b.row(other.row)).map(|(at, _)| at).collect()
    }

    fn part(&self, places: &[usize]) -> Result<RecordBatch, ArrowError> {
        match &self.batch {
            Some(batch) => batch.rows.slice(self.row, 1).project(places),
            None => Err(ArrowError::InvalidArgumentError("there is no row".into())),
        }
    }
}

fn example<S, T, E>(
    old: &Side<S>,
    new: &Side<T>,
    differ: &[usize],
) -> Result<ChangedRow, ArrowError>
where
    S: Stream<Item = Result<RecordBatch, E>> + Unpin,
    T: Stream<Item = Result<RecordBatch, E>> + Unpin,
    E: From<ArrowError>,
{
    let of = |places: &[usize]| differ.iter().map(|at| places[*at]).collect::<Vec<_>>();
    Ok(ChangedRow {
        key: old.part(&old.key_places)?,
        old: old.part(&of(&old.places))?,
        new: new.part(&of(&new.places))?,
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn table(rows: &[(Option<&str>, i64, &str)]) -> RecordBatch {
        let ids: StringArray = rows.iter().map(|row| row.0).collect();
        let sizes = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
        let texts = StringArray::from_iter_values(rows.iter().map(|row| row.2));
        RecordBatch::try_from_iter_with_nullable([
            ("id", Arc::new(ids) as ArrayRef, true),
            ("size", Arc::new(sizes) as ArrayRef, true),
            ("text", Arc::new(texts) as ArrayRef, true),
        ])
        .unwrap()
    }

    fn compared(old: &RecordBatch, new: &RecordBatch, batch: usize, key: &[&str]) -> TableDiff {
        let stream = |table: &RecordBatch| {
            let starts = (0..table.num_rows()).step_by(batch);
            let parts: Vec<Result<RecordBatch, ArrowError>> = starts
                .map(|at| Ok(table.slice(at, batch.min(table.num_rows() - at))))
                .chain([Ok(table.slice(0, 0))])
                .collect();
            (table.schema(), futures::stream::iter(parts))
        };
        let key: Vec<String> = key.iter().map(ToString::to_string).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare_tables(stream(old), stream(new), &key, 2)).unwrap()
    }

    #[test]
    fn rows_that_came_went_and_changed_are_counted_whatever_their_batches() {
        let old = table(&[
            (None, 0, "null"),
            (Some("a"), 1, "x"),
            (Some("b"), 2, "y"),
            (Some("d"), 4, "z"),
            (Some("e"), 5, "same"),
        ]);
        let new = table(&[
            (None, 9, "null"),
            (Some("b"), 3, "Y"),
            (Some("c"), 3, "new"),
            (Some("d"), 5, "z"),
            (Some("e"), 5, "same"),
            (Some("f"), 6, "new"),
        ]);
        for batch in [1, 2, 3, 100] {
            let diff = compared(&old, &new, batch, &["id"]);
            assert_eq!((diff.added, diff.removed, diff.changed, diff.same), (2, 1, 3, 1));
            assert_eq!(diff.columns, [("size".to_string(), 3), ("text".to_string(), 1)]);
            assert_eq!(diff.examples.len(), 2);
            let second = &diff.examples[1];
            assert_eq!(second.key.column(0).as_string::<i32>().value(0), "b");
            assert_eq!(second.old.column(0).as_primitive::<Int64Type>().value(0), 2);
            assert_eq!(second.new.column(1).as_string::<i32>().value(0), "Y");
        }
    }

    #[test]
    fn a_table_is_like_itself_and_unlike_an_empty_one() {
        let some = table(&[(Some("a"), 1, "x"), (Some("b"), 2, "y")]);
        let none = table(&[]);
        assert_eq!(compared(&some, &some, 1, &["id"]).same, 2);
        assert_eq!(compared(&none, &some, 1, &["id"]).added, 2);
        assert_eq!(compared(&some, &none, 1, &["id"]).removed, 2);
        let nothing = compared(&none, &none, 1, &["id"]);
        assert_eq!((nothing.added, nothing.same), (0, 0));
    }

    #[test]
    fn where_all_columns_are_the_key_nothing_changes() {
        let (old, new) = (table(&[(Some("a"), 1, "x")]), table(&[(Some("a"), 2, "x")]));
        let diff = compared(&old, &new, 1, &["id", "size", "text"]);
        assert_eq!((diff.added, diff.removed, diff.changed), (1, 1, 0));
    }

    #[test]
    fn columns_of_one_table_are_not_compared() {
        let old = table(&[(Some("a"), 1, "x")]);
        let new = old.project(&[0, 2]).unwrap();
        let diff = compared(&old, &new, 1, &["id"]);
        assert_eq!((diff.same, diff.changed), (1, 0));
    }
}
