//! `raise_if(condition, message)`: stops the plan at the first row for which it is true.

use super::function_doc::{Documented, FunctionDoc, FunctionGroup};
use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// The message, unless the condition is true: then the plan fails with it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RaiseIf {
    signature: Signature,
}

impl Default for RaiseIf {
    fn default() -> Self {
        let types = vec![DataType::Boolean, DataType::Utf8];
        Self { signature: Signature::exact(types, Volatility::Immutable) }
    }
}

impl Documented for RaiseIf {
    const DOC: FunctionDoc = FunctionDoc {
        name: "raise_if",
        aliases: &[],
        group: FunctionGroup::Row,
        version: 1,
        arguments: &[("condition", "boolean"), ("message", "text")],
        variadic: false,
        returns: "text",
        summary: "the message; the query fails with it at the first row where the condition is true",
        nulls: "a null condition counts as false; a null message stays null",
        example: "raise_if(false, 'never')",
    };
}

impl ScalarUDFImpl for RaiseIf {
    fn name(&self) -> &str {
        "raise_if"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let condition = args.args[0].to_array(args.number_rows)?;
        let message = args.args[1].to_array(args.number_rows)?;
        let (condition, texts) = (condition.as_boolean(), message.as_string::<i32>());
        for row in 0..condition.len() {
            if condition.is_valid(row) && condition.value(row) {
                let text = if texts.is_valid(row) { texts.value(row) } else { "a check failed" };
                return Err(DataFusionError::Execution(text.to_string()));
            }
        }
        Ok(ColumnarValue::Array(message))
    }
}
