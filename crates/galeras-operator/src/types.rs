//! Column types of a workflow as Arrow types. `digest::type_name` is the inverse; `workflow` parses
//! the text.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};

use galeras_workflow::{ColumnType, ItemType, ScalarType};

/// The column `name` of the type written as `text` (`utf8!`, `list<int64>`). The error describes
/// the problem and, if possible, a suggestion.
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
#[allow(clippy::unwrap_used)]
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
