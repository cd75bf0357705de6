//! `python_has(code, pattern)` and `python_count(code, pattern)`: tests on the syntax of a text.
//!
//! The algorithm is in the crate `galeras_python`; here is only its Arrow form. A pattern is a
//! literal, which is checked when the query is planned.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanBuilder, Int64Builder};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::function_doc::{Documented, FunctionDoc, FunctionGroup};
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
    DataFusionError::Plan(format!("{error}{help}"))
}

/// Checks the pattern if there is one yet.
fn check(name: &str, pattern_text: Option<&ScalarValue>) -> Result<()> {
    match pattern_text {
        Some(ScalarValue::Utf8(Some(text))) => pattern(text).map(|_| ()),
        _ => Err(DataFusionError::Plan(format!(
            "the second argument of `{name}` must be a text in quotes: a node type or a query"
        ))),
    }
}

/// The number of matches in each text, up to a limit; null for a text that cannot be parsed.
fn counts(args: &ScalarFunctionArgs, limit: usize) -> Result<Vec<Option<i64>>> {
    let ColumnarValue::Scalar(ScalarValue::Utf8(Some(text))) = &args.args[1] else {
        return Err(DataFusionError::Plan("the pattern must be a text in quotes".into()));
    };
    let pattern = pattern(text)?;
    let code = args.args[0].to_array(args.number_rows)?;
    let count = |text: &str| {
        let counted = with_parser(|parser| pattern.count(parser, text, limit)).ok()?.ok()?;
        i64::try_from(counted).ok()
    };
    Ok(code.as_string::<i32>().iter().map(|text| text.and_then(count)).collect())
}

fn signature() -> Signature {
    Signature::exact(vec![DataType::Utf8; 2], Volatility::Immutable)
}

const ARGUMENTS: &[(&str, &str)] = &[("code", "text"), ("pattern", "text")];
const NULLS: &str = "null for a null and for code that cannot be parsed";

/// Returns true if a text matches a pattern.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonHas {
    signature: Signature,
}

impl Default for PythonHas {
    fn default() -> Self {
        Self { signature: signature() }
    }
}

impl Documented for PythonHas {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_has",
        aliases: &[],
        group: FunctionGroup::Row,
        version: 1,
        arguments: ARGUMENTS,
        variadic: false,
        returns: "boolean",
        summary: "whether the syntax tree of the code has a node of this type, such as `try_statement`, or a match of this tree-sitter query, such as `(call function: (identifier) @f (#eq? @f \"eval\"))`",
        nulls: NULLS,
        example: "python_has('def f(x):\n    try:\n        return g(x)\n    except E:\n        pass\n', 'try_statement')",
    };
}

impl ScalarUDFImpl for PythonHas {
    fn name(&self) -> &str {
        "python_has"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check(self.name(), args.scalar_arguments.get(1).copied().flatten())?;
        Ok(Arc::new(Field::new(self.name(), DataType::Boolean, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut found = BooleanBuilder::with_capacity(args.number_rows);
        for count in counts(&args, 1)? {
            found.append_option(count.map(|count| count > 0));
        }
        Ok(ColumnarValue::Array(Arc::new(found.finish()) as ArrayRef))
    }
}

/// How often a pattern is in a text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonCount {
    signature: Signature,
}

impl Default for PythonCount {
    fn default() -> Self {
        Self { signature: signature() }
    }
}

impl Documented for PythonCount {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_count",
        aliases: &[],
        group: FunctionGroup::Row,
        version: 1,
        arguments: ARGUMENTS,
        variadic: false,
        returns: "integer",
        summary: "how many nodes of this type, or matches of this tree-sitter query, the syntax tree of the code has",
        nulls: NULLS,
        example: "python_count('def f(x):\n    if x:\n        return 1\n    return 2\n', 'return_statement')",
    };
}

impl ScalarUDFImpl for PythonCount {
    fn name(&self) -> &str {
        "python_count"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check(self.name(), args.scalar_arguments.get(1).copied().flatten())?;
        Ok(Arc::new(Field::new(self.name(), DataType::Int64, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut found = Int64Builder::with_capacity(args.number_rows);
        for count in counts(&args, usize::MAX)? {
            found.append_option(count);
        }
        Ok(ColumnarValue::Array(Arc::new(found.finish()) as ArrayRef))
    }
}
