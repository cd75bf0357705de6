//! The argument `types`: declared column types, and the types that a format supports.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::{DataType, FieldRef, Schema};
use serde_json::{Map, Value};

use super::csv_values::is_readable;
use super::formats::FileFormat;
use galeras_operator::table_digest::type_name;
use galeras_operator::{ArgError, parse_column, stored_type};
use galeras_workflow::code::Code;
use galeras_workflow::quote;

/// The types that a workflow declares, by the names of columns in the file.
pub(super) type DeclaredTypes = BTreeMap<String, FieldRef>;

/// The argument `types`, by the names of columns in the file.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) types: DeclaredTypes,
    /// The columns that the file need not have.
    pub(super) optional: BTreeSet<String>,
    /// The columns whose values are kept as JSON texts.
    pub(super) json: BTreeSet<String>,
}

/// The schema with declared types instead of inferred ones, and with the `optional` columns.
pub(super) fn with_declared(
    schema: &Schema,
    declared: &DeclaredTypes,
    optional: &BTreeSet<String>,
) -> Schema {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| declared.get(field.name()).unwrap_or(field).clone());
    let absent = optional.iter().filter(|name| schema.index_of(name).is_err());
    let absent = absent.filter_map(|name| declared.get(name).cloned());
    Schema::new(fields.chain(absent).collect::<Vec<FieldRef>>())
}

/// The declared types by the column names in the file, before renaming.
pub(super) fn declared_types(
    types: &Map<String, Value>,
    renamed: &Map<String, Value>,
    format: FileFormat,
) -> Result<Declared, Vec<ArgError>> {
    let (mut declared, mut errors) = (Declared::default(), Vec::new());
    let of_json = matches!(format, FileFormat::Json | FileFormat::Jsonl);
    if format == FileFormat::Parquet && !types.is_empty() {
        let message = "a Parquet file already has column types";
        let error = ArgError::new("types", Code::ConflictingArguments, message);
        return Err(vec![error.help("cast the columns in a step `sql`")]);
    }
    for (name, text) in types {
        let at = format!("types.{name}");
        let from = renamed.iter().find(|(_, to)| to.as_str() == Some(name.as_str()));
        let from = from.map_or(name, |(from, _)| from);
        let Some(text) = text.as_str() else {
            let message = "the type of a column must be a text";
            errors.push(ArgError::new(at, Code::WrongType, message));
            continue;
        };
        // In JSON, a value of any kind may be kept as text, and a key may be left out.
        let (item, optional) = match text.trim_end().strip_suffix('?') {
            Some(item) if of_json => (item, true),
            _ => (text, false),
        };
        let is_json = of_json && matches!(item.trim(), "json" | "json!");
        let item = if is_json { item.replace("json", "utf8") } else { item.to_owned() };
        match parse_column(from, &item) {
            Err(why) => errors.push(ArgError::new(at, Code::UnknownType, why)),
            Ok(field) if !can_have(format, field.data_type()) => {
                let message = format!("a {format} file has no values of the type `{text}`");
                errors.push(ArgError::new(at, Code::UnknownType, message));
            }
            Ok(field) if optional && !field.is_nullable() => {
                let message = "a column that may be absent (`?`) may have nulls: leave out the `!`";
                errors.push(ArgError::new(at, Code::UnknownType, message));
            }
            Ok(field) => {
                if optional {
                    declared.optional.insert(from.clone());
                }
                if is_json {
                    declared.json.insert(from.clone());
                }
                declared.types.insert(from.clone(), field);
            }
        }
    }
    if errors.is_empty() { Ok(declared) } else { Err(errors) }
}

fn can_have(format: FileFormat, data_type: &DataType) -> bool {
    if format == FileFormat::Csv { is_readable(data_type) } else { all_in(data_type, is_readable) }
}

/// `fits` is true of the type, or of all types within a list or a struct.
pub(super) fn all_in(data_type: &DataType, fits: fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::List(item) => all_in(item.data_type(), fits),
        DataType::Struct(fields) => fields.iter().all(|field| all_in(field.data_type(), fits)),
        other => fits(other),
    }
}

/// Checks for columns with types that cannot be stored.
///
/// # Errors
/// The first of them: in words, with its column.
pub(super) fn check_storable(schema: &Schema) -> Result<(), String> {
    match schema.fields().iter().find(|f| !storable(&stored_type(f.data_type()))) {
        Some(field) => Err(format!(
            "its column {} has the type {}, which cannot be stored; cast it in the file to another \
             type, such as float64, timestamp or utf8",
            quote(field.name()),
            type_name(field.data_type())
        )),
        None => Ok(()),
    }
}

fn storable(data_type: &DataType) -> bool {
    use DataType::{Binary, Boolean, Date32, FixedSizeBinary, Float32, Float64, Timestamp, Utf8};
    all_in(data_type, |one| {
        let plain = matches!(one, Boolean | Utf8 | Binary | FixedSizeBinary(_) | Date32);
        plain || matches!(one, Float32 | Float64 | Timestamp(_, _)) || one.is_integer()
    })
}
