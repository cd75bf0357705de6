//! N-grams that two sequences share: the clipped number of matches per order.

use crate::interner::{UNKNOWN, mixed};

/// Counts shared n-grams; keeps its buffers between calls.
#[derive(Debug, Default)]
pub(crate) struct Grams {
    /// A power of two, at least twice the reference's n-grams; open addressing.
    slots: Vec<Slot>,
    /// The mark of used slots, which differs for each order.
    stamp: u32,
    /// Item -> its count in the reference, less the matches.
    single: Vec<u32>,
    /// Start of an n-gram -> the slot of that n-gram, or [`UNKNOWN`].
    reference: Vec<u32>,
    hypothesis: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The slot of the n-gram without its last item (at order 2: its first item), and the last
    /// item.
    key: u64,
    stamp: u32,
    /// Its count in the reference, less the matches.
    left: u32,
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
        let size = (2 * reference.len()).next_power_of_two().max(2);
        if self.slots.len() < size {
            self.slots.clear();
            self.slots.resize(size, Slot::default());
            self.stamp = 0;
        }
        // A prefix of the slots suffices and stays in the cache.
        let slots = &mut self.slots[..size];
        self.reference.clear();
        self.reference.extend_from_slice(reference);
        self.hypothesis.clear();
        self.hypothesis.extend(
            hypothesis.iter().map(|&item| if (item as usize) < items { item } else { UNKNOWN }),
        );
        for (n, matched) in longer.iter_mut().enumerate() {
            if self.stamp == u32::MAX {
                slots.fill(Slot::default());
                self.stamp = 0;
            }
            self.stamp += 1;
            let stamp = self.stamp;
            for (gram, &last) in self.reference.iter_mut().zip(reference.iter().skip(n + 1)) {
                let key = u64::from(*gram) << 32 | u64::from(last);
                let at = place(slots, stamp, key);
                *gram = at as u32;
                if let Some(slot) = slots.get_mut(at) {
                    let before = if slot.stamp == stamp { slot.left } else { 0 };
                    *slot = Slot { key, stamp, left: before + 1 };
                }
            }
            for (gram, &last) in self.hypothesis.iter_mut().zip(hypothesis.iter().skip(n + 1)) {
                if *gram == UNKNOWN {
                    continue;
                }
                let at = place(slots, stamp, u64::from(*gram) << 32 | u64::from(last));
                match slots.get_mut(at) {
                    Some(slot) if slot.stamp == stamp => {
                        *gram = at as u32;
                        *matched += u64::from(slot.left > 0);
                        slot.left = slot.left.saturating_sub(1);
                    }
                    _ => *gram = UNKNOWN,
                }
            }
            if *matched == 0 {
                break;
            }
        }
        matches
    }
}

/// The slot of `key` or of its insertion.
fn place(slots: &[Slot], stamp: u32, key: u64) -> usize {
    let mask = slots.len() - 1;
    let mut at = mixed(key) as usize & mask;
    while let Some(slot) = slots.get(at)
        && slot.stamp == stamp
        && slot.key != key
    {
        at = (at + 1) & mask;
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

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

    #[test]
    fn stamps_may_run_out() {
        let mut grams = Grams::default();
        assert_eq!(grams.matches(&[0, 1, 0, 1], &[0, 1, 0, 1], 2), [4, 3, 2, 1]);
        grams.stamp = u32::MAX - 1;
        for _ in 0..3 {
            assert_eq!(grams.matches(&[0, 1, 0, 1], &[0, 1, 0, 1], 2), [4, 3, 2, 1]);
            assert_eq!(grams.matches(&[0, 1, 1, 1], &[1, 1, 0, 1], 2), [4, 2, 0, 0]);
        }
    }
}
