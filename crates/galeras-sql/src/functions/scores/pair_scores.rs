//! The scores of pairs of texts, a batch of rows at a time, and their functions:
//! `score_pair(spec, reference, prediction)` for the chosen scores of two texts,
//! `score_continuation(spec, given, reference, prediction)` for those of what follows a given text, and
//! `levenshtein(a, b)`, `codebleu(reference, prediction)` and so on for single scores with the defaults
//! of the operator `score`.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, Int64Builder, ListBuilder, StringArray,
    StructArray,
};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};

use super::metric::{Metric, Pair, PairScorer, count_of_counts, places};
use super::spec::ScoreSpec;
use crate::functions::function_doc::{FunctionDoc, RowFunction};
use galeras_metrics::text::{Beginning, GivenCode, MAX_STEPS};
use galeras_operator::Entry;
use galeras_python::{is_space, parses};

/// The reason why a pair has no scores.
#[derive(Debug, PartialEq)]
pub(super) enum Unscored {
    /// The reference does not begin with the given text.
    NotGiven,
    /// The texts are so large and so different that this score would take hours.
    TooLarge(Metric),
}

/// Scores pairs with the metrics of a spec; one per thread.
pub(super) struct Scorer {
    spec: ScoreSpec,
    scorers: Vec<MetricScorer>,
}

struct MetricScorer {
    metric: Metric,
    /// The places of its columns and counts in a row.
    columns: Range<usize>,
    counts: Range<usize>,
    score: PairScorer,
}

impl Scorer {
    pub(super) fn new(spec: ScoreSpec) -> Self {
        let scorers = spec.metrics.iter().map(|metric| {
            let (columns, counts) = places(*metric);
            MetricScorer { metric: *metric, columns, counts, score: (metric.scorer)(&spec) }
        });
        Self { scorers: scorers.collect(), spec }
    }

    /// Scores two texts into a row: the values of the metrics, and their counts, which add up to
    /// those of a corpus.
    ///
    /// # Errors
    /// If the texts are too large for a score whose time grows with their product.
    pub(super) fn score(
        &mut self,
        (reference, prediction): (&str, &str),
        row: ScoredRow<'_>,
    ) -> Result<(), Unscored> {
        let (reference, prediction) = (self.stripped(reference), self.stripped(prediction));
        let pair = Pair { reference, prediction, program: prediction, steps: MAX_STEPS };
        self.score_pair(&pair, row)
    }

    /// Scores the continuations of the given text, in reference and prediction alike. Only `parses`
    /// is about the program that the prediction is or completes. Scores nothing if the reference has
    /// only white space after the given text.
    ///
    /// # Errors
    /// If the reference does not begin with the given text, and those of [`Scorer::score`].
    pub(super) fn score_continuation(
        &mut self,
        given: &str,
        (reference, prediction): (&str, &str),
        row: ScoredRow<'_>,
    ) -> Result<Option<AnswerBeginning>, Unscored> {
        let code = GivenCode::new(given);
        let wanted = code.continuation(reference);
        // The reference is the given text and more, but for its layout.
        if wanted.beginning == Beginning::Other || wanted.distance.is_some_and(|far| far > 0.0) {
            return Err(Unscored::NotGiven);
        }
        if wanted.rest.trim_matches(is_space).is_empty() {
            return Ok(None);
        }
        let added = code.continuation(prediction);
        let joined = format!("{given}{}", added.rest);
        let program = added.whole.unwrap_or(&joined).trim_matches(is_space);
        let begins = match added.beginning {
            Beginning::Verbatim => "verbatim",
            Beginning::Changed => "changed",
            Beginning::Other if parses(program) == Ok(true) => "continuation",
            Beginning::Other => "other",
        };
        let (reference, prediction) = code.compared(&wanted, &added);
        let (reference, prediction) = (self.stripped(reference), self.stripped(prediction));
        let pair = Pair { reference, prediction, program, steps: MAX_STEPS };
        self.score_pair(&pair, row)?;
        Ok(Some(AnswerBeginning { begins, distance: added.distance }))
    }

    fn stripped<'a>(&self, text: &'a str) -> &'a str {
        if self.spec.mode.strips() { text.trim_matches(is_space) } else { text }
    }

    fn score_pair(&mut self, pair: &Pair<'_>, row: ScoredRow<'_>) -> Result<(), Unscored> {
        for one in &mut self.scorers {
            let values = &mut row.values[one.columns.clone()];
            let counts = &mut row.counts[one.counts.clone()];
            (one.score)(pair, values, counts).map_err(|_| Unscored::TooLarge(one.metric))?;
        }
        Ok(())
    }
}

/// The beginning of a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AnswerBeginning {
    /// One of [`BEGINNINGS`].
    begins: &'static str,
    /// The edit distance from the given text, as a share of its tokens.
    distance: Option<f64>,
}

/// The scores of a row: a place for every column and count of every metric.
pub(super) struct ScoredRow<'a> {
    pub(super) values: &'a mut [Option<f64>],
    pub(super) counts: &'a mut [i64],
}

thread_local! {
    /// The scorer of this thread, and its spec.
    static SCORER: RefCell<Option<Scorer>> = const { RefCell::new(None) };
}

/// The scores of the rows of a batch.
pub(super) struct ScoredBatch {
    /// The values of every column of every metric, row by row.
    values: Vec<Option<f64>>,
    counts: Vec<i64>,
    /// The rows that have scores.
    scored: Vec<bool>,
    /// The beginnings of the predictions, where there is a given text.
    beginnings: Vec<Option<AnswerBeginning>>,
}

/// The texts of a batch.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    /// The text that reference and prediction continue, if there is one.
    pub(super) given: Option<&'a StringArray>,
    pub(super) references: &'a StringArray,
    pub(super) predictions: &'a StringArray,
}

impl ScoredBatch {
    /// Scores every row that has all its texts. Rows with the same reference follow each other, so
    /// that a scorer reads it once.
    pub(super) fn of(spec: &ScoreSpec, texts: Texts<'_>) -> Result<Self> {
        let rows = texts.references.len();
        let (width, depth) = (all_columns().end, count_of_counts());
        let mut batch = Self {
            values: vec![None; rows * width],
            counts: vec![0; rows * depth],
            scored: vec![false; rows],
            beginnings: vec![None; rows],
        };
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by_key(|row| texts.references.value(*row));
        SCORER.with_borrow_mut(|slot| {
            let kept = slot.take().filter(|scorer| scorer.spec == *spec);
            let scorer = slot.insert(kept.unwrap_or_else(|| Scorer::new(spec.clone())));
            for at in order {
                let given = texts.given.map(|given| text(given, at));
                let pair = text(texts.references, at).zip(text(texts.predictions, at));
                let (Some(pair), false) = (pair, given == Some(None)) else { continue };
                let given = given.flatten();
                let row = ScoredRow {
                    values: &mut batch.values[at * width..][..width],
                    counts: &mut batch.counts[at * depth..][..depth],
                };
                let scored = match given {
                    None => scorer.score(pair, row).map(|()| (true, None)),
                    Some(given) => scorer
                        .score_continuation(given, pair, row)
                        .map(|beginning| (beginning.is_some(), beginning)),
                };
                (batch.scored[at], batch.beginnings[at]) =
                    scored.map_err(|why| refused(&why, given, pair))?;
            }
            Ok(batch)
        })
    }

    /// A column by its place in a row.
    pub(super) fn column(&self, place: usize, is_whole: bool) -> ArrayRef {
        let values = self.values.iter().skip(place).step_by(all_columns().end).copied();
        match is_whole {
            true => Arc::new(Int64Array::from_iter(values.map(|value| value.map(|x| x as i64)))),
            false => Arc::new(Float64Array::from_iter(values)),
        }
    }

    /// The counts of every row as a list; null for rows without scores.
    pub(super) fn counts(&self) -> ArrayRef {
        let mut lists = ListBuilder::new(Int64Builder::new());
        for (counts, scored) in self.counts.chunks(count_of_counts()).zip(&self.scored) {
            if *scored {
                lists.values().append_slice(counts);
            }
            lists.append(*scored);
        }
        Arc::new(lists.finish())
    }
}

/// The text of a row, unless it is null.
fn text(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

/// The places of a row: the columns of every metric.
fn all_columns() -> Range<usize> {
    0..Metric::all().map(|metric| metric.columns.len()).sum()
}

/// The error of a pair without scores, with the beginnings of its texts.
fn refused(
    why: &Unscored,
    given: Option<&str>,
    (reference, prediction): (&str, &str),
) -> DataFusionError {
    let beginning = |text: &str| text.chars().take(60).collect::<String>();
    DataFusionError::Execution(match why {
        Unscored::NotGiven => format!(
            "a reference does not begin with the given text: given {:?}…, reference {:?}…",
            beginning(given.unwrap_or_default()),
            beginning(reference)
        ),
        Unscored::TooLarge(metric) => format!(
            "`{}` would take hours for a reference of {} bytes and a prediction of {} that have so \
             little in common: reference {:?}…, prediction {:?}…; cut or leave out such rows, or \
             leave out this score",
            metric.name(),
            reference.len(),
            prediction.len(),
            beginning(reference),
            beginning(prediction)
        ),
    })
}

/// The field with the counts that add up.
pub const COUNTS: &str = "counts";

/// The type of the scores of a pair: a field for every column of every metric, null if the metric
/// was not asked for, and [`COUNTS`], null if one of the texts is.
pub fn score_type() -> Fields {
    let columns = Metric::all().flat_map(|metric| metric.columns);
    let columns = columns.map(|column| Field::new(column.name, column.data_type(), true));
    columns.chain([Field::new(COUNTS, DataType::new_list(DataType::Int64, true), true)]).collect()
}

/// The field with the kind of a prediction's beginning.
pub const BEGINS: &str = "begins";
/// The field with its distance from the given text.
pub const BEGINS_DISTANCE: &str = "begins_distance";

/// The values of [`BEGINS`]: the given text as it is or changed; a text that makes a program with the
/// given one before it; another text.
pub const BEGINNINGS: [&str; 4] = ["verbatim", "changed", "continuation", "other"];

/// The type of the scores of a continuation: that of a pair, [`BEGINS`] and [`BEGINS_DISTANCE`].
fn continuation_type() -> Fields {
    let beginning = [
        Arc::new(Field::new(BEGINS, DataType::Utf8, true)),
        Arc::new(Field::new(BEGINS_DISTANCE, DataType::Float64, true)),
    ];
    score_type().iter().cloned().chain(beginning).collect()
}

/// The scores of a batch as structs of [`score_type`], or of [`continuation_type`] with a given text.
fn score_structs(spec: &ScoreSpec, texts: Texts<'_>) -> Result<ArrayRef> {
    let batch = ScoredBatch::of(spec, texts)?;
    let columns = Metric::all().flat_map(|metric| metric.columns).enumerate();
    let columns = columns.map(|(place, column)| batch.column(place, column.is_whole));
    let mut columns: Vec<ArrayRef> = columns.chain([batch.counts()]).collect();
    let mut fields = score_type();
    if texts.given.is_some() {
        let begins = batch.beginnings.iter().map(|found| found.map(|found| found.begins));
        let distances = batch.beginnings.iter().map(|found| found.and_then(|found| found.distance));
        columns.push(Arc::new(begins.collect::<StringArray>()));
        columns.push(Arc::new(distances.collect::<Float64Array>()));
        fields = continuation_type();
    }
    Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
}

/// A struct of [`score_type`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScorePair;

impl RowFunction for ScorePair {
    const DOC: FunctionDoc = FunctionDoc {
        name: "score_pair",
        version: 3,
        arguments: &[("spec", "text"), ("reference", "text"), ("prediction", "text")],
        returns: "struct",
        summary: "the scores that the spec (a literal in JSON) names, and counts that add up to those of a corpus",
        nulls: "all fields are null if a text is null",
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

/// A struct of [`score_type`], with [`BEGINS`] and [`BEGINS_DISTANCE`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScoreContinuation;

impl RowFunction for ScoreContinuation {
    const DOC: FunctionDoc = FunctionDoc {
        name: "score_continuation",
        version: 3,
        arguments: &[
            ("spec", "text"),
            ("given", "text"),
            ("reference", "text"),
            ("prediction", "text"),
        ],
        returns: "struct",
        summary: "`score_pair` of the text after the given one, in reference and prediction alike, and how the prediction `begins`; an error if the reference does not begin with the given text",
        nulls: "all fields are null if a text is null, or nothing comes after the given text",
        example: "score_continuation('{\"metrics\":[\"bleu\",\"levenshtein\",\"similarity\",\"exact_match\",\"chrf\",\"parses\"],\"mode\":\"correct\",\"bleu_tokenize\":\"13a\",\"bleu_smooth\":\"exp\",\"codebleu_weights\":[0.25,0.25,0.25,0.25]}', 'def f(a, b):\n    return', 'def f(a, b):\n    return a + b', 'def f(a,b): return b + a')",
        ..FunctionDoc::SCORE
    };

    fn return_type() -> DataType {
        DataType::Struct(continuation_type())
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

/// The first column of a metric. It is null where a text is null or has no such score.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MetricFunction {
    metric: Metric,
    name: &'static str,
    signature: Signature,
}

impl MetricFunction {
    /// The functions of the metrics that have one, with their descriptions.
    pub(super) fn all() -> impl Iterator<Item = (FunctionDoc, Self)> {
        Metric::all().filter_map(|metric| {
            let doc = metric.function?;
            Some((doc, Self { metric, name: doc.name, signature: doc.accepts() }))
        })
    }
}

impl ScalarUDFImpl for MetricFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.metric.columns[0].data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let references = args.args[0].to_array(args.number_rows)?;
        let predictions = args.args[1].to_array(args.number_rows)?;
        let (references, predictions) = (references.as_string(), predictions.as_string());
        let texts = Texts { given: None, references, predictions };
        let batch = ScoredBatch::of(&ScoreSpec::only(self.metric), texts)?;
        let is_whole = self.metric.columns[0].is_whole;
        Ok(ColumnarValue::Array(batch.column(places(self.metric).0.start, is_whole)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::functions::scores::corpus_scores::of_corpus;
    use crate::functions::scores::spec::{BleuSmooth, Tokenize};

    type Row = (Vec<Option<f64>>, Vec<i64>);

    fn all_metrics() -> ScoreSpec {
        ScoreSpec { metrics: Metric::all().collect(), ..ScoreSpec::only(named("bleu")) }
    }

    fn named(name: &str) -> Metric {
        Metric::all().find(|metric| metric.name() == name).unwrap()
    }

    fn row() -> Row {
        (vec![None; all_columns().end], vec![0; count_of_counts()])
    }

    /// The value of a metric's first column.
    fn value(row: &Row, metric: &str) -> Option<f64> {
        row.0[places(named(metric)).0.start]
    }

    fn continued(
        scorer: &mut Scorer,
        given: &str,
        pair: (&str, &str),
    ) -> Result<Option<Row>, Unscored> {
        let mut row = row();
        let places = ScoredRow { values: &mut row.0, counts: &mut row.1 };
        let scored = scorer.score_continuation(given, pair, places)?;
        Ok(scored.map(|_| row))
    }

    #[test]
    fn the_corpus_of_one_pair_has_its_scores() {
        let spec = ScoreSpec {
            bleu_tokenize: Tokenize::None,
            bleu_smooth: BleuSmooth::AddK,
            ..all_metrics()
        };
        let pair = ("def f(a, b):\n    c = a\n    return c + b", "def f(a, b):\n    return b + a");
        let (mut values, mut counts) = row();
        let places = ScoredRow { values: &mut values, counts: &mut counts };
        Scorer::new(spec.clone()).score(pair, places).unwrap();
        let corpus = of_corpus(&spec, 1, &counts);
        // BLEU has one column, CodeBLEU five and four.
        assert_eq!(corpus.iter().map(|score| score.1).collect::<Vec<_>>(), values[..10]);
        assert!(corpus.iter().all(|score| score.2 == 1));
    }

    #[test]
    fn an_echo_is_worth_nothing_and_the_reference_all() {
        let given = "def f(a, b):\n    c = a # kept\n    retu";
        let rest = "rn c + b\n";
        let whole = format!("{given}{rest}");
        let relaid = "def f(a,b):\n\tc = a\n\treturn c + b";
        let mut scorer = Scorer::new(all_metrics());
        let mut score =
            |text: &str| continued(&mut scorer, given, (&whole, text)).unwrap().unwrap();
        for echo in [given, "", "def f(a, b):\n    c = a\n    retu"] {
            let row = score(echo);
            for metric in
                ["bleu", "chrf", "rouge_l", "similarity", "exact_match", "codebleu_strict"]
            {
                assert_eq!(value(&row, metric), Some(0.0), "{metric}: {echo}");
            }
            assert_eq!(value(&row, "levenshtein"), Some(8.0));
        }
        for all in [whole.as_str(), rest, relaid] {
            let row = score(all);
            for metric in ["bleu", "chrf", "rouge_l", "similarity", "exact_match", "parses"] {
                let value = value(&row, metric);
                assert!(value.is_some_and(|x| x > 1.0 - 1e-12), "{metric}: {value:?}");
            }
            // CodeBLEU gives less to a text of so few tokens that equals its reference.
            let codebleu = value(&row, "codebleu_strict");
            assert!(codebleu.is_some_and(|x| x > 0.95), "{codebleu:?}");
            assert_eq!(value(&row, "levenshtein"), Some(0.0));
        }
        let other = continued(&mut scorer, given, ("def g(): pass", ""));
        assert_eq!(other, Err(Unscored::NotGiven));
        assert_eq!(continued(&mut scorer, given, (&format!("{given} \n"), "x")), Ok(None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// All scores of an answer are the same if it repeats the given text and if it continues it;
        /// an echo gets no points, the reference all of them.
        #[test]
        fn given_and_continuation_score_as_the_continuation(
            given in "def f\\(a\\):\n[ab =#'\n]{0,16}|[a #'\n\"\\\\]{0,12}|\\PC{0,12}",
            rest in "[ab(=)#' \n]{0,16}|    return [a-c+]{1,9}\n|\\PC{0,16}",
            text in "[ab(=)#' \n]{0,16}|    return [a-c+]{1,9}\n|\\PC{0,16}",
        ) {
            let whole = format!("{given}{rest}");
            let mut scorer = Scorer::new(all_metrics());
            let mut score = |text: &str| continued(&mut scorer, &given, (&whole, text));
            let repeated = score(&format!("{given}{text}"));
            // As text: CodeBLEU may be NaN.
            prop_assert_eq!(format!("{repeated:?}"), format!("{:?}", score(&text)));
            let wanted = GivenCode::new(&given).continuation(&whole).rest.trim_matches(is_space);
            let echo = score(&given);
            prop_assert_eq!(matches!(echo, Ok(None)), wanted.is_empty());
            if let (Ok(Some(echo)), Ok(Some(best))) = (echo, score(&whole)) {
                let all = wanted.chars().count() as f64;
                prop_assert_eq!(value(&echo, "levenshtein"), Some(all));
                prop_assert_eq!(value(&best, "levenshtein"), Some(0.0));
                for metric in ["exact_match", "similarity", "bleu", "chrf"] {
                    prop_assert_eq!(value(&echo, metric), Some(0.0), "{}", metric);
                    let best = value(&best, metric);
                    prop_assert!(best.is_some_and(|x| x > 1.0 - 1e-12), "{}: {:?}", metric, best);
                }
            }
        }
    }

    #[test]
    fn a_score_that_would_take_hours_is_an_error() {
        let (reference, prediction) = ("a b\n".repeat(400), "c d\n".repeat(300));
        for metric in Metric::all() {
            let mut scorer = Scorer::new(ScoreSpec::only(metric));
            let mut score = |steps: u64| {
                let mut row = row();
                let places = ScoredRow { values: &mut row.0, counts: &mut row.1 };
                let (reference, prediction) = (reference.trim(), prediction.trim());
                let pair = Pair { reference, prediction, program: prediction, steps };
                scorer.score_pair(&pair, places)
            };
            let slow = ["levenshtein", "similarity", "rouge_l"].contains(&metric.name());
            let expected = if slow { Err(Unscored::TooLarge(metric)) } else { Ok(()) };
            assert_eq!(score(100), expected, "{}", metric.name());
            assert_eq!(score(MAX_STEPS), Ok(()), "{}", metric.name());
        }
    }
}
