//! Exact near-duplicate detection by set and multiset Jaccard similarity.
//!
//! | file | holds |
//! |---|---|
//! | `search`, `error` | what is asked, and why a search ends without a result |
//! | `word_splitter`, `reader` | texts and token ids -> counted documents |
//! | `merge`, `corpus` | all documents of a run, and the questions they answer |
//! | `join`, `index` | the exact search for similar pairs |
//! | `minhash` | the search by MinHash signatures |
//! | `bounds` | the decision about one pair |
//! | `components` | similar pairs -> connected components |
//! | `keys`, `vocabulary` | numbers for tokens |
//! | `store` | token data in memory or on disk |
//! | `stoppable` | polling, sorting in pieces, threads |
//!
//! Two documents are similar iff the Jaccard similarity of their token sets and that of
//! their token multisets (sum of the minima by sum of the maxima) reach their thresholds.
//! Source of this definition: `DuplicateDetector` of dpu_utils 0.6.1.
//!
//! Results depend on the documents and thresholds only: not on the number of threads, the
//! memory, the order of reading or the platform.

mod bounds;
mod components;
mod corpus;
mod error;
mod index;
mod join;
mod keys;
#[cfg(test)]
mod large_tests;
mod merge;
mod minhash;
mod reader;
mod search;
mod stoppable;
mod store;
#[cfg(test)]
mod tests;
mod vocabulary;
mod word_splitter;

pub use bounds::jaccard;
pub use corpus::Corpus;
pub use error::SimilarityError;
pub use minhash::expected_recall;
pub use reader::CorpusReader;
pub use search::{
    CorpusCounts, PairProgress, PairSearch, PairSink, SimilarityLimits, StopFlag, Thresholds,
};
