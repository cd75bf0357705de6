//! `score_continuation(spec, given, reference, prediction)`: the chosen scores of the continuations
//! of a given text.

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::pair_scores::Texts;
use super::score_pair::{score_structs, score_type};
use super::spec::ScoreSpec;
use crate::functions::function_doc::{Documented, FunctionDoc, FunctionGroup};

/// A struct of [`score_type`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScoreContinuation {
    signature: Signature,
}

impl Default for ScoreContinuation {
    fn default() -> Self {
        let types = vec![DataType::Utf8; 4];
        Self { signature: Signature::exact(types, Volatility::Immutable) }
    }
}

impl Documented for ScoreContinuation {
    const DOC: FunctionDoc = FunctionDoc {
        name: "score_continuation",
        aliases: &[],
        group: FunctionGroup::Score,
        version: 2,
        arguments: &[
            ("spec", "text"),
            ("given", "text"),
            ("reference", "text"),
            ("prediction", "text"),
        ],
        variadic: false,
        returns: "struct",
        summary: "`score_pair` of what comes after the given text, in reference and prediction alike; an error if the reference does not begin with it",
        nulls: "all fields are null where a text is, and where nothing comes after the given text",
        example: "score_continuation('{\"metrics\":[\"bleu\",\"levenshtein\",\"similarity\",\"exact_match\",\"chrf\",\"parses\"],\"mode\":\"correct\",\"bleu_tokenize\":\"13a\",\"bleu_smooth\":\"exp\",\"codebleu_weights\":[0.25,0.25,0.25,0.25]}', 'def f(a, b):\n    return', 'def f(a, b):\n    return a + b', 'def f(a,b): return b + a')",
    };
}

impl ScalarUDFImpl for ScoreContinuation {
    fn name(&self) -> &str {
        "score_continuation"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(score_type()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let spec = ScoreSpec::of(&args.args[0])?;
        let texts = args.args[1..].iter().map(|text| text.to_array(args.number_rows));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let text = |at: usize| texts[at].as_string();
        let (references, predictions) = (text(1), text(2));
        score_structs(&spec, Texts { given: Some(text(0)), references, predictions })
    }
}
