//! `bpe_tokens(text, tokenizer)` and `bpe_count(text, tokenizer)`: the tokens of a text by a tokenizer,
//! and their number.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::bpe::{Bpe, BpeError};
use super::function_doc::{FunctionDoc, RowFunction};

/// What both functions have in common.
const DOC: FunctionDoc = FunctionDoc {
    arguments: &[("text", "text"), ("tokenizer", "text")],
    nulls: "null if an argument is null",
    ..FunctionDoc::ROW
};

/// A list of the tokens as the tokenizer writes them; null where an argument is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BpeTokens;

impl RowFunction for BpeTokens {
    const DOC: FunctionDoc = FunctionDoc {
        name: "bpe_tokens",
        returns: "list of text",
        summary: "the tokens of a text; `tokenizer` is the content of a `tokenizer.json`, such as `(SELECT model FROM bpe)` of a step `tokenizer`; a byte-level tokenizer writes a space as `Ġ`",
        example: "bpe_tokens('abba', '{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}')",
        ..DOC
    };

    fn return_type() -> DataType {
        DataType::new_list(DataType::Utf8, true)
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for_each_row(args, |row| {
            let tokens = row.map(|(bpe, text)| bpe.tokens(text)).transpose()?;
            for token in tokens.iter().flatten() {
                lists.values().append_value(token);
            }
            lists.append(tokens.is_some());
            Ok(())
        })?;
        Ok(Arc::new(lists.finish()))
    }
}

/// The number of tokens; null where an argument is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BpeCount;

impl RowFunction for BpeCount {
    const DOC: FunctionDoc = FunctionDoc {
        name: "bpe_count",
        returns: "integer",
        summary: "the number of `bpe_tokens`",
        example: "bpe_count('abba', '{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}')",
        ..DOC
    };

    fn return_type() -> DataType {
        DataType::Int64
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let (mut counts, mut ids) = (Vec::with_capacity(args.number_rows), Vec::new());
        for_each_row(args, |row| {
            counts.push(match row {
                None => None,
                Some((bpe, text)) => {
                    bpe.encode(text, false, &mut ids)?;
                    Some(i64::try_from(ids.len()).unwrap_or(i64::MAX))
                }
            });
            Ok(())
        })?;
        Ok(Arc::new(Int64Array::from(counts)))
    }
}

thread_local! {
    /// The last tokenizer of this thread, and the digest of its text.
    static LAST: RefCell<Option<(blake3::Hash, Arc<Bpe>)>> = const { RefCell::new(None) };
}

fn tokenizer(json: &str) -> Result<Arc<Bpe>, BpeError> {
    let digest = blake3::hash(json.as_bytes());
    LAST.with_borrow_mut(|last| {
        if let Some((_, bpe)) = last.as_ref().filter(|(known, _)| *known == digest) {
            return Ok(Arc::clone(bpe));
        }
        let bpe = Arc::new(Bpe::from_json(json)?);
        *last = Some((digest, Arc::clone(&bpe)));
        Ok(bpe)
    })
}

/// Calls `take` with the tokenizer and the text of every row, and with `None` where one of them is
/// null. A tokenizer that all rows share, as that of a subquery, is looked up once.
fn for_each_row(
    args: &ScalarFunctionArgs,
    mut take: impl FnMut(Option<(&Bpe, &str)>) -> Result<(), BpeError>,
) -> Result<()> {
    let wrong = |error: BpeError| exec_datafusion_err!("the tokenizer: {error}");
    let texts = args.args[0].to_array(args.number_rows)?;
    let texts: &StringArray = texts.as_string();
    match &args.args[1] {
        ColumnarValue::Scalar(ScalarValue::Utf8(json)) => {
            let bpe = json.as_deref().map(tokenizer).transpose().map_err(wrong)?;
            for text in texts {
                take(bpe.as_deref().zip(text)).map_err(wrong)?;
            }
        }
        models => {
            let models = models.to_array(args.number_rows)?;
            let models: &StringArray = models.as_string();
            for (text, json) in texts.iter().zip(models) {
                let bpe = json.map(tokenizer).transpose().map_err(wrong)?;
                take(bpe.as_deref().zip(text)).map_err(wrong)?;
            }
        }
    }
    Ok(())
}
