//! Exact near-duplicate detection by set and multiset Jaccard similarity.
//!
//! `corpus` merges documents and connects similar ones, by `join` exactly or by `minhash`.
//! `near_index` and `near_probe` find the documents that are near to rows of other tables. `bounds`
//! decides about a pair.
//!
//! Two documents are similar iff the Jaccard similarity of their token sets and that of their token
//! multisets (sum of the minima by sum of the maxima) reach their thresholds. Source of this
//! definition: `DuplicateDetector` of dpu_utils 0.6.1.
//!
//! Results depend only on the documents and thresholds: not on the number of threads, the memory,
//! the order of reading or the platform.

mod bounds;
mod components;
mod corpus;
mod gram_index;
mod index;
mod join;
mod keys;
#[cfg(test)]
mod large_tests;
mod minhash;
mod near_index;
mod near_probe;
#[cfg(test)]
mod near_tests;
mod nearness;
mod ngrams;
mod reader;
mod search;
mod stoppable;
mod store;
#[cfg(test)]
mod tests;
mod token_rows;
mod vocabulary;
mod word_splitter;

pub use corpus::Corpus;
pub use minhash::expected_recall;
pub use near_index::{NearIndex, Targets};
pub use near_probe::NearProbe;
pub use nearness::{NGRAMS, NearRow, NearThresholds, Nearest, Nearness};
pub use reader::CorpusReader;
pub use search::{
    CorpusCounts, PairProgress, PairSearch, SimilarityError, SimilarityLimits, StopFlag, Thresholds,
};
pub use token_rows::TokenRows;
