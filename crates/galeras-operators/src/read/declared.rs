//! The types that a workflow declares for columns of a file.

use std::collections::BTreeMap;

use arrow::datatypes::{FieldRef, Schema};

/// By the names of columns in the file.
pub(super) type DeclaredTypes = BTreeMap<String, FieldRef>;

/// The schema with declared types instead of inferred ones.
pub(super) fn with_declared(schema: &Schema, declared: &DeclaredTypes) -> Schema {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| declared.get(field.name()).unwrap_or(field).clone());
    Schema::new(fields.collect::<Vec<FieldRef>>())
}
