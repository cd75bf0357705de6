//! Tables as the planner sees them: schema, key columns, ports, column metadata and types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use super::contract::INPUT;
use super::error::ArgError;
use galeras_base::id::ID;
use galeras_base::prose::name_list;
use galeras_workflow::code::Code;
use galeras_workflow::{ColumnType, ItemType, ScalarType};

/// The main output port of every operator.
pub const MAIN: &str = "out";
/// The port of rows that an operator rejected.
pub const REJECTS: &str = "rejects";
/// The port with counts.
pub const SUMMARY: &str = "summary";

const DESCRIPTION: &str = "description";
const UNIT: &str = "unit";
const VIRTUAL: &str = "galeras.virtual";

/// The columns of a table and its key.
#[derive(Clone, Debug)]
pub struct TableSchema {
    /// Names, types and descriptions of the columns.
    pub schema: SchemaRef,
    /// The key columns: unique together, and the order in which the table is stored.
    pub key: Vec<String>,
    /// The table may have further columns. Only in the plan of a workflow with mistakes: the output
    /// of a wrong step is not fully known.
    pub open: bool,
}

impl Default for TableSchema {
    fn default() -> Self {
        Self { schema: Arc::new(Schema::empty()), key: Vec::new(), open: false }
    }
}

impl TableSchema {
    /// A schema with its key. The default key is `id` if there is such a column, else all columns
    /// together.
    pub fn new(schema: SchemaRef, key: Option<Vec<String>>) -> Self {
        let key = key.unwrap_or_else(|| {
            if schema.field_with_name(ID).is_ok() {
                vec![ID.to_string()]
            } else {
                schema.fields().iter().map(|f| f.name().clone()).collect()
            }
        });
        Self { schema, key, open: false }
    }

    /// The column names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.schema.fields().iter().map(|f| f.name().as_str())
    }

    /// True if it is not fully known: a column may be missing, or have no type.
    pub fn is_vague(&self) -> bool {
        self.open || self.schema.fields().iter().any(|f| *f.data_type() == DataType::Null)
    }

    /// The column of that name.
    pub fn field(&self, name: &str) -> Option<&FieldRef> {
        self.schema.fields().iter().find(|f| f.name() == name)
    }

    /// This schema with `added` columns: existing ones are replaced in place, others come after, in
    /// order.
    pub fn with(&self, added: &[FieldRef]) -> Self {
        let mut fields: Vec<FieldRef> = self.schema.fields().to_vec();
        for field in added {
            match fields.iter_mut().find(|f| f.name() == field.name()) {
                Some(place) => *place = Arc::clone(field),
                None => fields.push(Arc::clone(field)),
            }
        }
        Self { schema: Arc::new(Schema::new(fields)), ..self.clone() }
    }

    /// This schema with the columns that an operator adds to its input. Those of `replaced` replace
    /// columns of the same name.
    ///
    /// # Errors
    /// If the input has another one of them: its values would be lost. The advice is `instead`, or
    /// else a query that renames the columns.
    pub fn extended(
        &self,
        added: &[FieldRef],
        replaced: &[&str],
        instead: Option<&str>,
    ) -> Result<Self, Vec<ArgError>> {
        let names = added.iter().map(|field| field.name().as_str());
        let taken = names.filter(|name| !replaced.contains(name) && self.field(name).is_some());
        let taken: Vec<&str> = taken.collect();
        if taken.is_empty() {
            return Ok(self.with(added));
        }
        let (column, values) = match taken.as_slice() {
            [_] => ("the column", "its values"),
            _ => ("columns", "their values"),
        };
        let message = format!(
            "the input already has {column} {}: this step adds its own, and {values} would be lost",
            name_list(&taken)
        );
        let rename = || {
            let named: Vec<String> =
                taken.iter().map(|name| format!("{name} AS input_{name}")).collect();
            format!(
                "leave them out or rename them in a step `sql` before: SELECT * EXCEPT ({}), {} FROM \
                 input",
                taken.join(", "),
                named.join(", ")
            )
        };
        let help = instead.map_or_else(rename, str::to_owned);
        Err(vec![ArgError::at_port(INPUT, Code::DuplicateColumn, message).help(help)])
    }

    /// This table with another key.
    pub fn keyed(mut self, key: &[&str]) -> Self {
        self.key = key.iter().map(ToString::to_string).collect();
        self
    }

    /// The table as an input of another step, where a column that is added on reading is like any
    /// other.
    pub fn materialised(&self) -> Self {
        if self.is_plain() {
            return self.clone();
        }
        let fields = self.schema.fields().iter().map(|f| {
            let mut metadata = f.metadata().clone();
            metadata.remove(VIRTUAL);
            Arc::new(f.as_ref().clone().with_metadata(metadata))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { schema, ..self.clone() }
    }

    /// The stored columns: without those that are added on reading.
    pub fn stored(&self) -> SchemaRef {
        if self.is_plain() {
            return Arc::clone(&self.schema);
        }
        let fields = self.schema.fields().iter().filter(|f| !is_virtual(f)).cloned();
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// True if the schema is as it is stored.
    fn is_plain(&self) -> bool {
        let fields = self.schema.fields();
        self.schema.metadata().is_empty() && !fields.iter().any(|f| is_virtual(f))
    }
}

/// One output of a step.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name; `out` for the main port.
    pub name: &'static str,
    /// Its columns and key.
    pub table: TableSchema,
}

impl Port {
    /// A port of that name.
    pub fn new(name: &'static str, table: TableSchema) -> Self {
        Self { name, table }
    }
}

/// A column with a description and possibly a unit.
pub fn describe(
    name: &str,
    data_type: DataType,
    nullable: bool,
    description: &str,
    unit: Option<&str>,
) -> FieldRef {
    let mut metadata = HashMap::from([(DESCRIPTION.to_string(), description.to_string())]);
    if let Some(unit) = unit {
        metadata.insert(UNIT.to_string(), unit.to_string());
    }
    Arc::new(Field::new(name, data_type, nullable).with_metadata(metadata))
}

/// The description of a column, if it has one.
pub fn column_description(field: &Field) -> Option<&str> {
    field.metadata().get(DESCRIPTION).map(String::as_str)
}

/// The unit of a column's numbers, if it has one.
pub fn column_unit(field: &Field) -> Option<&str> {
    field.metadata().get(UNIT).map(String::as_str)
}

/// The column `step`: the name of the step that a row comes from. It is added on reading and never
/// stored, so that renaming a step changes no stored result.
pub fn virtual_step() -> FieldRef {
    let field = describe("step", DataType::Utf8, false, "the step that rejected the row", None);
    let mut metadata = field.metadata().clone();
    metadata.insert(VIRTUAL.to_string(), "step".to_string());
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// True if this column is added on reading, and not stored.
pub fn is_virtual(field: &Field) -> bool {
    field.metadata().contains_key(VIRTUAL)
}

/// The stored type of a column: one text, list and binary type, no dictionaries.
pub fn stored_type(data_type: &DataType) -> DataType {
    let item =
        |field: &FieldRef| Arc::new(Field::new("item", stored_type(field.data_type()), true));
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, value) => stored_type(value),
        DataType::List(f) | DataType::LargeList(f) | DataType::ListView(f) => {
            DataType::List(item(f))
        }
        DataType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(|f| Arc::new(Field::new(f.name(), stored_type(f.data_type()), true)))
                .collect(),
        ),
        // Most readers have no type for a column with only nulls.
        DataType::Null => DataType::Utf8,
        other => other.clone(),
    }
}

/// The column `name` of the type written as `text` (`utf8!`, `list<int64>`), the inverse of
/// [`type_name`](crate::table_digest::type_name). The error describes the problem and, if possible,
/// a suggestion.
pub fn parse_column(name: &str, text: &str) -> Result<FieldRef, String> {
    let item: ItemType = text.parse()?;
    Ok(Arc::new(Field::new(name, data_type(&item.ty), !item.non_null)))
}

fn data_type(column: &ColumnType) -> DataType {
    match column {
        ColumnType::Scalar(scalar) => scalar_type(*scalar),
        ColumnType::List(item) => DataType::new_list(data_type(&item.ty), true),
        ColumnType::Struct(fields) => DataType::Struct(
            fields.iter().map(|(name, item)| Field::new(name, data_type(&item.ty), true)).collect(),
        ),
    }
}

fn scalar_type(scalar: ScalarType) -> DataType {
    match scalar {
        ScalarType::Utf8 => DataType::Utf8,
        ScalarType::Bool => DataType::Boolean,
        ScalarType::Int8 => DataType::Int8,
        ScalarType::Int16 => DataType::Int16,
        ScalarType::Int32 => DataType::Int32,
        ScalarType::Int64 => DataType::Int64,
        ScalarType::UInt8 => DataType::UInt8,
        ScalarType::UInt16 => DataType::UInt16,
        ScalarType::UInt32 => DataType::UInt32,
        ScalarType::UInt64 => DataType::UInt64,
        ScalarType::Float32 => DataType::Float32,
        ScalarType::Float64 => DataType::Float64,
        ScalarType::Binary => DataType::Binary,
        ScalarType::Date => DataType::Date32,
        ScalarType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames as _;

    use super::*;
    use crate::table_digest::type_name;

    #[test]
    fn names_and_types_are_inverse() {
        let nested = "struct<role: utf8, parts: list<struct<a: int64, b: utf8>>>";
        let scalars = ScalarType::VARIANTS.iter().copied();
        for text in scalars.chain(["list<utf8>", "list<list<int64>>", nested]) {
            let field = parse_column("c", text).unwrap();
            let name = type_name(field.data_type());
            assert_eq!(name.split('[').next().unwrap(), text);
            assert!(field.is_nullable());
        }
        assert!(!parse_column("c", "utf8!").unwrap().is_nullable());
    }
}
