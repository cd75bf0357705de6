//! Errors of a search.

use std::io;
use std::path::PathBuf;

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
        /// [`SimilarityLimits::memory`](super::SimilarityLimits::memory).
        memory: usize,
    },
    /// A threshold is out of range.
    #[error("the threshold `{name}` is {value}; it must be {range}")]
    Threshold {
        /// Field of [`Thresholds`](super::Thresholds).
        name: &'static str,
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
        /// [`SimilarityLimits::scratch`](super::SimilarityLimits::scratch).
        dir: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A thread panicked.
    #[error("a worker thread failed")]
    Worker,
}
