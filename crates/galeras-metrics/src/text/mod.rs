//! Scores of a text against a reference text: edit distance, BLEU, chrF, ROUGE-L and pass@k.
//!
//! Every score is between 0 and 1 and equals that of the peer named in its file, divided by 100
//! where the peer gives percentages. Scorers keep their buffers between calls: use one per thread
//! for all rows.

mod bleu;
mod bleu_tokens;
mod chrf;
mod code_tokens;
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
pub use continuation::{Beginning, Continuation, GivenCode};
pub use levenshtein::Levenshtein;
pub use pass_at_k::{pass_at_k, pass_hat_k};
pub use rouge::{RougeL, RougeWords};

/// The parts of two sequences between their common beginning and end, and how many items those
/// have together.
fn without_common_ends<'a, T: Eq>(a: &'a [T], b: &'a [T]) -> (&'a [T], &'a [T], usize) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    (&a[..a.len() - end], &b[..b.len() - end], start + end)
}
