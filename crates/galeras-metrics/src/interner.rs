//! Tables from tokens (byte strings) and from characters to small numbers.

/// [`Interner::find`] returns this for a token without a number.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Odd, with evenly spread bits: the golden ratio in 64 bits.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bits of `key`, mixed so that the upper ones depend on all others.
pub(crate) fn mixed(key: u64) -> u64 {
    let product = u128::from(key ^ MULTIPLIER.rotate_left(32)) * u128::from(MULTIPLIER);
    (product >> 64) as u64 ^ product as u64
}

/// Numbers tokens from 0 on, in the order of their first appearance. [`Interner::clear`] must be
/// called first; it takes constant time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    /// A power of two, at least twice the tokens; open addressing.
    slots: Vec<Slot>,
    /// The mark of used slots.
    stamp: u32,
    /// The bytes of long tokens, and the range of each token.
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: u64,
    stamp: u32,
    id: u32,
}

/// The most bytes that a key holds in addition to their number.
const SHORT: usize = 7;

/// Up to seven bytes unchanged, otherwise a hash with the highest bit set.
fn key(token: &[u8]) -> u64 {
    let four = |bytes: Option<&[u8; 4]>| u64::from(u32::from_le_bytes(*bytes.unwrap_or(&[0; 4])));
    match *token {
        [a] => 1 << 56 | u64::from(a),
        [a, b] => 2 << 56 | u64::from(u16::from_le_bytes([a, b])),
        [a, b, c] => 3 << 56 | u64::from(u32::from_le_bytes([a, b, c, 0])),
        _ if token.len() <= SHORT => {
            let (first, last) = (four(token.first_chunk()), four(token.last_chunk()));
            let overlap = 8 * (8 - token.len().max(4));
            (token.len() as u64) << 56 | (last >> overlap) << 32 | first
        }
        _ => {
            let (chunks, _) = token.as_chunks::<8>();
            let last = token.last_chunk().map_or(0, |&last| u64::from_le_bytes(last));
            let start = mixed(last ^ token.len() as u64);
            let all = chunks.iter().fold(start, |h, c| mixed(h ^ u64::from_le_bytes(*c)));
            all | 1 << 63
        }
    }
}

impl Interner {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 || self.slots.is_empty() {
            self.slots.clear();
            self.slots.resize(256, Slot::default());
            self.stamp = 1;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    /// The number of `token`, new if needed. At most 2^32 - 1 tokens.
    pub(crate) fn id(&mut self, token: &[u8]) -> u32 {
        let key = key(token);
        let mut at = match self.place(token, key) {
            (_, Some(id)) => return id,
            (at, None) => at,
        };
        if 2 * self.spans.len() >= self.slots.len() {
            self.grow();
            at = self.place(token, key).0;
        }
        let id = self.spans.len() as u32;
        let start = self.bytes.len();
        if token.len() > SHORT {
            self.bytes.extend_from_slice(token);
        }
        self.spans.push((start, self.bytes.len()));
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot { key, stamp: self.stamp, id };
        }
        id
    }

    /// The number of `token`, or [`UNKNOWN`].
    pub(crate) fn find(&self, token: &[u8]) -> u32 {
        self.place(token, key(token)).1.unwrap_or(UNKNOWN)
    }

    /// The slot of `token` or of its insertion, and its number.
    fn place(&self, token: &[u8], key: u64) -> (usize, Option<u32>) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = mixed(key) as usize & mask;
        while let Some(slot) = self.slots.get(at)
            && slot.stamp == self.stamp
        {
            if slot.key == key && (token.len() <= SHORT || self.bytes_of(slot.id) == Some(token)) {
                return (at, Some(slot.id));
            }
            at = (at + 1) & mask;
        }
        (at, None)
    }

    fn bytes_of(&self, id: u32) -> Option<&[u8]> {
        let &(start, end) = self.spans.get(id as usize)?;
        self.bytes.get(start..end)
    }

    fn grow(&mut self) {
        let size = 2 * self.slots.len();
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.stamp == self.stamp) {
            let mut at = mixed(slot.key) as usize & (size - 1);
            while self.slots.get(at).is_some_and(|other| other.stamp == self.stamp) {
                at = (at + 1) & (size - 1);
            }
            if let Some(place) = self.slots.get_mut(at) {
                *place = slot;
            }
        }
    }
}

/// Numbers characters from 0 on, in the order of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Code point -> 1 + its number, or 0. Only the touched pages use memory.
    numbers: Vec<u32>,
    seen: Vec<char>,
}

impl Ids {
    /// The number of `c`, new if needed.
    pub(crate) fn id(&mut self, c: char) -> u32 {
        if self.numbers.is_empty() {
            self.numbers = vec![0; 0x11_0000];
        }
        let Some(number) = self.numbers.get_mut(c as usize) else { return 0 };
        if *number == 0 {
            self.seen.push(c);
            *number = self.seen.len() as u32;
        }
        *number - 1
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.len()
    }

    /// Removes all numbers.
    pub(crate) fn forget(&mut self) {
        for c in self.seen.drain(..) {
            if let Some(number) = self.numbers.get_mut(c as usize) {
                *number = 0;
            }
        }
    }
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

    #[test]
    fn ids_count_distinct_characters_and_can_be_forgotten() {
        let mut ids = Ids::default();
        let first: Vec<u32> = "añb🎉ña".chars().map(|c| ids.id(c)).collect();
        assert_eq!((first.as_slice(), ids.count()), ([0, 1, 2, 3, 1, 0].as_slice(), 4));
        ids.forget();
        assert_eq!((ids.id('🎉'), ids.count()), (0, 1));
    }
}
