//! `rouge_l`: the longest common subsequence of words.

use super::metric::{PairMetric, ScoreColumn, TooLarge, one_value, pair_function};
use galeras_metrics::text::RougeL;

pub(super) const ROUGE_L: PairMetric = PairMetric {
    columns: &[ScoreColumn::share("rouge_l", "ROUGE-L (F1) of the prediction")],
    about: "ROUGE-L.",
    function: Some(pair_function(
        "rouge_l",
        "float",
        "ROUGE-L, the F-measure of the longest common subsequence of words (Lin 2004)",
        "rouge_l('return a + b', 'return b + a')",
    )),
    scorer: |spec| {
        let mut rouge = RougeL::new(spec.mode.words());
        one_value(move |pair| {
            let score = rouge.score_within(pair.reference, pair.prediction, pair.steps);
            score.ok_or(TooLarge).map(Some)
        })
    },
    corpus: None,
};
