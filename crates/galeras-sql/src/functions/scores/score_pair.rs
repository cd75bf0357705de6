//! `score_pair(spec, reference, prediction)`: the chosen scores of two texts.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Builder, Int64Builder, ListBuilder, StringArray, StructArray,
};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::scorer::{COUNT, Scored, Scorer, Unscored, components, strict_components};
use super::spec::{Metric, ScoreSpec};
use crate::functions::function_doc::{Documented, FunctionDoc, FunctionGroup};

/// The field with the counts that add up.
pub const COUNTS: &str = "counts";

thread_local! {
    /// The scorer of this thread, and the literal that it was made of.
    static SCORER: RefCell<Option<(String, Scorer)>> = const { RefCell::new(None) };
}

/// Calls `f` with this thread's scorer for a spec.
pub(super) fn with_scorer<R>(spec: &ScoreSpec, f: impl FnOnce(&mut Scorer) -> R) -> R {
    let name = serde_json::to_string(spec).unwrap_or_default();
    SCORER.with_borrow_mut(|slot| {
        let kept = slot.take().filter(|(of, _)| *of == name);
        let kept = kept.unwrap_or_else(|| (name, Scorer::new(spec.clone())));
        f(&mut slot.insert(kept).1)
    })
}

/// Calls `score` for every row, those with equal references one after the other: a scorer reads
/// such a reference once. Returns what it gave, in the order of the rows.
pub(super) fn by_reference<R>(
    references: &StringArray,
    mut score: impl FnMut(usize) -> R,
) -> Vec<R> {
    let mut rows: Vec<usize> = (0..references.len()).collect();
    rows.sort_by_key(|row| references.value(*row));
    let mut scored: Vec<Option<R>> = rows.iter().map(|_| None).collect();
    for row in rows {
        scored[row] = Some(score(row));
    }
    scored.into_iter().flatten().collect()
}

/// The type of what the function returns: a field for every column of every metric, null where
/// it was not asked for, and [`COUNTS`], null if one of the texts is.
pub fn score_type() -> Fields {
    let columns = Metric::ALL.iter().flat_map(|metric| {
        metric.columns().iter().map(|name| Field::new(*name, data_type(*metric), true))
    });
    let counts = DataType::new_list(DataType::Int64, true);
    columns.chain([Field::new(COUNTS, counts, true)]).collect()
}

/// The type of a metric's columns.
fn data_type(metric: Metric) -> DataType {
    match metric {
        Metric::Levenshtein | Metric::ExactMatch | Metric::Parses => DataType::Int64,
        _ => DataType::Float64,
    }
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
        let (references, predictions) =
            (references.as_string::<i32>(), predictions.as_string::<i32>());
        let scored = with_scorer(&spec, |scorer| {
            by_reference(references, |row| {
                let pair = text(references, row).zip(text(predictions, row));
                pair.map(|(reference, prediction)| {
                    let scored = scorer.score(reference, prediction);
                    scored.map_err(|why| refused(why, "", reference, prediction))
                })
            })
        });
        let mut columns = Columns::default();
        for scored in scored {
            columns.push(scored.transpose()?);
        }
        Ok(ColumnarValue::Array(Arc::new(columns.finish()?)))
    }
}

/// The refusal of a pair, with the beginnings of its texts.
pub(super) fn refused(
    why: Unscored,
    given: &str,
    reference: &str,
    prediction: &str,
) -> DataFusionError {
    let beginning = |text: &str| text.chars().take(60).collect::<String>();
    DataFusionError::Execution(match why {
        Unscored::NotGiven => format!(
            "a reference does not begin with the given text: given {:?}…, reference {:?}…",
            beginning(given),
            beginning(reference)
        ),
        Unscored::TooLarge(metric) => format!(
            "`{}` would take hours for a reference of {} bytes and a prediction of {} that have so \
             little in common: reference {:?}…, prediction {:?}…; cut or leave out such rows, or \
             leave out this score",
            metric.columns()[0],
            reference.len(),
            prediction.len(),
            beginning(reference),
            beginning(prediction)
        ),
    })
}

/// The text of a row, unless it is null.
pub(super) fn text(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

/// The columns while they are made, numbers of each type in the order of [`score_type`].
#[derive(Default)]
pub(super) struct Columns {
    shares: [Float64Builder; 13],
    counts: [Int64Builder; 3],
    sums: Option<ListBuilder<Int64Builder>>,
}

impl Columns {
    /// Adds a row; `None` has no scores.
    pub(super) fn push(&mut self, scored: Option<(Scored, [i64; COUNT])>) {
        let (scores, sums) = scored.unzip();
        let s = scores.unwrap_or_default();
        let codebleu = s.codebleu.map_or([None; 5], |scores| components(&scores));
        let strict = s.codebleu_strict.map_or([None; 4], |scores| strict_components(&scores));
        let shares = [s.bleu].into_iter().chain(codebleu).chain(strict);
        let shares = shares.chain([s.similarity, s.chrf, s.rouge_l]);
        self.shares.iter_mut().zip(shares).for_each(|(to, share)| to.append_option(share));
        let counts = [s.levenshtein, s.exact_match, s.parses];
        self.counts.iter_mut().zip(counts).for_each(|(to, count)| to.append_option(count));
        let list = self.sums.get_or_insert_with(|| ListBuilder::new(Int64Builder::new()));
        list.values().append_slice(sums.as_ref().map_or(&[], |sums| sums.as_slice()));
        list.append(sums.is_some());
    }

    /// The rows.
    pub(super) fn finish(mut self) -> Result<StructArray> {
        let mut shares = self.shares.iter_mut();
        let mut counts = self.counts.iter_mut();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for field in &score_type() {
            let column: Option<ArrayRef> = match field.data_type() {
                DataType::Float64 => shares.next().map(|b| Arc::new(b.finish()) as ArrayRef),
                DataType::Int64 => counts.next().map(|b| Arc::new(b.finish()) as ArrayRef),
                _ => self.sums.as_mut().map(|b| Arc::new(b.finish()) as ArrayRef),
            };
            columns.push(match column {
                Some(column) => column,
                None => ScalarValue::try_from(field.data_type())?.to_array_of_size(0)?,
            });
        }
        Ok(StructArray::try_new(score_type(), columns, None)?)
    }
}
