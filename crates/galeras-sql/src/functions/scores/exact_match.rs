//! `exact_match`: equal texts.

use super::metric::{PairMetric, ScoreColumn, one_value, pair_function};

pub(super) const EXACT_MATCH: PairMetric = PairMetric {
    columns: &[ScoreColumn::whole("exact_match", "1 if the texts are equal, else 0")],
    about: "1 if the texts are equal, else 0.",
    function: Some(pair_function(
        "exact_match",
        "integer",
        "1 if the texts are equal but for white space around them, else 0",
        "exact_match('return a + b', 'return b + a')",
    )),
    scorer: |_| one_value(|pair| Ok(Some(f64::from(u8::from(pair.reference == pair.prediction))))),
    corpus: None,
};
