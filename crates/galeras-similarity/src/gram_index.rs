//! Finds documents by their rarest n-grams.
//!
//! A row that has at least a share t of the g n-grams of a document has one of any g - ⌈tg⌉ + 1 of
//! them. The index contains that many of each document, those that are rare among all documents, so
//! that few documents are found by chance.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::bounds::least_share;
use super::ngrams::{GramSet, each_gram};
use super::stoppable::{Ticker, in_threads};
use super::{SimilarityError, StopFlag};

/// N-grams per counter of occurrences, and the limits of the number of counters (as powers of two).
const PER_COUNTER: usize = 2;
const COUNTERS: Range<u32> = 12..27;

/// Counts stop here: more frequent n-grams are all equally bad.
const MANY: u8 = 128;

/// Bits per entry of the filter in front of the index.
const FILTER: usize = 16;

/// Documents by the hashes of some of their n-grams.
#[derive(Default)]
pub(super) struct GramIndex {
    n: usize,
    /// The start of the entries of each range of hashes, and the end of the last.
    starts: Vec<u32>,
    /// Part of the hash, and the document.
    entries: Vec<(u32, u32)>,
    /// The range of a hash is its highest bits, shifted down by this.
    shift: u32,
    /// One bit per hash of an entry: the filter stays in the processor's cache, the index may not.
    filter: Vec<u64>,
}

impl GramIndex {
    /// An index of documents by their sequences, for containments of at least `least`. Also returns
    /// the number of distinct n-grams of each document.
    pub(super) fn new<'a>(
        documents: usize,
        sequence: &(impl Fn(usize) -> &'a [u32] + Sync),
        (n, least): (usize, f64),
        threads: usize,
        stop: StopFlag<'_>,
    ) -> Result<(Self, Vec<u32>), SimilarityError> {
        let share = documents.div_ceil(threads).max(1);
        let parts =
            || (0..documents).step_by(share).map(|at| at..documents.min(at + share)).collect();
        let all: usize = (0..documents).map(|document| sequence(document).len()).sum();
        let wanted = (all / PER_COUNTER).max(1).next_power_of_two();
        let counters = wanted.clamp(1 << COUNTERS.start, 1 << COUNTERS.end);
        let counts: Vec<AtomicU8> = if least > 0.0 {
            (0..counters).map(|_| AtomicU8::new(0)).collect()
        } else {
            Vec::new()
        };
        let counter = |hash: u64| &counts[(hash >> 20) as usize & (counters - 1)];
        in_threads(if least > 0.0 { parts() } else { Vec::new() }, |part: Range<usize>| {
            let mut ticker = Ticker::new(stop);
            for document in part {
                ticker.work(4 * sequence(document).len())?;
                each_gram(sequence(document), n, |_, hash| {
                    // Threads that count at the same time exceed it by one each.
                    if counter(hash).load(Relaxed) < MANY {
                        counter(hash).fetch_add(1, Relaxed);
                    }
                });
            }
            Ok(())
        })?;
        let chosen = in_threads(parts(), |part: Range<usize>| {
            let mut ticker = Ticker::new(stop);
            let mut set = GramSet::new(n);
            let (mut sizes, mut entries, mut grams) = (Vec::new(), Vec::new(), Vec::new());
            for document in part {
                grams.clear();
                set.fill(sequence(document), |hash| {
                    if least > 0.0 {
                        grams.push((counter(hash).load(Relaxed).min(MANY), hash));
                    }
                });
                sizes.push(set.len());
                ticker.work(16 * sequence(document).len())?;
                if least > 0.0 && set.len() > 0 {
                    let prefix = (set.len() + 1 - least_share(least, set.len())) as usize;
                    if prefix < grams.len() {
                        grams.select_nth_unstable(prefix - 1);
                        grams.truncate(prefix);
                    }
                    entries.extend(grams.iter().map(|&(_, hash)| (hash, document as u32)));
                }
            }
            Ok((sizes, entries))
        })?;
        let mut sizes = Vec::with_capacity(documents);
        let mut entries = Vec::with_capacity(chosen.len());
        for (part, found) in chosen {
            sizes.extend(part);
            entries.push(found);
        }
        Ok((Self::of(n, entries, stop)?, sizes))
    }

    fn of(
        n: usize,
        parts: Vec<Vec<(u64, u32)>>,
        stop: StopFlag<'_>,
    ) -> Result<Self, SimilarityError> {
        let mut ticker = Ticker::new(stop);
        let count: usize = parts.iter().map(Vec::len).sum();
        let most = u32::try_from(count).map_err(|_| SimilarityError::TooMany("n-grams"))?;
        let bits = u64::from(most).max(2).next_power_of_two().trailing_zeros();
        let shift = 64 - bits;
        // One more element, so that filling turns starts into starts.
        let mut starts = vec![0_u32; (1 << bits) + 2];
        let mut filter = vec![0_u64; ((FILTER << bits) / 64).max(1)];
        for &(hash, _) in parts.iter().flatten() {
            starts[(hash >> shift) as usize + 2] += 1;
            let (word, bit) = filter_place(hash, filter.len());
            filter[word] |= bit;
            ticker.work(4)?;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        ticker.work(starts.len())?;
        let mut entries = vec![(0, 0); count];
        for part in parts {
            for (hash, document) in part {
                let next = &mut starts[(hash >> shift) as usize + 1];
                entries[*next as usize] = (hash as u32, document);
                *next += 1;
                ticker.work(4)?;
            }
        }
        Ok(Self { n, starts, entries, shift, filter })
    }

    /// Calls `document` with each document found by an n-gram of `sequence`, some several times: at
    /// least those that share the index's portion of their n-grams. Returns the steps taken.
    /// `hashes` is a buffer.
    pub(super) fn each(
        &self,
        sequence: &[u32],
        hashes: &mut Vec<u64>,
        mut document: impl FnMut(u32),
    ) -> usize {
        let mut steps = 0;
        if self.entries.is_empty() {
            return steps;
        }
        hashes.clear();
        each_gram(sequence, self.n, |_, hash| hashes.push(hash));
        // Pass after pass over all hashes: independent loads reach the memory together.
        let mut kept = 0;
        for at in 0..hashes.len() {
            let hash = hashes[at];
            let (word, bit) = filter_place(hash, self.filter.len());
            hashes[kept] = hash;
            kept += usize::from(self.filter[word] & bit != 0);
        }
        hashes.truncate(kept);
        let first = |hash: u64| self.starts[(hash >> self.shift) as usize] as usize;
        let load = |&hash: &u64| self.entries.get(first(hash)).map_or(0, |&(part, _)| part);
        std::hint::black_box(hashes.iter().map(load).fold(0, |all, part| all | part));
        for &hash in hashes.iter() {
            let named = first(hash)..self.starts[(hash >> self.shift) as usize + 1] as usize;
            steps += named.len();
            for &(part, found) in &self.entries[named] {
                if part == hash as u32 {
                    document(found);
                }
            }
        }
        steps + sequence.len()
    }
}

/// The word and the bit of a hash in a filter of this many words, a power of two.
#[inline]
fn filter_place(hash: u64, words: usize) -> (usize, u64) {
    ((hash >> 6) as usize & (words - 1), 1 << (hash & 63))
}
