//! `python_calls(code)`: the names that a method calls, and `python_call_targets(code)`, the same
//! with the receiver of each call.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListBuilder, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_python::{ParseError, PythonParser, call_targets, calls, with_parser};

/// A list of the distinct names in the order of their first call; null for a text that is null
/// or cannot be parsed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonCalls;

impl RowFunction for PythonCalls {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_calls",
        arguments: &[("code", "text")],
        returns: "list of text",
        summary: "the different names that a method calls, in the order of their first call",
        nulls: "null for a null and for code that cannot be parsed",
        example: "python_calls('def f(x):\n    return g(h(x), g(1))\n')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::new_list(DataType::Utf8, true)
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        lists(args, calls)
    }
}

/// The same, with the last name of the receiver in front of each.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonCallTargets;

impl RowFunction for PythonCallTargets {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_call_targets",
        summary: "the different names that a method calls, each with the last name of its receiver: `c` for `c(x)`, `b.c` for `a.b.c(x)`, `.c` for `''.c(x)`; after `a = B(x)`, `a.c()` counts as `a.c` and `B.c`",
        example: "python_call_targets('def f(x):\n    url = URL(x)\n    return url.join(b\"\".join(x))\n')",
        ..PythonCalls::DOC
    };

    fn return_type() -> DataType {
        DataType::new_list(DataType::Utf8, true)
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        lists(args, call_targets)
    }
}

/// What `of` finds in each text.
fn lists(
    args: &ScalarFunctionArgs,
    of: impl Fn(&mut PythonParser, &str) -> Result<Vec<String>, ParseError>,
) -> Result<ArrayRef> {
    let code = args.args[0].to_array(args.number_rows)?;
    let mut names = ListBuilder::new(StringBuilder::new());
    for text in code.as_string::<i32>() {
        let called = text
            .and_then(|text| with_parser(|parser| of(parser, text)).and_then(|result| result).ok());
        for name in called.iter().flatten() {
            names.values().append_value(name);
        }
        names.append(called.is_some());
    }
    Ok(Arc::new(names.finish()))
}
