//! Numbers distinct tokens by an open-addressing table.

use super::keys::halves;
use super::stoppable::sort;
use super::{SimilarityError, StopFlag};

/// The number of tokens that are left out.
pub(super) const DROPPED: u32 = u32::MAX;

/// Tokens that are looked up together, see [`Vocabulary::warm`].
pub(super) const BATCH: usize = 64;

/// Numbers stay below this: documents use the highest bit as a flag.
const MOST: usize = 1 << 31;

/// An entry of the table. The last two fields are for counting: they give the token's place in the
/// current document without a second look-up.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    /// 0 if the entry is free.
    key: u128,
    /// In order of arrival, or [`DROPPED`].
    pub(super) id: u32,
    /// The last document with this token.
    pub(super) document: u32,
    /// The place of the token in that document.
    pub(super) place: u32,
}

/// A map from keys to numbers 0.. in order of arrival.
pub(super) struct Vocabulary {
    /// The length is a power of two; at most 5/8 are taken.
    entries: Vec<Entry>,
    taken: usize,
    ids: u32,
    /// Upper bound of the table's bytes.
    memory: usize,
}

impl Vocabulary {
    /// Creates an empty table that may grow to `memory` bytes, not counting the old table while a
    /// larger one replaces it.
    pub(super) fn new(memory: usize) -> Self {
        Self { entries: vec![Entry::default(); 64], taken: 0, ids: 0, memory }
    }

    /// The number of tokens.
    pub(super) fn len(&self) -> usize {
        self.ids as usize
    }

    /// The entry of a token, which gets a number if it is new.
    #[inline]
    pub(super) fn entry(&mut self, key: u128) -> Result<&mut Entry, SimilarityError> {
        let mut at = self.find(key);
        if self.entries[at].key == 0 {
            at = self.insert(key, at)?;
        }
        Ok(&mut self.entries[at])
    }

    /// The number of a token, if it has one.
    #[inline]
    pub(super) fn get(&self, key: u128) -> Option<u32> {
        let entry = &self.entries[self.find(key)];
        (entry.key != 0).then_some(entry.id)
    }

    /// Replaces each number by that in `numbers`.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        for entry in self.entries.iter_mut().filter(|entry| entry.key != 0) {
            entry.id = numbers.get(entry.id as usize).copied().unwrap_or(entry.id);
        }
    }

    /// Bytes of the table.
    pub(super) fn held(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
    }

    /// All keys with their numbers, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u128, u32)> {
        let kept = |entry: &&Entry| entry.key != 0 && entry.id != DROPPED;
        self.entries.iter().filter(kept).map(|entry| (entry.key, entry.id))
    }

    /// Loads the entries of some tokens into the processor's cache. Single look-ups mostly wait for
    /// memory; independent loads do not.
    pub(super) fn warm(&self, keys: &[u128]) {
        let load = |&key: &u128| self.entries[self.start(key)].id;
        std::hint::black_box(keys.iter().map(load).fold(0, |all, id| all | id));
    }

    #[inline]
    fn start(&self, key: u128) -> usize {
        let (low, high) = halves(key);
        let a = u128::from(low ^ 0x9E37_79B9_7F4A_7C15);
        let (x, y) = halves(a * u128::from(high ^ 0xD6E8_FEB8_6659_FD93));
        (x ^ y) as usize & (self.entries.len() - 1)
    }

    #[inline]
    fn find(&self, key: u128) -> usize {
        let mut at = self.start(key);
        while self.entries[at].key != key && self.entries[at].key != 0 {
            at = (at + 1) & (self.entries.len() - 1);
        }
        at
    }

    #[cold]
    fn insert(&mut self, key: u128, mut at: usize) -> Result<usize, SimilarityError> {
        if (self.taken + 1) * 8 > self.entries.len() * 5 {
            self.grow()?;
            at = self.find(key);
        }
        if self.taken + 1 >= MOST {
            return Err(SimilarityError::TooMany("distinct tokens"));
        }
        // Documents are numbered from 1: a new entry belongs to none.
        self.entries[at] = Entry { key, id: self.ids, ..Entry::default() };
        self.taken += 1;
        self.ids += 1;
        Ok(at)
    }

    fn grow(&mut self) -> Result<(), SimilarityError> {
        let length = self.entries.len() * 2;
        let needed = length * size_of::<Entry>();
        if needed > self.memory {
            return Err(SimilarityError::Vocabulary { needed, memory: self.memory });
        }
        let old = std::mem::replace(&mut self.entries, vec![Entry::default(); length]);
        for entry in old.into_iter().filter(|entry| entry.key != 0) {
            let at = self.find(entry.key);
            self.entries[at] = entry;
        }
        Ok(())
    }
}

/// Writes the ranks of tokens to the places of their numbers, rarest first. `tokens` are numbers of
/// documents, keys and numbers. Equally rare tokens are ordered by key, so that all runs agree.
pub(super) fn rank(
    mut tokens: Vec<(u32, u128, u32)>,
    ranks: &mut [u32],
    stop: StopFlag<'_>,
) -> Result<(), SimilarityError> {
    sort(&mut tokens, |&(documents, key, _)| (documents, key), stop)?;
    for (&(_, _, id), rank) in tokens.iter().zip(0..) {
        ranks[id as usize] = rank;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_numbers_while_the_table_grows() {
        let mut vocabulary = Vocabulary::new(1 << 30);
        for round in 0..2 {
            for key in 1..=10_000_u32 {
                let entry = vocabulary.entry(u128::from(key) << (key % 90)).unwrap();
                assert!(round == 0 || entry.id < 10_000);
            }
        }
        assert!(vocabulary.len() <= 10_000);
        let mut ids: Vec<u32> = vocabulary.iter().map(|(_, id)| id).collect();
        ids.sort_unstable();
        assert!(ids.iter().enumerate().all(|(i, &id)| i == id as usize));
    }

    #[test]
    fn a_table_beyond_the_limit_is_an_error_that_tells_the_bytes() {
        let mut vocabulary = Vocabulary::new(4096);
        let error = (1..1000).find_map(|key| vocabulary.entry(key).err()).unwrap();
        assert!(
            matches!(error, SimilarityError::Vocabulary { needed: 8192, memory: 4096 }),
            "{error}"
        );
    }
}
