//! Counts the distinct pieces of a text.
//!
//! Emptying the set does not touch its memory, so a text of ten words costs ten look-ups, however
//! long the text before it was.

use std::hash::{BuildHasher, RandomState};

/// A set of pieces of one text, reused from text to text.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    /// Open addressing over a power of two, at most half full.
    slots: Vec<Slot>,
    /// Slots of earlier rounds count as empty.
    round: u32,
    held: usize,
    /// A random seed, so that no text can be made to collide. The counts do not depend on it.
    key: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    round: u32,
    hash: u32,
    start: u32,
    end: u32,
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Distinct {
    pub(crate) fn start(&mut self) {
        self.held = 0;
        self.round = self.round.wrapping_add(1);
        if self.round == 0 || self.slots.is_empty() {
            self.key = RandomState::new().hash_one(0_u8) | 1;
            self.slots = vec![Slot::default(); 256];
            self.round = 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.held
    }

    /// Adds the piece from `start` to `end` of `text`, the same text for all pieces of a round and
    /// shorter than 4 GiB.
    pub(crate) fn add(&mut self, text: &[u8], start: usize, end: usize) {
        let piece = text.get(start..end).unwrap_or_default();
        let hash = self.hash(piece);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.round != self.round {
                break;
            }
            if slot.hash == hash && text.get(slot.start as usize..slot.end as usize) == Some(piece)
            {
                return;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot { round: self.round, hash, start: start as u32, end: end as u32 };
        self.held += 1;
        if self.held * 2 > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.round == self.round) {
            let mut at = slot.hash as usize & (size - 1);
            while self.slots[at].round == self.round {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }

    fn hash(&self, piece: &[u8]) -> u32 {
        let mut hash = self.key ^ piece.len() as u64;
        let mut take = |word: u64| hash = fold(hash ^ word, MULTIPLIER);
        let (words, rest) = piece.as_chunks::<8>();
        words.iter().for_each(|word| take(u64::from_le_bytes(*word)));
        // The rest as one number, read without a loop.
        let last = match (piece.last_chunk::<8>(), rest) {
            (_, []) => 0,
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
        fold(hash ^ last, self.key) as u32
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pieces_are_told_apart_by_their_text_alone() {
        let text: String = (0..40_000).map(|n| char::from(b'a' + (n * n % 7) as u8)).collect();
        let bytes = text.as_bytes();
        let mut distinct = Distinct::default();
        for length in 0..20 {
            distinct.start();
            let pieces = bytes.windows(length.max(1)).take(30_000);
            for at in 0..pieces.len() {
                distinct.add(bytes, at, at + length);
            }
            let naive: HashSet<&[u8]> =
                (0..pieces.len()).map(|at| &bytes[at..at + length]).collect();
            assert_eq!(distinct.len(), naive.len(), "{length}");
        }
    }

    #[test]
    fn a_new_round_begins_empty() {
        let mut distinct = Distinct::default();
        for round in 0..3 {
            distinct.start();
            assert_eq!(distinct.len(), 0, "{round}");
            distinct.add(b"ab ab", 0, 2);
            distinct.add(b"ab ab", 3, 5);
            distinct.add(b"ab ab", 2, 2);
            assert_eq!(distinct.len(), 2);
        }
        distinct.round = u32::MAX;
        distinct.start();
        assert_eq!(distinct.len(), 0);
        distinct.add(b"ab", 0, 1);
        assert_eq!(distinct.len(), 1);
    }
}
