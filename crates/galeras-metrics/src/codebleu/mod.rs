//! CodeBLEU of Python texts (Ren et al. 2020, arXiv:2009.10297).
//!
//! Here: the score of a hypothesis against a reference, and the counts from which a corpus
//! has its score. Not here: reading tables, Python's grammar and its bounds
//! (`functions::python`), other scores.
//!
//! | file | holds |
//! |---|---|
//! | `scorer` | the entry: a reference, a hypothesis, a score |
//! | `counts` | counts that add up -> scores |
//! | `ngram` | n-grams of tokens between white space |
//! | `syntax` | a tree -> its subtrees, and the tokens for `dataflow` |
//! | `dataflow` | the tokens -> what comes from what |
//! | `text` | which text a token has |
//! | `strip` | comments taken out as the peers do it |
//! | `names` | interning and hashing |
//!
//! Every function gives the same result for the same texts on every machine, and ends in
//! bounded time and memory on any text.

mod counts;
mod dataflow;
mod names;
mod ngram;
#[cfg(test)]
mod peers;
mod scorer;
mod strip;
mod syntax;
mod text;

pub use counts::{Counts, EQUAL_WEIGHTS, Scores};
pub use scorer::{CodeBleu, Mode, Reference};
