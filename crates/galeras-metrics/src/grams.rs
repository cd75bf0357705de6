//! N-grams that two sequences share: the clipped number of matches per order.

use hashbrown::HashMap;

use crate::interner::UNKNOWN;

/// Counts shared n-grams; keeps its buffers between calls.
#[derive(Debug, Default)]
pub(crate) struct Grams {
    /// The n-grams of the reference, each by the number of the n-gram without its last item (at
    /// order 2: its first item) and the last item: its number, and its count less the matches.
    counts: HashMap<(u32, u32), (u32, u32)>,
    /// Item -> its count in the reference, less the matches.
    single: Vec<u32>,
    /// Start of an n-gram -> the number of that n-gram, or [`UNKNOWN`].
    reference: Vec<u32>,
    hypothesis: Vec<u32>,
}

impl Grams {
    /// For each order n from 1 to `N`: the sum over the hypothesis' distinct n-grams of the lesser
    /// of its counts in the two sequences. Items of the reference are below `items`; the hypothesis
    /// may have others. At most 2^31 items.
    pub(crate) fn matches<const N: usize>(
        &mut self,
        reference: &[u32],
        hypothesis: &[u32],
        items: usize,
    ) -> [u64; N] {
        let mut matches = [0; N];
        let Some((first, longer)) = matches.split_first_mut() else { return matches };
        self.single.clear();
        self.single.resize(items, 0);
        for &item in reference {
            if let Some(left) = self.single.get_mut(item as usize) {
                *left += 1;
            }
        }
        for &item in hypothesis {
            if let Some(left) = self.single.get_mut(item as usize).filter(|left| **left > 0) {
                *left -= 1;
                *first += 1;
            }
        }
        if *first == 0 {
            return matches;
        }
        self.reference.clear();
        self.reference.extend_from_slice(reference);
        self.hypothesis.clear();
        self.hypothesis.extend(
            hypothesis.iter().map(|&item| if (item as usize) < items { item } else { UNKNOWN }),
        );
        for (n, matched) in longer.iter_mut().enumerate() {
            self.counts.clear();
            for (gram, &last) in self.reference.iter_mut().zip(reference.iter().skip(n + 1)) {
                let next = self.counts.len() as u32;
                let (number, count) = self.counts.entry((*gram, last)).or_insert((next, 0));
                *count += 1;
                *gram = *number;
            }
            for (gram, &last) in self.hypothesis.iter_mut().zip(hypothesis.iter().skip(n + 1)) {
                if *gram == UNKNOWN {
                    continue;
                }
                *gram = match self.counts.get_mut(&(*gram, last)) {
                    Some((number, left)) => {
                        *matched += u64::from(*left > 0);
                        *left = left.saturating_sub(1);
                        *number
                    }
                    None => UNKNOWN,
                };
            }
            if *matched == 0 {
                break;
            }
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::Numbers;

    fn by_maps<const N: usize>(reference: &[u32], hypothesis: &[u32]) -> [u64; N] {
        std::array::from_fn(|n| {
            let mut counts = HashMap::new();
            for gram in reference.windows(n + 1) {
                *counts.entry(gram).or_insert(0) += 1;
            }
            let mut matches = 0;
            for gram in hypothesis.windows(n + 1) {
                if let Some(left) = counts.get_mut(gram).filter(|left| **left > 0) {
                    *left -= 1;
                    matches += 1;
                }
            }
            matches
        })
    }

    #[test]
    fn matches_are_those_of_a_map_of_counts() {
        let (mut grams, mut numbers) = (Grams::default(), Numbers::new(5));
        for items in [1, 2, 5, 40] {
            let all: Vec<u32> = (0..items).chain([UNKNOWN]).collect();
            for round in 0..200 {
                let (m, n) = (numbers.below(1 + round), numbers.below(1 + round));
                let reference = numbers.some(&all[..items as usize], m);
                let hypothesis = match round % 2 {
                    0 => numbers.some(&all, n),
                    _ => numbers.edited(&reference, &all, n / 8),
                };
                let found: [u64; 6] = grams.matches(&reference, &hypothesis, items as usize);
                assert_eq!(found, by_maps(&reference, &hypothesis));
            }
        }
    }
}
