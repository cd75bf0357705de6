//! The shape that a plan expects of a stored table: columns, types, no nulls where none are
//! allowed, rows in the order of the key, and no key twice.
//!
//! A manifest and its file may come from another machine, so neither is trusted. The rows of a file
//! are compared once, and `verified.log` records it.

use std::cmp::Ordering;
use std::error::Error;
use std::fs::{self, File};

use arrow::array::Array as _;
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::row::{OwnedRow, RowConverter, SortField};
use serde_json::json;

use super::backend::blocking;
use super::content_store::Store;
use super::error::{Result, StoreError};
use super::manifest::PortArtifact;
use super::object_name::blob_name;
use super::parquet_check::check_footer;
use super::table_file::TableFile;
use super::verify::BATCH_ROWS;
use galeras_base::digest::Digest;
use galeras_operator::TableSchema;
use galeras_operator::table_digest::type_name;
use galeras_workflow::quote;

/// The shape of a stored table.
#[derive(Clone, Debug)]
pub struct TableShape {
    schema: SchemaRef,
    key: Vec<String>,
}

impl TableShape {
    /// The shape of the tables that an operator declares.
    pub fn of(table: &TableSchema) -> Self {
        let schema = table.stored();
        let is_stored = |name: &&String| schema.field_with_name(name).is_ok();
        let key = table.key.iter().filter(is_stored).cloned().collect();
        Self { schema, key }
    }

    /// Describes how the manifest of a table differs from the shape. Does not read the table.
    pub fn differs(&self, port: &PortArtifact) -> Option<String> {
        let name = quote(&port.port);
        let is_shown = |column: &&String| !column.starts_with("__");
        let shown = self.schema.fields().iter().filter(|field| is_shown(&field.name()));
        let problem = columns_differ(shown, &format!("its table {name}"), |column| {
            let stored = port.columns.iter().find(|stored| stored.name == column);
            stored.map(|stored| stored.data_type.clone())
        });
        if problem.is_some() {
            return problem;
        }
        let mut names = port.columns.iter().map(|column| &column.name).filter(is_shown);
        if let Some(other) = names.find(|name| self.schema.index_of(name).is_err()) {
            return Some(format!("its table {name} has another column {}", quote(other)));
        }
        (port.key != self.key).then(|| {
            let (is, wanted) = (port.key.join(", "), self.key.join(", "));
            format!("the key of its table {name} is ({is}), not ({wanted})")
        })
    }

    /// The name in `verified.log` for a file with this shape.
    fn digest(&self, blob: &Digest) -> Digest {
        let columns = self.schema.fields().iter();
        let columns: Vec<_> = columns
            .map(|field| json!([field.name(), type_name(field.data_type()), field.is_nullable()]))
            .collect();
        Digest::of_json(&json!({"blob": blob, "columns": columns, "key": self.key}))
    }

    /// True for columns whose values are compared.
    fn reads(&self, column: &str) -> bool {
        let required = self.schema.field_with_name(column).is_ok_and(|field| !field.is_nullable());
        required || self.key.iter().any(|key| key == column)
    }

    /// Describes how the rows of a file differ from the shape.
    pub(super) fn rows_differ(&self, table: &TableFile) -> Option<String> {
        let differ = self.compare_rows(table);
        differ.unwrap_or_else(|error| Some(format!("its table cannot be read: {error}")))
    }

    fn compare_rows(&self, table: &TableFile) -> Result<Option<String>, Box<dyn Error>> {
        let stored = table.schema();
        let problem = columns_differ(self.schema.fields(), "its table", |column| {
            stored.field_with_name(column).ok().map(|field| type_name(field.data_type()))
        });
        if problem.is_some() {
            return Ok(problem);
        }
        let types = self.key.iter().filter_map(|name| stored.field_with_name(name).ok());
        let fields = types.map(|field| SortField::new(field.data_type().clone())).collect();
        let keys = RowConverter::new(fields)?;
        let mut last: Option<OwnedRow> = None;
        let (columns, all) = (table.columns(|name| self.reads(name)), 0..table.rows());
        for batch in table.read(&columns, &[all], BATCH_ROWS)? {
            let batch = batch?;
            for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
                let (name, planned) = (field.name(), self.schema.field_with_name(field.name()));
                if column.null_count() > 0 && planned.is_ok_and(|planned| !planned.is_nullable()) {
                    return Ok(Some(format!("column {} of its table has nulls", quote(name))));
                }
            }
            let key = self.key.iter().filter_map(|name| batch.column_by_name(name).cloned());
            let key: Vec<_> = key.collect();
            if key.is_empty() {
                continue;
            }
            let rows = keys.convert_columns(&key)?;
            let mut before = last.as_ref().map(OwnedRow::row);
            for row in &rows {
                match before.map_or(Ordering::Less, |before| before.cmp(&row)) {
                    Ordering::Less => before = Some(row),
                    Ordering::Equal => {
                        return Ok(Some("two rows of its table have one key".into()));
                    }
                    Ordering::Greater => {
                        return Ok(Some("its rows are not in the order of their key".into()));
                    }
                }
            }
            let next = before.map(|row| row.owned());
            last = next;
        }
        Ok(None)
    }
}

/// Describes a planned column that a table lacks, or that has another type in it.
fn columns_differ<'a>(
    planned: impl IntoIterator<Item = &'a FieldRef>,
    table: &str,
    type_of: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    planned.into_iter().find_map(|field| {
        let (column, wanted) = (quote(field.name()), type_name(field.data_type()));
        match type_of(field.name()) {
            None => Some(format!("{table} lacks the column {column}")),
            Some(is) if is == wanted => None,
            Some(is) => Some(format!("column {column} of {table} is {is}, not {wanted}")),
        }
    })
}

impl Store {
    /// Describes how the file of a table differs from a shape. An unchanged file is read once, and
    /// a file in a bucket is not downloaded: `copy_file` has compared it.
    pub async fn misshapen(
        &self,
        port: &PortArtifact,
        shape: &TableShape,
    ) -> Result<Option<String>> {
        let Some(folder) = self.inner.backend.folder() else { return Ok(None) };
        let path = folder.path(&blob_name(&port.blob));
        let failed = |error| StoreError::at("read", &path, error);
        let about = fs::metadata(&path).map_err(failed)?;
        let known = shape.digest(&port.blob);
        if folder.verified.knows(&known, &about) {
            return Ok(None);
        }
        let shape = shape.clone();
        let look = move || {
            let file =
                check_footer(&path).and_then(|()| File::open(&path).map_err(|e| e.to_string()));
            Ok(match file.and_then(|file| TableFile::open(file).map_err(|e| e.to_string())) {
                Ok(table) => shape.rows_differ(&table),
                Err(cause) => Some(format!("its table cannot be read: {cause}")),
            })
        };
        let differs = blocking(look).await?;
        if differs.is_none() {
            folder.verified.remember(&known, &about);
        }
        Ok(differs)
    }

    /// Records that a file that was just written has this shape.
    pub fn note_shape(&self, blob: &Digest, shape: &TableShape) {
        if let Some(folder) = self.inner.backend.folder()
            && let Ok(about) = fs::metadata(folder.path(&blob_name(blob)))
        {
            folder.verified.remember(&shape.digest(blob), &about);
        }
    }
}
