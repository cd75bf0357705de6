//! Fuzz targets: functions of bytes that must neither panic nor see a promise broken.
//!
//! | file | holds |
//! |---|---|
//! | `python`, `scores` | Python, patterns in it, and scores; what they must equal |
//! | `graph`, `ngram`, `similarity` | the other algorithms, against brute force |
//! | `chat`, `github` | the answers of a model server, and of GitHub |
//! | `git`, `git_script` | Git objects and packs |
//! | `loopback` | the server on this machine that gives the answers |
//! | `engine` | workflow files, templates, SQL, stored files, tables, bundles, what else users give |
//! | `corpus` | committed inputs, and changes of them without a fuzzer |
//!
//! A target is a [`Target`] in [`targets`]; its committed inputs are in `fuzz/corpus/NAME`, its
//! words, if it has any, in `fuzz/dictionaries/NAME.dict`. `tests/corpus.rs` runs all of them in
//! `cargo test`; `fuzz/libfuzzer` is the program that searches by coverage, which
//! `benches/fuzz.sh` builds and runs.

// A broken promise is a panic, which a fuzzer reports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chat;
mod corpus;
#[cfg(feature = "engine")]
mod engine;
mod git;
mod git_script;
mod github;
mod graph;
mod loopback;
mod ngram;
mod python;
mod scores;
mod similarity;

pub use corpus::{CorpusFile, Mutator, corpus, dictionary};

/// A function that is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Takes an input; panics if a promise is broken.
    pub run: fn(&[u8]),
}

/// All targets that were built, those of the algorithms first.
pub fn targets() -> Vec<Target> {
    let target = |name, run| Target { name, run };
    #[allow(unused_mut)]
    let mut all = vec![
        target("python_outline", python::outline),
        target("python_measures", python::measures),
        target("python_pattern", python::pattern),
        target("text_scores", scores::texts),
        target("codebleu", scores::codebleu),
        target("similarity", similarity::join),
        target("ngram", ngram::leaving_out),
        target("causal_graph", graph::questions),
        target("chat_answers", chat::answers),
        target("github_answers", github::answers),
        target("git_objects", git::objects),
        target("git_pack", git::pack),
    ];
    #[cfg(feature = "engine")]
    all.extend(engine::targets());
    all
}

/// The texts of an input, which lines of `%%` part. Bytes that are not UTF-8 are replaced.
fn texts(input: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(input).split("\n%%\n").map(str::to_owned).collect()
}

/// True for a score between 0 and 1, but for the last bits of a sum.
fn is_share(score: f64) -> bool {
    (0.0..=1.0 + 1e-9).contains(&score)
}
