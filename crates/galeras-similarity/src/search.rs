//! A search: thresholds, method, limits and errors.

use std::io;
use std::path::PathBuf;

/// Thresholds of similar documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Least set similarity, in (0, 1], inclusive.
    pub set: f64,
    /// Least multiset similarity, in [0, 1], inclusive.
    pub multiset: f64,
    /// Documents with fewer tokens, counted with repetition, are similar to nothing. Only effective
    /// above the limit of the [`CorpusReader`](super::CorpusReader), which has already left out
    /// shorter ones.
    pub min_tokens: u32,
}

impl Default for Thresholds {
    /// As dpu_utils: 0.8, 0.7 and 20 tokens.
    fn default() -> Self {
        Self { set: 0.8, multiset: 0.7, min_tokens: 20 }
    }
}

/// The method of the search. Both methods decide about a pair in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairSearch {
    /// Finds all pairs.
    Exact,
    /// Finds the pairs that share a band of their MinHash signatures;
    /// [`expected_recall`](super::expected_recall) returns their share.
    MinHash,
}

/// Resources that a search may use.
#[derive(Clone, Debug)]
pub struct SimilarityLimits {
    /// Bytes of token data in memory at a time. In addition there are about 40 bytes per row and
    /// the vocabulary (51 to 102 bytes a word; each reader has one until the corpus is built), none
    /// of which may exceed `memory`.
    pub memory: usize,
    /// Threads to run; also the number of readers that share `memory`. 0 counts as 1.
    pub threads: usize,
    /// Directory for token data beyond `memory`. Its files have no name and vanish with the
    /// process.
    pub scratch: PathBuf,
}

impl SimilarityLimits {
    /// The number of threads, at least 1.
    pub(super) fn threads(&self) -> usize {
        self.threads.max(1)
    }
}

/// Counts of the input rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorpusCounts {
    /// All rows.
    pub rows: u64,
    /// Rows with enough tokens.
    pub documents: u64,
    /// Rows with too few tokens, or none.
    pub too_short: u64,
    /// Rows without a text.
    pub nulls: u64,
    /// Documents that differ in their tokens or in their counts.
    pub distinct: u64,
}

/// Polled in every phase, at least every 50 ms; true ends the search with
/// [`SimilarityError::Stopped`].
pub type StopFlag<'a> = &'a (dyn Fn() -> bool + Sync);

/// Called from time to time with the work done and the total (in no particular unit).
pub type PairProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// The reason why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimilarityError {
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The distinct tokens alone need more than the memory limit.
    #[error("the vocabulary needs {needed} bytes of memory; the limit is {memory} bytes")]
    Vocabulary {
        /// Bytes that the table of distinct tokens would need.
        needed: usize,
        /// [`SimilarityLimits::memory`].
        memory: usize,
    },
    /// A threshold is out of range.
    #[error("the threshold `{name}` is {value}; it must be {range}")]
    Threshold {
        /// Field of [`Thresholds`].
        name: &'static str,
        /// The given value.
        value: f64,
        /// The allowed values.
        range: &'static str,
    },
    /// There are more of these than can be numbered.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// Token data could not be written to or read from the scratch directory.
    #[error("token data in {dir}: {source}")]
    Scratch {
        /// [`SimilarityLimits::scratch`].
        dir: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A thread panicked.
    #[error("a worker thread failed")]
    Worker,
}
