//! Finds texts that contain a text in any case: it searches the values of a column as the one text
//! that they are in memory, which is several times as fast as searching each.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ScalarFunctionArgs, lit};

use crate::functions::{FunctionDoc, RowFunction, call};

/// Returns true for each text that contains this text of ASCII characters. Upper and lower case of
/// ASCII letters are the same.
pub fn contains_ascii(column: Expr, text: &str) -> Expr {
    call::<ContainsAscii>(vec![column, lit(text.to_ascii_lowercase())])
}

/// `contains_ascii(text, lower_case)`, which no query can call.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ContainsAscii;

impl RowFunction for ContainsAscii {
    const DOC: FunctionDoc = FunctionDoc {
        name: "contains_ascii",
        arguments: &[("text", "text"), ("lower_case", "text")],
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Boolean
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let texts = args.args[0].to_array(args.number_rows)?;
        let wanted = args.args[1].to_array(1)?;
        let found = contains(texts.as_string::<i32>(), wanted.as_string::<i32>().value(0));
        Ok(Arc::new(found))
    }
}

/// Which of the texts contain one that is of ASCII characters in lower case.
fn contains(texts: &StringArray, wanted: &str) -> BooleanArray {
    let offsets = texts.value_offsets();
    let (start, end) = (offsets[0] as usize, offsets[texts.len()] as usize);
    let mut found = BooleanBufferBuilder::new(texts.len());
    found.append_n(texts.len(), false);
    // Bytes of other characters than ASCII stay as they are.
    let all = texts.value_data()[start..end].to_ascii_lowercase();
    let all = std::str::from_utf8(&all).unwrap_or_default();
    let mut from = 0;
    // (An empty text, which is in all, would be found in one place again and again.)
    if wanted.is_empty() {
        return BooleanArray::new(BooleanBuffer::new_set(texts.len()), texts.nulls().cloned());
    }
    while let Some(at) = all.get(from..).and_then(|rest| rest.find(wanted)) {
        let at = from + at;
        let row = offsets.partition_point(|offset| *offset as usize - start <= at) - 1;
        let next = offsets[row + 1] as usize - start;
        // A match across two texts does not count.
        from = match at + wanted.len() <= next {
            true => {
                found.set_bit(row, true);
                next
            }
            false => at + 1,
        };
    }
    BooleanArray::new(found.finish(), texts.nulls().cloned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_text_is_searched_by_itself(
            texts in prop::collection::vec(prop::option::of("[abAB\u{e9}\u{df}_%]{0,6}"), 0..40),
            wanted in "[abAB%_]{1,3}",
            skip in 0_usize..5,
        ) {
            let skip = skip.min(texts.len());
            let array = StringArray::from(texts.clone()).slice(skip, texts.len() - skip);
            let lower = wanted.to_ascii_lowercase();
            let found = contains(&array, &lower);
            for (row, text) in texts[skip..].iter().enumerate() {
                let expected = text.as_ref().map(|text| text.to_ascii_lowercase().contains(&lower));
                let value = found.is_valid(row).then(|| found.value(row));
                prop_assert_eq!(value, expected, "row {}", row);
            }
        }
    }
}
