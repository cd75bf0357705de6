//! The metrics of pairs of texts. To add one, write its file in this folder and add its line to
//! [`METRICS`]: the operator `score`, its columns and JSON Schema, the function for `sql` and the
//! manual follow from that.

use std::ops::Range;

use arrow::datatypes::DataType;

use super::bleu::BLEU;
use super::chrf::CHRF;
use super::codebleu::{CODEBLEU, CODEBLEU_STRICT};
use super::edit_distance::{LEVENSHTEIN, SIMILARITY};
use super::exact_match::EXACT_MATCH;
use super::parses::PARSES;
use super::rouge_l::ROUGE_L;
use super::spec::ScoreSpec;
use crate::functions::function_doc::FunctionDoc;
use galeras_operator::{Choice, Entry};

/// All metrics, in the order of their columns.
const METRICS: &[&PairMetric] = &[
    &BLEU,
    &CODEBLEU,
    &CODEBLEU_STRICT,
    &LEVENSHTEIN,
    &SIMILARITY,
    &EXACT_MATCH,
    &CHRF,
    &ROUGE_L,
    &PARSES,
];

/// A metric of a prediction against its reference.
pub struct PairMetric {
    /// Its columns. The first one has the name of the metric.
    pub columns: &'static [ScoreColumn],
    /// Its description in the JSON Schema, as one sentence.
    pub about: &'static str,
    /// The SQL function that returns its first column, if it has one.
    pub function: Option<FunctionDoc>,
    /// Creates a scorer for one thread.
    pub scorer: fn(&ScoreSpec) -> PairScorer,
    /// The score of a corpus, if the metric is defined for one.
    pub corpus: Option<CorpusMetric>,
}

/// The score of a corpus from counts of its pairs that add up.
pub struct CorpusMetric {
    /// The number of counts of a pair.
    pub counts: usize,
    /// Computes the score of a number of pairs from the sums of their counts.
    pub score: fn(&ScoreSpec, i64, &[u64]) -> CorpusScore,
}

/// A column of a metric.
pub struct ScoreColumn {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Its unit.
    pub unit: Option<&'static str>,
    /// Its values are whole numbers.
    pub is_whole: bool,
}

impl ScoreColumn {
    /// A column of fractions without a unit.
    pub(super) const fn share(name: &'static str, about: &'static str) -> Self {
        Self { name, about, unit: None, is_whole: false }
    }

    /// A column of whole numbers without a unit.
    pub(super) const fn whole(name: &'static str, about: &'static str) -> Self {
        Self { name, about, unit: None, is_whole: true }
    }

    /// The type of its values.
    pub fn data_type(&self) -> DataType {
        if self.is_whole { DataType::Int64 } else { DataType::Float64 }
    }
}

/// Scores pairs with a metric, and keeps its memory between pairs: writes the values of the columns,
/// which are null before, and the counts, which are 0. It fails if a pair needs more than
/// [`Pair::steps`].
pub type PairScorer =
    Box<dyn FnMut(&Pair<'_>, &mut [Option<f64>], &mut [i64]) -> Result<(), TooLarge>>;

/// A scorer of a metric with one column and no counts.
pub(super) fn one_value(
    mut score: impl FnMut(&Pair<'_>) -> Result<Option<f64>, TooLarge> + 'static,
) -> PairScorer {
    Box::new(move |pair, values, _| {
        values[0] = score(pair)?;
        Ok(())
    })
}

/// A pair of texts.
pub struct Pair<'a> {
    /// The text to come near to.
    pub reference: &'a str,
    /// The text that is scored.
    pub prediction: &'a str,
    /// The program that the prediction is, or completes.
    pub program: &'a str,
    /// A limit on the work of metrics whose time grows with the product of the texts.
    pub steps: u64,
}

/// The texts are so large and so different that scoring them would take hours.
pub struct TooLarge;

/// The score of a corpus.
pub struct CorpusScore {
    /// The values of the columns, where they are defined.
    pub values: Vec<Option<f64>>,
    /// The number of pairs that have the score.
    pub pairs: i64,
}

/// One of the registered metrics.
pub type Metric = Choice<PairMetric>;

impl Entry for PairMetric {
    const ALL: &'static [&'static Self] = METRICS;
    const ABOUT: &'static str = "A score.";

    fn name(&self) -> &'static str {
        self.columns[0].name
    }

    fn doc(&self) -> &'static str {
        self.about
    }
}

/// The places of a metric's columns in a row of scores, and of its counts.
pub(super) fn places(metric: Metric) -> (Range<usize>, Range<usize>) {
    let before = || METRICS.iter().take_while(|one| one.name() != metric.name());
    let column = before().map(|one| one.columns.len()).sum();
    let count = before().map(|one| counts(one)).sum();
    (column..column + metric.columns.len(), count..count + counts(&metric))
}

fn counts(metric: &PairMetric) -> usize {
    metric.corpus.as_ref().map_or(0, |corpus| corpus.counts)
}

/// The number of counts of a pair, over all metrics.
pub fn count_of_counts() -> usize {
    METRICS.iter().map(|metric| counts(metric)).sum()
}

/// The SQL function `name(reference, prediction)`, in its first version.
pub(super) const fn pair_function(
    name: &'static str,
    returns: &'static str,
    summary: &'static str,
    example: &'static str,
) -> FunctionDoc {
    FunctionDoc {
        name,
        arguments: &[("reference", "text"), ("prediction", "text")],
        returns,
        summary,
        nulls: "null if a text is null",
        example,
        ..FunctionDoc::SCORE
    }
}

/// A count as an integer of a column.
pub(super) fn as_count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_columns_are_unique() {
        let columns: Vec<&str> =
            METRICS.iter().flat_map(|metric| metric.columns).map(|c| c.name).collect();
        assert_eq!(columns.iter().collect::<BTreeSet<_>>().len(), columns.len());
    }
}
