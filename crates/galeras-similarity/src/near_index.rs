//! The index of rows that are compared with rows of other tables.
//!
//! Tokens that only the other table has get no number; they only count. So the index takes memory
//! only for its own rows.

use std::ops::Range;

use super::bounds::{Bounds, DocumentView};
use super::gram_index::GramIndex;
use super::index::{DocumentSummary, by_rank};
use super::nearness::{NGRAMS, NearThresholds};
use super::stoppable::{Ticker, check, in_threads, sort};
use super::targets::{NONE, Targets};
use super::vocabulary::{self, Vocabulary};
use super::{SimilarityError, StopFlag};

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
        thresholds.check()?;
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
