//! What is asked: thresholds, the way of search, limits, and what receives the pairs.

use std::path::PathBuf;

/// When two documents are similar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Least set similarity, in (0, 1], inclusive.
    pub set: f64,
    /// Least multiset similarity, in [0, 1], inclusive.
    pub multiset: f64,
    /// Documents with fewer tokens, counted with repetition, are similar to nothing. Only
    /// raises what the [`CorpusReader`](super::CorpusReader) was given: what a reader left out stays
    /// out.
    pub min_tokens: u32,
}

impl Default for Thresholds {
    /// As dpu_utils: 0.8, 0.7 and 20 tokens.
    fn default() -> Self {
        Self { set: 0.8, multiset: 0.7, min_tokens: 20 }
    }
}

/// How similar pairs are looked for. Both decide about a pair in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairSearch {
    /// Finds all pairs.
    Exact,
    /// Finds the pairs that share a band of their MinHash signatures;
    /// [`expected_recall`](super::expected_recall) says how many that are.
    MinHash,
}

/// What the module may use.
#[derive(Clone, Debug)]
pub struct SimilarityLimits {
    /// Bytes of token data to hold at a time. Beside it stand about 40 bytes per row and
    /// the vocabulary (51 to 102 bytes a word; each reader has one until the corpus is
    /// built), none of which may exceed `memory` itself.
    pub memory: usize,
    /// Threads to run; also the number of readers that share `memory`. 0 counts as 1.
    pub threads: usize,
    /// Directory for token data beyond `memory`. The files in it have no name and vanish
    /// with the process.
    pub scratch: PathBuf,
}

impl SimilarityLimits {
    /// The number of threads, at least 1.
    pub(super) fn threads(&self) -> usize {
        self.threads.max(1)
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorpusCounts {
    /// All rows.
    pub rows: u64,
    /// Rows with enough tokens.
    pub documents: u64,
    /// Rows with fewer tokens than asked for, or none.
    pub too_short: u64,
    /// Rows without a text.
    pub nulls: u64,
    /// Documents that differ in their tokens or in how often they occur.
    pub distinct: u64,
}

/// Receives similar pairs, from several threads and in no particular order.
///
/// Rows with equal token multisets are one document: pairs name its smallest row, see
/// [`Corpus::groups`](super::Corpus::groups) for the others. [`PairSearch::MinHash`] may find a
/// pair several times.
pub trait PairSink: Sync {
    /// Whether the pair is of interest, if similar: a "no" saves its comparison.
    fn wants(&self, a: u32, b: u32) -> bool;
    /// A similar pair of rows, `a < b`, with its set and multiset similarity.
    fn found(&self, a: u32, b: u32, set: f64, multiset: f64);
}

/// Asked in every phase, at least every 50 ms: whether to end with
/// [`SimilarityError::Stopped`](super::SimilarityError::Stopped).
pub type StopFlag<'a> = &'a (dyn Fn() -> bool + Sync);

/// Told now and then how much is done, and of how much (in no particular unit).
pub type PairProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);
