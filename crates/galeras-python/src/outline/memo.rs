//! A bounded table of known pieces, keyed by their text and shared by all threads.
//!
//! Entries keep and compare the text, so two pieces are never confused. The hash has a random seed,
//! against texts made to slow it down.

use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::{DefaultHashBuilder, HashMap};

use super::piece::{Context, Piece};

const SHARDS: usize = 16;

/// Approximate size of a piece without its text and methods.
const OVERHEAD: usize = 200;

/// Pieces of Python files and the methods in them, shared by threads.
#[derive(Debug)]
pub struct Pieces {
    hasher: DefaultHashBuilder,
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

type Map = HashMap<u64, MemoEntry>;

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

impl Pieces {
    /// Creates a cache of `max_bytes` for texts and lists together; the least recently used pieces
    /// are dropped first.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        let max_bytes = max_bytes / SHARDS / 2;
        Self { hasher: DefaultHashBuilder::default(), shards: Default::default(), max_bytes }
    }

    pub(super) fn hash(&self, context: Context<'_>, text: &str) -> u64 {
        self.hasher.hash_one((context.parts(), text))
    }

    pub(super) fn name(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
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
