//! Why a search ends without a result.

use std::io;
use std::path::PathBuf;

/// Why the search has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimilarityError {
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The distinct tokens alone need more than the memory limit.
    #[error("the vocabulary needs {needed} bytes of memory; the limit is {memory} bytes")]
    Vocabulary {
        /// Bytes that the table of distinct tokens was about to take.
        needed: usize,
        /// [`SimilarityLimits::memory`](super::SimilarityLimits::memory).
        memory: usize,
    },
    /// A threshold is not in its range.
    #[error("the threshold `{name}` is {value}; it must be {range}")]
    Threshold {
        /// Field of [`Thresholds`](super::Thresholds).
        name: &'static str,
        /// Its value.
        value: f64,
        /// The values that it may have.
        range: &'static str,
    },
    /// More of something than can be numbered.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// Token data could not be written to or read from the scratch directory.
    #[error("token data in {dir}: {source}")]
    Scratch {
        /// [`SimilarityLimits::scratch`](super::SimilarityLimits::scratch).
        dir: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// A thread of the module ended unexpectedly.
    #[error("a worker thread failed")]
    Worker,
}
