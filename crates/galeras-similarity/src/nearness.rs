//! Measures of nearness between rows, their thresholds and their order.

use std::cmp::Ordering;

use super::{SimilarityError, Thresholds};

/// The lengths of the n-grams whose containment is measured.
pub const NGRAMS: [usize; 2] = [8, 13];

/// The conditions for a row to be near to another one, of which one must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearThresholds {
    /// Both are similar. Its `min_tokens` applies to every condition.
    pub similar: Thresholds,
    /// The least containment for each of [`NGRAMS`], inclusive, in [0, 1]; 0 disables the
    /// condition.
    pub containment: [f64; 2],
}

impl NearThresholds {
    /// Checks that the containments are in range; [`Thresholds`] checks the others.
    pub(super) fn check(&self) -> Result<(), SimilarityError> {
        match self.containment.iter().find(|least| !(0.0..=1.0).contains(*least)) {
            None => Ok(()),
            Some(&value) => {
                let range = "from 0 to 1";
                Err(SimilarityError::Threshold { name: "containment", value, range })
            }
        }
    }
}

/// The nearness of a row to another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearness {
    /// Both Jaccard similarities reach their thresholds.
    pub similar: bool,
    /// Jaccard similarity of the sets of tokens, in [0, 1].
    pub jaccard: f64,
    /// Jaccard similarity of the multisets of tokens, in [0, 1].
    pub multiset: f64,
    /// For each of [`NGRAMS`], the share of the row's distinct n-grams that the other one has, in
    /// [0, 1]; `None` if it has fewer than n tokens. Broder's containment (On the resemblance and
    /// containment of documents, 1997) with n-grams as shingles.
    pub containment: [Option<f64>; 2],
}

impl Nearness {
    /// The values to compare, most important first.
    fn order(&self) -> [f64; 5] {
        let [eight, thirteen] = self.containment.map(|share| share.unwrap_or(-1.0));
        if self.similar {
            [1.0, self.jaccard, self.multiset, eight, thirteen]
        } else {
            [0.0, eight, thirteen, self.jaccard, self.multiset]
        }
    }

    /// `Greater` if this one is nearer. Similar rows come first, by the similarities of their sets,
    /// their multisets, and then by containment; then the others, by containment and then by
    /// similarity.
    pub fn compare(&self, other: &Self) -> Ordering {
        let pairs = self.order().into_iter().zip(other.order());
        pairs.map(|(a, b)| a.total_cmp(&b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// True if nothing can be nearer.
    pub fn is_full(&self) -> bool {
        self.similar
            && self.jaccard == 1.0
            && self.multiset == 1.0
            && self.containment.iter().all(|share| share.is_none_or(|share| share == 1.0))
    }
}
