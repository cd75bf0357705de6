//! `levenshtein(a, b)`, `codebleu(reference, prediction)` and so on: single scores, for `sql`.
//!
//! They are those of the operator `score` with its defaults.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Builder, Int64Builder};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::score_pair::{refused, with_scorer};
use super::scorer::components;
use super::spec::{Metric, ScoreSpec};
use crate::functions::function_doc::{FunctionDoc, FunctionGroup};

/// A number, null where a text is null or has no such score.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OneScore {
    metric: Metric,
    signature: Signature,
}

impl OneScore {
    /// A function for each score.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Metric::ALL.into_iter().filter(|metric| *metric != Metric::Parses).map(|metric| Self {
            metric,
            signature: Signature::exact(vec![DataType::Utf8; 2], Volatility::Immutable),
        })
    }

    /// The description of this score.
    pub(super) fn doc(&self) -> FunctionDoc {
        let (returns, summary, example) = match self.metric {
            Metric::Bleu => (
                "float",
                "BLEU of the sentence, as sacrebleu has it",
                "bleu('return a + b', 'return b + a')",
            ),
            Metric::Codebleu | Metric::Parses => (
                "float",
                "CodeBLEU of two Python texts (Ren et al. 2020), as the package codebleu has it",
                "codebleu('def f(a, b):\n    c = a\n    return c + b', 'def f(a, b):\n    return b + a')",
            ),
            Metric::CodebleuStrict => (
                "float",
                "CodeBLEU with the faults of the published programs mended",
                "codebleu_strict('def f(a, b):\n    c = a\n    return c + b', 'def f(a, b):\n    return b + a')",
            ),
            Metric::Levenshtein => (
                "integer",
                "the edit distance in characters",
                "levenshtein('return a + b', 'return b + a')",
            ),
            Metric::Similarity => (
                "float",
                "1 - distance / characters of the longer text",
                "levenshtein_similarity('return a + b', 'return b + a')",
            ),
            Metric::ExactMatch => (
                "integer",
                "1 if the texts are equal but for white space around them, else 0",
                "exact_match('return a + b', 'return b + a')",
            ),
            Metric::Chrf => (
                "float",
                "chrF2 of the sentence (Popović 2015)",
                "chrf('return a + b', 'return b + a')",
            ),
            Metric::RougeL => (
                "float",
                "ROUGE-L, the F-measure of the longest common subsequence of words (Lin 2004)",
                "rouge_l('return a + b', 'return b + a')",
            ),
        };
        FunctionDoc {
            name: self.sql_name(),
            aliases: &[],
            group: FunctionGroup::Score,
            version: if self.metric == Metric::Codebleu { 2 } else { 1 },
            arguments: &[("reference", "text"), ("prediction", "text")],
            variadic: false,
            returns,
            summary,
            nulls: match self.metric {
                Metric::Codebleu | Metric::CodebleuStrict => {
                    "null where a text is null or cannot be parsed"
                }
                _ => "null where a text is",
            },
            example,
        }
    }

    fn sql_name(&self) -> &'static str {
        match self.metric {
            // A name that says more where no operator stands before it.
            Metric::Similarity => "levenshtein_similarity",
            metric => metric.columns()[0],
        }
    }

    fn is_count(&self) -> bool {
        matches!(self.metric, Metric::Levenshtein | Metric::ExactMatch)
    }
}

impl ScalarUDFImpl for OneScore {
    fn name(&self) -> &str {
        self.sql_name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.is_count() { DataType::Int64 } else { DataType::Float64 })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let references = args.args[0].to_array(args.number_rows)?;
        let predictions = args.args[1].to_array(args.number_rows)?;
        let pairs = references.as_string::<i32>().iter().zip(predictions.as_string::<i32>());
        let mut counts = Int64Builder::new();
        let mut shares = Float64Builder::new();
        with_scorer(&ScoreSpec::only(self.metric), |scorer| -> Result<()> {
            for (reference, prediction) in pairs {
                let scored = reference
                    .zip(prediction)
                    .map(|(a, b)| scorer.score(a, b).map_err(|why| refused(why, "", a, b)));
                let s = scored.transpose()?.map(|(scored, _)| scored).unwrap_or_default();
                match self.metric {
                    Metric::Levenshtein => counts.append_option(s.levenshtein),
                    Metric::ExactMatch => counts.append_option(s.exact_match),
                    Metric::Bleu => shares.append_option(s.bleu),
                    Metric::Chrf => shares.append_option(s.chrf),
                    Metric::RougeL => shares.append_option(s.rouge_l),
                    Metric::Similarity => shares.append_option(s.similarity),
                    Metric::Codebleu | Metric::Parses => {
                        shares.append_option(s.codebleu.and_then(|scores| components(&scores)[0]));
                    }
                    Metric::CodebleuStrict => {
                        let strict = s.codebleu_strict;
                        shares.append_option(strict.and_then(|scores| components(&scores)[0]));
                    }
                }
            }
            Ok(())
        })?;
        let column: ArrayRef = match self.is_count() {
            true => Arc::new(counts.finish()),
            false => Arc::new(shares.finish()),
        };
        Ok(ColumnarValue::Array(column))
    }
}
