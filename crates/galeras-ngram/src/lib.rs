//! A token n-gram language model of Python code: the built-in baseline "model".
//!
//! Here: the tokens (`tokens`, `vocabulary`, `text_hash`), the counts (`trie`), training and leaving texts
//! out (`model`), what the words of a prompt add (`cache`), the choice of the next token
//! (`candidates`, `draw`) and the loop that writes a completion (`complete`). Not here:
//! prompts, rows, threads, and how a seed is derived from a row's id: that is the caller's.
//!
//! The model lets a chain from prompt to score run without a key and without a network, and
//! gives benchmarks a floor: what code looks like that only repeats habits.
//!
//! # The model
//!
//! The next token is drawn from what followed the longest context (`order - 1` tokens down
//! to none) that was seen at all. Lower contexts have no say then: this is the choice of
//! level of "stupid backoff" (Brants et al., *Large Language Models in Machine Translation*,
//! EMNLP 2007), which needs no smoothing because its scores need not sum to one. Before all
//! context is given up, it is generalised once: to the kind of the last token (word, number,
//! white space, sign), a class bigram after Brown et al. (*Class-Based n-gram Models of
//! Natural Language*, Computational Linguistics 18(4), 1992). So an unknown name is followed
//! by what follows names.
//!
//! The prompt takes part as a cache (Kuhn and De Mori, *A Cache-Based Natural Language Model
//! for Speech Recognition*, IEEE TPAMI 12(6), 1990; for code Tu, Su and Devanbu, *On the
//! Localness of Software*, FSE 2014): its n-grams are added to the counts with a weight, and
//! names that it mentions weigh more wherever they are possible.
//!
//! # Leaving out
//!
//! A completion of a row must not profit from the row itself. The texts of the row are named
//! in [`NgramPrompt::own`]; their counts are subtracted while the completion is made. Counts are
//! sums over texts, so this is exact: the completion is, byte for byte, that of a model which
//! never saw these texts.
//!
//! # The same on every machine
//!
//! A completion is a function of the multiset of texts, the order, the prompt and the
//! settings. All weights are integers; candidates are ordered by their text; the order of the
//! texts, threads, hash tables and floating-point functions have no influence.

mod cache;
mod candidates;
mod complete;
mod draw;
mod model;
mod text_hash;
mod tokens;
mod trie;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use complete::{Completion, CompletionBuffers, CompletionSettings, Finish, NgramPrompt};
pub use model::{NgramModel, TooLong};
pub use tokens::count_tokens;
