//! `row_digest(column, …)`: the digest of a row's values, by which results are reused.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryBuilder};
use arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_operator::table_digest::encode_rows;

/// 16 bytes of BLAKE3 over the typed, length-prefixed values of the row.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RowDigest;

impl RowDigest {
    /// The number of bytes of a row digest.
    pub const BYTES: i32 = 16;
}

impl RowFunction for RowDigest {
    const DOC: FunctionDoc = FunctionDoc {
        name: "row_digest",
        arguments: &[("column", "any")],
        variadic: true,
        returns: "bytes",
        summary: "the first 16 bytes of BLAKE3 over the typed values of the row",
        nulls: "a null counts as a separate value; the digest is never null",
        example: "row_digest('a', 1)",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::FixedSizeBinary(Self::BYTES)
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let rows = args.number_rows;
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        // A lone literal gives one value for any number of rows.
        let rows = columns.first().map_or(rows, |c| c.len());
        let mut out = FixedSizeBinaryBuilder::with_capacity(rows, Self::BYTES);
        let mut failed = None;
        encode_rows(&columns, rows, |_, bytes| {
            let hash = blake3::hash(bytes);
            if let Err(error) = out.append_value(&hash.as_bytes()[..Self::BYTES as usize]) {
                failed.get_or_insert(error);
            }
        })
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(Arc::new(out.finish())),
        }
    }
}
