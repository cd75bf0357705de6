//! `parses`: the prediction is Python without a syntax error. An empty text is not. The score, and
//! the SQL function `parses(code)` of rules and queries.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

use super::metric::{PairMetric, ScoreColumn, one_value};
use crate::functions::function_doc::{FunctionDoc, RowFunction};
use galeras_python::parses;

pub(super) const PARSES: PairMetric = PairMetric {
    columns: &[ScoreColumn::whole("parses", "1 if the prediction has no syntax error, else 0")],
    about: "1 if the prediction is Python 3.13 without a syntax error, else 0.",
    function: None,
    // Null for a text that cannot be parsed within its bounds.
    scorer: |_| {
        one_value(|pair| Ok(parses(pair.program).ok().map(|parses| f64::from(u8::from(parses)))))
    },
    corpus: None,
};

/// The function over columns.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Parses;

impl RowFunction for Parses {
    const DOC: FunctionDoc = FunctionDoc {
        name: "parses",
        arguments: &[("code", "text")],
        returns: "boolean",
        summary: "true if the text is Python 3.13 without a syntax error and not empty",
        nulls: "null for a null and for code that nests too deep or is over 4 MiB",
        example: "parses('def f(x):\n    return x')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Boolean
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let code = args.args[0].to_array(args.number_rows)?;
        let parsed: BooleanArray = code
            .as_string::<i32>()
            .iter()
            .map(|text| text.and_then(|text| parses(text).ok()))
            .collect();
        Ok(Arc::new(parsed))
    }
}
