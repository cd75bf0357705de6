//! The metrics of pairs of texts. To add one, write its file in this folder and add its line to
//! [`METRICS`]: the operator `score`, its columns and JSON Schema, the function for `sql` and the
//! manual follow from that.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use arrow::datatypes::DataType;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bleu::BLEU;
use super::chrf::CHRF;
use super::codebleu::{CODEBLEU, CODEBLEU_STRICT};
use super::edit_distance::{LEVENSHTEIN, SIMILARITY};
use super::exact_match::EXACT_MATCH;
use super::parses::PARSES;
use super::rouge_l::ROUGE_L;
use super::spec::ScoreSpec;
use crate::functions::function_doc::{FunctionDoc, FunctionGroup};

/// All metrics, in the order of their columns.
static METRICS: [PairMetric; 9] =
    [BLEU, CODEBLEU, CODEBLEU_STRICT, LEVENSHTEIN, SIMILARITY, EXACT_MATCH, CHRF, ROUGE_L, PARSES];

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

/// One of the registered metrics, written as the name of its first column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric(usize);

impl Metric {
    /// All metrics, in the order of their columns.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..METRICS.len()).map(Self)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.columns[0].name
    }

    /// The places of its columns among those of all metrics.
    pub(super) fn places(self) -> Range<usize> {
        range(self.0, |metric| metric.columns.len())
    }

    /// The places of its counts among those of all metrics.
    pub(super) fn count_places(self) -> Range<usize> {
        range(self.0, counts)
    }
}

fn range(at: usize, len: impl Fn(&PairMetric) -> usize) -> Range<usize> {
    let start = METRICS[..at].iter().map(&len).sum();
    start..start + len(&METRICS[at])
}

fn counts(metric: &PairMetric) -> usize {
    metric.corpus.as_ref().map_or(0, |corpus| corpus.counts)
}

/// The number of counts of a pair, over all metrics.
pub fn count_of_counts() -> usize {
    METRICS.iter().map(counts).sum()
}

impl Deref for Metric {
    type Target = PairMetric;

    fn deref(&self) -> &Self::Target {
        &METRICS[self.0]
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::all().find(|metric| metric.name() == name).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|m| format!("`{}`", m.name())).collect();
            D::Error::custom(format!(
                "unknown variant `{name}`, expected one of {}",
                names.join(", ")
            ))
        })
    }
}

impl JsonSchema for Metric {
    fn schema_name() -> Cow<'static, str> {
        "Metric".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let metrics = Self::all().map(|metric| {
            serde_json::json!({
                "description": metric.about,
                "type": "string",
                "const": metric.name(),
            })
        });
        json_schema!({ "description": "A score.", "oneOf": metrics.collect::<Vec<_>>() })
    }
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
        aliases: &[],
        group: FunctionGroup::Score,
        version: 1,
        arguments: &[("reference", "text"), ("prediction", "text")],
        variadic: false,
        returns,
        summary,
        nulls: "null where a text is",
        example,
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
    fn names_are_unique_and_metrics_are_found_by_them() {
        let columns: Vec<&str> =
            METRICS.iter().flat_map(|metric| metric.columns).map(|c| c.name).collect();
        assert_eq!(columns.iter().collect::<BTreeSet<_>>().len(), columns.len());
        for metric in Metric::all() {
            let json = serde_json::to_value(metric).unwrap();
            assert_eq!(json, metric.name());
            assert_eq!(serde_json::from_value::<Metric>(json).unwrap(), metric);
        }
        assert!(serde_json::from_value::<Metric>("blue".into()).is_err());
    }
}
