//! `chrf`: the F-score of character n-grams.

use super::metric::{PairMetric, ScoreColumn, one_value, pair_function};
use galeras_metrics::text::Chrf;

pub(super) const CHRF: PairMetric = PairMetric {
    columns: &[ScoreColumn::share("chrf", "chrF2 of the prediction")],
    about: "chrF2.",
    function: Some(pair_function(
        "chrf",
        "float",
        "chrF2 of the sentence (Popović 2015)",
        "chrf('return a + b', 'return b + a')",
    )),
    scorer: |_| {
        let mut chrf = Chrf::default();
        one_value(move |pair| Ok(Some(chrf.score(pair.reference, pair.prediction))))
    },
    corpus: None,
};
