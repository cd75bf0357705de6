//! Exact near-duplicate detection by set and multiset Jaccard similarity.
//!
//! | file | contents |
//! |---|---|
//! | `search` | thresholds, limits and errors of a search |
//! | `word_splitter`, `reader` | texts and token ids to counted documents |
//! | `merge`, `corpus` | all documents of a run, and the queries on them |
//! | `join`, `index` | the exact search for similar pairs |
//! | `minhash` | the search by MinHash signatures |
//! | `bounds` | the decision about one pair |
//! | `components` | similar pairs to connected components |
//! | `token_rows`, `targets` | rows that are compared with other tables |
//! | `near_index`, `gram_index`, `near_probe` | the search for documents near to a row |
//! | `nearness` | measures of nearness, and the nearest row |
//! | `ngrams` | n-grams of sequences of tokens |
//! | `keys`, `vocabulary` | numbers for tokens |
//! | `store` | token data in memory or on disk |
//! | `stoppable` | polling, sorting in pieces, threads |
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
mod merge;
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
mod targets;
#[cfg(test)]
mod tests;
mod token_rows;
mod vocabulary;
mod word_splitter;

pub use corpus::Corpus;
pub use minhash::expected_recall;
pub use near_index::NearIndex;
pub use near_probe::NearProbe;
pub use nearness::{NGRAMS, NearRow, NearThresholds, Nearest, Nearness};
pub use reader::CorpusReader;
pub use search::{
    CorpusCounts, PairProgress, PairSearch, SimilarityError, SimilarityLimits, StopFlag, Thresholds,
};
pub use targets::Targets;
pub use token_rows::TokenRows;
