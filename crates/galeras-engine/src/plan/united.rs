//! The columns of united cells (`step[*]`): those of the step, and those of the cells' keys.

use std::collections::HashMap;

use arrow::datatypes::{DataType, FieldRef};
use serde_json::Value;

use super::cell::cell_columns;
use super::input::Input;
use galeras_operator::table_digest::type_name;
use galeras_operator::{TableSchema, describe};
use galeras_workflow::quote;

/// The columns of united cells. A column of the step with the name of a matrix key stays: its
/// values must equal the key's, which is checked when rows are read.
///
/// # Errors
/// If such a column has a type that the values of the key do not have.
pub(super) fn united_schema(input: &Input) -> Result<TableSchema, String> {
    let mut values: HashMap<&str, Vec<&Value>> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for (name, value) in input.tables.iter().flat_map(|table| cell_columns(&table.cell)) {
        let all = values.entry(name).or_default();
        if all.is_empty() {
            order.push(name);
        }
        all.push(value);
    }
    let mut fields: Vec<FieldRef> = Vec::new();
    for name in &order {
        let all = &values[name];
        let kind = data_type(all);
        match input.schema.field(name) {
            Some(column) if comparable(column.data_type(), &kind) => {}
            Some(column) => {
                return Err(format!(
                    "the cells have a column {} of type {} already, and the matrix key of that \
                     name is {}",
                    quote(name),
                    type_name(column.data_type()),
                    type_name(&kind),
                ));
            }
            None => {
                // The cells of embedded workflows may have different values with their keys.
                let null = all.len() < input.tables.len() || all.iter().any(|v| v.is_null());
                fields.push(describe(name, kind, null, "the key of the matrix cell", None));
            }
        }
    }
    let mut schema = input.schema.with(&fields);
    for key in input.tables.iter().flat_map(|table| &table.cell) {
        if !schema.key.contains(&key.key) {
            schema.key.push(key.key.clone());
        }
    }
    Ok(schema)
}

fn data_type(values: &[&Value]) -> DataType {
    let all = |is: fn(&Value) -> bool| {
        let mut known = values.iter().filter(|value| !value.is_null()).peekable();
        known.peek().is_some() && known.all(|value| is(value))
    };
    if all(Value::is_i64) {
        DataType::Int64
    } else if all(Value::is_number) {
        DataType::Float64
    } else if all(Value::is_boolean) {
        DataType::Boolean
    } else {
        DataType::Utf8
    }
}

/// True if values of the column's type can equal those of the other type.
fn comparable(column: &DataType, values: &DataType) -> bool {
    let text =
        |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    (column.is_numeric() && values.is_numeric())
        || (text(column) && text(values))
        || (*column == DataType::Boolean && *values == DataType::Boolean)
}
