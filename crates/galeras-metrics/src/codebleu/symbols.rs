//! Interning of texts, hashes of 64 and 128 bits, and multisets of hashes.
//!
//! The hashes have fixed keys, so results are the same on every machine. Interning compares the
//! texts themselves; only 128-bit hashes could collide in principle.

const K: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

/// Both halves of a product, folded into one word.
pub(super) fn fold(a: u64, b: u64) -> u64 {
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

/// A hash of a text for hash tables; not strong enough to replace comparing texts.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut h = (bytes.len() as u64) ^ K[0];
    for word in words {
        h = fold(h ^ u64::from_le_bytes(*word), K[1]);
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    fold(h ^ u64::from_le_bytes(last), K[2])
}

/// Distinct texts, numbered from 0 in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Number + 1 of a text, 0 if free; open addressing over a power of two.
    table: Vec<u32>,
    bytes: Vec<u8>,
    /// End of each text in `bytes`, and its slot in `table`.
    held: Vec<(u32, u32)>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn clear(&mut self) {
        for (_, slot) in self.held.drain(..) {
            self.table[slot as usize] = 0;
        }
        self.bytes.clear();
    }

    fn text(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.held[number - 1].0 };
        &self.bytes[start as usize..self.held[number].0 as usize]
    }

    /// The slot of the text or of its insertion, and its number + 1.
    fn find(&self, text: &[u8]) -> (usize, u32) {
        let mask = self.table.len() - 1;
        let mut slot = hash(text) as usize & mask;
        loop {
            let number = self.table[slot];
            if number == 0 || self.text(number as usize - 1) == text {
                return (slot, number);
            }
            slot = (slot + 1) & mask;
        }
    }

    pub(super) fn get(&self, text: &[u8]) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        self.find(text).1.checked_sub(1)
    }

    pub(super) fn intern(&mut self, text: &[u8]) -> u32 {
        if (self.held.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let (slot, number) = self.find(text);
        if number != 0 {
            return number - 1;
        }
        self.bytes.extend_from_slice(text);
        self.held.push((self.bytes.len() as u32, slot as u32));
        self.table[slot] = self.held.len() as u32;
        self.held.len() as u32 - 1
    }

    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(128);
        self.table.clear();
        self.table.resize(size, 0);
        for number in 0..self.held.len() {
            let (slot, _) = self.find(self.text(number));
            self.table[slot] = number as u32 + 1;
            self.held[number].1 = slot as u32;
        }
    }
}

/// A multiset of hashes.
#[derive(Clone, Debug, Default)]
pub(super) struct Multiset {
    /// Index + 1 in `distinct`, 0 if free; open addressing over a power of two.
    table: Vec<u32>,
    distinct: Vec<(u128, u32)>,
    len: usize,
}

impl Multiset {
    pub(super) fn of(hashes: &[u128]) -> Self {
        let mut bag = Self {
            table: vec![0; (hashes.len() * 2).next_power_of_two()],
            distinct: Vec::with_capacity(hashes.len()),
            len: hashes.len(),
        };
        for &hash in hashes {
            let (slot, place) = bag.find(hash);
            match place {
                Some(place) => bag.distinct[place].1 += 1,
                None => {
                    bag.distinct.push((hash, 1));
                    bag.table[slot] = bag.distinct.len() as u32;
                }
            }
        }
        bag
    }

    /// The number of hashes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The slot of a hash or of its insertion, and its index.
    fn find(&self, hash: u128) -> (usize, Option<usize>) {
        let mask = self.table.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.table[slot] {
                0 => return (slot, None),
                at if self.distinct[at as usize - 1].0 == hash => {
                    return (slot, Some(at as usize - 1));
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The number of its hashes that occur in `others`. One of the others matches all hashes that
    /// are equal to it. `met` is a buffer.
    pub(super) fn covered(&self, others: &[u128], met: &mut Vec<u32>) -> u64 {
        self.matched(others, met, |times| times)
    }

    /// The number of its hashes that occur in `others`, where each of the others matches one hash.
    pub(super) fn shared(&self, others: &[u128], met: &mut Vec<u32>) -> u64 {
        self.matched(others, met, |_| 1)
    }

    fn matched(&self, others: &[u128], met: &mut Vec<u32>, at_once: fn(u32) -> u32) -> u64 {
        met.clear();
        met.resize(self.distinct.len(), 0);
        let mut matched = 0;
        for &hash in others {
            if let (_, Some(place)) = self.find(hash)
                && met[place] < self.distinct[place].1
            {
                let more = at_once(self.distinct[place].1);
                met[place] += more;
                matched += u64::from(more);
            }
        }
        matched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bags_match_as_sorted_lists_do() {
        let one = [3_u128, 3, 3, 1, 7, 1 << 64, 9, 9];
        let other = [3, 9, 9, 9, 1 << 64, 5, 5];
        let mut met = Vec::new();
        let bag = Multiset::of(&one);
        assert_eq!(bag.len(), 8);
        assert_eq!(bag.covered(&other, &mut met), 3 + 2 + 1);
        assert_eq!(bag.shared(&other, &mut met), 1 + 2 + 1);
        assert_eq!((bag.covered(&[], &mut met), bag.shared(&[], &mut met)), (0, 0));
        assert_eq!((bag.covered(&one, &mut met), bag.shared(&one, &mut met)), (8, 8));
        let empty = Multiset::of(&[]);
        assert_eq!((empty.len(), empty.shared(&one, &mut met)), (0, 0));
    }

    #[test]
    fn equal_texts_have_one_number_and_a_cleared_interner_starts_empty() {
        let mut names = Names::default();
        assert_eq!(names.get(b"a"), None);
        for round in 0..3 {
            let texts: Vec<String> = (0..1000 * (3 - round)).map(|i| format!("n{i}")).collect();
            for _ in 0..2 {
                for (i, text) in texts.iter().enumerate() {
                    assert_eq!(names.intern(text.as_bytes()), i as u32);
                }
            }
            assert_eq!(names.get(b"n999"), Some(999));
            assert_eq!((names.get(b""), names.len()), (None, texts.len()));
            names.clear();
            assert_eq!(names.get(b"n1"), None);
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
