//! Galeras: declarative, reproducible benchmarks for code language models.
//!
//! The program: the verbs of the command line over the crates below `crates/`.

pub mod cli;
pub mod registry;
