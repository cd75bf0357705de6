//! `score_pair(spec, reference, prediction)`: the chosen scores of two texts, and
//! `score_continuation(spec, given, reference, prediction)`: those of what follows a given text.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

use super::metric::Metric;
use super::pair_scores::{ScoredBatch, Texts};
use super::spec::ScoreSpec;
use crate::functions::function_doc::{FunctionDoc, RowFunction};

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
fn score_structs(spec: &ScoreSpec, texts: Texts<'_>) -> Result<ArrayRef> {
    let batch = ScoredBatch::of(spec, texts)?;
    let columns = Metric::all().flat_map(|metric| metric.columns).enumerate();
    let columns = columns.map(|(place, column)| batch.column(place, column.is_whole));
    let columns: Vec<ArrayRef> = columns.chain([batch.counts()]).collect();
    Ok(Arc::new(StructArray::try_new(score_type(), columns, None)?))
}

/// A struct of [`score_type`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScorePair;

impl RowFunction for ScorePair {
    const DOC: FunctionDoc = FunctionDoc {
        name: "score_pair",
        version: 2,
        arguments: &[("spec", "text"), ("reference", "text"), ("prediction", "text")],
        returns: "struct",
        summary: "the scores that the spec (a literal in JSON) names, and counts that add up to those of a corpus",
        nulls: "all fields are null where a text is",
        example: "score_pair('{\"metrics\":[\"bleu\",\"codebleu\",\"codebleu_strict\",\"levenshtein\",\"similarity\",\"exact_match\",\"chrf\",\"rouge_l\",\"parses\"],\"mode\":\"correct\",\"bleu_tokenize\":\"13a\",\"bleu_smooth\":\"exp\",\"codebleu_weights\":[0.25,0.25,0.25,0.25]}', 'def f(a, b):\n    c = a\n    return c + b', 'def f(a, b):\n    return b + a')",
        ..FunctionDoc::SCORE
    };

    fn return_type() -> DataType {
        DataType::Struct(score_type())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let spec = ScoreSpec::of(&args.args[0])?;
        let references = args.args[1].to_array(args.number_rows)?;
        let predictions = args.args[2].to_array(args.number_rows)?;
        let (references, predictions) = (references.as_string(), predictions.as_string());
        score_structs(&spec, Texts { given: None, references, predictions })
    }
}

/// A struct of [`score_type`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScoreContinuation;

impl RowFunction for ScoreContinuation {
    const DOC: FunctionDoc = FunctionDoc {
        name: "score_continuation",
        version: 2,
        arguments: &[
            ("spec", "text"),
            ("given", "text"),
            ("reference", "text"),
            ("prediction", "text"),
        ],
        returns: "struct",
        summary: "`score_pair` of what comes after the given text, in reference and prediction alike; an error if the reference does not begin with it",
        nulls: "all fields are null where a text is, and where nothing comes after the given text",
        example: "score_continuation('{\"metrics\":[\"bleu\",\"levenshtein\",\"similarity\",\"exact_match\",\"chrf\",\"parses\"],\"mode\":\"correct\",\"bleu_tokenize\":\"13a\",\"bleu_smooth\":\"exp\",\"codebleu_weights\":[0.25,0.25,0.25,0.25]}', 'def f(a, b):\n    return', 'def f(a, b):\n    return a + b', 'def f(a,b): return b + a')",
        ..FunctionDoc::SCORE
    };

    fn return_type() -> DataType {
        DataType::Struct(score_type())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let spec = ScoreSpec::of(&args.args[0])?;
        let texts = args.args[1..].iter().map(|text| text.to_array(args.number_rows));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let text = |at: usize| texts[at].as_string();
        let (references, predictions) = (text(1), text(2));
        score_structs(&spec, Texts { given: Some(text(0)), references, predictions })
    }
}
