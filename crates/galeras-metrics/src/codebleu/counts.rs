//! Counts of CodeBLEU's four components, which add up over pairs, and the scores computed from
//! them.
//!
//! All counts are integers, so the score of a corpus does not depend on the order of its pairs.
//!
//! # The paper's formulas, in [`CodeBleuMode::Strict`]
//! - BLEU: the clipped number of matched n-grams by the number of the hypothesis' n-grams, for n
//!   from 1 to 4; the geometric mean of the four, times the brevity penalty.
//! - Weighted n-grams (equation 2): the same with weights in numerator and denominator, 5 for
//!   keywords and 1 for other tokens. Both sums run over the hypothesis. Only unigrams have
//!   weights. The paper stops there (N = 1); the published programs continue to n = 4 without
//!   weights, and so do we: a text without keywords has the same value in both components.
//! - Syntax: the clipped number of the hypothesis' subtrees in the reference by the number of the
//!   reference's subtrees. A subtree that occurs once in the hypothesis matches one in the
//!   reference, however often it occurs there.
//! - Data flow: the same of the items of the data flow.
//!
//! `tests/reference/codebleu_strict.py` derives values from these formulas.

use super::scorer::CodeBleuMode;

/// The share of each component in the score of the published definition.
pub const EQUAL_WEIGHTS: [f64; 4] = [0.25; 4];

/// The number added to an order of n-grams without a match (NLTK's smoothing method 1).
const EPSILON: f64 = 0.1;

/// The score and its components, each between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeBleuScores {
    /// The weighted mean of the components. NaN only under [`CodeBleuMode::Strict`] if the only
    /// component with a weight is a data flow that the reference lacks.
    pub codebleu: f64,
    /// BLEU over tokens separated by white space.
    pub ngram: f64,
    /// BLEU in which a Python keyword weighs five times as much as another token. The peers compute
    /// a recall and take the reference's length for 2.
    pub weighted: f64,
    /// The share of the reference's subtrees that occur in the hypothesis; as often as there under
    /// [`CodeBleuMode::Strict`].
    pub syntax: f64,
    /// The share of the reference's data flow that occurs in the hypothesis. `None` under
    /// [`CodeBleuMode::Strict`] if the reference has no data flow; 0 in the other modes.
    pub dataflow: Option<f64>,
}

/// The counts of one pair, or the sums over many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeBleuCounts {
    /// Pairs that were counted.
    pub pairs: u64,
    /// Tokens of the hypotheses.
    pub hypothesis_tokens: u64,
    /// Tokens of the references.
    pub reference_tokens: u64,
    /// Matched n-grams of orders 1 to 4.
    pub matched: [u64; 4],
    /// n-grams of the hypotheses of orders 1 to 4, at least 1 for each pair and order.
    pub hypothesis_ngrams: [u64; 4],
    /// n-grams of the references of orders 2 to 4, at least 1 for each pair and order.
    pub reference_ngrams: [u64; 3],
    /// Weight of the matched tokens, in fifths: 5 for a keyword, 1 for any other token.
    pub matched_fifths: u64,
    /// Weight of the hypotheses' tokens, in fifths, at least 1 for each pair.
    pub hypothesis_fifths: u64,
    /// Weight of the references' tokens, in fifths, at least 5 for each pair.
    pub reference_fifths: u64,
    /// Subtrees of the references that occur in the hypothesis; under [`CodeBleuMode::Strict`] at
    /// most as often as in the hypothesis.
    pub matched_subtrees: u64,
    /// Subtrees of the references.
    pub reference_subtrees: u64,
    /// Data flow of the references that occurs in the hypothesis.
    pub matched_flow: u64,
    /// Data flow of the references.
    pub reference_flow: u64,
}

impl CodeBleuCounts {
    /// The scores of the pairs as one corpus, which is not the mean of their scores. `weights` are
    /// those of n-grams, weighted n-grams, syntax and data flow. All components are 0 if no pair
    /// was counted.
    pub fn scores(&self, mode: CodeBleuMode, weights: &[f64; 4]) -> CodeBleuScores {
        let precisions = [0, 1, 2, 3].map(|n| (self.matched[n], self.hypothesis_ngrams[n]));
        let brevity = brevity(self.reference_tokens, self.hypothesis_tokens);
        let ngram = brevity * mean_of_orders(precisions);
        let weighted = match mode {
            CodeBleuMode::Strict => {
                let [_, two, three, four] = precisions;
                let one = (self.matched_fifths, self.hypothesis_fifths);
                brevity * mean_of_orders([one, two, three, four])
            }
            CodeBleuMode::Published | CodeBleuMode::CodeXGlue => {
                let recall = |n: usize| (self.matched[n], self.reference_ngrams[n - 1]);
                let one = (self.matched_fifths, self.reference_fifths);
                // The peers take the length of the pair (tokens, weights) as the number of tokens.
                let brevity = self::brevity(2 * self.pairs, self.hypothesis_tokens);
                brevity * mean_of_orders([one, recall(1), recall(2), recall(3)])
            }
        };
        let syntax = share(self.matched_subtrees, self.reference_subtrees);
        let flow = share(self.matched_flow, self.reference_flow);

        let [of_ngram, of_weighted, of_syntax, of_flow] = *weights;
        let rest = of_ngram * ngram + of_weighted * weighted + of_syntax * syntax;
        let (codebleu, dataflow) = match mode {
            CodeBleuMode::Strict if self.reference_flow == 0 => {
                let total: f64 = weights.iter().sum();
                (rest * total / (of_ngram + of_weighted + of_syntax), None)
            }
            // That peer computes `dataflow or 1`.
            CodeBleuMode::Published if self.matched_flow == 0 => (rest + of_flow, Some(flow)),
            _ => (rest + of_flow * flow, Some(flow)),
        };
        CodeBleuScores { codebleu, ngram, weighted, syntax, dataflow }
    }
}

/// BLEU's penalty for hypotheses that are shorter than their references.
fn brevity(reference: u64, hypothesis: u64) -> f64 {
    if hypothesis > reference {
        1.0
    } else if hypothesis == 0 {
        0.0
    } else {
        (1.0 - reference as f64 / hypothesis as f64).exp()
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The geometric mean; 0 if no token matches.
fn mean_of_orders(orders: [(u64, u64); 4]) -> f64 {
    if orders[0].0 == 0 {
        return 0.0;
    }
    let log = |(matched, all): (u64, u64)| {
        let matched = if matched == 0 { EPSILON } else { matched as f64 };
        0.25 * (matched / all.max(1) as f64).ln()
    };
    orders.map(log).iter().sum::<f64>().exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(matched_flow: u64, reference_flow: u64) -> CodeBleuCounts {
        CodeBleuCounts {
            pairs: 1,
            hypothesis_tokens: 4,
            reference_tokens: 4,
            matched: [4, 3, 2, 1],
            hypothesis_ngrams: [4, 3, 2, 1],
            reference_ngrams: [3, 2, 1],
            matched_fifths: 8,
            hypothesis_fifths: 8,
            reference_fifths: 8,
            matched_subtrees: 1,
            reference_subtrees: 4,
            matched_flow,
            reference_flow,
        }
    }

    #[test]
    fn a_data_flow_of_zero_or_none_counts_as_the_mode_says() {
        let (zero, absent) = (counts(0, 3), counts(0, 0));
        let two = [0.0, 0.0, 0.5, 0.5];
        for (counts, mode, weights, score, flow) in [
            (zero, CodeBleuMode::Strict, EQUAL_WEIGHTS, 0.5625, Some(0.0)),
            (zero, CodeBleuMode::CodeXGlue, EQUAL_WEIGHTS, 0.5625, Some(0.0)),
            (zero, CodeBleuMode::Published, EQUAL_WEIGHTS, 0.8125, Some(0.0)),
            // An absent data flow gives its weight to the others.
            (absent, CodeBleuMode::Strict, EQUAL_WEIGHTS, 0.75, None),
            (absent, CodeBleuMode::Strict, two, 0.25, None),
            (CodeBleuCounts::default(), CodeBleuMode::Strict, EQUAL_WEIGHTS, 0.0, None),
        ] {
            let scores = counts.scores(mode, &weights);
            assert!((scores.codebleu - score).abs() < 1e-12, "{mode:?} {scores:?}");
            assert_eq!(scores.dataflow, flow, "{mode:?}");
        }
        assert!(absent.scores(CodeBleuMode::Strict, &[0.0, 0.0, 0.0, 1.0]).codebleu.is_nan());
    }
}
