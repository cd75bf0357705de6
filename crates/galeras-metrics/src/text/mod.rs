//! Scores of a text against a reference text.
//!
//! Here: edit distance, BLEU, chrF, ROUGE-L and pass@k, as plain functions of strings and
//! counts, and what a text adds to one that was given. Not here: tables and operators that call
//! them, and scores that need a parser.
//!
//! Every score is between 0 and 1 and is that of the peer named in its file, divided by 100
//! where the peer gives percentages. What computes one keeps its buffers between calls: make
//! one per thread and use it for all rows.

mod bleu;
mod bleu_tokens;
mod char_class;
mod chrf;
mod continuation;
mod grams;
mod interner;
mod levenshtein;
mod pass_at_k;
#[cfg(test)]
mod peers;
mod rouge;

/// The most steps that a pair of texts should take where nobody waits for a single one: some
/// minutes, enough for two and a half million characters (or words) of each that have nothing in
/// common; a million take less than one. See [`Levenshtein::distance_within`] and
/// [`RougeL::score_within`].
pub const MAX_STEPS: u64 = 1 << 37;

pub use bleu::{Bleu, BleuOptions, BleuSmoothing, BleuStatistics};
pub use bleu_tokens::{BleuTokenizer, TokenBuffers};
pub use chrf::{Chrf, ChrfStatistics};
pub use continuation::{Continuation, continuation};
pub use levenshtein::Levenshtein;
pub use pass_at_k::pass_at_k;
pub use rouge::{RougeL, RougeWords};
