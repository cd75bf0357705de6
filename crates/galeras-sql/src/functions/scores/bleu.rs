//! `bleu`: BLEU of the sentence and of the corpus, as sacrebleu computes it.

use super::metric::{CorpusMetric, CorpusScore, PairMetric, ScoreColumn, as_count, pair_function};
use super::spec::ScoreSpec;
use galeras_metrics::text::{Bleu, BleuStatistics};

pub(super) const BLEU: PairMetric = PairMetric {
    columns: &[ScoreColumn::share("bleu", "BLEU of the prediction")],
    about: "BLEU of the sentence.",
    function: Some(pair_function(
        "bleu",
        "float",
        "BLEU of the sentence, equal to sacrebleu",
        "bleu('return a + b', 'return b + a')",
    )),
    scorer: |spec| {
        let mut bleu = Bleu::new(spec.bleu());
        Box::new(move |pair, values, counts| {
            let s = bleu.statistics(pair.reference, pair.prediction);
            values[0] = Some(bleu.score(&s));
            let all = s.matches.iter().chain(&s.totals).chain(&s.without);
            let all = all.chain([&s.hypothesis_len, &s.reference_len]);
            counts.iter_mut().zip(all).for_each(|(to, from)| *to = as_count(*from));
            Ok(())
        })
    },
    // Matches, n-grams and sentences without n-grams for four orders each, and two lengths.
    corpus: Some(CorpusMetric { counts: 14, score: of_corpus }),
};

fn of_corpus(spec: &ScoreSpec, rows: i64, sums: &[u64]) -> CorpusScore {
    let four = |at: usize| std::array::from_fn(|order| sums[at + order]);
    let statistics = BleuStatistics {
        matches: four(0),
        totals: four(4),
        without: four(8),
        hypothesis_len: sums[12],
        reference_len: sums[13],
    };
    // Orders that no text has are left out of a sentence's score, but not of a corpus'.
    let value = statistics.score(spec.bleu().smoothing, false);
    CorpusScore { values: vec![(rows > 0).then_some(value)], pairs: rows }
}
