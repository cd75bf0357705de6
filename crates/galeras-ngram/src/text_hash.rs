//! A fast hash of short texts for the tables of tokens.
//!
//! Keys differ from process to process, which affects only the places in a table: texts cannot be
//! made to collide and slow look-ups down.

use std::hash::{BuildHasher, Hasher, RandomState};

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy)]
pub(super) struct TextHash {
    key: u64,
}

impl TextHash {
    /// With a random key.
    pub(super) fn new() -> Self {
        Self { key: RandomState::new().hash_one(0_u8) | 1 }
    }

    pub(super) fn of(self, text: &str) -> u64 {
        let mut state = self.build_hasher();
        state.write(text.as_bytes());
        state.finish()
    }
}

impl BuildHasher for TextHash {
    type Hasher = TextHasher;

    fn build_hasher(&self) -> TextHasher {
        TextHasher { hash: self.key, key: self.key }
    }
}

pub(super) struct TextHasher {
    hash: u64,
    key: u64,
}

impl TextHasher {
    fn take(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word) * u128::from(MULTIPLIER);
        self.hash = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.hash ^= bytes.len() as u64;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.take(u64::from_le_bytes(*word));
        }
        // The rest as one number, read without a loop.
        let last = match (bytes.last_chunk::<8>(), rest) {
            (_, []) => return,
            (Some(last), _) => u64::from_le_bytes(*last),
            (None, rest) => match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
                (Some(first), Some(last)) => {
                    u64::from(u32::from_le_bytes(*first))
                        | u64::from(u32::from_le_bytes(*last)) << 32
                }
                _ => {
                    let byte = |at: usize| rest.get(at).map_or(0, |byte| u64::from(*byte));
                    byte(0) | byte(1) << 8 | byte(2) << 16
                }
            },
        };
        self.take(last);
    }

    fn write_u8(&mut self, byte: u8) {
        self.hash = self.hash.rotate_left(8) ^ u64::from(byte);
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.hash) * u128::from(self.key);
        (product as u64) ^ ((product >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_byte_and_the_length_count() {
        let text = "abcdefghijklmnopqrstuvw";
        let hash = TextHash::new();
        let mut seen = HashSet::new();
        for length in 0..=text.len() {
            assert!(seen.insert(hash.of(&text[..length])));
            for at in 0..length {
                let mut changed = text[..length].to_string();
                changed.replace_range(at..=at, "X");
                assert!(seen.insert(hash.of(&changed)), "{changed}");
            }
        }
        assert_eq!(hash.of(text), hash.of(text));
    }
}
