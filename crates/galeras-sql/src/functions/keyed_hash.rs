//! `keyed_hash(seed, purpose, id)`: the only source of randomness.

use std::sync::Arc;

use arrow::array::{Array, AsArray, UInt64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::function_doc::{Documented, FunctionDoc, FunctionGroup};
use galeras_base::id::keyed_hash;

/// 64 uniform bits per row from an integer seed, a text that names the purpose, and the id.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct KeyedHash {
    signature: Signature,
}

impl Default for KeyedHash {
    fn default() -> Self {
        Self {
            signature: Signature::exact(
                vec![DataType::Int64, DataType::Utf8, DataType::Utf8],
                Volatility::Immutable,
            ),
        }
    }
}

impl Documented for KeyedHash {
    const DOC: FunctionDoc = FunctionDoc {
        name: "keyed_hash",
        aliases: &[],
        group: FunctionGroup::Row,
        version: 1,
        arguments: &[("seed", "integer"), ("purpose", "text"), ("id", "text")],
        variadic: false,
        returns: "unsigned integer",
        summary: "64 uniform bits that depend on the seed, the purpose (a literal) and the id only",
        nulls: "null where the seed or the id is",
        example: "keyed_hash(42, 'sample', 'a')",
    };
}

impl ScalarUDFImpl for KeyedHash {
    fn name(&self) -> &str {
        "keyed_hash"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(ScalarValue::Utf8(Some(purpose)))] = &args.args[1..2] else {
            return Err(DataFusionError::Execution(
                "the purpose of keyed_hash must be a literal text".into(),
            ));
        };
        let seeds = args.args[0].to_array(args.number_rows)?;
        let ids = args.args[2].to_array(args.number_rows)?;
        let seeds = seeds.as_primitive::<Int64Type>();
        let out: UInt64Array = ids
            .as_string::<i32>()
            .iter()
            .enumerate()
            .map(|(row, id)| {
                id.filter(|_| seeds.is_valid(row))
                    .map(|id| keyed_hash(seeds.value(row), purpose, id.as_bytes()))
            })
            .collect();
        Ok(ColumnarValue::Array(Arc::new(out)))
    }
}
