//! CodeBLEU of Python texts (Ren et al. 2020, arXiv:2009.10297), as PyPI's `codebleu` 0.7.0 and
//! CodeXGLUE compute it or with their faults mended; see [`CodeBleuMode`].
//!
//! Here: the score of a hypothesis against a reference, and the counts from which a corpus
//! has its score. Not here: reading tables, Python's grammar and its bounds
//! (`galeras_python`), other scores.
//!
//! | file | holds |
//! |---|---|
//! | `scorer` | the entry: a reference, a hypothesis, a score |
//! | `readings` | what was read of texts that may come again |
//! | `mode` | whose numbers are given |
//! | `counts` | counts that add up -> scores |
//! | `ngram` | n-grams of tokens between white space |
//! | `syntax` | a tree -> its subtrees, and the tokens for `dataflow` |
//! | `dataflow` | the tokens -> what comes from what |
//! | `token_text` | which text a token has |
//! | `strip` | comments taken out as the peers do it |
//! | `symbols` | interning and hashing |
//!
//! Every function gives the same result for the same texts on every machine, and ends in
//! bounded time and memory on any text.

mod counts;
mod dataflow;
mod mode;
mod ngram;
#[cfg(test)]
mod peers;
mod readings;
mod scorer;
mod strip;
mod symbols;
mod syntax;
mod token_text;

pub use counts::{CodeBleuCounts, CodeBleuScores, EQUAL_WEIGHTS};
pub use mode::CodeBleuMode;
pub use readings::CodeBleuReadings;
pub use scorer::{CodeBleu, CodeBleuReference};
