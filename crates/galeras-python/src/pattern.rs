//! Searches syntax by node type or tree-sitter query.
//!
//! A regular expression cannot do this: a `try` in a docstring is not a `try_statement`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use thiserror::Error;
use tree_sitter::{Query, QueryCursor, QueryCursorOptions, StreamingIterator};

use super::language::language;
use super::parse::{ParseError, PythonParser, nodes};
use super::query_text::mistake;

/// Steps of a query's search (tree-sitter reports one of 100) that every text may use.
const BASE_STEPS: usize = 100_000;
/// Steps per node of the tree on top of [`BASE_STEPS`].
const STEPS_PER_NODE: usize = 200;
const STEPS_PER_CALL: usize = 100;
/// Unfinished matches that a query may have at one time.
const OPEN_MATCHES: u32 = 4096;

/// Bytes of a query. tree-sitter recurses for each bracket or name in it, so a longer one could
/// overflow the thread's stack.
const MAX_QUERY_BYTES: usize = 8 << 10;

/// A pattern to find in a syntax tree of tree-sitter-python.
#[derive(Debug)]
pub struct SyntaxPattern(PatternKind);

#[derive(Debug)]
enum PatternKind {
    /// Nodes of one type, by its numbers: a name may have several.
    Kind(Vec<u16>),
    Query(Query),
}

/// The reason why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The grammar has no such node type.
    #[error("`{0}` is not a node type of tree-sitter-python")]
    UnknownKind(String),
    /// The query is not well-formed, or uses a name that the grammar lacks.
    #[error("the tree-sitter query is wrong in line {line}, column {column}: {message}")]
    Query {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// tree-sitter's message.
        message: String,
    },
    /// The query is too long.
    #[error("the tree-sitter query has {0} bytes, and {MAX_QUERY_BYTES} are the most")]
    TooLong(usize),
    /// The query has a predicate that is not supported.
    #[error("the tree-sitter query has the predicate `#{0}`, which is not known here")]
    UnknownPredicate(String),
}

/// The numbers of each node type that a pattern may name.
static KINDS: LazyLock<BTreeMap<&'static str, Vec<u16>>> = LazyLock::new(|| {
    let language = language();
    let count = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    let mut kinds: BTreeMap<_, Vec<u16>> = BTreeMap::new();
    for id in 0..count {
        if language.node_kind_is_named(id)
            && language.node_kind_is_visible(id)
            && let Some(name) = language.node_kind_for_id(id)
        {
            kinds.entry(name).or_default().push(id);
        }
    }
    kinds
});

/// The node types that a pattern may name, in order.
pub fn node_kinds() -> impl Iterator<Item = &'static str> {
    KINDS.keys().copied()
}

impl SyntaxPattern {
    /// Parses the name of a node type (`try_statement`) or a query, which begins with a bracket:
    /// `(call function: (identifier) @f (#eq? @f "eval"))`. Supports the predicates `eq`, `match`,
    /// `any-of` and their negations.
    ///
    /// # Errors
    /// [`PatternError`] if it is neither.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        if !text.starts_with(['(', '[', '"', ';']) {
            let ids = KINDS.get(text).ok_or_else(|| PatternError::UnknownKind(text.to_owned()))?;
            return Ok(Self(PatternKind::Kind(ids.clone())));
        }
        if text.len() > MAX_QUERY_BYTES {
            return Err(PatternError::TooLong(text.len()));
        }
        if let Some((at, message)) = mistake(text) {
            let before = text.get(..at).unwrap_or_default();
            let (line, column) = (before.matches('\n').count() + 1, before.rsplit('\n').next());
            let column = column.map_or(0, str::len) + 1;
            return Err(PatternError::Query { line, column, message: message.to_owned() });
        }
        let query = Query::new(&tree_sitter_python::LANGUAGE.into(), text).map_err(|error| {
            PatternError::Query {
                line: error.row + 1,
                column: error.column + 1,
                message: format!("{:?}: {}", error.kind, error.message.replace('\n', " ")),
            }
        })?;
        let unknown = (0..query.pattern_count())
            .flat_map(|at| query.general_predicates(at))
            .map(|predicate| predicate.operator.to_string())
            .next()
            .or_else(|| {
                let asks = |at: usize| !query.property_predicates(at).is_empty();
                (0..query.pattern_count()).any(asks).then(|| "is?".to_owned())
            });
        match unknown {
            Some(operator) => Err(PatternError::UnknownPredicate(operator)),
            None => Ok(Self(PatternKind::Query(query))),
        }
    }

    /// The number of matches in `text`, up to `limit`, including matches in broken code.
    ///
    /// # Errors
    /// [`ParseError`] if the text has no tree, and [`ParseError::TooComplex`] if the search takes
    /// more steps than the size of the tree allows.
    pub fn count(
        &self,
        parser: &mut PythonParser,
        text: &str,
        limit: usize,
    ) -> Result<usize, ParseError> {
        let tree = parser.parse(text)?;
        match &self.0 {
            PatternKind::Kind(ids) => {
                let found = nodes(tree.root_node()).filter(|node| ids.contains(&node.kind_id()));
                Ok(found.take(limit).count())
            }
            PatternKind::Query(query) => {
                let root = tree.root_node();
                let steps = BASE_STEPS + root.descendant_count() * STEPS_PER_NODE;
                let (mut found, mut calls) = (0, 0);
                let mut stopped = false;
                let mut progress = |_: &_| {
                    calls += 1;
                    stopped = calls > steps / STEPS_PER_CALL;
                    stopped
                };
                let mut cursor = QueryCursor::new();
                cursor.set_match_limit(OPEN_MATCHES);
                {
                    let options = QueryCursorOptions::new().progress_callback(&mut progress);
                    let mut matches =
                        cursor.matches_with_options(query, root, text.as_bytes(), options);
                    while found < limit && matches.next().is_some() {
                        found += 1;
                    }
                }
                if found < limit && (stopped || cursor.did_exceed_match_limit()) {
                    return Err(ParseError::TooComplex);
                }
                Ok(found)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "def f(x):\n    '''try: to'''\n    try:\n        return eval(x)\n    except E:\n        return eval(g(x))\n";

    fn count(pattern: &str, text: &str) -> usize {
        let mut parser = PythonParser::new().unwrap();
        SyntaxPattern::new(pattern).unwrap().count(&mut parser, text, usize::MAX).unwrap()
    }

    #[test]
    fn nodes_and_matches_are_counted() {
        let eval = r#"(call function: (identifier) @f (#eq? @f "eval"))"#;
        for (pattern, text, expected) in [
            ("try_statement", CODE, 1),
            ("try_statement", "def f():\n    'try: x'  # try:\n", 0),
            ("try_statement", "", 0),
            ("return_statement", CODE, 2),
            ("identifier", "a = b", 2),
            (eval, CODE, 2),
            (r#"(call function: (identifier) @f (#match? @f "^g$"))"#, CODE, 1),
            ("[(except_clause) (try_statement)] @x", CODE, 2),
        ] {
            assert_eq!(count(pattern, text), expected, "{pattern} {text}");
        }
        assert!(node_kinds().any(|kind| kind == "for_statement"));
        let mut parser = PythonParser::new().unwrap();
        assert_eq!(SyntaxPattern::new(eval).unwrap().count(&mut parser, CODE, 1), Ok(1));
    }

    #[test]
    fn a_query_that_nests_without_end_is_refused() {
        for deep in ["(", "[", "((identifier) ", "body: ", "(_ "] {
            let error = SyntaxPattern::new(&format!("({}", deep.repeat(400_000))).unwrap_err();
            assert!(matches!(error, PatternError::TooLong(_)), "{error}");
            // The deepest query: an error or a pattern, on the stack of a test.
            let _ = SyntaxPattern::new(&format!("({}", deep.repeat(8_000 / deep.len())));
        }
    }

    #[test]
    fn mistakes_are_refused_with_their_place() {
        for (pattern, message) in [
            ("try_statment", "`try_statment` is not a node type of tree-sitter-python"),
            ("", "`` is not a node type of tree-sitter-python"),
            ("(call", "line 1"),
            ("(no_such)", "no_such"),
            ("((call) @x (#is-odd? @x))", "#is-odd?"),
            ("(call\n function: (#eq? @f \"x\"))", "line 2, column 12: a predicate is in"),
            // Parts that match nothing are found everywhere.
            (
                "(call function: (identifier) @f)?\n + x)",
                "line 2, column 2: the repeated part may match",
            ),
            ("(call)*", "line 1, column 1: it also matches nothing"),
        ] {
            let error = SyntaxPattern::new(pattern).unwrap_err().to_string();
            assert!(error.contains(message), "{pattern}: {error}");
            assert!(!message.starts_with('`') || error == message, "{pattern}: {error}");
        }
        assert_eq!(count("(call (_)* @all)+", CODE), count("(call)", CODE));
    }

    #[test]
    fn a_search_without_end_is_given_up() {
        let pattern = SyntaxPattern::new(&format!("(module {})", "(_)* ".repeat(12))).unwrap();
        let mut parser = PythonParser::new().unwrap();
        let found = pattern.count(&mut parser, &"x = 1\n".repeat(2_000), usize::MAX);
        assert!(found == Err(ParseError::TooComplex) || found.is_ok(), "{found:?}");
    }
}
