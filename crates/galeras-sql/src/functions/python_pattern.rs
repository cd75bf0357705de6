//! `python_has(code, pattern)` and `python_count(code, pattern)`: tests on the syntax of a text.
//!
//! A pattern is a literal, which is checked when the query is planned.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_python::{PatternError, SyntaxPattern, node_kinds, with_parser};
use galeras_workflow::did_you_mean;

thread_local! {
    /// The pattern that this thread used last: the batches of a query share it.
    static PATTERN: RefCell<Option<(String, Rc<SyntaxPattern>)>> = const { RefCell::new(None) };
}

/// This thread's pattern of a text.
fn pattern(text: &str) -> Result<Rc<SyntaxPattern>> {
    PATTERN.with_borrow_mut(|kept| match kept {
        Some((of, pattern)) if of == text => Ok(Rc::clone(pattern)),
        _ => {
            let pattern = Rc::new(SyntaxPattern::new(text).map_err(|error| refusal(&error))?);
            *kept = Some((text.to_owned(), Rc::clone(&pattern)));
            Ok(pattern)
        }
    })
}

fn refusal(error: &PatternError) -> DataFusionError {
    let help = match error {
        PatternError::UnknownKind(kind) => match did_you_mean(kind, node_kinds()) {
            Some(known) => format!("; did you mean `{known}`?"),
            None => {
                "; node types are such as `try_statement`, `call`, `lambda`, `with_statement`; a \
                     query begins with a bracket"
                    .to_owned()
            }
        },
        _ => String::new(),
    };
    plan_datafusion_err!("{error}{help}")
}

fn check_pattern(name: &str, args: &ReturnFieldArgs) -> Result<()> {
    match args.scalar_arguments.get(1) {
        Some(Some(ScalarValue::Utf8(Some(text)))) => pattern(text).map(|_| ()),
        _ => plan_err!(
            "the second argument of `{name}` must be a text in quotes: a node type or a query"
        ),
    }
}

/// The number of matches in each text, up to a limit; null for a text that cannot be parsed.
fn counts(args: &ScalarFunctionArgs, limit: usize) -> Result<Vec<Option<i64>>> {
    let ColumnarValue::Scalar(ScalarValue::Utf8(Some(text))) = &args.args[1] else {
        return plan_err!("the pattern must be a text in quotes");
    };
    let pattern = pattern(text)?;
    let code = args.args[0].to_array(args.number_rows)?;
    let count = |text: &str| {
        let counted = with_parser(|parser| pattern.count(parser, text, limit)).ok()?.ok()?;
        i64::try_from(counted).ok()
    };
    Ok(code.as_string::<i32>().iter().map(|text| text.and_then(count)).collect())
}

const ARGUMENTS: &[(&str, &str)] = &[("code", "text"), ("pattern", "text")];
const NULLS: &str = "null for a null and for code that cannot be parsed";

/// Returns true if a text matches a pattern.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonHas;

impl RowFunction for PythonHas {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_has",
        arguments: ARGUMENTS,
        returns: "boolean",
        summary: "true if the syntax tree of the code has a node of this type, such as `try_statement`, or a match of this tree-sitter query, such as `(call function: (identifier) @f (#eq? @f \"eval\"))`",
        nulls: NULLS,
        example: "python_has('def f(x):\n    try:\n        return g(x)\n    except E:\n        pass\n', 'try_statement')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Boolean
    }

    fn check(args: &ReturnFieldArgs) -> Result<()> {
        check_pattern(Self::DOC.name, args)
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let counts = counts(args, 1)?.into_iter();
        Ok(Arc::new(counts.map(|count| count.map(|count| count > 0)).collect::<BooleanArray>()))
    }
}

/// How often a pattern is in a text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonCount;

impl RowFunction for PythonCount {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_count",
        arguments: ARGUMENTS,
        returns: "integer",
        summary: "the number of nodes of this type, or of matches of this tree-sitter query, in the syntax tree of the code",
        nulls: NULLS,
        example: "python_count('def f(x):\n    if x:\n        return 1\n    return 2\n', 'return_statement')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Int64
    }

    fn check(args: &ReturnFieldArgs) -> Result<()> {
        check_pattern(Self::DOC.name, args)
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(counts(args, usize::MAX)?)))
    }
}
