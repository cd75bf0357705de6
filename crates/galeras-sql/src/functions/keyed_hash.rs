//! `keyed_hash(seed, purpose, id)`: the only source of randomness.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_base::id::keyed_hash;

/// 64 uniform bits per row from an integer seed, a text that names the purpose, and the id.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct KeyedHash;

impl RowFunction for KeyedHash {
    const DOC: FunctionDoc = FunctionDoc {
        name: "keyed_hash",
        arguments: &[("seed", "integer"), ("purpose", "text"), ("id", "text")],
        returns: "unsigned integer",
        summary: "64 uniform bits that depend on the seed, the purpose (a literal) and the id only",
        nulls: "null if the seed or the id is null",
        example: "keyed_hash(42, 'sample', 'a')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::UInt64
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let [ColumnarValue::Scalar(ScalarValue::Utf8(Some(purpose)))] = &args.args[1..2] else {
            return exec_err!("the purpose of keyed_hash must be a literal text");
        };
        let seeds = args.args[0].to_array(args.number_rows)?;
        let ids = args.args[2].to_array(args.number_rows)?;
        let seeds = seeds.as_primitive::<Int64Type>();
        let rows = seeds.iter().zip(ids.as_string::<i32>());
        let hashes = rows.map(|(seed, id)| Some(keyed_hash(seed?, purpose, id?.as_bytes())));
        Ok(Arc::new(hashes.collect::<UInt64Array>()))
    }
}
