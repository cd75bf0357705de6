//! `python_taxonomy(code, published)`: how many tokens fall in each category of the taxonomy.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_python::{CATEGORIES, taxonomy, taxonomy_published};

/// A struct with a count for each category, null for a null text; with the lists as they were
/// published if the second argument is true.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonTaxonomy;

pub(super) fn fields() -> Fields {
    CATEGORIES.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect()
}

impl RowFunction for PythonTaxonomy {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_taxonomy",
        arguments: &[("code", "text"), ("published", "boolean")],
        returns: "struct",
        summary: "the number of tokens in each category of the taxonomy, by the published lists if `published` (a literal) is true",
        nulls: "null for a null",
        example: "python_taxonomy('def area(width, height):\n    size = width * height\n    return size\n', false)",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Struct(fields())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let ColumnarValue::Scalar(ScalarValue::Boolean(Some(published))) = args.args[1] else {
            return exec_err!("the argument `published` of python_taxonomy must be a literal");
        };
        let code = args.args[0].to_array(args.number_rows)?;
        let code = code.as_string::<i32>();
        let count = |text| if published { taxonomy_published(text) } else { taxonomy(text) };
        let rows: Vec<_> = code.iter().map(|text| text.map(count)).collect();
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let column = |category: usize| {
            let counts = rows.iter().map(|row| row.as_ref().map(|row| number(row[category])));
            Arc::new(counts.collect::<Int64Array>()) as ArrayRef
        };
        let columns = (0..CATEGORIES.len()).map(column).collect();
        let nulls = code.nulls().cloned();
        Ok(Arc::new(StructArray::try_new(fields(), columns, nulls)?))
    }
}
