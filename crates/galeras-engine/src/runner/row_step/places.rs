//! The places of a recipe's results: for each row digest, the parts that have it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::RowKey;

/// Row digests are already uniform: their first eight bytes serve as key and as hash.
#[derive(Default)]
struct Uniform(u64);

impl Hasher for Uniform {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for (at, byte) in bytes.iter().take(8).enumerate() {
            self.0 ^= u64::from(*byte) << (8 * at);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

type ByPrefix<T> = HashMap<u64, T, BuildHasherDefault<Uniform>>;

fn prefix(key: &RowKey) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&key[..8]);
    u64::from_le_bytes(first)
}

/// The place of a result: a part and a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) part: u32,
    pub(super) row: u32,
}

#[derive(Default)]
pub(super) struct Places {
    first: ByPrefix<Place>,
    /// Places of results that several parts have.
    more: ByPrefix<Vec<Place>>,
}

impl Places {
    pub(super) fn rows(&self) -> u64 {
        self.first.len() as u64
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.first.reserve(rows);
    }

    /// Adds a place, once for each result of a part.
    pub(super) fn add(&mut self, key: &RowKey, place: Place) {
        let key = prefix(key);
        let first = *self.first.entry(key).or_insert(place);
        if first.part == place.part {
            return;
        }
        let more = self.more.entry(key).or_default();
        if more.iter().all(|known| known.part != place.part) {
            more.push(place);
        }
    }

    /// The places of a result, or of another one with the same first bytes.
    pub(super) fn of(&self, key: &RowKey) -> impl Iterator<Item = Place> {
        let key = prefix(key);
        let more = self.more.get(&key).into_iter().flatten();
        self.first.get(&key).into_iter().chain(more).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_may_be_in_several_parts() {
        let mut places = Places::default();
        let place = |part, row| Place { part, row };
        let (one, other) = ([1; 16], [2; 16]);
        places.add(&one, place(0, 7));
        places.add(&one, place(0, 9));
        places.add(&one, place(3, 1));
        places.add(&one, place(3, 2));
        places.add(&one, place(4, 0));
        places.add(&other, place(4, 1));
        let of = |key| places.of(key).collect::<Vec<_>>();
        assert_eq!(of(&one), [place(0, 7), place(3, 1), place(4, 0)]);
        assert_eq!(of(&other), [place(4, 1)]);
        assert_eq!((of(&[3; 16]), places.rows()), (vec![], 2));
    }
}
