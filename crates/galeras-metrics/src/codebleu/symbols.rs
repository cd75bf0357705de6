//! Hashes of 128 bits with fixed keys, so results are the same on every machine.

const K: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

/// Both halves of a product, folded into one word.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// State of a 128-bit hash: two lanes that take in the same words.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashState(u64, u64);

impl HashState {
    pub(super) fn new(seed: u64) -> Self {
        Self(fold(seed ^ K[0], K[1]), fold(seed ^ K[2], K[3]))
    }

    /// Adds a hash and a small number for its role.
    pub(super) fn add(&mut self, value: u128, role: u64) {
        let low = (value as u64) ^ role.wrapping_mul(K[0]);
        let high = (value >> 64) as u64;
        let Self(a, b) = *self;
        self.0 = fold(a.rotate_left(23) ^ low, high ^ K[1]);
        self.1 = fold(b.rotate_left(29) ^ high, low ^ K[3]);
    }

    pub(super) fn word(&mut self, word: u64) {
        self.add(u128::from(word), 1);
    }

    pub(super) fn finish(self) -> u128 {
        (u128::from(self.0) << 64) | u128::from(self.1)
    }
}

/// The hashes of a sorted list that occur in another one: all of them, and as many as there are
/// partners for.
pub(super) fn common(list: &[u128], mut others: &[u128]) -> (u64, u64) {
    let (mut all, mut paired) = (0, 0);
    for equal in list.chunk_by(|a, b| a == b) {
        let smaller = others.iter().take_while(|other| **other < equal[0]).count();
        others = &others[smaller..];
        let partners = others.iter().take_while(|other| **other == equal[0]).count();
        all += if partners > 0 { equal.len() as u64 } else { 0 };
        paired += equal.len().min(partners) as u64;
    }
    (all, paired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_match_all_together_or_in_pairs() {
        let one = [1_u128, 3, 3, 3, 7, 9, 9, 1 << 64];
        let other = [3, 5, 5, 9, 9, 9, 1 << 64];
        for (list, others, expected) in [
            (&one[..], &other[..], (3 + 2 + 1, 1 + 2 + 1)),
            (&one, &[], (0, 0)),
            (&one, &one, (8, 8)),
            (&[], &one, (0, 0)),
        ] {
            assert_eq!(common(list, others), expected, "{list:?} {others:?}");
        }
    }

    #[test]
    fn a_hash_depends_on_order_role_and_number_of_words() {
        let of = |words: &[(u128, u64)]| {
            let mut mix = HashState::new(7);
            words.iter().for_each(|(value, role)| mix.add(*value, *role));
            mix.finish()
        };
        let all = [
            of(&[]),
            of(&[(0, 0)]),
            of(&[(0, 0), (0, 0)]),
            of(&[(0, 1)]),
            of(&[(1, 0)]),
            of(&[(1, 0), (2, 0)]),
            of(&[(2, 0), (1, 0)]),
            of(&[(1 << 64, 0)]),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other != one));
        }
    }
}
