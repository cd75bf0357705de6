//! CodeBLEU of Python texts (Ren et al. 2020, arXiv:2009.10297), as PyPI's `codebleu` 0.7.0 and
//! CodeXGLUE compute it or with their bugs fixed; see [`CodeBleuMode`].
//!
//! Every function gives the same result for the same texts on every machine, and takes bounded time
//! and memory on any text.

mod counts;
mod dataflow;
mod ngram;
mod scorer;
mod strip;
mod symbols;
mod syntax;
#[cfg(test)]
mod tests;
mod token_text;

pub use counts::{CodeBleuCounts, CodeBleuScores, EQUAL_WEIGHTS};
pub use scorer::{CodeBleu, CodeBleuMode, CodeBleuReference};
