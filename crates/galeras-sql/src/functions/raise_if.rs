//! `raise_if(condition, message)`: stops the plan at the first row for which it is true.

use super::function_doc::{FunctionDoc, RowFunction};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarFunctionArgs;

/// The message, unless the condition is true: then the plan fails with it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RaiseIf;

impl RowFunction for RaiseIf {
    const DOC: FunctionDoc = FunctionDoc {
        name: "raise_if",
        arguments: &[("condition", "boolean"), ("message", "text")],
        returns: "text",
        summary: "the message; if the condition is true for a row, the query fails with it",
        nulls: "a null condition counts as false; a null message stays null",
        example: "raise_if(false, 'never')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Utf8
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let condition = args.args[0].to_array(args.number_rows)?;
        let message = args.args[1].to_array(args.number_rows)?;
        let (condition, texts) = (condition.as_boolean(), message.as_string::<i32>());
        for row in 0..condition.len() {
            if condition.is_valid(row) && condition.value(row) {
                let text = if texts.is_valid(row) { texts.value(row) } else { "a check failed" };
                return exec_err!("{text}");
            }
        }
        Ok(message)
    }
}
