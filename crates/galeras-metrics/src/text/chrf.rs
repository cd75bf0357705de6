//! chrF2 (Popović 2015), the share of character n-grams that two texts have in common.
//!
//! As in sacrebleu 2.6.0 (`sentence_chrf`): code points without white space, orders 1 to 6,
//! precision and recall averaged over the orders of which both texts have n-grams ("effective
//! order"), then F with beta 2. chrF++ and its word n-grams are not included.

use galeras_python::is_space;
use hashbrown::HashMap;

use crate::grams::Grams;
use crate::interner::char_number;

const ORDERS: usize = 6;
/// Squared beta: recall weighs this much more than precision.
const FACTOR: f64 = 4.0;

/// The counts behind chrF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChrfStatistics {
    /// N-grams of the hypothesis that the reference has, each counted at most as often as there;
    /// orders 1 to 6.
    pub matches: [u64; ORDERS],
    /// N-grams of the hypothesis, or 0 if the reference has none of that order.
    pub hypothesis: [u64; ORDERS],
    /// N-grams of the reference.
    pub reference: [u64; ORDERS],
}

impl ChrfStatistics {
    /// chrF2, between 0 and 1. 0 if a text is empty.
    pub fn score(&self) -> f64 {
        let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0);
        for n in 0..ORDERS {
            if self.hypothesis[n] > 0 && self.reference[n] > 0 {
                precision += self.matches[n] as f64 / self.hypothesis[n] as f64;
                recall += self.matches[n] as f64 / self.reference[n] as f64;
                orders += 1.0;
            }
        }
        if precision + recall == 0.0 {
            return 0.0;
        }
        let (precision, recall) = (precision / orders, recall / orders);
        (1.0 + FACTOR) * precision * recall / (FACTOR * precision + recall)
    }
}

/// Computes chrF2; keeps its buffers between calls.
#[derive(Debug, Default)]
pub struct Chrf {
    numbers: HashMap<char, u32>,
    grams: Grams,
    reference: Vec<u32>,
    hypothesis: Vec<u32>,
}

impl Chrf {
    /// The counts of a pair. Time and memory are linear; each text may have 2^31 code points.
    pub fn statistics(&mut self, reference: &str, hypothesis: &str) -> ChrfStatistics {
        let Self { numbers, grams, reference: r, hypothesis: h } = self;
        numbers.clear();
        for (text, to) in [(reference, &mut *r), (hypothesis, &mut *h)] {
            to.clear();
            let chars = text.chars().filter(|&c| !is_space(c));
            to.extend(chars.map(|c| char_number(numbers, c)));
        }
        let matches = grams.matches(r, h, numbers.len());
        let count = |length: usize, n| length.saturating_sub(n) as u64;
        let reference = std::array::from_fn(|n| count(r.len(), n));
        let hypothesis =
            std::array::from_fn(|n| if reference[n] > 0 { count(h.len(), n) } else { 0 });
        ChrfStatistics { matches, hypothesis, reference }
    }

    /// chrF2 of a pair (Popović 2015, as in sacrebleu 2.6.0), between 0 and 1.
    pub fn score(&mut self, reference: &str, hypothesis: &str) -> f64 {
        self.statistics(reference, hypothesis).score()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, assert_close};
    use super::*;

    #[test]
    fn scores_are_the_peers() {
        let mut chrf = Chrf::default();
        for pair in tests::pairs() {
            let ours = chrf.score(&pair.reference, &pair.hypothesis);
            assert_close(ours, pair.value("chrf2") / 100.0, &pair);
            assert!((0.0..=1.0).contains(&ours), "{ours} {pair:?}");
        }
    }
}
