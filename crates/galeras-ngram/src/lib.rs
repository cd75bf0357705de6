//! A token n-gram language model of Python code: the built-in baseline "model".
//!
//! The model lets a chain from prompt to score run without a key and without a network, and gives
//! benchmarks a floor: code that only repeats habits.
//!
//! # The model
//! The next token is drawn from those that followed the longest known context (`order - 1` tokens
//! down to none). Shorter contexts have no influence: this is the choice of level of "stupid
//! backoff" (Brants et al., *Large Language Models in Machine Translation*, EMNLP 2007), which
//! needs no smoothing because its scores need not sum to one. Before the context is dropped
//! entirely, it is generalised to the kind of the last token (word, number, white space, sign), a
//! class bigram after Brown et al. (*Class-Based n-gram Models of Natural Language*, Computational
//! Linguistics 18(4), 1992). So an unknown name is followed by tokens that follow names.
//!
//! The prompt acts as a cache (Kuhn and De Mori, *A Cache-Based Natural Language Model for Speech
//! Recognition*, IEEE TPAMI 12(6), 1990; for code Tu, Su and Devanbu, *On the Localness of
//! Software*, FSE 2014): its n-grams are added to the counts with a weight, and names that it
//! mentions weigh more.
//!
//! # Leaving out
//! A completion of a row must not profit from the row itself. [`NgramPrompt::own`] lists the texts
//! of the row; their counts are subtracted. Counts are sums over texts, so this is exact: the
//! completion is, byte for byte, that of a model trained without these texts.
//!
//! # The same on every machine
//! A completion is a function of the multiset of texts, the order, the prompt and the settings. All
//! weights are integers, and candidates are ordered by their text. The order of the texts, threads,
//! hash tables and floating-point functions have no influence.

mod cache;
mod candidates;
mod complete;
mod draw;
mod model;
mod tokens;
mod trie;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use complete::{Completion, CompletionBuffers, CompletionSettings, Finish, NgramPrompt};
pub use model::{NgramModel, TooLong};
pub use tokens::count_tokens;
