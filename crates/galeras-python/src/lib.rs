//! Algorithms over Python source: decode it, find its methods, measure them.
//!
//! Plain text goes in, plain values come out: no Arrow, no files. Every function returns the same
//! result for the same text on every machine, in bounded time and memory.
//!
//! `module` parses as Python does: `parses` decides if a text is valid, `methods` and `outline` find
//! methods. `parse` gives the tree of tree-sitter, of which `features`, `lizard` and `taxonomy` measure
//! methods; `recount` checks the measurements by other means.

mod calls;
mod cut_points;
mod decode;
mod features;
mod language;
#[cfg(test)]
mod library;
mod lizard;
mod methods;
mod module;
mod outline;
mod parse;
mod parses;
mod pattern;
mod plain;
mod query_text;
mod recount;
mod scan;
mod taxonomy;
mod tokens;

pub use calls::{call_targets, calls};
pub use cut_points::{cut_points, docstring_end, signature_end};
pub use decode::{DecodeError, Decoded, decode_source};
pub use features::{Features, features, words};
pub use lizard::{CodeSize, size};
pub use methods::{PythonMethod, methods};
pub use outline::{Outline, OutlineMethod, Pieces};
pub use parse::{ParseError, PythonParser, with_parser};
pub use parses::parses;
pub use pattern::{PatternError, SyntaxPattern, node_kinds};
pub use recount::{BodyFacts, Recount, Recounter};
pub use scan::is_space;
pub use taxonomy::{CATEGORIES, taxonomy, taxonomy_of_tokens, taxonomy_published};
