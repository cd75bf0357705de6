//! `levenshtein` and `similarity`: the edit distance in characters, and the share that it leaves.

use super::metric::{PairMetric, ScoreColumn, TooLarge, as_count, one_value, pair_function};
use galeras_metrics::text::Levenshtein;

pub(super) const LEVENSHTEIN: PairMetric = PairMetric {
    columns: &[ScoreColumn {
        name: "levenshtein",
        about: "edits from the reference to the prediction",
        unit: Some("characters"),
        is_whole: true,
    }],
    about: "The edit distance in characters.",
    function: Some(pair_function(
        "levenshtein",
        "integer",
        "the edit distance in characters",
        "levenshtein('return a + b', 'return b + a')",
    )),
    scorer: |_| {
        let mut levenshtein = Levenshtein::default();
        one_value(move |pair| {
            let edits = levenshtein.distance_within(pair.reference, pair.prediction, pair.steps);
            Ok(Some(as_count(edits.ok_or(TooLarge)? as u64) as f64))
        })
    },
    corpus: None,
};

pub(super) const SIMILARITY: PairMetric = PairMetric {
    columns: &[ScoreColumn::share("similarity", "1 - edits / length of the longer text")],
    about: "1 - distance / length of the longer text.",
    // In SQL, no operator in front of the name explains what is similar.
    function: Some(pair_function(
        "levenshtein_similarity",
        "float",
        "1 - distance / characters of the longer text",
        "levenshtein_similarity('return a + b', 'return b + a')",
    )),
    scorer: |_| {
        let mut levenshtein = Levenshtein::default();
        one_value(move |pair| {
            let share = levenshtein.similarity_within(pair.reference, pair.prediction, pair.steps);
            share.ok_or(TooLarge).map(Some)
        })
    },
    corpus: None,
};
