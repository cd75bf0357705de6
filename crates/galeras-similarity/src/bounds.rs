//! Thresholds, the decision about one pair of documents, and the bounds that avoid it.
//!
//! Two divisions of 64-bit floats decide, as in Python. The bounds are also floats and are relaxed
//! by [`SLACK`], so that rounding cannot make them stricter than the decision.

use super::{SimilarityError, Thresholds};

/// Far more than the rounding error of a product with a number of tokens (below 2^32), far less
/// than one token.
const SLACK: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentView<'a> {
    pub(super) size: u32,
    /// Tokens, counted with repetition.
    pub(super) total: u32,
    /// Ranks of the tokens that also occur in another document, ascending. The others would come
    /// first: they have no rank, as they are in no intersection.
    pub(super) tokens: &'a [u32],
    pub(super) counts: &'a [u32],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Intersection {
    pub(super) tokens: u32,
    /// Sum over these tokens of the smaller count.
    pub(super) minima: u64,
}

impl Intersection {
    pub(super) fn similarities(self, x: &DocumentView<'_>, y: &DocumentView<'_>) -> (f64, f64) {
        let union = u64::from(x.size) + u64::from(y.size) - u64::from(self.tokens);
        let maxima = u64::from(x.total) + u64::from(y.total) - self.minima;
        (f64::from(self.tokens) / union as f64, self.minima as f64 / maxima as f64)
    }
}

/// Adds to `common` the intersection of the tokens of `x` from `i` on and of `y` from `j` on.
/// `None` as soon as fewer than `required` tokens can be common.
pub(super) fn common(
    (x, mut i): (&DocumentView<'_>, usize),
    (y, mut j): (&DocumentView<'_>, usize),
    mut common: Intersection,
    required: u32,
) -> Option<Intersection> {
    let required = required as usize;
    let (left, right) = (x.tokens, y.tokens);
    let mut shared = common.tokens as usize;
    while let (Some(&a), Some(&b)) = (left.get(i), right.get(j)) {
        if a == b {
            shared += 1;
            common.minima += u64::from(x.counts[i].min(y.counts[j]));
            i += 1;
            j += 1;
        } else if a < b {
            i += 1;
            if shared + (left.len() - i) < required {
                return None;
            }
        } else {
            j += 1;
            if shared + (right.len() - j) < required {
                return None;
            }
        }
    }
    common.tokens = shared as u32;
    (shared >= required).then_some(common)
}

/// Thresholds and values derived from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    set: f64,
    multiset: f64,
    pub(super) min_tokens: u32,
    /// The part of both sizes that must be common: t / (1 + t).
    share: f64,
}

/// `f64::ceil` for positive values; that is a call into the C library on older processors.
#[inline]
fn ceil(value: f64) -> u32 {
    let whole = value as u32;
    whole + u32::from(f64::from(whole) < value)
}

/// The least number that is at least `share` of `all`, at least one; rounding errors lower it.
#[inline]
pub(super) fn least_share(share: f64, all: u32) -> u32 {
    ceil(share * f64::from(all) - SLACK).clamp(1, all.max(1))
}

impl Bounds {
    pub(super) fn new(thresholds: &Thresholds) -> Result<Self, SimilarityError> {
        let &Thresholds { set, multiset, min_tokens } = thresholds;
        if !(set > 0.0 && set <= 1.0) {
            let range = "above 0 and at most 1";
            return Err(SimilarityError::Threshold { name: "set", value: set, range });
        }
        if !(0.0..=1.0).contains(&multiset) {
            let range = "from 0 to 1";
            return Err(SimilarityError::Threshold { name: "multiset", value: multiset, range });
        }
        Ok(Self { set, multiset, min_tokens, share: set / (1.0 + set) })
    }

    /// The least number of common tokens of similar documents of these sizes.
    #[inline]
    pub(super) fn required(&self, x: u32, y: u32) -> u32 {
        ceil(self.share * (f64::from(x) + f64::from(y)) - SLACK).max(1)
    }

    /// The least size of documents similar to one of `size`.
    #[inline]
    pub(super) fn least_size(&self, size: u32) -> u32 {
        ceil(self.set * f64::from(size) - SLACK).max(1)
    }

    /// A document of `size` shares one of so many tokens, rarest first, with every similar
    /// document.
    pub(super) fn probe_prefix(&self, size: u32) -> u32 {
        size + 1 - self.least_size(size).min(size)
    }

    /// As [`Self::probe_prefix`], for similar documents that are not smaller.
    pub(super) fn index_prefix(&self, size: u32) -> u32 {
        size + 1 - self.required(size, size).min(size)
    }

    /// True if documents with these numbers of tokens, counted with repetition, may be similar.
    #[inline]
    pub(super) fn totals_allow(&self, x: u32, y: u32) -> bool {
        f64::from(x.min(y)) >= self.multiset * f64::from(x.max(y)) - SLACK
    }

    pub(super) fn decide(
        &self,
        overlap: Intersection,
        x: &DocumentView<'_>,
        y: &DocumentView<'_>,
    ) -> Option<(f64, f64)> {
        let (set, multiset) = overlap.similarities(x, y);
        (set >= self.set && multiset >= self.multiset).then_some((set, multiset))
    }

    pub(super) fn compare(&self, x: &DocumentView<'_>, y: &DocumentView<'_>) -> Option<(f64, f64)> {
        let required = self.required(x.size, y.size);
        if x.size.min(y.size) < required || !self.totals_allow(x.total, y.total) {
            return None;
        }
        let overlap = common((x, 0), (y, 0), Intersection::default(), required)?;
        self.decide(overlap, x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(set: f64, multiset: f64) -> Bounds {
        Bounds::new(&Thresholds { set, multiset, min_tokens: 1 }).unwrap()
    }

    #[test]
    fn bounds_never_exclude_what_the_division_accepts() {
        for set in [0.05, 0.1, 0.3, 0.5, 2.0 / 3.0, 0.7, 0.8, 0.9, 0.95, 1.0] {
            let bounds = bounds(set, 0.0);
            for x in 1..=120_u32 {
                for y in 1..=x {
                    for both in 1..=y {
                        if f64::from(both) / f64::from(x + y - both) < set {
                            continue;
                        }
                        assert!(both >= bounds.required(x, y), "{set} {x} {y} {both}");
                        assert!(y >= bounds.least_size(x));
                        // Fewer than `both` tokens are outside the prefix.
                        assert!(x - bounds.probe_prefix(x) < both);
                        assert!(y - bounds.index_prefix(y) < both);
                    }
                }
            }
        }
    }

    #[test]
    fn ceil_rounds_up() {
        for (value, up) in [(-0.5, 0), (0.0, 0), (0.1, 1), (1.0, 1), (1.000_001, 2), (9.99, 10)] {
            assert_eq!(ceil(value), up);
        }
    }

    #[test]
    fn comparing_stops_only_when_the_decision_is_certain() {
        let tokens: Vec<u32> = (0..25).collect();
        let counts = [1; 30];
        let view = |range: std::ops::Range<usize>| DocumentView {
            size: range.len() as u32,
            total: range.len() as u32,
            tokens: &tokens[range.clone()],
            counts: &counts[range],
        };
        assert_eq!(bounds(0.8, 0.7).compare(&view(0..20), &view(0..25)), Some((0.8, 0.8)));
        assert_eq!(bounds(0.8, 0.7).compare(&view(0..20), &view(1..25)), None);
    }

    #[test]
    fn thresholds_outside_of_their_range_are_refused() {
        for (set, multiset) in [(0.0, 0.5), (1.1, 0.5), (f64::NAN, 0.5), (0.5, -0.1), (0.5, 2.0)] {
            assert!(Bounds::new(&Thresholds { set, multiset, min_tokens: 1 }).is_err());
        }
    }
}
