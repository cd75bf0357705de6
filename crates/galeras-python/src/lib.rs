//! Pure algorithms over Python source: decoding, finding methods, measuring them.
//!
//! Nothing here knows Arrow or files: texts go in, plain values come out. Every function
//! gives the same result for the same text on every machine, and ends in bounded time and memory
//! on any text.
//!
//! | file | holds |
//! |---|---|
//! | `decode` | bytes -> text (byte-order mark, PEP 263) |
//! | `language` | the grammar, with its table laid out for speed |
//! | `parse` | text -> tree-sitter tree within a budget |
//! | `parses` | whether a text is Python, without its tree where there is no doubt |
//! | `methods` | text -> its methods |
//! | `features` | the text of a method -> the columns of operator `ast` |
//! | `docstring` | a text without its docstring |
//! | `distinct` | the distinct words and names of a text |
//! | `recount` | the same columns counted by other means, as a check |
//! | `cut_points` | the text of a method -> the bytes at which it may be cut |
//! | `ends` | two texts -> the lines with which both begin and end |
//! | `outline` | versions of a file -> their methods, from pieces that were seen before |
//! | `scope` | the walk by which `methods` and `outline` find definitions |
//! | `pattern` | tests on the syntax of a text: node types, tree-sitter queries |
//! | `predicates` | where a query may have its predicates |
//! | `calls` | the text of a method -> the names of what it calls |
//! | `taxonomy` | any text -> its tokens by category |
//! | `lizard` | size metrics of a method's text as lizard counts them |
//! | `tokens`, `scan` | the tokenizer of `lizard`; the ends of words and strings |

mod calls;
mod cut_points;
mod decode;
mod distinct;
mod docstring;
mod ends;
mod features;
mod language;
#[cfg(test)]
mod library;
mod lizard;
mod methods;
mod outline;
mod parse;
mod parses;
mod pattern;
mod predicates;
mod quantifiers;
mod recount;
mod scan;
mod scope;
mod taxonomy;
mod tokens;

pub use calls::calls;
pub use cut_points::{cut_points, docstring_end, signature_end};
pub use decode::{DecodeError, Decoded, decode_source};
pub use ends::Ends;
pub use features::words;
pub use features::{DocstringRule, Features, features, features_with};
pub use lizard::{CodeSize, size};
pub use methods::{PythonMethod, methods};
pub use outline::{Outline, OutlineMethod, Pieces};
pub use parse::with_parser;
pub use parse::{ParseError, PythonParser};
pub use parses::parses;
pub use pattern::{PatternError, SyntaxPattern, node_kinds};
pub use recount::{BodyFacts, Recount, Recounter};
pub use scan::is_space;
pub use taxonomy::{CATEGORIES, taxonomy, taxonomy_published};
