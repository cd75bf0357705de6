//! 128-bit keys of tokens and of whole documents.
//!
//! The key of a token id, and of a word of up to 15 bytes, is the token itself. Longer words are
//! hashed to 127 bits: among ten million different ones the chance of a collision is below 1e-24.
//! All constants are fixed, so keys are the same in every run. They do not resist a deliberate
//! search for collisions.

/// Words of up to this many bytes are their own key.
const EXACT: usize = 15;

/// Set in keys of hashed words, where an exact key has a zero byte.
const HASHED: u128 = 1 << 127;

/// An invertible mix of 64 bits (the finaliser of SplitMix64).
#[inline]
pub(super) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[inline]
pub(super) fn halves(key: u128) -> (u64, u64) {
    (key as u64, (key >> 64) as u64)
}

/// The key of a token id; never 0.
#[inline]
pub(super) fn of_id(id: u32) -> u128 {
    u128::from(id) + 1
}

/// The key of the word `text[start..end]`; 0 only if empty. Words contain no zero byte.
#[inline]
pub(super) fn of_word(text: &[u8], start: usize, end: usize) -> u128 {
    let length = end - start;
    if length > EXACT {
        return of_long_word(text.get(start..end).unwrap_or_default());
    }
    // One masked load of sixteen bytes is much faster than a copy of variable length.
    let wide = text.get(start..start + 16).and_then(|bytes| bytes.try_into().ok());
    match wide.map(u128::from_le_bytes) {
        Some(bytes) => bytes & ((1 << (8 * length)) - 1),
        None => u128::from_le_bytes(padded(text.get(start..end).unwrap_or_default())),
    }
}

fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    array
}

fn of_long_word(word: &[u8]) -> u128 {
    let mut low = 0x2D35_8DCC_AA6C_78A5 ^ word.len() as u64;
    let mut high = 0x8BB8_4B93_962E_ACC9_u64;
    for piece in word.chunks(8) {
        let piece = u64::from_le_bytes(padded(piece));
        low = mix(low ^ piece);
        high = mix(high.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(piece));
    }
    u128::from(low) | u128::from(high) << 64 | HASHED
}

/// The key of a document: a sum, so that the order of its tokens does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DocumentKey(u64, u64);

impl DocumentKey {
    #[inline]
    pub(super) fn add(&mut self, key: u128, count: u32) {
        let (low, high) = halves(key);
        let count = u64::from(count).wrapping_mul(0x4B33_A62E_D433_D4A3);
        let first = mix(low.wrapping_add(0x9E37_79B9_7F4A_7C15));
        let second = mix(high ^ first.rotate_left(32) ^ count);
        let third = mix(low.rotate_left(17) ^ mix(high.wrapping_add(0xE703_7ED1_A0B4_28DB)));
        self.0 = self.0.wrapping_add(mix(second ^ 0xA076_1D64_78BD_642F));
        self.1 = self.1.wrapping_add(mix(third.wrapping_add(second.rotate_left(29)) ^ count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_word_does_not_depend_on_what_follows() {
        for length in 0..40 {
            let word: String = ('a'..='z').cycle().take(length).collect();
            let text = format!("{word} and then something longer than a key");
            assert_eq!(of_word(word.as_bytes(), 0, length), of_word(text.as_bytes(), 0, length));
        }
    }

    #[test]
    fn different_words_have_different_keys() {
        let words = (1..60).map(|n| "x".repeat(n)).chain((0..60).map(|n| format!("{n:020}")));
        let mut keys: Vec<u128> = words.map(|w| of_word(w.as_bytes(), 0, w.len())).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 119);
    }

    #[test]
    fn the_key_of_a_document_tells_counts_but_not_orders_apart() {
        let key = |tokens: &[(u128, u32)]| {
            let mut key = DocumentKey::default();
            tokens.iter().for_each(|&(token, count)| key.add(token, count));
            key
        };
        assert_eq!(key(&[(1, 2), (7, 1)]), key(&[(7, 1), (1, 2)]));
        assert_ne!(key(&[(1, 2), (7, 1)]), key(&[(1, 1), (7, 2)]));
    }
}
