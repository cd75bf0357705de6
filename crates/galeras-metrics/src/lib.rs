//! Scores of a text against a reference text (BLEU, CodeBLEU, chrF, ROUGE-L, edit distance), and
//! agreement of raters.
//!
//! `text` compares strings, `codebleu` compares Python code by tokens, syntax and data flow,
//! `agreement` compares labels, `classifier` corrects shares that an imperfect classifier finds.

pub mod agreement;
pub mod classifier;
pub mod codebleu;
mod grams;
mod interner;
pub mod text;
