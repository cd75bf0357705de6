//! `row_id(column, …)`: the id of a row from its identity columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_base::id::row_id;
use galeras_operator::table_digest::encode_rows;

/// The column as text, or as bytes where its type has no text: its own, or canonical ones.
fn as_text(column: &ArrayRef) -> Result<ArrayRef> {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    let data_type = column.data_type();
    if !data_type.is_nested() {
        let is_bytes = matches!(data_type, Binary | BinaryView | FixedSizeBinary(_) | LargeBinary);
        let as_type = if is_bytes { Binary } else { DataType::Utf8 };
        return Ok(arrow::compute::cast(column, &as_type)?);
    }
    let mut bytes = BinaryBuilder::new();
    encode_rows(std::slice::from_ref(column), column.len(), |_, row| bytes.append_value(row))
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    Ok(Arc::new(bytes.finish()))
}

/// 32 hexadecimal digits of BLAKE3 over the length-prefixed texts of the arguments; a null
/// counts as an empty text, binary data as its bytes, a list or struct as its canonical bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RowId;

impl RowFunction for RowId {
    const DOC: FunctionDoc = FunctionDoc {
        name: "row_id",
        // The first version gave bytes that are not UTF-8 the id of a null.
        version: 2,
        arguments: &[("column", "any")],
        variadic: true,
        returns: "text",
        summary: "32 hexadecimal digits of BLAKE3 over the length-prefixed texts of the arguments",
        nulls: "a null counts as an empty text; the id is never null",
        example: "row_id('a', 1)",
        ..FunctionDoc::ROW
    };

    const NULLABLE: bool = false;

    fn return_type() -> DataType {
        DataType::Utf8
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?
            .iter()
            .map(as_text)
            .collect::<Result<Vec<_>>>()?;
        let rows = columns.first().map_or(args.number_rows, |c| c.len());
        let mut out = StringBuilder::with_capacity(rows, rows * 32);
        for row in 0..rows {
            out.append_value(row_id(columns.iter().map(|c| match c.data_type() {
                _ if c.is_null(row) => &b""[..],
                DataType::Utf8 => c.as_string::<i32>().value(row).as_bytes(),
                _ => c.as_binary::<i32>().value(row),
            })));
        }
        Ok(Arc::new(out.finish()))
    }
}
