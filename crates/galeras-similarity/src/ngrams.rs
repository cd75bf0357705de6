//! Exact sets of n-grams of a sequence of tokens.
//!
//! An n-gram is found by a hash and then compared token by token, so a hash never decides.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::keys::mix;

/// A token that no searched sequence has: it separates the n-grams around it.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The multiplier of the rolling hash: odd, otherwise arbitrary.
const BASE: u64 = 0xD134_2543_DE82_EF95;

#[inline]
fn symbol(token: u32) -> u64 {
    mix(u64::from(token).wrapping_add(0x9E37_79B9_7F4A_7C15))
}

/// Calls `gram` with start and hash of each run of `n` known tokens.
#[inline]
pub(super) fn each_gram(sequence: &[u32], n: usize, mut gram: impl FnMut(usize, u64)) {
    let power = (0..n).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let (mut hash, mut run) = (0_u64, 0);
    for (at, &token) in sequence.iter().enumerate() {
        if token == UNKNOWN {
            (hash, run) = (0, 0);
            continue;
        }
        hash = hash.wrapping_mul(BASE).wrapping_add(symbol(token));
        run += 1;
        if run > n {
            hash = hash.wrapping_sub(symbol(sequence[at - n]).wrapping_mul(power));
        }
        if run >= n {
            gram(at + 1 - n, mix(hash));
        }
    }
}

/// An n-gram of a sequence.
struct Gram {
    hash: u64,
    start: usize,
    /// The last round that met it.
    met: u32,
}

/// The distinct n-grams of one sequence. May be refilled.
#[derive(Default)]
pub(super) struct GramSet {
    n: usize,
    grams: HashTable<Gram>,
    round: u32,
}

impl GramSet {
    pub(super) fn new(n: usize) -> Self {
        Self { n, ..Self::default() }
    }

    /// Replaces the set by the n-grams of `sequence`; calls `new` with the hash of each.
    pub(super) fn fill(&mut self, sequence: &[u32], mut new: impl FnMut(u64)) {
        let Self { n, grams, round } = self;
        grams.clear();
        // The memory of a giant set is returned.
        grams.shrink_to(sequence.len().max(1 << 12), |gram| gram.hash);
        *round = 0;
        each_gram(sequence, *n, |start, hash| {
            let same = is_same(sequence, &sequence[start..start + *n], hash);
            if let Entry::Vacant(free) = grams.entry(hash, same, |gram| gram.hash) {
                free.insert(Gram { hash, start, met: 0 });
                new(hash);
            }
        });
    }

    pub(super) fn len(&self) -> u32 {
        self.grams.len() as u32
    }

    /// The number of distinct n-grams of `other` in the set of `sequence`.
    pub(super) fn common(&mut self, sequence: &[u32], other: &[u32]) -> u32 {
        if self.grams.is_empty() {
            return 0;
        }
        self.round += 1;
        let Self { n, grams, round } = self;
        let mut common = 0;
        each_gram(other, *n, |start, hash| {
            let same = is_same(sequence, &other[start..start + *n], hash);
            if let Some(gram) = grams.find_mut(hash, same).filter(|gram| gram.met != *round) {
                gram.met = *round;
                common += 1;
            }
        });
        common
    }
}

/// True for the n-gram of `sequence` that has these tokens and this hash.
#[inline]
fn is_same(sequence: &[u32], tokens: &[u32], hash: u64) -> impl Fn(&Gram) -> bool {
    move |gram| gram.hash == hash && sequence[gram.start..gram.start + tokens.len()] == *tokens
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn by_definition(sequence: &[u32], n: usize) -> BTreeSet<&[u32]> {
        sequence.windows(n).filter(|gram| !gram.contains(&UNKNOWN)).collect()
    }

    fn sequence() -> impl Strategy<Value = Vec<u32>> {
        let token = prop_oneof![9 => 0_u32..3, 1 => Just(UNKNOWN)];
        prop::collection::vec(token, 0..60)
    }

    proptest! {
        #[test]
        fn sets_are_those_of_the_definition(x in sequence(), y in sequence(), n in 1_usize..6) {
            let mut set = GramSet::new(n);
            // The earlier contents do not matter.
            set.fill(&y, |_| ());
            let mut hashes = BTreeSet::new();
            set.fill(&x, |hash| { hashes.insert(hash); });
            let (one, other) = (by_definition(&x, n), by_definition(&y, n));
            prop_assert_eq!(set.len() as usize, one.len());
            prop_assert_eq!(hashes.len(), one.len());
            for _ in 0..2 {
                prop_assert_eq!(set.common(&x, &y) as usize, one.intersection(&other).count());
                prop_assert_eq!(set.common(&x, &x) as usize, one.len());
            }
        }
    }

    #[test]
    fn the_hash_of_a_gram_does_not_depend_on_where_it_stands() {
        let hashes = |sequence: &[u32]| {
            let mut hashes = Vec::new();
            each_gram(sequence, 3, |_, hash| hashes.push(hash));
            hashes
        };
        let (a, b) = (hashes(&[1, 2, 3, 4, 5]), hashes(&[9, 9, UNKNOWN, 2, 3, 4]));
        assert_eq!((a.len(), b.len()), (3, 1));
        assert_eq!(a[1], b[0]);
        assert!(hashes(&[1, 2]).is_empty());
    }
}
