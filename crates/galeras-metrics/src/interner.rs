//! Numbers for tokens (byte strings) and for characters, from 0 on in the order of their first
//! appearance.

use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

/// [`Interner::find`] returns this for a token without a number.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Numbers tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The tokens one after another, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Interner {
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The number of `token`, new if needed. At most 2^32 - 1 tokens.
    pub(crate) fn id(&mut self, token: &[u8]) -> u32 {
        let Self { numbers, hasher, bytes, ends } = self;
        let (texts, limits) = (bytes.as_slice(), ends.as_slice());
        let entry = numbers.entry(
            hasher.hash_one(token),
            |number| text(texts, limits, *number) == token,
            |number| hasher.hash_one(text(texts, limits, *number)),
        );
        match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let number = ends.len() as u32;
                free.insert(number);
                bytes.extend_from_slice(token);
                ends.push(bytes.len());
                number
            }
        }
    }

    /// The number of `token`, or [`UNKNOWN`].
    pub(crate) fn find(&self, token: &[u8]) -> u32 {
        let is_token = |number: &u32| text(&self.bytes, &self.ends, *number) == token;
        self.numbers.find(self.hasher.hash_one(token), is_token).copied().unwrap_or(UNKNOWN)
    }
}

fn text<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start..ends[number]]
}

/// The number of `c`, new if needed.
pub(crate) fn char_number(numbers: &mut HashMap<char, u32>, c: char) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(c).or_insert(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_apart_at_every_length() {
        let mut interner = Interner::default();
        for _ in 0..3 {
            interner.clear();
            let mut tokens: Vec<Vec<u8>> = Vec::new();
            for length in 0..40 {
                tokens.push(vec![b'a'; length]);
                tokens.push(vec![0; length + 1]);
                for at in 0..length {
                    let mut token = vec![b'a'; length];
                    token[at] = b'b';
                    tokens.push(token);
                }
            }
            let unknown = tokens.iter().filter(|t| interner.find(t) == UNKNOWN).count();
            assert_eq!(unknown, tokens.len());
            let ids: Vec<u32> = tokens.iter().map(|token| interner.id(token)).collect();
            assert_eq!(ids, (0..tokens.len() as u32).collect::<Vec<_>>());
            assert!(tokens.iter().zip(&ids).all(|(t, &id)| interner.find(t) == id));
            assert!(tokens.iter().zip(&ids).all(|(t, &id)| interner.id(t) == id));
            assert_eq!(interner.count(), tokens.len());
        }
    }
}
