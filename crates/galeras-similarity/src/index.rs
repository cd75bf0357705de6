//! The index of a block of documents by the tokens of their prefixes, and the division into blocks.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::SimilarityError;
use super::bounds::{Bounds, DocumentView};
use super::corpus::Documents;
use super::stoppable::Ticker;

/// A token in the prefix of a document.
#[derive(Clone, Copy, Default)]
pub(super) struct Posting {
    pub(super) document: u32,
    pub(super) position: u32,
}

/// A summary that rejects most pairs without a look at their tokens.
#[derive(Clone, Copy)]
pub(super) struct DocumentSummary {
    /// Each ranked token sets one of 128 bits.
    bits: [u64; 2],
    pub(super) size: u32,
    ranked: u32,
    pub(super) total: u32,
}

impl DocumentSummary {
    pub(super) fn new(view: &DocumentView<'_>) -> Self {
        let mut bits = [0; 2];
        for rank in view.tokens {
            let bit = rank.wrapping_mul(0x9E37_79B1) >> 25;
            bits[(bit & 1) as usize] |= 1 << (bit >> 1);
        }
        let ranked = view.tokens.len() as u32;
        Self { bits, size: view.size, ranked, total: view.total }
    }

    /// An upper bound of the common tokens: each bit that differs is a token that is not common.
    #[inline]
    pub(super) fn most_common(&self, other: &Self) -> u32 {
        let [a, b] = [self.bits[0] ^ other.bits[0], self.bits[1] ^ other.bits[1]];
        (self.ranked + other.ranked - a.count_ones() - b.count_ones()) / 2
    }
}

/// Postings by rank; those of a rank are in document order.
pub(super) struct Index {
    /// The start of the postings of each rank, and the end of the last.
    starts: Vec<u32>,
    pub(super) postings: Vec<Posting>,
    /// For each posting, if not 0, a later one in the list of the same rank: all postings from the
    /// first to before the second are of the same component.
    skips: Vec<AtomicU32>,
    pub(super) summaries: Vec<DocumentSummary>,
}

/// Bytes of the index per posting and per document.
const BYTES: (u64, u64) = (
    size_of::<Posting>() as u64 + size_of::<AtomicU32>() as u64,
    size_of::<DocumentSummary>() as u64,
);

/// The number of ranked tokens of a document among its first `prefix` tokens: the unranked ones
/// come first.
#[inline]
pub(super) fn ranked(view: &DocumentView<'_>, prefix: u32) -> usize {
    let unranked = view.size as usize - view.tokens.len();
    (prefix as usize).saturating_sub(unranked).min(view.tokens.len())
}

impl Index {
    pub(super) fn new(
        documents: &Documents,
        block: Range<usize>,
        data: &[u32],
        bounds: &Bounds,
        ticker: &mut Ticker<'_>,
    ) -> Result<Self, SimilarityError> {
        let first = block.start;
        let prefix = |document: usize| {
            let view = documents.view(document, data, first);
            let length = ranked(&view, bounds.index_prefix(view.size));
            let length = if view.total < bounds.min_tokens { 0 } else { length };
            &view.tokens[..length]
        };
        let posting = |document: usize, position| Posting { document: document as u32, position };
        let (starts, postings) = by_rank(documents.ranks, block.clone(), prefix, posting, ticker)?;
        let mut summaries = Vec::with_capacity(block.len());
        for document in block {
            let view = documents.view(document, data, first);
            summaries.push(DocumentSummary::new(&view));
            ticker.work(4 + view.tokens.len())?;
        }
        let skips = postings.iter().map(|_| AtomicU32::new(0)).collect();
        Ok(Self { starts, postings, skips, summaries })
    }

    #[inline]
    pub(super) fn from(&self, rank: u32, least: u32) -> Range<usize> {
        let rank = rank as usize;
        let (start, end) = (self.starts[rank] as usize, self.starts[rank + 1] as usize);
        let postings = &self.postings[start..end];
        if postings.first().is_none_or(|posting| posting.document >= least) {
            return start..end;
        }
        start + postings.partition_point(|posting| posting.document < least)..end
    }

    /// The first posting from here whose document is not in the component, and the number of steps
    /// to it. The way is remembered, so it takes one step next time. It stays valid, as documents
    /// of a component stay together.
    pub(super) fn skip(
        &self,
        postings: Range<usize>,
        joined: impl Fn(u32) -> bool,
    ) -> (usize, usize) {
        let (mut at, mut steps) = (postings.start, 0);
        while at < postings.end && joined(self.postings[at].document) {
            at = (at + 1).max(self.skips[at].load(Relaxed) as usize);
            steps += 1;
        }
        if steps > 1 {
            self.skips[postings.start].store(at as u32, Relaxed);
        }
        (at, steps)
    }
}

/// The tokens of documents by rank: the start of each rank's, plus the end of the last, and for
/// each token `posting` of its document and its place in `tokens` of that document.
pub(super) fn by_rank<'a, T: Copy + Default>(
    ranks: usize,
    documents: Range<usize>,
    tokens: impl Fn(usize) -> &'a [u32],
    posting: impl Fn(usize, u32) -> T,
    ticker: &mut Ticker<'_>,
) -> Result<(Vec<u32>, Vec<T>), SimilarityError> {
    // One more element than ranks, so that filling turns starts into starts.
    let mut starts = vec![0_u32; ranks + 2];
    for document in documents.clone() {
        let tokens = tokens(document);
        tokens.iter().for_each(|&rank| starts[rank as usize + 2] += 1);
        ticker.work(4 + tokens.len())?;
    }
    let mut sum = 0_u32;
    for start in &mut starts {
        sum = sum.checked_add(*start).ok_or(SimilarityError::TooMany("tokens"))?;
        *start = sum;
    }
    ticker.work(starts.len())?;
    let mut postings = vec![T::default(); sum as usize];
    for document in documents {
        let tokens = tokens(document);
        for (&rank, position) in tokens.iter().zip(0..) {
            let next = &mut starts[rank as usize + 1];
            postings[*next as usize] = posting(document, position);
            *next += 1;
        }
        ticker.work(4 + 4 * tokens.len())?;
    }
    Ok((starts, postings))
}

/// A block, and the later documents that may be similar to one in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) indexed: Range<usize>,
    pub(super) probing: Range<usize>,
}

/// Divides the documents into blocks whose index, and token data if that is in a file, take at most
/// `memory` bytes for this many threads. A block has at least one document.
pub(super) fn blocks(
    documents: &Documents,
    bounds: &Bounds,
    memory: usize,
    threads: usize,
) -> Vec<Block> {
    let filed = documents.store.held() == 0;
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < documents.len() {
        let mut bytes = 0;
        let mut postings = 0;
        let fits = |&document: &usize| {
            let size = documents.sizes[document];
            let data = documents.bytes(document..document + 1);
            let prefix = u64::from(bounds.index_prefix(size)).min(data / 8);
            bytes += prefix * BYTES.0 + BYTES.1 + 4 * threads as u64;
            bytes += if filed { data } else { 0 };
            postings += prefix;
            bytes <= memory as u64 && postings <= u64::from(u32::MAX)
        };
        let length = (start..documents.len()).take_while(fits).count().max(1);
        let end = start + length;
        let largest = documents.sizes[end - 1];
        let near = |size: &u32| bounds.least_size(*size) <= largest;
        let probing = start..end + documents.sizes[end..].partition_point(near);
        blocks.push(Block { indexed: start..end, probing });
        start = end;
    }
    blocks
}
