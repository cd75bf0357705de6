//! A bounded table of known pieces, keyed by their text and shared by all threads.
//!
//! Keys keep and compare the text, so two pieces are never confused. The hash can be fast; a random
//! seed protects it from texts made to slow it down.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use super::piece::{Context, Piece};

const SHARDS: usize = 16;

/// Approximate size of a piece without its text and methods.
const OVERHEAD: usize = 200;

#[derive(Debug)]
pub(super) struct Memo {
    seed: [u64; 4],
    shards: [RwLock<Shard>; SHARDS],
    /// For each of the two halves of a shard.
    max_bytes: usize,
}

/// Two halves: the young one is filled. When it is full it becomes the old one; its pieces move
/// back when used, or are dropped with it.
#[derive(Debug, Default)]
struct Shard {
    young: Map,
    old: Map,
    bytes: usize,
}

type Map = HashMap<u64, MemoEntry, BuildHasherDefault<IdentityHasher>>;

#[derive(Debug)]
struct MemoEntry {
    kind: u8,
    name: usize,
    text: Box<str>,
    piece: Arc<Piece>,
}

impl MemoEntry {
    fn is(&self, context: Context<'_>, text: &str) -> bool {
        let (kind, name) = context.parts();
        self.kind == kind
            && self.name == name.len()
            && self.text.len() == name.len() + text.len()
            && self.text.ends_with(text)
            && self.text.starts_with(name)
    }

    fn bytes(&self) -> usize {
        OVERHEAD + self.text.len() + self.piece.bytes()
    }
}

impl Shard {
    fn insert(&mut self, hash: u64, known: MemoEntry, max_bytes: usize) {
        self.bytes += known.bytes();
        if let Some(before) = self.young.insert(hash, known) {
            self.bytes = self.bytes.saturating_sub(before.bytes());
        }
        if self.bytes > max_bytes {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
    }
}

impl Memo {
    pub(super) fn new(max_bytes: usize) -> Self {
        let random = RandomState::new();
        let seed = [0_u8, 1, 2, 3].map(|part| random.hash_one(part));
        Self { seed, shards: Default::default(), max_bytes: max_bytes / SHARDS / 2 }
    }

    pub(super) fn hash(&self, context: Context<'_>, text: &str) -> u64 {
        let (kind, name) = context.parts();
        let start = if name.is_empty() { u64::from(kind) } else { self.name(name) };
        hash(self.seed, start, text.as_bytes())
    }

    pub(super) fn name(&self, name: &str) -> u64 {
        hash(self.seed, 7, name.as_bytes())
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let shards = self.shards.iter().filter_map(|shard| shard.read().ok());
        let of = |shard: &Shard| {
            shard.young.values().chain(shard.old.values()).map(MemoEntry::bytes).sum()
        };
        shards.map(|shard| -> usize { of(&shard) }).sum()
    }

    fn shard(&self, hash: u64) -> Option<&RwLock<Shard>> {
        self.shards.get((hash >> 32) as usize % SHARDS)
    }

    pub(super) fn get(&self, hash: u64, context: Context<'_>, text: &str) -> Option<Arc<Piece>> {
        let lock = self.shard(hash)?;
        {
            let shard = lock.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = shard.young.get(&hash) {
                return known.is(context, text).then(|| Arc::clone(&known.piece));
            }
            if !shard.old.contains_key(&hash) {
                return None;
            }
        }
        let mut shard = lock.write().unwrap_or_else(PoisonError::into_inner);
        let known = shard.old.remove(&hash)?;
        let piece = known.is(context, text).then(|| Arc::clone(&known.piece));
        shard.insert(hash, known, self.max_bytes);
        piece
    }

    pub(super) fn put(&self, hash: u64, context: Context<'_>, text: &str, piece: &Arc<Piece>) {
        let (kind, name) = context.parts();
        let known = MemoEntry {
            kind,
            name: name.len(),
            text: [name, text].concat().into(),
            piece: Arc::clone(piece),
        };
        if let Some(lock) = self.shard(hash) {
            let mut shard = lock.write().unwrap_or_else(PoisonError::into_inner);
            shard.insert(hash, known, self.max_bytes);
        }
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

/// Two chains of multiplications, 16 bytes each.
fn hash(seed: [u64; 4], start: u64, bytes: &[u8]) -> u64 {
    let [s0, s1, s2, s3] = seed;
    let (mut a, mut b) = (s0 ^ start, s1 ^ bytes.len() as u64);
    let (blocks, tail) = bytes.as_chunks::<32>();
    for block in blocks {
        let [w0, w1, w2, w3] = *block.as_chunks::<8>().0 else {
            break;
        };
        let [w0, w1, w2, w3] = [w0, w1, w2, w3].map(u64::from_le_bytes);
        a = fold(a ^ w0, s2 ^ w1);
        b = fold(b ^ w2, s3 ^ w3);
    }
    for part in tail.chunks(8) {
        a = fold(a ^ word(part), s2 ^ b);
    }
    fold(a ^ s3, b ^ s2)
}

/// The keys are hashes.
#[derive(Clone, Copy, Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= word(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
