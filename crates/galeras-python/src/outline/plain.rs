//! Plain code: pieces that are read without tree-sitter, ten times as fast.
//!
//! Here: a recogniser for the part of Python about which there is no doubt, that is most of what
//! people write. It answers with the definitions and their places, or with `None`, and then the
//! piece is parsed by tree-sitter, as any other. Not here: what is done with definitions (`piece`).
//!
//! It must never answer where tree-sitter finds an error, and always give what its tree has. So
//! left out is all that the two could read in different ways: words that are names as well as
//! statements (`match`, `type`, `exec`, and `print` but for calls), `:=`, lines that end with a
//! comma, lines within brackets that stand left of their block, f-strings with more than simple
//! expressions in them, `\N{…}`, letters of other scripts outside of strings, white space other
//! than blanks, tabs and `\n`, and deep nesting. The nodes and levels that it counts are those of the
//! tree, unless it says that they may not be: with expressions in f-strings, backslashes at the ends of
//! lines or in raw strings, and types in brackets. The tests compare it with tree-sitter on programs
//! made for it, on programs made against it, and on every piece of the standard library, if they
//! are told where that is.

mod brackets;
mod expressions;
mod lexer;
mod simple;
mod statements;

use statements::Statements;
pub(crate) use statements::{Definition, Plain};

/// What a text has, if it is plain. `in_class`: the text is indented, the body of a class.
pub(super) fn read(text: &str, in_class: bool) -> Option<Plain> {
    Statements::new(text.as_bytes()).run(in_class)
}
