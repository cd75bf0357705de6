//! BLEU: how many n-grams of a text a reference has too.
//!
//! Here: the counts of a pair or a corpus, and the score from them. Not here: tokens.
//!
//! Papineni et al. 2002: the geometric mean of the clipped precisions of the orders 1 to 4,
//! times the brevity penalty exp(1 - r/c) if the c tokens of the hypotheses are fewer than
//! the r of the references. One reference per hypothesis. What is done about orders without
//! a match differs: sacrebleu 2.6.0 and nltk 3.10.4 are followed (Chen and Cherry 2014).

use super::bleu_tokens::{Scratch, Tokenizer};
use super::char_class::is_space;
use super::grams::Grams;
use super::interner::Interner;

/// The longest n-grams.
const ORDERS: usize = 4;

/// How BLEU is computed. The default is that of sacrebleu's `sentence_bleu`; its
/// `corpus_bleu` differs by `effective_order: false`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How texts are split.
    pub tokens: Tokenizer,
    /// What is done about orders without a match.
    pub smoothing: Smoothing,
    /// Whether orders longer than the hypothesis (all of them, in a corpus) are left out of
    /// the mean. If not, they make the score 0, unless smoothing gives them a value.
    /// `Nltk*` ignores this: nltk takes their number of n-grams as 1.
    pub effective_order: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { tokens: Tokenizer::Tok13a, smoothing: Smoothing::Exp, effective_order: true }
    }
}

/// What is done about orders without a match. If there is no match of order 1 the score is 0,
/// whatever is asked for here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Smoothing {
    /// Nothing: the score is 0. sacrebleu's `none`.
    None,
    /// This number in place of zero matches. sacrebleu's `floor` (0.1 there). Between 0 and 1.
    Floor(f64),
    /// This number is added to the matches and to the n-grams of all orders from 2 on.
    /// sacrebleu's `add-k` (1 there). At least 0.
    AddK(f64),
    /// 1/2 in place of the first zero, 1/4 of the second and so on. sacrebleu's `exp`.
    Exp,
    /// The least positive number as precision of such an order. nltk's `method0`.
    Nltk0,
    /// This number in place of zero matches. nltk's `method1` (0.1 there), the BLEU inside of
    /// CodeBLEU. Between 0 and 1.
    Nltk1(f64),
    /// One is added to the matches and to the n-grams of all orders from 2 on. nltk's `method2`.
    Nltk2,
    /// 1/2 in place of the first zero, 1/4 of the second and so on. nltk's `method3`.
    Nltk3,
    /// ln(c) / (5 * 2) in place of the first zero, ln(c) / (5 * 4) of the second and so on, for
    /// c tokens. If c is 1, zeros are left out, and the score of one token that matches is 1.
    /// nltk's `method4`.
    Nltk4,
}

/// What BLEU is computed from. Those of a corpus are the sum over its pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// N-grams of the hypothesis that the reference has too, each at most as often as there;
    /// orders 1 to 4.
    pub matches: [u64; ORDERS],
    /// N-grams of the hypothesis; orders 1 to 4.
    pub totals: [u64; ORDERS],
    /// Pairs whose hypothesis is too short for an n-gram; orders 1 to 4. nltk takes one for
    /// each, before it adds up.
    pub without: [u64; ORDERS],
    /// Tokens of the hypothesis.
    pub hypothesis_len: u64,
    /// Tokens of the reference.
    pub reference_len: u64,
}

impl Statistics {
    /// Adds those of other pairs. The order does not matter.
    pub fn add(&mut self, other: &Self) {
        let sum = |to: &mut [u64; ORDERS], from: &[u64; ORDERS]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        };
        sum(&mut self.matches, &other.matches);
        sum(&mut self.totals, &other.totals);
        sum(&mut self.without, &other.without);
        self.hypothesis_len += other.hypothesis_len;
        self.reference_len += other.reference_len;
    }

    /// The score, between 0 and 1.
    pub fn score(&self, smoothing: Smoothing, effective_order: bool) -> f64 {
        // An n-gram that matches has a unigram that does.
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
            let precision = match self.precision(order, smoothing, &mut zeros) {
                Precision::Of(precision) => precision,
                Precision::LeftOut => continue,
                Precision::NoGrams if effective_order => {
                    orders = order;
                    break;
                }
                Precision::NoGrams => return 0.0,
            };
            if precision == 0.0 {
                return 0.0;
            }
            logarithms += precision.ln();
        }
        brevity * (logarithms / orders as f64).exp()
    }

    fn precision(&self, order: usize, smoothing: Smoothing, zeros: &mut i32) -> Precision {
        let (matches, total) = (self.matches[order] as f64, self.totals[order] as f64);
        // nltk's number of n-grams.
        let some = (self.totals[order] + self.without[order]) as f64;
        if matches == 0.0 {
            *zeros += 1;
        }
        Precision::Of(match smoothing {
            Smoothing::AddK(k) if order > 0 && total + k > 0.0 => (matches + k) / (total + k),
            Smoothing::Nltk2 if order > 0 => (matches + 1.0) / (some + 1.0),
            Smoothing::None | Smoothing::Floor(_) | Smoothing::AddK(_) | Smoothing::Exp
                if total == 0.0 =>
            {
                return Precision::NoGrams;
            }
            _ if matches > 0.0 => {
                matches / if matches <= total && is_nltk(smoothing) { some } else { total }
            }
            Smoothing::None | Smoothing::AddK(_) | Smoothing::Nltk2 => 0.0,
            Smoothing::Floor(floor) => floor / total,
            Smoothing::Exp => 1.0 / (2f64.powi(*zeros) * total),
            Smoothing::Nltk0 => f64::MIN_POSITIVE,
            Smoothing::Nltk1(epsilon) => epsilon / some,
            Smoothing::Nltk3 => 1.0 / (2f64.powi(*zeros) * some),
            Smoothing::Nltk4 if self.hypothesis_len <= 1 => return Precision::LeftOut,
            Smoothing::Nltk4 => {
                1.0 / (2f64.powi(*zeros) * 5.0 / (self.hypothesis_len as f64).ln()) / some
            }
        })
    }
}

/// The precision of an order.
enum Precision {
    Of(f64),
    /// As if it were 1.
    LeftOut,
    /// The hypotheses are too short for this order and all that follow.
    NoGrams,
}

fn is_nltk(smoothing: Smoothing) -> bool {
    use Smoothing::{AddK, Exp, Floor, None};
    !matches!(smoothing, None | Floor(_) | AddK(_) | Exp)
}

/// Computes BLEU; keeps its buffers between calls.
#[derive(Debug, Default)]
pub struct Bleu {
    options: Options,
    scratch: Scratch,
    interner: Interner,
    grams: Grams,
    reference: Vec<u32>,
    hypothesis: Vec<u32>,
}

impl Bleu {
    /// One with these options.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// The counts of a pair. White space at the end of a text is no part of it. Time and
    /// memory are linear in the texts; each may have 2^31 tokens.
    pub fn statistics(&mut self, reference: &str, hypothesis: &str) -> Statistics {
        let Self { options, scratch, interner, grams, reference: r, hypothesis: h } = self;
        interner.clear();
        r.clear();
        h.clear();
        let text = reference.trim_end_matches(is_space);
        options.tokens.each(text, scratch, |token| r.push(interner.id(token)));
        let text = hypothesis.trim_end_matches(is_space);
        options.tokens.each(text, scratch, |token| h.push(interner.find(token)));
        let totals = std::array::from_fn(|n| h.len().saturating_sub(n) as u64);
        Statistics {
            matches: grams.matches(r, h, interner.count()),
            totals,
            without: totals.map(|total| u64::from(total == 0)),
            hypothesis_len: h.len() as u64,
            reference_len: r.len() as u64,
        }
    }

    /// The score of counts, between 0 and 1: of a pair, or of a corpus if they are its sum.
    pub fn score(&self, statistics: &Statistics) -> f64 {
        statistics.score(self.options.smoothing, self.options.effective_order)
    }

    /// The score of a pair, between 0 and 1. Two empty texts have 0, as with both peers.
    pub fn sentence(&mut self, reference: &str, hypothesis: &str) -> f64 {
        let statistics = self.statistics(reference, hypothesis);
        self.score(&statistics)
    }
}

#[cfg(test)]
mod tests {
    use super::super::peers::{self, assert_close};
    use super::*;

    const TOKENS: [(&str, Tokenizer); 4] = [
        ("13a", Tokenizer::Tok13a),
        ("none", Tokenizer::Whitespace),
        ("intl", Tokenizer::Intl),
        ("char", Tokenizer::Char),
    ];
    const SACREBLEU: [(&str, Smoothing); 4] = [
        ("none", Smoothing::None),
        ("floor", Smoothing::Floor(0.1)),
        ("add-k", Smoothing::AddK(1.0)),
        ("exp", Smoothing::Exp),
    ];
    const NLTK: [(&str, Smoothing); 5] = [
        ("nltk_method0", Smoothing::Nltk0),
        ("nltk_method1", Smoothing::Nltk1(0.1)),
        ("nltk_method2", Smoothing::Nltk2),
        ("nltk_method3", Smoothing::Nltk3),
        ("nltk_method4", Smoothing::Nltk4),
    ];

    #[test]
    fn sentence_scores_are_the_peers() {
        let pairs = peers::pairs();
        for (name, smoothing) in NLTK {
            let tokens = Tokenizer::Whitespace;
            let mut bleu = Bleu::new(Options { tokens, smoothing, effective_order: false });
            for pair in &pairs {
                let ours = bleu.sentence(&pair.reference, &pair.hypothesis);
                assert_close(ours, pair.value(name), &(name, pair));
            }
        }
        for (name, tokens) in TOKENS {
            for (method, smoothing) in SACREBLEU {
                let mut bleu = Bleu::new(Options { tokens, smoothing, effective_order: true });
                let column = format!("sacrebleu_sentence_{name}_{method}");
                for pair in &pairs {
                    let ours = bleu.sentence(&pair.reference, &pair.hypothesis);
                    assert_close(ours, pair.value(&column) / 100.0, &(&column, pair));
                }
            }
            let smoothing = Smoothing::Exp;
            let mut bleu = Bleu::new(Options { tokens, smoothing, effective_order: false });
            let column = format!("sacrebleu_corpus_{name}");
            for pair in &pairs {
                let ours = bleu.sentence(&pair.reference, &pair.hypothesis);
                assert_close(ours, pair.value(&column) / 100.0, &(&column, pair));
            }
        }
    }

    #[test]
    fn corpus_scores_are_the_peers_in_any_order() {
        let pairs = peers::pairs();
        for corpus in peers::ALL["corpora"].as_array().unwrap() {
            let [start, end] = [0, 1].map(|at| corpus[at].as_u64().unwrap() as usize);
            let score = |tokens, smoothing| {
                let mut bleu = Bleu::new(Options { tokens, smoothing, effective_order: false });
                let mut sums = [Statistics::default(); 2];
                for pair in &pairs[start..end] {
                    sums[0].add(&bleu.statistics(&pair.reference, &pair.hypothesis));
                }
                for pair in pairs[start..end].iter().rev() {
                    sums[1].add(&bleu.statistics(&pair.reference, &pair.hypothesis));
                }
                assert_eq!(sums[0], sums[1]);
                bleu.score(&sums[0])
            };
            for (name, smoothing) in NLTK {
                let theirs = corpus[2][name].as_f64().unwrap();
                let ours = score(Tokenizer::Whitespace, smoothing);
                assert_close(ours, theirs, &(name, start, end));
            }
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
        for pair in peers::pairs() {
            let score = Bleu::default().sentence(&pair.reference, &pair.reference);
            assert!(score == 1.0 || pair.reference.trim().is_empty() || score == 0.0, "{pair:?}");
        }
    }

    #[test]
    fn floor_and_k_of_zero_do_nothing() {
        let zero = [Smoothing::None, Smoothing::Floor(0.0), Smoothing::AddK(0.0)];
        for effective_order in [true, false] {
            for pair in peers::pairs() {
                let scores = zero.map(|smoothing| {
                    let options = Options { smoothing, effective_order, ..Options::default() };
                    Bleu::new(options).sentence(&pair.reference, &pair.hypothesis)
                });
                assert_eq!(scores, [scores[0]; 3], "{pair:?}");
            }
        }
    }
}
