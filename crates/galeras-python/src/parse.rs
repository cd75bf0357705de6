//! Python text -> tree-sitter tree, with a bound on work and memory.
//!
//! Here: the one parser type that everything over Python syntax shares, its limits and its
//! errors. Not here: what is read off a tree (`features`, `methods`), bytes to text
//! (`decode`), tokens for the size metrics (`tokens`, `lizard`).
//!
//! The bounds are counts, never a clock: the same text gives the same result on every
//! machine and at every load (a clock chooses between two ways to it, see
//! [`PythonParser::parse_anew`]). Three things are counted, because each has hostile texts that
//! leave the others low:
//! - parse operations (tree-sitter's progress callback comes once per 100 of them): they
//!   bound the nodes, so time and memory;
//! - bytes handed to the lexer: its external scanner may read far ahead for every token;
//! - recoveries from syntax errors: tree-sitter merges adjoining errors by copying them, so
//!   a text of nothing but errors takes quadratic time. They are only visible in the parse
//!   log, which makes parsing 2 to 3 times slower, so they are counted only in long texts in
//!   which the parser meets an error.
//!
//! The tree is built, balanced and freed by tree-sitter with explicit stacks: depth costs
//! memory, not stack.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tree_sitter::{LogType, ParseOptions, ParseState, Parser, Point, Tree};

use super::language::language;

/// A reusable Python parser; one per thread.
pub struct PythonParser {
    parser: Parser,
    /// The texts that were parsed last, with their trees; the latest is the first.
    last: Vec<(String, Tree)>,
    /// Operations of the last parse, at most.
    ops: usize,
    /// Buffers of the size metrics, here so that one object carries all reusable memory.
    pub(super) buffers: super::lizard::Buffers,
}

/// Why a text has no tree.
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
    /// The text used up its budget of parse work (hostile nesting or noise).
    #[error("Python text needs more parse work than its length allows")]
    TooComplex,
    /// tree-sitter gave no tree: the grammar could not be loaded, or the parser is in use.
    #[error("the Python parser is not available")]
    NoTree,
}

/// Longest text that is parsed, in bytes. The largest Python files in use, generated
/// tables, hold about 2 MB.
const MAX_BYTES: usize = 4 << 20;

/// Parse operations between two calls of the progress callback
/// (`OP_COUNT_PER_PARSER_TIMEOUT_CHECK` in tree-sitter's `parser.c`).
const OPS_PER_CALL: usize = 100;

/// Operations that every text may use, however short.
const BASE_OPS: usize = 100_000;

/// Operations per byte on top of [`BASE_OPS`]. CPython's library uses 0.5, its densest file
/// 1.4; noise reaches 5.
const OPS_PER_BYTE: usize = 6;

/// Operations that no text may exceed. The longest text of nothing but brackets, one node of
/// some 250 bytes per byte, makes a tree of about 1 GB.
const MAX_OPS: usize = 12_000_000;

/// Bytes given to the lexer at a time.
const CHUNK: usize = 4096;

/// Lexer bytes that every text may use.
const BASE_READ: usize = 4 << 20;

/// Lexer bytes per byte on top of [`BASE_READ`]. CPython's library needs up to 19.
const READ_PER_BYTE: usize = 64;

/// Texts longer than this have their error recoveries counted.
const COUNTED_BYTES: usize = 64 << 10;

/// Error recoveries in a text longer than [`COUNTED_BYTES`].
const MAX_RECOVERIES: usize = 4_000;

/// Time that a long text may take before its recoveries are counted: this much, and as much
/// more for each call of the progress callback. Code takes 30 µs from one call to the next; noise
/// takes longer the more of it there is.
const QUIET_TIME: Duration = Duration::from_millis(20);
const QUIET_TIME_PER_CALL: Duration = Duration::from_micros(200);

/// How many trees are kept, and of texts up to which length: a tree has some hundred times as
/// many bytes as its text.
const KEPT_TREES: usize = 2;
const KEPT_BYTES: usize = 16 << 10;

impl PythonParser {
    /// A parser with the Python grammar loaded.
    ///
    /// # Errors
    /// [`ParseError::NoTree`] if the grammar does not fit the linked tree-sitter.
    pub fn new() -> Result<Self, ParseError> {
        let mut parser = Parser::new();
        parser.set_language(language()).map_err(|_| ParseError::NoTree)?;
        Ok(Self { parser, last: Vec::new(), ops: 0, buffers: super::lizard::Buffers::default() })
    }

    /// The syntax tree of `text` by tree-sitter-python; syntax errors are nodes of the tree, not
    /// errors. Offsets in the tree are bytes, rows and columns (in bytes), all counted from 0.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] over 4 MiB; [`ParseError::TooComplex`] if parsing takes more
    /// operations than the length of the text allows (see the head of this file). Both depend on
    /// the text alone. [`ParseError::NoTree`] if tree-sitter gives up for another reason.
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

    /// The tree of a text that was parsed just now: several scores of one text ask for its tree
    /// one after the other.
    pub(super) fn kept(&mut self, text: &str) -> Option<Tree> {
        let at = self.last.iter().position(|(known, _)| known == text)?;
        self.last[..=at].rotate_right(1);
        self.last.first().map(|(_, tree)| tree.clone())
    }

    /// The operations that the last parse took, at most.
    pub(super) fn ops(&self) -> usize {
        self.ops
    }

    /// As [`PythonParser::parse`], for a text that nobody else asks the tree of: it is not kept.
    pub(super) fn parse_anew(&mut self, text: &str) -> Result<Tree, ParseError> {
        let bytes = text.as_bytes();
        if bytes.len() > MAX_BYTES {
            return Err(ParseError::TooLarge { bytes: bytes.len(), limit: MAX_BYTES });
        }
        if bytes.len() <= COUNTED_BYTES {
            return self.run(text, Recoveries::Few);
        }
        // Where the parser meets no error there is nothing to recover from, and nothing to count.
        // The parser says that it met one only when it finds no way on, so noise is known by its
        // time as well: a tree without errors is the same whether recoveries were counted or not,
        // and every other result is that of the parse that counts.
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
        self.ops = (calls + 1) * OPS_PER_CALL;
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

/// What is done about recoveries from syntax errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recoveries {
    /// The text is too short for many.
    Few,
    /// The parse is given up where there may be an error.
    None,
    /// They are counted.
    Counted,
}

thread_local! {
    static PARSER: RefCell<Option<PythonParser>> = const { RefCell::new(None) };
}

/// Calls `f` with this thread's parser, which is made at the first call, and returns what `f`
/// does.
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
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
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
