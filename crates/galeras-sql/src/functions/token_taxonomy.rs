//! `token_taxonomy(tokens, published)`: how many tokens of a tokenizer are in each category of the
//! taxonomy.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StructArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use super::python_taxonomy::fields;
use galeras_python::{CATEGORIES, taxonomy_of_tokens};

/// As [`PythonTaxonomy`](super::PythonTaxonomy), of the list that `bpe_tokens` returns.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TokenTaxonomy;

impl RowFunction for TokenTaxonomy {
    const DOC: FunctionDoc = FunctionDoc {
        name: "token_taxonomy",
        arguments: &[("tokens", "list of text"), ("published", "boolean")],
        returns: "struct",
        summary: "the number of tokens of a tokenizer (`bpe_tokens`) in each category of the taxonomy, by the published lists if `published` (a literal) is true",
        nulls: "null for a null",
        example: "token_taxonomy(make_array('def', 'Ġf', '(', '):', 'Ġreturn', 'Ġ1'), false)",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Struct(fields())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let ColumnarValue::Scalar(ScalarValue::Boolean(Some(published))) = args.args[1] else {
            return exec_err!("the argument `published` of token_taxonomy must be a literal");
        };
        let lists = args.args[0].to_array(args.number_rows)?;
        let lists = cast(&lists, &DataType::new_list(DataType::Utf8, true))?;
        let lists = lists.as_list::<i32>();
        let rows: Vec<Option<[u64; 10]>> = lists
            .iter()
            .map(|list| {
                let list = list?;
                Some(taxonomy_of_tokens(list.as_string::<i32>().iter().flatten(), published))
            })
            .collect();
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let column = |category: usize| {
            let counts = rows.iter().map(|row| row.as_ref().map(|row| number(row[category])));
            Arc::new(counts.collect::<Int64Array>()) as ArrayRef
        };
        let columns = (0..CATEGORIES.len()).map(column).collect();
        Ok(Arc::new(StructArray::try_new(fields(), columns, lists.nulls().cloned())?))
    }
}
