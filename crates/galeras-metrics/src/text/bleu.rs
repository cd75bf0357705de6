//! BLEU (Papineni et al. 2002): the geometric mean of the clipped n-gram precisions of orders 1 to
//! 4, times the brevity penalty exp(1 - r/c) if the c tokens of the hypotheses are fewer than the r
//! of the references. One reference per hypothesis.
//!
//! Orders without a match are smoothed as in sacrebleu 2.6.0 (Chen and Cherry 2014).

use galeras_python::is_space;

use super::bleu_tokens::BleuTokenizer;
use crate::grams::Grams;
use crate::interner::Interner;

const ORDERS: usize = 4;

/// Options of BLEU. The default is that of sacrebleu's `sentence_bleu`; its `corpus_bleu` has
/// `effective_order: false`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BleuOptions {
    /// The tokenizer.
    pub tokens: BleuTokenizer,
    /// The smoothing of orders without a match.
    pub smoothing: BleuSmoothing,
    /// Leaves orders longer than the hypothesis (all hypotheses of a corpus) out of the mean. If
    /// false, they make the score 0, unless smoothing gives them a value.
    pub effective_order: bool,
}

impl Default for BleuOptions {
    fn default() -> Self {
        Self { tokens: BleuTokenizer::Tok13a, smoothing: BleuSmoothing::Exp, effective_order: true }
    }
}

/// The smoothing of orders without a match. Without a match of order 1 the score is always 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BleuSmoothing {
    /// No smoothing: the score is 0. sacrebleu's `none`.
    None,
    /// This number instead of zero matches. sacrebleu's `floor` (0.1 there). Between 0 and 1.
    Floor(f64),
    /// This number is added to the matches and n-grams of orders 2 to 4. sacrebleu's `add-k` (1
    /// there). At least 0.
    AddK(f64),
    /// 1/2 for the first order without a match, 1/4 for the second and so on. sacrebleu's `exp`.
    Exp,
}

/// The counts behind BLEU. Those of a corpus are the sum over its pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BleuStatistics {
    /// N-grams of the hypothesis that the reference has, each counted at most as often as there;
    /// orders 1 to 4.
    pub matches: [u64; ORDERS],
    /// N-grams of the hypothesis; orders 1 to 4.
    pub totals: [u64; ORDERS],
    /// Pairs whose hypothesis is too short for an n-gram; orders 1 to 4.
    pub without: [u64; ORDERS],
    /// Tokens of the hypothesis.
    pub hypothesis_len: u64,
    /// Tokens of the reference.
    pub reference_len: u64,
}

impl BleuStatistics {
    /// BLEU between 0 and 1. With `effective_order`, orders for which the hypotheses have no n-gram
    /// are left out of the mean.
    pub fn score(&self, smoothing: BleuSmoothing, effective_order: bool) -> f64 {
        // A matching n-gram has a matching unigram.
        if self.matches[0] == 0 {
            return 0.0;
        }
        let (hypothesis, reference) = (self.hypothesis_len as f64, self.reference_len as f64);
        let brevity =
            if hypothesis < reference { (1.0 - reference / hypothesis).exp() } else { 1.0 };
        let mut zeros = 0;
        let mut logarithms = 0.0;
        let mut orders = ORDERS;
        for order in 0..ORDERS {
            let Some(precision) = self.precision(order, smoothing, &mut zeros) else {
                if !effective_order {
                    return 0.0;
                }
                orders = order;
                break;
            };
            if precision == 0.0 {
                return 0.0;
            }
            logarithms += precision.ln();
        }
        brevity * (logarithms / orders as f64).exp()
    }

    /// `None` if the hypotheses are too short for this order and all longer ones.
    fn precision(&self, order: usize, smoothing: BleuSmoothing, zeros: &mut i32) -> Option<f64> {
        let (matches, total) = (self.matches[order] as f64, self.totals[order] as f64);
        if matches == 0.0 {
            *zeros += 1;
        }
        Some(match smoothing {
            BleuSmoothing::AddK(k) if order > 0 && total + k > 0.0 => (matches + k) / (total + k),
            _ if total == 0.0 => return None,
            _ if matches > 0.0 => matches / total,
            BleuSmoothing::None | BleuSmoothing::AddK(_) => 0.0,
            BleuSmoothing::Floor(floor) => floor / total,
            BleuSmoothing::Exp => 1.0 / (2f64.powi(*zeros) * total),
        })
    }
}

/// Computes BLEU; keeps its buffers between calls.
#[derive(Debug, Default)]
pub struct Bleu {
    options: BleuOptions,
    interner: Interner,
    grams: Grams,
    reference: Vec<u32>,
    hypothesis: Vec<u32>,
}

impl Bleu {
    /// A scorer with these options.
    pub fn new(options: BleuOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The counts of a pair. White space at the end of a text is ignored. Time and memory are
    /// linear; each text may have 2^31 tokens.
    pub fn statistics(&mut self, reference: &str, hypothesis: &str) -> BleuStatistics {
        let Self { options, interner, grams, reference: r, hypothesis: h } = self;
        interner.clear();
        r.clear();
        h.clear();
        let text = reference.trim_end_matches(is_space);
        options.tokens.each(text, |token| r.push(interner.id(token)));
        let text = hypothesis.trim_end_matches(is_space);
        options.tokens.each(text, |token| h.push(interner.find(token)));
        let totals = std::array::from_fn(|n| h.len().saturating_sub(n) as u64);
        BleuStatistics {
            matches: grams.matches(r, h, interner.count()),
            totals,
            without: totals.map(|total| u64::from(total == 0)),
            hypothesis_len: h.len() as u64,
            reference_len: r.len() as u64,
        }
    }

    /// The score of the counts of a pair or corpus, between 0 and 1.
    pub fn score(&self, statistics: &BleuStatistics) -> f64 {
        statistics.score(self.options.smoothing, self.options.effective_order)
    }

    /// The score of a pair, between 0 and 1. Two empty texts score 0, as with the peer.
    pub fn sentence(&mut self, reference: &str, hypothesis: &str) -> f64 {
        let statistics = self.statistics(reference, hypothesis);
        self.score(&statistics)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, assert_close};
    use super::*;

    const TOKENS: [(&str, BleuTokenizer); 4] = [
        ("13a", BleuTokenizer::Tok13a),
        ("none", BleuTokenizer::Whitespace),
        ("intl", BleuTokenizer::Intl),
        ("char", BleuTokenizer::Char),
    ];
    const SACREBLEU: [(&str, BleuSmoothing); 4] = [
        ("none", BleuSmoothing::None),
        ("floor", BleuSmoothing::Floor(0.1)),
        ("add-k", BleuSmoothing::AddK(1.0)),
        ("exp", BleuSmoothing::Exp),
    ];
    #[test]
    fn sentence_scores_are_the_peers() {
        for (name, tokens) in TOKENS {
            let sentence = |(method, smoothing): (&str, BleuSmoothing)| {
                (format!("sacrebleu_sentence_{name}_{method}"), smoothing, true)
            };
            let corpus = (format!("sacrebleu_corpus_{name}"), BleuSmoothing::Exp, false);
            for (column, smoothing, effective_order) in
                SACREBLEU.map(sentence).into_iter().chain([corpus])
            {
                let mut bleu = Bleu::new(BleuOptions { tokens, smoothing, effective_order });
                for pair in tests::pairs() {
                    let ours = bleu.sentence(&pair.reference, &pair.hypothesis);
                    assert_close(ours, pair.value(&column) / 100.0, &(&column, &pair));
                }
            }
        }
    }

    #[test]
    fn corpus_scores_are_the_peers() {
        let pairs = tests::pairs();
        for corpus in tests::ALL["corpora"].as_array().unwrap() {
            let [start, end] = [0, 1].map(|at| corpus[at].as_u64().unwrap() as usize);
            let score = |tokens, smoothing| {
                let mut bleu = Bleu::new(BleuOptions { tokens, smoothing, effective_order: false });
                let mut sum = BleuStatistics::default();
                for pair in &pairs[start..end] {
                    let counts = bleu.statistics(&pair.reference, &pair.hypothesis);
                    for order in 0..ORDERS {
                        sum.matches[order] += counts.matches[order];
                        sum.totals[order] += counts.totals[order];
                    }
                    sum.hypothesis_len += counts.hypothesis_len;
                    sum.reference_len += counts.reference_len;
                }
                bleu.score(&sum)
            };
            for (tokens_name, tokens) in TOKENS {
                for (method, smoothing) in SACREBLEU {
                    let name = format!("sacrebleu_corpus_{tokens_name}_{method}");
                    let theirs = corpus[2][&name].as_f64().unwrap() / 100.0;
                    assert_close(score(tokens, smoothing), theirs, &(name, start, end));
                }
            }
        }
    }

    #[test]
    fn scores_are_at_most_one() {
        for pair in tests::pairs() {
            let score = Bleu::default().sentence(&pair.reference, &pair.reference);
            assert!(score == 1.0 || pair.reference.trim().is_empty() || score == 0.0, "{pair:?}");
        }
    }

    #[test]
    fn floor_and_k_of_zero_do_nothing() {
        let zero = [BleuSmoothing::None, BleuSmoothing::Floor(0.0), BleuSmoothing::AddK(0.0)];
        for effective_order in [true, false] {
            for pair in tests::pairs() {
                let scores = zero.map(|smoothing| {
                    let options =
                        BleuOptions { smoothing, effective_order, ..BleuOptions::default() };
                    Bleu::new(options).sentence(&pair.reference, &pair.hypothesis)
                });
                assert_eq!(scores, [scores[0]; 3], "{pair:?}");
            }
        }
    }
}
