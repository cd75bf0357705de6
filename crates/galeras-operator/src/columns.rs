//! Checks of the columns that arguments name, and the columns that results add.

use arrow::datatypes::{DataType, FieldRef};

use crate::{ArgError, BindContext, describe};
use galeras_workflow::code::Code;

/// A text column that is never null.
pub fn text_field(name: &str, about: &str) -> FieldRef {
    describe(name, DataType::Utf8, false, about, None)
}

/// Checks that the input has a column `name` of a type that `fits`; otherwise reports it at `path`.
pub fn require_column(
    cx: &BindContext,
    path: &str,
    name: &str,
    wanted: &str,
    fits: impl Fn(&DataType) -> bool,
    errors: &mut Vec<ArgError>,
) {
    let input = cx.input();
    match input.field(name) {
        None => errors.push(ArgError::unknown_column(path, name, input.names())),
        Some(field) if !fits(field.data_type()) => errors.push(ArgError::new(
            path,
            Code::WrongType,
            format!(
                "column `{name}` has type {}, but {wanted} is needed",
                crate::table_digest::type_name(field.data_type())
            ),
        )),
        Some(_) => {}
    }
}

/// True for numbers and for true and false.
pub fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || *data_type == DataType::Boolean
}

/// True for text types.
pub fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
