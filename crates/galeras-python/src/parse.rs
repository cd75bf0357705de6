//! Parses Python text to a tree-sitter tree, with limits on work and memory.
//!
//! The limits are counts, not times: the same text gives the same result on every machine and at
//! every load (a clock only chooses between two ways to it, see [`PythonParser::parse_anew`]).
//! Three counts are needed, because hostile texts can keep any two of them low:
//! - parse operations (tree-sitter's progress callback comes once per 100 of them) bound the nodes,
//!   so time and memory;
//! - bytes handed to the lexer: its external scanner may read far ahead for every token;
//! - recoveries from syntax errors: tree-sitter copies adjoining errors to merge them, so a text
//!   full of errors takes quadratic time. Only the parse log shows them, and it makes parsing 2 to
//!   3 times slower, so they are counted only in long texts with an error.
//!
//! tree-sitter builds, balances and frees the tree with explicit stacks: depth costs memory, not
//! stack.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tree_sitter::{LogType, Node, ParseOptions, ParseState, Parser, Point, Tree};

use super::language::language;

/// A reusable Python parser; one per thread.
pub struct PythonParser {
    parser: Parser,
    /// The texts that were parsed last, with their trees, the latest first.
    last: Vec<(String, Tree)>,
}

/// The reason why a text has no tree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text is longer than the parser accepts.
    #[error("Python text of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Length of the text in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The text nests too deep, or used up its budget of parse work (hostile nesting or noise).
    #[error("Python text nests too deep, or needs more parse work than its length allows")]
    TooComplex,
    /// tree-sitter returned no tree: the grammar could not be loaded, or the parser is in use.
    #[error("the Python parser is not available")]
    NoTree,
}

/// Longest text that is parsed, in bytes. Large generated tables in real use have about 2 MB.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// Parse operations between two calls of the progress callback
/// (`OP_COUNT_PER_PARSER_TIMEOUT_CHECK` in tree-sitter's `parser.c`).
const OPS_PER_CALL: usize = 100;

/// Operations that even the shortest text may use.
pub(super) const BASE_OPS: usize = 100_000;

/// Operations per byte on top of [`BASE_OPS`]. CPython's library uses 0.5, its densest file
/// 1.4; noise reaches 5.
pub(super) const OPS_PER_BYTE: usize = 6;

/// Operations that no text may exceed. The longest text of brackets alone, with one node of some
/// 250 bytes per byte, makes a tree of about 1 GB.
const MAX_OPS: usize = 12_000_000;

const CHUNK: usize = 4096;

/// Lexer bytes that even the shortest text may use.
const BASE_READ: usize = 4 << 20;

/// Lexer bytes per byte on top of [`BASE_READ`]. CPython's library needs up to 19.
const READ_PER_BYTE: usize = 64;

/// Error recoveries are counted in texts longer than this.
const COUNTED_BYTES: usize = 64 << 10;

/// Error recoveries in a text longer than [`COUNTED_BYTES`].
const MAX_RECOVERIES: usize = 4_000;

/// A long text may take this long before its recoveries are counted, plus the same for each call of
/// the progress callback. Code takes 30 µs between two calls; noise takes longer the more of it
/// there is.
const QUIET_TIME: Duration = Duration::from_millis(20);
const QUIET_TIME_PER_CALL: Duration = Duration::from_micros(200);

/// The number of kept trees, and the longest text whose tree is kept: a tree is about a hundred
/// times as large as its text.
const KEPT_TREES: usize = 2;
const KEPT_BYTES: usize = 16 << 10;

impl PythonParser {
    /// Creates a parser with the Python grammar.
    ///
    /// # Errors
    /// [`ParseError::NoTree`] if the grammar does not fit the linked tree-sitter.
    pub fn new() -> Result<Self, ParseError> {
        let mut parser = Parser::new();
        parser.set_language(language()).map_err(|_| ParseError::NoTree)?;
        Ok(Self { parser, last: Vec::new() })
    }

    /// The syntax tree of `text`; syntax errors are nodes of the tree. Offsets, rows and columns
    /// are in bytes and counted from 0.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] over 4 MiB; [`ParseError::TooComplex`] if parsing takes more
    /// operations than the length of the text allows (see the top of this file). Both depend only
    /// on the text. [`ParseError::NoTree`] if tree-sitter stops for another reason.
    pub fn parse(&mut self, text: &str) -> Result<Tree, ParseError> {
        if let Some(tree) = self.kept(text) {
            return Ok(tree);
        }
        let tree = self.parse_anew(text)?;
        if text.len() <= KEPT_BYTES {
            self.last.truncate(KEPT_TREES - 1);
            self.last.insert(0, (text.to_owned(), tree.clone()));
        }
        Ok(tree)
    }

    /// The tree of a recently parsed text: several scores ask for the tree of one text.
    fn kept(&mut self, text: &str) -> Option<Tree> {
        let at = self.last.iter().position(|(known, _)| known == text)?;
        self.last[..=at].rotate_right(1);
        self.last.first().map(|(_, tree)| tree.clone())
    }

    /// As [`PythonParser::parse`], but does not keep the tree.
    pub(super) fn parse_anew(&mut self, text: &str) -> Result<Tree, ParseError> {
        let bytes = text.as_bytes();
        if bytes.len() > MAX_BYTES {
            return Err(ParseError::TooLarge { bytes: bytes.len(), limit: MAX_BYTES });
        }
        if bytes.len() <= COUNTED_BYTES {
            return self.run(text, Recoveries::Few);
        }
        // Without an error there are no recoveries to count. The parser reports an error only when
        // it finds no way on, so noise is also recognised by its time. A tree without errors is the
        // same either way; every other result is that of the parse that counts.
        match self.run(text, Recoveries::None) {
            Ok(tree) if !tree.root_node().has_error() => Ok(tree),
            Ok(_) | Err(ParseError::TooComplex) => self.run(text, Recoveries::Counted),
            Err(error) => Err(error),
        }
    }

    fn run(&mut self, text: &str, recover: Recoveries) -> Result<Tree, ParseError> {
        let bytes = text.as_bytes();
        let recoveries = Rc::new(Cell::new(0_usize));
        let counted = recover == Recoveries::Counted;
        if counted {
            let recoveries = Rc::clone(&recoveries);
            self.parser.set_logger(Some(Box::new(move |kind, message| {
                if kind == LogType::Parse && message.starts_with("recover_to_previous") {
                    recoveries.set(recoveries.get() + 1);
                }
            })));
        }
        let max_calls = (BASE_OPS + bytes.len() * OPS_PER_BYTE).min(MAX_OPS) / OPS_PER_CALL;
        let max_read = BASE_READ + bytes.len() * READ_PER_BYTE;
        let started = Instant::now();
        let mut quiet_until = QUIET_TIME;
        let mut calls = 0;
        let mut read = 0;
        let stopped = Cell::new(false);
        let mut progress = |state: &ParseState| {
            calls += 1;
            quiet_until += QUIET_TIME_PER_CALL;
            let noise = recover == Recoveries::None
                && (state.has_error() || started.elapsed() > quiet_until);
            if calls > max_calls || recoveries.get() > MAX_RECOVERIES || noise {
                stopped.set(true);
            }
            stopped.get()
        };
        let mut chunk = |at: usize, _: Point| {
            let end = bytes.len().min(at.saturating_add(CHUNK));
            let chunk = bytes.get(at..end).unwrap_or_default();
            read += chunk.len();
            if read > max_read {
                // To the lexer this is the end of the text.
                stopped.set(true);
                return &bytes[..0];
            }
            chunk
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = self.parser.parse_with_options(&mut chunk, None, Some(options));
        if counted {
            self.parser.set_logger(None);
        }
        match tree {
            Some(tree) if !stopped.get() => Ok(tree),
            _ => {
                // A stopped parse would otherwise be resumed by the next call.
                self.parser.reset();
                Err(if stopped.get() { ParseError::TooComplex } else { ParseError::NoTree })
            }
        }
    }
}

/// How to handle recoveries from syntax errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recoveries {
    /// The text is too short for many.
    Few,
    /// Stop the parse where there may be an error.
    None,
    /// Count them.
    Counted,
}

/// The nodes of a subtree in document order, parents before their children, without recursion.
pub(super) fn nodes<'t>(root: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let mut cursor = root.walk();
    let mut next = Some(root);
    std::iter::from_fn(move || {
        let node = next.take()?;
        let mut moved = cursor.goto_first_child();
        while !moved {
            moved = cursor.goto_next_sibling();
            if !moved && !cursor.goto_parent() {
                return Some(node);
            }
        }
        next = Some(cursor.node());
        Some(node)
    })
}

pub(super) fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).collect()
}

thread_local! {
    static PARSER: RefCell<Option<PythonParser>> = const { RefCell::new(None) };
}

/// Calls `f` with this thread's parser, which is created at the first call, and returns the result.
///
/// # Errors
/// [`ParseError::NoTree`] if there is no parser, or if `f` calls `with_parser` itself.
pub fn with_parser<R>(f: impl FnOnce(&mut PythonParser) -> R) -> Result<R, ParseError> {
    PARSER.with(|slot| {
        let mut slot = slot.try_borrow_mut().map_err(|_| ParseError::NoTree)?;
        let parser = match slot.take() {
            Some(parser) => parser,
            None => PythonParser::new()?,
        };
        Ok(f(slot.insert(parser)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tree, ParseError> {
        PythonParser::new().unwrap().parse(text)
    }

    #[test]
    fn nesting_of_100_000_is_parsed_and_freed_without_recursion() {
        for open in ["(", "[", "{", "not ", "-", "lambda: ", "f("] {
            let tree = parse(&format!("x = {}", open.repeat(100_000)));
            drop(tree.unwrap());
        }
        let closed = format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(!parse(&closed).unwrap().root_node().has_error());
    }

    #[test]
    fn noise_ends_as_too_complex() {
        for noise in ["def ( ] class : = if ", "é→", "def f(", "\\\n"] {
            let error = parse(&noise.repeat(1_000_000 / noise.len())).unwrap_err();
            assert_eq!(error, ParseError::TooComplex, "{noise:?}");
        }
    }

    #[test]
    fn a_stopped_parse_leaves_no_trace_in_the_parser() {
        let mut parser = PythonParser::new().unwrap();
        assert!(parser.parse(&"def f(".repeat(100_000)).is_err());
        let after = parser.parse("x = 1\n").unwrap().root_node().to_sexp();
        assert_eq!(after, parse("x = 1\n").unwrap().root_node().to_sexp());
    }

    #[test]
    fn long_lines_and_nuls_end_in_bounded_work() {
        assert!(parse(&"\0".repeat(1_000_000)).is_ok());
        assert!(parse(&format!("x = '{}'\n", "a".repeat(4_000_000))).is_ok());
        assert!(parse(&format!("x = [{}]\n", "1, ".repeat(500_000))).is_ok());
        let error = parse(&"x".repeat(50 << 20)).unwrap_err();
        assert!(matches!(error, ParseError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_generated_module_of_50_000_lines_passes() {
        let line = "    def method(self, a, b=None): return self.value[a] + [b, 'text'][0]\n";
        let source = format!("class A:\n{}", line.repeat(29_000));
        assert!(source.len() > 2_000_000);
        assert!(!parse(&source).unwrap().root_node().has_error());
        assert!(parse(&"TABLE[0x12] = (1, 'name')\n".repeat(50_000)).is_ok());
    }

    #[test]
    fn the_threads_parser_is_kept_and_not_shared_with_itself() {
        let nested = with_parser(|_| with_parser(|_| ())).unwrap();
        assert_eq!(nested, Err(ParseError::NoTree));
        assert!(with_parser(|parser| parser.parse("x")).unwrap().is_ok());
    }
}
