//! Scores of a text against a reference text: BLEU, CodeBLEU, chrF, ROUGE-L, edit distance; and of
//! raters against each other.
//!
//! `text` compares strings, `codebleu` compares Python code by its tokens, syntax and data flow,
//! `agreement` compares labels that people gave. Reading tables is the caller's.

pub mod agreement;
pub mod codebleu;
pub mod text;
