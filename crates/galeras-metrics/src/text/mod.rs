//! Scores of a text against a reference text: edit distance, BLEU, chrF, ROUGE-L and pass@k.
//!
//! Every score is between 0 and 1 and equals that of the peer named in its file, divided by 100
//! where the peer gives percentages. Scorers keep their buffers between calls: use one per thread
//! for all rows.

mod bleu;
mod bleu_tokens;
mod chrf;
mod continuation;
mod levenshtein;
mod pass_at_k;
mod rouge;
#[cfg(test)]
pub(crate) mod tests;

/// A limit on the steps for one pair of texts in unattended work: some minutes, enough for two and
/// a half million characters (or words) on each side with nothing in common; a million take less
/// than a minute. See [`Levenshtein::distance_within`] and [`RougeL::score_within`].
pub const MAX_STEPS: u64 = 1 << 37;

pub use bleu::{Bleu, BleuOptions, BleuSmoothing, BleuStatistics};
pub use bleu_tokens::BleuTokenizer;
pub use chrf::{Chrf, ChrfStatistics};
pub use continuation::{Continuation, continuation};
pub use levenshtein::Levenshtein;
pub use pass_at_k::pass_at_k;
pub use rouge::{RougeL, RougeWords};
