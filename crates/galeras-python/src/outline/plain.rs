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
//! than blanks, tabs and `\n`, and deep nesting. The tests compare it with tree-sitter on programs
//! made for it, on programs made against it, and on every piece of the standard library, if they
//! are told where that is.

mod expressions;
mod lexer;
mod simple;
mod statements;

pub(crate) use statements::Definition;
use statements::Statements;

/// The definitions of a text in the order of their first byte, and how many nodes its tree has at
/// most; `None` if it is not plain. `in_class`: the text is indented, the body of a class.
pub(super) fn read(text: &str, in_class: bool) -> Option<(Vec<Definition>, usize)> {
    Statements::new(text.as_bytes()).run(in_class)
}
