//! `python_recount(code)`: the features of a method counted by other means than
//! `python_features`, and facts about its body.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_python::{BodyFacts, Recount, Recounter, with_parser};

/// The numbers, in the order of the struct.
type Number = (&'static str, fn(&Recount, &BodyFacts) -> Option<i64>);

const NUMBERS: [Number; 12] = [
    ("n_ast_errors", |r, _| Some(r.n_ast_errors)),
    ("ast_levels", |r, _| Some(r.ast_levels)),
    ("n_ast_nodes", |r, _| Some(r.n_ast_nodes)),
    ("n_identifiers", |r, _| Some(r.n_identifiers)),
    ("complexity", |r, _| Some(r.complexity)),
    ("nloc", |r, _| Some(r.nloc)),
    ("token_counts", |r, _| Some(r.token_counts)),
    ("n_words", |r, _| Some(r.n_words)),
    ("vocab_size", |r, _| Some(r.vocab_size)),
    ("n_whitespaces", |r, _| Some(r.n_whitespaces)),
    ("n_returns", |r, _| Some(r.n_returns)),
    ("d_n_words", |_, facts| facts.docstring_words),
];

/// The facts, behind the numbers.
type FactOf = (&'static str, fn(&BodyFacts) -> bool);

const FACTS: [FactOf; 2] =
    [("one_line_body", |facts| facts.one_line), ("pass_body", |facts| facts.only_pass)];

fn fields() -> Fields {
    let numbers = NUMBERS.iter().map(|(name, _)| Field::new(*name, DataType::Int64, true));
    let facts = FACTS.iter().map(|(name, _)| Field::new(*name, DataType::Boolean, true));
    numbers.chain(facts).collect()
}

/// A struct of the numbers and facts; null for a text that is null or cannot be parsed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonRecount;

impl RowFunction for PythonRecount {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_recount",
        version: 3,
        arguments: &[("code", "text")],
        returns: "struct",
        summary: "features of `python_features` counted a second way, and facts about the body",
        nulls: "null for a null and for code that cannot be parsed",
        example: "python_recount('def area(width, height):\n    size = width * height\n    return size\n')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Struct(fields())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let code = args.args[0].to_array(args.number_rows)?;
        let code = code.as_string::<i32>();
        let mut recounter = Recounter::default();
        let mut measure = |text: &str| {
            with_parser(|parser| recounter.measure(parser, text)).and_then(|result| result).ok()
        };
        let rows: Vec<_> = code.iter().map(|text| text.and_then(&mut measure)).collect();
        // A field is read without a look at the struct's own validity.
        let numbers = NUMBERS.iter().map(|(_, number)| {
            let values =
                rows.iter().map(|row| row.as_ref().and_then(|(r, facts)| number(r, facts)));
            Arc::new(values.collect::<Int64Array>()) as ArrayRef
        });
        let facts = FACTS.iter().map(|(_, fact)| {
            let values = rows.iter().map(|row| row.as_ref().map(|(_, facts)| fact(facts)));
            Arc::new(values.collect::<BooleanArray>()) as ArrayRef
        });
        let columns: Vec<ArrayRef> = numbers.chain(facts).collect();
        let valid: Vec<bool> = rows.iter().map(Option::is_some).collect();
        let nulls = NullBuffer::from(valid);
        Ok(Arc::new(StructArray::try_new(fields(), columns, Some(nulls))?))
    }
}
