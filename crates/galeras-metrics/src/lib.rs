//! Scores of a text against a reference text: BLEU, CodeBLEU, chrF, ROUGE-L, edit distance.
//!
//! `text` compares strings, `codebleu` compares Python code by its tokens, syntax and data flow.
//! Reading tables is the caller's.

pub mod codebleu;
pub mod text;
