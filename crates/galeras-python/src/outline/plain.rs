//! Reads plain code without tree-sitter, ten times as fast.
//!
//! A recogniser for the unambiguous part of Python, which is most code. It returns the definitions
//! and their places, or `None`; then tree-sitter parses the piece.
//!
//! It must return `None` where tree-sitter finds an error, and otherwise must equal its tree. So it
//! leaves out everything that the two could read in different ways: words that are both names and
//! statements (`match`, `type`, `exec`, and `print` except in calls), `:=`, lines that end with a
//! comma, lines within brackets left of their block, f-strings with more than simple expressions,
//! `\N{…}`, non-ASCII letters outside strings, white space other than blanks, tabs and `\n`, and
//! deep nesting. Its nodes and levels equal those of the tree unless `exact` is false: with
//! expressions in f-strings, backslashes at the ends of lines or in raw strings, and types in
//! brackets. The tests compare it with tree-sitter on generated and adversarial programs, and on
//! every piece of the standard library if its path is given.

mod expressions;
mod lexer;
mod statements;

use statements::Statements;
pub(crate) use statements::{Definition, PlainCode};

/// The contents of a text, if it is plain. `in_class`: the text is indented, the body of a class.
pub(super) fn read(text: &str, in_class: bool) -> Option<PlainCode> {
    Statements::new(text.as_bytes()).run(in_class)
}
