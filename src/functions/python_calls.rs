//! `python_calls(code)`: the names of what a method calls.
//!
//! The algorithm is in `python::calls`; here is only its Arrow form.

use std::sync::Arc;

use arrow::array::{AsArray, ListBuilder, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use galeras_python::{calls, with_parser};

/// A list of the distinct names in the order of their first call; null for a text that is null
/// or cannot be parsed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonCalls {
    signature: Signature,
}

impl Default for PythonCalls {
    fn default() -> Self {
        Self { signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for PythonCalls {
    fn name(&self) -> &str {
        "python_calls"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(DataType::Utf8, true))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let code = args.args[0].to_array(args.number_rows)?;
        let mut names = ListBuilder::new(StringBuilder::new());
        for text in code.as_string::<i32>() {
            let found = text.and_then(|text| {
                with_parser(|parser| calls(parser, text)).and_then(|found| found).ok()
            });
            for name in found.iter().flatten() {
                names.values().append_value(name);
            }
            names.append(found.is_some());
        }
        Ok(ColumnarValue::Array(Arc::new(names.finish())))
    }
}
