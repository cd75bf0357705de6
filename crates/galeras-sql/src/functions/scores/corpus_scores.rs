//! `corpus_scores(spec, rows, sums)`: the scores of a corpus from the sums of its counts.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::ScalarFunctionArgs;

use super::metric::{Metric, count_of_counts, places};
use super::spec::ScoreSpec;
use crate::functions::function_doc::{FunctionDoc, RowFunction};
use crate::functions::list;

/// The fields of a score: its name, its value, the pairs that it is of.
pub const CORPUS_FIELDS: [&str; 3] = ["metric", "value", "rows"];

fn fields() -> Fields {
    let types = [DataType::Utf8, DataType::Float64, DataType::Int64];
    CORPUS_FIELDS.into_iter().zip(types).map(|(name, kind)| Field::new(name, kind, true)).collect()
}

/// A list of structs of [`CORPUS_FIELDS`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CorpusScores;

impl RowFunction for CorpusScores {
    const DOC: FunctionDoc = FunctionDoc {
        name: "corpus_scores",
        version: 3,
        arguments: &[("spec", "text"), ("rows", "integer"), ("sums", "list of integer")],
        returns: "list of struct",
        summary: "BLEU and CodeBLEU of a corpus, from the sums of the counts of `score_pair`",
        nulls: "a null sum counts as 0; the list is never null",
        example: "corpus_scores('{\"metrics\":[\"bleu\",\"codebleu\",\"codebleu_strict\",\"levenshtein\",\"similarity\",\"exact_match\",\"chrf\",\"rouge_l\",\"parses\"],\"mode\":\"correct\",\"bleu_tokenize\":\"13a\",\"bleu_smooth\":\"exp\",\"codebleu_weights\":[0.25,0.25,0.25,0.25]}', 1, get_field(score_pair('{\"metrics\":[\"bleu\",\"codebleu\",\"codebleu_strict\",\"levenshtein\",\"similarity\",\"exact_match\",\"chrf\",\"rouge_l\",\"parses\"],\"mode\":\"correct\",\"bleu_tokenize\":\"13a\",\"bleu_smooth\":\"exp\",\"codebleu_weights\":[0.25,0.25,0.25,0.25]}', 'def f(a, b):\n    c = a\n    return c + b', 'def f(a, b):\n    return b + a'), 'counts'))",
        ..FunctionDoc::SCORE
    };

    fn return_type() -> DataType {
        DataType::new_list(DataType::Struct(fields()), true)
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let spec = ScoreSpec::of(&args.args[0])?;
        let rows = args.args[1].to_array(args.number_rows)?;
        let sums = args.args[2].to_array(args.number_rows)?;
        let wrong = || {
            exec_datafusion_err!("corpus_scores takes a spec, a number of rows and a list of sums")
        };
        let rows = rows.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
        let sums = sums.as_list_opt::<i32>().ok_or_else(wrong)?;
        let (mut scores, mut lengths) = (Vec::new(), Vec::with_capacity(rows.len()));
        for at in 0..rows.len() {
            let sums = sums.value(at);
            let sums = sums.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
            let sums: Vec<i64> = sums.iter().map(Option::unwrap_or_default).collect();
            let before = scores.len();
            scores.extend(of_corpus(&spec, rows.value(at), &sums));
            lengths.push(scores.len() - before);
        }
        let names = scores.iter().map(|(name, _, _)| *name);
        let pairs = scores.iter().map(|(_, _, pairs)| *pairs);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(names)),
            Arc::new(scores.iter().map(|(_, value, _)| *value).collect::<Float64Array>()),
            Arc::new(Int64Array::from_iter_values(pairs)),
        ];
        list(lengths, fields(), columns)
    }
}

/// The scores of a corpus of `rows` pairs from the sums of their counts: name, value if there is one,
/// and the number of pairs.
pub(super) fn of_corpus(
    spec: &ScoreSpec,
    rows: i64,
    sums: &[i64],
) -> Vec<(&'static str, Option<f64>, i64)> {
    let mut sums: Vec<u64> = sums.iter().map(|sum| u64::try_from(*sum).unwrap_or(0)).collect();
    sums.resize(count_of_counts(), 0);
    let asked = Metric::all().filter(|metric| spec.metrics.contains(metric));
    let scores = asked.filter_map(|metric| {
        let corpus = metric.corpus.as_ref()?;
        let score = (corpus.score)(spec, rows, &sums[places(metric).1]);
        let named = metric.columns.iter().zip(score.values);
        Some(named.map(move |(column, value)| (column.name, value, score.pairs)))
    });
    scores.flatten().collect()
}
