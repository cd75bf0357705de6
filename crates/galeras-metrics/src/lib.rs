//! Scores of a text against a reference text (BLEU, CodeBLEU, chrF, ROUGE-L, edit distance), and
//! agreement of raters.
//!
//! `text` compares strings, `codebleu` compares Python code by tokens, syntax and data flow,
//! `agreement` compares labels.

pub mod agreement;
pub mod codebleu;
mod grams;
mod interner;
pub mod text;
