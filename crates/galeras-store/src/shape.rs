//! The shape that a plan expects of a stored table: columns, types, no nulls where none are
//! allowed, rows in the order of the key, and no key twice.
//!
//! A manifest and its file may come from another machine, so neither is trusted. The rows of a file
//! are compared once; `verified.log` remembers it, so that a later run reads nothing.

use std::cmp::Ordering;
use std::fs;

use arrow::array::{Array as _, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::row::{OwnedRow, RowConverter, SortField};
use serde_json::json;

use super::backend::blocking;
use super::content_store::{Store, blob_name};
use super::error::StoreError;
use super::manifest::PortArtifact;
use super::parquet_check::check_footer;
use super::table_file::TableFile;
use galeras_base::digest::Digest;
use galeras_operator::TableSchema;
use galeras_operator::table_digest::type_name;
use galeras_workflow::quote;

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 1024;

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

    /// Describes how a table differs from the shape, as far as its manifest shows. Reads no table.
    pub fn differs(&self, port: &PortArtifact) -> Option<String> {
        let name = quote(&port.port);
        let is_shown = |column: &&String| !column.starts_with("__");
        for field in self.schema.fields().iter().filter(|field| is_shown(&field.name())) {
            let (column, wanted) = (quote(field.name()), type_name(field.data_type()));
            match port.columns.iter().find(|stored| stored.name == *field.name()) {
                None => return Some(format!("its table {name} lacks the column {column}")),
                Some(stored) if stored.data_type != wanted => {
                    let is = &stored.data_type;
                    let cause =
                        format!("column {column} of its table {name} is {is}, not {wanted}");
                    return Some(cause);
                }
                Some(_) => {}
            }
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

    /// A name for the fact that a file has this shape.
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
        let compared = || -> Result<Option<String>, Box<dyn std::error::Error>> {
            let mut rows = match ShapeCheck::new(self, table.schema()) {
                Ok(rows) => rows,
                Err(cause) => return Ok(Some(cause)),
            };
            let (columns, all) = (table.columns(|name| self.reads(name)), 0..table.rows());
            for batch in table.read(&columns, &[all], BATCH_ROWS)? {
                if let Some(cause) = rows.differ(&batch?)? {
                    return Ok(Some(cause));
                }
            }
            Ok(None)
        };
        compared().unwrap_or_else(|error| Some(format!("its table cannot be read: {error}")))
    }
}

/// Compares the rows of a table with a shape, batch by batch.
struct ShapeCheck<'a> {
    shape: &'a TableShape,
    keys: RowConverter,
    last: Option<OwnedRow>,
}

impl<'a> ShapeCheck<'a> {
    fn new(shape: &'a TableShape, stored: &SchemaRef) -> Result<Self, String> {
        for field in shape.schema.fields() {
            let (name, wanted) = (quote(field.name()), type_name(field.data_type()));
            match stored.field_with_name(field.name()).map(|field| type_name(field.data_type())) {
                Err(_) => return Err(format!("its table lacks the column {name}")),
                Ok(is) if is != wanted => {
                    return Err(format!("column {name} of its table is {is}, not {wanted}"));
                }
                Ok(_) => {}
            }
        }
        let types = shape.key.iter().filter_map(|name| stored.field_with_name(name).ok());
        let fields = types.map(|field| SortField::new(field.data_type().clone())).collect();
        let keys = RowConverter::new(fields).map_err(|error| error.to_string())?;
        Ok(Self { shape, keys, last: None })
    }

    fn differ(&mut self, batch: &RecordBatch) -> Result<Option<String>, arrow::error::ArrowError> {
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let planned = self.shape.schema.field_with_name(field.name());
            if column.null_count() > 0 && planned.is_ok_and(|planned| !planned.is_nullable()) {
                return Ok(Some(format!("column {} of its table has nulls", quote(field.name()))));
            }
        }
        let keys = self.shape.key.iter().filter_map(|name| batch.column_by_name(name));
        let keys: Vec<_> = keys.cloned().collect();
        if keys.is_empty() || batch.num_rows() == 0 {
            return Ok(None);
        }
        let rows = self.keys.convert_columns(&keys)?;
        let mut last = self.last.as_ref().map(OwnedRow::row);
        for row in &rows {
            match last.map_or(Ordering::Less, |last| last.cmp(&row)) {
                Ordering::Less => last = Some(row),
                Ordering::Equal => return Ok(Some("two rows of its table have one key".into())),
                Ordering::Greater => {
                    return Ok(Some("its rows are not in the order of their key".into()));
                }
            }
        }
        self.last = last.map(|row| row.owned());
        Ok(None)
    }
}

impl Store {
    /// Describes how the file of a table differs from a shape; reads it only if that is not known yet.
    /// Files in a bucket are not downloaded for this: `copy_file` compared them.
    ///
    /// # Errors
    /// If the comparison cannot be carried out.
    pub async fn misshapen(
        &self,
        port: &PortArtifact,
        shape: &TableShape,
    ) -> Result<Option<String>, StoreError> {
        let Some(folder) = self.inner.backend.folder() else { return Ok(None) };
        let path = folder.path(&blob_name(&port.blob));
        let failed = |error| StoreError::at("read", &path, error);
        let about = fs::metadata(&path).map_err(failed)?;
        let known = shape.digest(&port.blob);
        if folder.verified.knows(&known, &about) {
            return Ok(None);
        }
        let (store, blob, shape) = (self.clone(), port.blob, shape.clone());
        let look = move || {
            let table = check_footer(&path)
                .and_then(|()| store.table_file(&blob).map_err(|error| error.to_string()));
            Ok(match table {
                Ok(table) => table.and_then(|table| shape.rows_differ(&table)),
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
