//! `score_pair(spec, reference, prediction)`: the chosen scores of two texts.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::metric::Metric;
use super::pair_scores::{ScoredBatch, Texts};
use super::spec::ScoreSpec;
use crate::functions::function_doc::{Documented, FunctionDoc, FunctionGroup};

/// The field with the counts that add up.
pub const COUNTS: &str = "counts";

/// The type of the scores of a pair: a field for every column of every metric, null if the metric
/// was not asked for, and [`COUNTS`], null if one of the texts is.
pub fn score_type() -> Fields {
    let columns = Metric::all().flat_map(|metric| metric.columns);
    let columns = columns.map(|column| Field::new(column.name, column.data_type(), true));
    columns.chain([Field::new(COUNTS, DataType::new_list(DataType::Int64, true), true)]).collect()
}

/// The scores of a batch as structs of [`score_type`].
pub(super) fn score_structs(spec: &ScoreSpec, texts: Texts<'_>) -> Result<ColumnarValue> {
    let batch = ScoredBatch::of(spec, texts)?;
    let columns = Metric::all().flat_map(|metric| metric.columns).enumerate();
    let columns = columns.map(|(place, column)| batch.column(place, column.is_whole));
    let columns: Vec<ArrayRef> = columns.chain([batch.counts()]).collect();
    Ok(ColumnarValue::Array(Arc::new(StructArray::try_new(score_type(), columns, None)?)))
}

/// A struct of [`score_type`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScorePair {
    signature: Signature,
}

impl Default for ScorePair {
    fn default() -> Self {
        let types = vec![DataType::Utf8; 3];
        Self { signature: Signature::exact(types, Volatility::Immutable) }
    }
}

impl Documented for ScorePair {
    const DOC: FunctionDoc = FunctionDoc {
        name: "score_pair",
        aliases: &[],
        group: FunctionGroup::Score,
        version: 2,
        arguments: &[("spec", "text"), ("reference", "text"), ("prediction", "text")],
        variadic: false,
        returns: "struct",
        summary: "the scores that the spec (a literal in JSON) names, and counts that add up to those of a corpus",
        nulls: "all fields are null where a text is",
        example: "score_pair('{\"metrics\":[\"bleu\",\"codebleu\",\"codebleu_strict\",\"levenshtein\",\"similarity\",\"exact_match\",\"chrf\",\"rouge_l\",\"parses\"],\"mode\":\"correct\",\"bleu_tokenize\":\"13a\",\"bleu_smooth\":\"exp\",\"codebleu_weights\":[0.25,0.25,0.25,0.25]}', 'def f(a, b):\n    c = a\n    return c + b', 'def f(a, b):\n    return b + a')",
    };
}

impl ScalarUDFImpl for ScorePair {
    fn name(&self) -> &str {
        "score_pair"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(score_type()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let spec = ScoreSpec::of(&args.args[0])?;
        let references = args.args[1].to_array(args.number_rows)?;
        let predictions = args.args[2].to_array(args.number_rows)?;
        let (references, predictions) = (references.as_string(), predictions.as_string());
        score_structs(&spec, Texts { given: None, references, predictions })
    }
}
