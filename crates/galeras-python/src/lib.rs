//! Algorithms over Python source: decode it, find its methods, measure them.
//!
//! Plain text goes in, plain values come out: no Arrow, no files. Every function returns the same
//! result for the same text on every machine, in bounded time and memory.
//!
//! | file | contents |
//! |---|---|
//! | `decode` | bytes to text (byte-order mark, PEP 263) |
//! | `language` | the grammar, with its table expanded for speed |
//! | `parse` | text to a tree-sitter tree, within limits |
//! | `parses` | is a text valid Python? |
//! | `methods` | text to its methods |
//! | `features` | a method to the columns of operator `ast` |
//! | `docstring` | a method without its docstring |
//! | `distinct` | counts distinct words and names |
//! | `recount` | the same columns computed differently, as a check |
//! | `cut_points` | the bytes at which a method may be cut |
//! | `ends` | the lines that two texts share at both ends |
//! | `outline` | the methods of many versions of a file, from shared pieces |
//! | `scope` | the walk by which `methods` and `outline` find definitions |
//! | `pattern` | tests on syntax: node types, tree-sitter queries |
//! | `query_text` | checks of queries that tree-sitter mishandles |
//! | `calls` | the names that a method calls |
//! | `taxonomy` | tokens by category |
//! | `lizard` | size metrics as lizard counts them |
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
mod query_text;
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
