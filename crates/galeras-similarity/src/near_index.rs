//! The index of rows that are compared with rows of other tables.
//!
//! Tokens that only the other table has get no number; they only count. So the index takes memory
//! only for its own rows.

use std::collections::HashMap;
use std::ops::Range;

use super::bounds::{Bounds, DocumentView};
use super::gram_index::GramIndex;
use super::index::{DocumentSummary, by_rank};
use super::keys::mix;
use super::nearness::{NGRAMS, NearThresholds};
use super::stoppable::{Ticker, check, in_threads, sort};
use super::token_rows::TokenRows;
use super::vocabulary::{self, BATCH, Vocabulary};
use super::{CorpusCounts, SimilarityError, SimilarityLimits, StopFlag};

/// Marks a row that is not a document.
const NONE: u32 = u32::MAX;

/// Bytes of a document apart from its tokens: sizes, starts, summary, bits of each thread, its hash
/// table entry.
const DOCUMENT: usize = 160;

/// Rows to be compared, as many as memory can index. Rows with the same tokens in the same order
/// are one document.
pub struct Targets {
    thresholds: NearThresholds,
    limits: SimilarityLimits,
    vocabulary: Vocabulary,
    /// The tokens of the documents, one after another, in the order of the text.
    sequences: Vec<u32>,
    /// The end of each document's tokens.
    ends: Vec<u64>,
    sizes: Vec<u32>,
    /// The first document with a sequence of this hash.
    known: HashMap<(u64, u64), u32>,
    rows: Vec<u32>,
    counts: CorpusCounts,
    bytes: usize,
}

impl Targets {
    /// Creates an empty collection.
    pub fn new(thresholds: NearThresholds, limits: &SimilarityLimits) -> Self {
        Self {
            thresholds,
            limits: limits.clone(),
            vocabulary: Vocabulary::new(limits.memory),
            sequences: Vec::new(),
            ends: Vec::new(),
            sizes: Vec::new(),
            known: HashMap::new(),
            rows: Vec::new(),
            counts: CorpusCounts::default(),
            bytes: 0,
        }
    }

    /// Adds rows, which are numbered in their order.
    ///
    /// # Errors
    /// - [`SimilarityError::Stopped`] if `stop` returned true;
    /// - [`SimilarityError::Vocabulary`] if the distinct tokens exceed the memory limit;
    /// - [`SimilarityError::TooMany`] if the rows or their tokens cannot be numbered.
    pub fn push(&mut self, rows: &TokenRows, stop: StopFlag<'_>) -> Result<(), SimilarityError> {
        let mut ticker = Ticker::new(stop);
        for row in rows.iter() {
            ticker.work(16 + 8 * row.map_or(0, <[u128]>::len))?;
            self.counts.rows += 1;
            let document = match row {
                None => {
                    self.counts.nulls += 1;
                    NONE
                }
                Some(keys) if keys.len() < self.thresholds.similar.min_tokens.max(1) as usize => {
                    self.counts.too_short += 1;
                    NONE
                }
                Some(keys) => {
                    self.counts.documents += 1;
                    self.document(keys)?
                }
            };
            self.rows.push(document);
        }
        Ok(())
    }

    /// The document with these tokens.
    fn document(&mut self, keys: &[u128]) -> Result<u32, SimilarityError> {
        let number = self.ends.len();
        // The vocabulary numbers documents from 1; `NONE` is not one.
        let current = u32::try_from(number + 1).map_err(|_| SimilarityError::TooMany("rows"))?;
        u32::try_from(keys.len()).map_err(|_| SimilarityError::TooMany("tokens in a document"))?;
        let start = self.sequences.len();
        let mut size = 0_u32;
        let mut hash = (0x2D35_8DCC_AA6C_78A5_u64, 0x8BB8_4B93_962E_ACC9_u64);
        for batch in keys.chunks(BATCH) {
            self.vocabulary.warm(batch);
            for &key in batch {
                let entry = self.vocabulary.entry(key)?;
                if entry.document != current {
                    entry.document = current;
                    size += 1;
                }
                let id = u64::from(entry.id);
                self.sequences.push(entry.id);
                hash.0 = mix(hash.0 ^ id);
                hash.1 = mix(hash.1.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(id));
            }
        }
        if let Some(&known) = self.known.get(&hash)
            && self.sequence(known as usize) == &self.sequences[start..]
        {
            self.sequences.truncate(start);
            // `current` is not a document yet; the next one reuses its number.
            for &key in keys {
                self.vocabulary.entry(key)?.document = 0;
            }
            return Ok(known);
        }
        let number = number as u32;
        self.known.entry(hash).or_insert(number);
        self.ends.push(self.sequences.len() as u64);
        self.sizes.push(size);
        self.bytes += self.document_bytes(keys.len(), size as usize);
        Ok(number)
    }

    fn sequence(&self, document: usize) -> &[u32] {
        let start = document.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        &self.sequences[start..self.ends[document] as usize]
    }

    /// Upper bound of the memory that a document takes while the index is built.
    fn document_bytes(&self, total: usize, size: usize) -> usize {
        let set = self.thresholds.similar.set;
        let grams = NGRAMS.iter().zip(self.thresholds.containment).map(|(n, least)| {
            let prefix = (1.0 - least) * (total as f64) + 1.0;
            if least > 0.0 && total >= *n { 20 * prefix as usize + total } else { 0 }
        });
        let prefix = (1.0 - set) * (size as f64) + 1.0;
        let threads = self.limits.threads();
        DOCUMENT + 16 * threads + 4 * total + 8 * size + 4 * prefix as usize + grams.sum::<usize>()
    }

    /// Counts of the rows so far.
    pub fn counts(&self) -> CorpusCounts {
        CorpusCounts { distinct: self.ends.len() as u64, ..self.counts }
    }

    /// True if an index of more rows would exceed the memory limit.
    pub fn is_full(&self) -> bool {
        // Vectors and the table grow by doubling.
        let held = self.bytes + 2 * self.vocabulary.held() + 16 * self.vocabulary.len();
        held > self.limits.memory
    }
}

/// Rows to be compared, as documents with their tokens and n-grams. Immutable.
pub struct NearIndex {
    pub(super) thresholds: NearThresholds,
    pub(super) bounds: Bounds,
    pub(super) vocabulary: Vocabulary,
    /// Ranks of the tokens of the documents in the order of their texts.
    sequences: Vec<u32>,
    /// The start of each document's ranks, and the end of the last.
    starts: Vec<usize>,
    /// Distinct ranks of each document, ascending, and their counts.
    tokens: Vec<u32>,
    counts: Vec<u32>,
    /// The start of each document's distinct ranks, and the end of the last.
    bags: Vec<usize>,
    pub(super) summaries: Vec<DocumentSummary>,
    /// Documents with a rank in their prefix, by rank; and the start of each rank's.
    postings: Vec<u32>,
    posting_starts: Vec<u32>,
    pub(super) grams: [GramIndex; 2],
    pub(super) gram_counts: [Vec<u32>; 2],
    rows: Vec<u32>,
}

impl NearIndex {
    /// Builds the index of some rows.
    ///
    /// # Errors
    /// - [`SimilarityError::Stopped`] if `stop` returned true;
    /// - [`SimilarityError::Threshold`] if a threshold is out of range;
    /// - [`SimilarityError::TooMany`] if tokens or n-grams cannot be numbered;
    /// - [`SimilarityError::Worker`] if a thread panicked.
    pub fn new(targets: Targets, stop: StopFlag<'_>) -> Result<Self, SimilarityError> {
        let Targets {
            thresholds, limits, mut vocabulary, mut sequences, ends, sizes, rows, ..
        } = targets;
        let threads = limits.threads();
        let is_out = |least: &&f64| !(0.0..=1.0).contains(*least);
        if let Some(&value) = thresholds.containment.iter().find(is_out) {
            let (name, range) = ("containment", "from 0 to 1");
            return Err(SimilarityError::Threshold { name, value, range });
        }
        let bounds = Bounds::new(&thresholds.similar)?;
        check(stop)?;
        let starts: Vec<usize> =
            std::iter::once(0).chain(ends.iter().map(|&end| end as usize)).collect();
        let bags: Vec<usize> = std::iter::once(0)
            .chain(sizes.iter().scan(0, |sum, &size| {
                *sum += size as usize;
                Some(*sum)
            }))
            .collect();
        drop((ends, sizes));
        let ranks = rank(&mut vocabulary, &sequences, &starts, stop)?;
        let mut ticker = Ticker::new(stop);
        for id in &mut sequences {
            *id = ranks[*id as usize];
            ticker.work(1)?;
        }
        let (tokens, counts) = count(&sequences, &starts, &bags, threads, stop)?;
        let mut index = Self {
            thresholds,
            bounds,
            vocabulary,
            sequences,
            starts,
            tokens,
            counts,
            bags,
            summaries: Vec::new(),
            postings: Vec::new(),
            posting_starts: Vec::new(),
            grams: Default::default(),
            gram_counts: Default::default(),
            rows,
        };
        index.summaries =
            (0..index.documents()).map(|at| DocumentSummary::new(&index.view(at))).collect();
        let documents = 0..index.documents();
        let prefix = |document| index.prefix(document);
        let document = |document: usize, _| document as u32;
        let postings = by_rank(ranks.len(), documents, prefix, document, &mut ticker)?;
        (index.posting_starts, index.postings) = postings;
        for (at, n) in NGRAMS.into_iter().enumerate() {
            let least = thresholds.containment[at];
            let sequence = |document: usize| index.sequence(document);
            let all = index.documents();
            let (grams, counts) = GramIndex::new(all, &sequence, (n, least), threads, stop)?;
            (index.grams[at], index.gram_counts[at]) = (grams, counts);
        }
        Ok(index)
    }

    /// The number of documents: rows with the same tokens in the same order are one.
    pub fn documents(&self) -> usize {
        self.starts.len() - 1
    }

    /// The document of a row, by the order of input; `None` if it is too short, or null.
    pub fn document(&self, row: usize) -> Option<u32> {
        self.rows.get(row).copied().filter(|&document| document != NONE)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// True if these are enough tokens to be near to anything.
    pub(super) fn is_long(&self, keys: &[u128]) -> bool {
        keys.len() >= self.thresholds.similar.min_tokens.max(1) as usize
    }

    pub(super) fn sequence(&self, document: usize) -> &[u32] {
        &self.sequences[self.starts[document]..self.starts[document + 1]]
    }

    pub(super) fn view(&self, document: usize) -> DocumentView<'_> {
        let bag = self.bags[document]..self.bags[document + 1];
        DocumentView {
            size: bag.len() as u32,
            total: (self.starts[document + 1] - self.starts[document]) as u32,
            tokens: &self.tokens[bag.clone()],
            counts: &self.counts[bag],
        }
    }

    #[inline]
    pub(super) fn with(&self, rank: u32) -> &[u32] {
        let rank = rank as usize;
        &self.postings[self.posting_starts[rank] as usize..self.posting_starts[rank + 1] as usize]
    }

    /// The tokens of a document of which every similar one has at least one.
    fn prefix(&self, document: usize) -> &[u32] {
        let view = self.view(document);
        &view.tokens[..self.bounds.probe_prefix(view.size) as usize]
    }
}

/// Replaces the tokens' numbers by ranks, rarest first; returns the rank of each number.
fn rank(
    vocabulary: &mut Vocabulary,
    sequences: &[u32],
    starts: &[usize],
    stop: StopFlag<'_>,
) -> Result<Vec<u32>, SimilarityError> {
    let mut ticker = Ticker::new(stop);
    // For each token: the last document with it, plus one, and the number of documents.
    let mut seen = vec![(0_usize, 0_u32); vocabulary.len()];
    for (document, ends) in starts.windows(2).enumerate() {
        for &id in &sequences[ends[0]..ends[1]] {
            let (last, documents) = &mut seen[id as usize];
            if *last != document + 1 {
                *last = document + 1;
                *documents += 1;
            }
        }
        ticker.work(4 + 4 * (ends[1] - ends[0]))?;
    }
    let tokens = vocabulary.iter().map(|(key, id)| (seen[id as usize].1, key, id)).collect();
    let mut ranks = vec![0; vocabulary.len()];
    vocabulary::rank(tokens, &mut ranks, stop)?;
    vocabulary.renumber(&ranks);
    Ok(ranks)
}

/// A run of documents with the slices for their tokens and counts.
type CountSlice<'a> = (Range<usize>, &'a mut [u32], &'a mut [u32]);

fn count(
    sequences: &[u32],
    starts: &[usize],
    bags: &[usize],
    threads: usize,
    stop: StopFlag<'_>,
) -> Result<(Vec<u32>, Vec<u32>), SimilarityError> {
    let documents = starts.len() - 1;
    let (mut tokens, mut counts) = (vec![0; bags[documents]], vec![0; bags[documents]]);
    let share = documents.div_ceil(threads).max(1);
    let mut parts: Vec<CountSlice<'_>> = Vec::with_capacity(threads);
    let (mut rest, mut others) = (tokens.as_mut_slice(), counts.as_mut_slice());
    for first in (0..documents).step_by(share) {
        let end = documents.min(first + share);
        let length = bags[end] - bags[first];
        let (part, behind) = rest.split_at_mut(length);
        let (other, further) = others.split_at_mut(length);
        parts.push((first..end, part, other));
        (rest, others) = (behind, further);
    }
    in_threads(parts, |(documents, tokens, counts)| {
        let mut ticker = Ticker::new(stop);
        let mut sorted = Vec::new();
        let mut at = 0;
        for document in documents {
            sorted.clear();
            sorted.extend_from_slice(&sequences[starts[document]..starts[document + 1]]);
            sort_small(&mut sorted, stop)?;
            for run in sorted.chunk_by(|a, b| a == b) {
                (tokens[at], counts[at]) = (run[0], run.len() as u32);
                at += 1;
            }
            ticker.work(16 + 8 * sorted.len())?;
        }
        Ok(())
    })?;
    Ok((tokens, counts))
}

/// Sorts numbers with many equal ones.
pub(super) fn sort_small(numbers: &mut [u32], stop: StopFlag<'_>) -> Result<(), SimilarityError> {
    if numbers.len() < 1 << 16 {
        numbers.sort_unstable();
        return Ok(());
    }
    sort(numbers, |&number| number, stop)
}
