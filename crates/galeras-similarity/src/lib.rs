//! Exact near-duplicate detection by set and multiset Jaccard similarity.
//!
//! Here: the types that callers see and the helpers that every part shares. Not here:
//! splitting text (`words`), counting (`reader`), what is known of all documents (`corpus`),
//! finding similar pairs (`join`, `minhash`), joining them to components (`components`),
//! the decision about one pair (`bounds`), token data in memory or on disk (`store`).
//!
//! Two documents are similar iff the Jaccard similarity of their token sets and that of
//! their token multisets (sum of the minima by sum of the maxima) reach their thresholds.
//! Source of this definition: `DuplicateDetector` of dpu_utils 0.6.1.
//!
//! Results depend on the documents and thresholds only: not on the number of threads, the
//! memory, the order of reading or the platform.

use std::io;
use std::path::PathBuf;

mod bounds;
mod components;
mod corpus;
mod index;
mod join;
mod keys;
#[cfg(test)]
mod large_tests;
mod merge;
mod minhash;
mod polled;
mod reader;
mod store;
#[cfg(test)]
mod tests;
mod vocabulary;
mod words;

pub use bounds::jaccard;
pub use corpus::Corpus;
pub use minhash::expected_recall;
pub use reader::Reader;

/// When two documents are similar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Least set similarity, in (0, 1], inclusive.
    pub set: f64,
    /// Least multiset similarity, in [0, 1], inclusive.
    pub multiset: f64,
    /// Documents with fewer tokens, counted with repetition, are similar to nothing. Only
    /// raises what the [`Reader`] was given: what a reader left out stays out.
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
pub enum Method {
    /// Finds all pairs.
    Exact,
    /// Finds the pairs that share a band of their MinHash signatures; [`expected_recall`]
    /// tells how many that are.
    MinHash,
}

/// What the module may use.
#[derive(Clone, Debug)]
pub struct Limits {
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

impl Limits {
    fn threads(&self) -> usize {
        self.threads.max(1)
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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
/// [`Corpus::groups`] for the others. [`Method::MinHash`] may find a pair several times.
pub trait PairSink: Sync {
    /// Whether the pair is of interest, if similar: a "no" saves its comparison.
    fn wants(&self, a: u32, b: u32) -> bool;
    /// A similar pair of rows, `a < b`, with its set and multiset similarity.
    fn found(&self, a: u32, b: u32, set: f64, multiset: f64);
}

/// Asked in every phase, at least every 50 ms: whether to end with [`Error::Stopped`].
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Told now and then how much is done, and of how much (in no particular unit).
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The distinct tokens alone need more than the memory limit.
    #[error("the vocabulary needs {needed} bytes of memory, the limit is {memory} bytes")]
    Vocabulary {
        /// Bytes that the table of distinct tokens was about to take.
        needed: usize,
        /// [`Limits::memory`].
        memory: usize,
    },
    /// A threshold is no similarity.
    #[error("threshold {name} is {value}, it must be {range}")]
    Threshold {
        /// Field of [`Thresholds`].
        name: &'static str,
        /// Its value.
        value: f64,
        /// The values that it may have.
        range: &'static str,
    },
    /// More of something than its numbers can tell apart.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// Token data could not be written to or read from the scratch directory.
    #[error("token data in {dir}: {source}")]
    Scratch {
        /// [`Limits::scratch`].
        dir: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// A thread of the module ended unexpectedly.
    #[error("a worker thread failed")]
    Worker,
}
