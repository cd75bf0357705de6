//! Computes the features of a method a second time by other means, plus facts about its body.
//!
//! This checks `features` and `lizard`. It shares only the parser with them, so a fault on one side
//! shows as a difference.
//!
//! Nodes and levels come from the subtree sizes of the tree, distinct names and words from sorting,
//! words from a state machine over bytes, complexity from the keyword nodes of the tree, lines and
//! tokens from its leaves (`size`).
//!
//! tree-sitter queries, the obvious alternative, take minutes on 100,000 nested calls.
//!
//! Only complexity, lines and tokens may differ without a fault, where lizard reads the code
//! differently from the parser:
//! - a line inside the signature that follows a `)`, as in a return annotation over several lines,
//!   is the body for lizard, which ends at the real one;
//! - a continuation line left of the body ends the function for lizard;
//! - lizard reads words in format specifications (`{x:%H or %M}`) and in strings with the quotes of
//!   the f-string around them, but not in t-strings;
//! - `case *x` as a product is a keyword for lizard, and `/* */` a comment;
//! - syntax errors, unclosed quotes, a body that is not indented, `1if` and `0x1for`.

mod size;

use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{Node, Tree};

use super::features::count;
use super::language::for_kinds;
use super::parse::{ParseError, PythonParser, named_children, nodes};
use super::parses::parses;

/// The recounted features, with the names and meaning of [`Features`](super::Features).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "documented at `Features`")]
pub struct Recount {
    pub n_ast_nodes: i64,
    pub ast_levels: i64,
    pub n_ast_errors: i64,
    pub n_identifiers: i64,
    pub n_words: i64,
    pub vocab_size: i64,
    pub n_whitespaces: i64,
    pub n_returns: i64,
    pub complexity: i64,
    pub nloc: i64,
    pub token_counts: i64,
}

/// Facts about the body of a text's first function. "Statements" are those of the body itself
/// without its docstring; a syntax error counts as one, a comment does not. Syntax errors may
/// shorten the body. Without a function all fields are false, 0 and `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyFacts {
    /// No statement, or all on one physical line, possibly the line of `def`. A statement over
    /// several lines is not one line.
    pub one_line: bool,
    /// At most one statement, which is simple, on any number of lines.
    pub one_statement: bool,
    /// No statement except `pass` and `...`; includes a docstring alone.
    pub only_pass: bool,
    /// As [`Recount::n_returns`].
    pub returns: i64,
    /// Words of the docstring by Python's rule, a plain string as first statement; `None` without
    /// one.
    pub docstring_words: Option<i64>,
}

/// Recounts texts one after another and reuses its memory.
#[derive(Default)]
pub struct Recounter {
    names: Vec<Range<usize>>,
    /// Ends of the open subtrees, as places in document order.
    open: Vec<usize>,
    words: Words,
}

/// The role of a node in the counts.
#[derive(Clone, Copy)]
enum Role {
    Identifier,
    Return,
    Function,
    Scope,
    Branch,
    Other,
}

/// The role of every node kind.
static ROLES: LazyLock<Vec<Role>> = LazyLock::new(|| {
    for_kinds(|_, name, named| match (named, name) {
        (true, "identifier") => Role::Identifier,
        (true, "return_statement") => Role::Return,
        (true, "function_definition") => Role::Function,
        (true, "class_definition" | "lambda") => Role::Scope,
        (false, "if" | "elif" | "for" | "while" | "except" | "finally") => Role::Branch,
        (false, "and" | "or" | "case") => Role::Branch,
        _ => Role::Other,
    })
});

impl Recounter {
    /// Both results for the text of one method, from one parse.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text exceeds the limits of
    /// [`PythonParser::parse`].
    pub fn measure(
        &mut self,
        parser: &mut PythonParser,
        text: &str,
    ) -> Result<(Recount, BodyFacts), ParseError> {
        let tree = parser.parse(text)?;
        let (mut recount, function) = self.tree(&tree, text);
        if recount.n_ast_errors > 0 && parses(text) == Ok(true) {
            // The grammar's fault.
            recount.n_ast_errors = 0;
        }
        self.words.start();
        self.words.without_docstring(text.as_bytes());
        recount.n_words = self.words.count();
        recount.n_whitespaces = self.words.spaces;
        recount.vocab_size = self.words.distinct();
        if let Some(function) = function {
            (recount.token_counts, recount.nloc) = size::size(function, text);
        }
        let mut facts = function.map(|function| self.body(function, text)).unwrap_or_default();
        facts.returns = recount.n_returns;
        Ok((recount, facts))
    }

    /// The counts of the tree, and the first function. A subtree of n nodes takes n places in
    /// document order, so places show nesting, and the height of the tree is the largest number of
    /// subtrees that share a place.
    fn tree<'t>(&mut self, tree: &'t Tree, text: &str) -> (Recount, Option<Node<'t>>) {
        let roles = &**ROLES;
        let mut recount = Recount::default();
        let mut function: Option<Node<'t>> = None;
        // The end of the first function, and of the last definition inside it that hides returns
        // (any scope) and branches (functions: lizard counts classes and lambdas).
        let (mut end_of_function, mut end_of_scope, mut end_of_inner) = (0, 0, 0);
        let mut height = 0;
        self.names.clear();
        self.open.clear();
        for (place, node) in nodes(tree.root_node()).enumerate() {
            let end = place + node.descendant_count();
            while self.open.last().is_some_and(|&end| end <= place) {
                self.open.pop();
            }
            self.open.push(end);
            height = height.max(self.open.len());
            let inside = place < end_of_function;
            match roles.get(usize::from(node.kind_id())) {
                Some(Role::Identifier) => self.names.push(node.byte_range()),
                Some(Role::Return) => {
                    recount.n_returns += i64::from(inside && place >= end_of_scope);
                }
                Some(Role::Function) if function.is_none() => {
                    function = Some(node);
                    end_of_function = end;
                    recount.complexity = 1;
                }
                Some(Role::Function) => {
                    end_of_scope = end_of_scope.max(end);
                    end_of_inner = end_of_inner.max(end);
                }
                Some(Role::Scope) if inside => end_of_scope = end_of_scope.max(end),
                Some(Role::Branch) => {
                    let counts = inside && place >= end_of_inner && !node.is_missing();
                    recount.complexity += i64::from(counts);
                }
                _ => recount.n_ast_errors += i64::from(node.is_error()),
            }
        }
        recount.n_ast_nodes = count(tree.root_node().descendant_count()) - 1;
        recount.ast_levels = if height > 1 { count(height) } else { 0 };
        let name = |range: &Range<usize>| text.as_bytes().get(range.clone());
        self.names.sort_unstable_by(|a, b| name(a).cmp(&name(b)));
        self.names.dedup_by(|a, b| name(a) == name(b));
        recount.n_identifiers = count(self.names.len());
        (recount, function)
    }

    fn body(&mut self, function: Node<'_>, text: &str) -> BodyFacts {
        let mut facts = BodyFacts { one_line: true, only_pass: true, ..BodyFacts::default() };
        let mut statements = 0;
        let mut simple = true;
        let mut line = None;
        let body = function.child_by_field_name("body");
        for statement in body.iter().flat_map(|&body| named_children(body)) {
            if statement.is_extra() && !statement.is_error() {
                continue;
            }
            let only = if statement.kind() == "expression_statement" {
                statement.named_child(0).filter(|_| statement.named_child_count() == 1)
            } else {
                None
            };
            if statements == 0 && facts.docstring_words.is_none() {
                facts.docstring_words = only.and_then(|string| self.docstring(string, text));
                if facts.docstring_words.is_some() {
                    continue;
                }
            }
            statements += 1;
            simple &= statement.kind().ends_with("_statement") && !is_compound(statement);
            facts.only_pass &= statement.kind() == "pass_statement"
                || only.is_some_and(|only| only.kind() == "ellipsis");
            let first = *line.get_or_insert(statement.start_position().row);
            facts.one_line &= statement.end_position().row == first;
        }
        facts.one_statement = statements == 0 || (statements == 1 && simple);
        facts
    }

    /// The words of a string in the position of a docstring.
    fn docstring(&mut self, string: Node<'_>, text: &str) -> Option<i64> {
        let parts = match string.kind() {
            "string" => vec![string],
            "concatenated_string" => named_children(string),
            _ => return None,
        };
        self.words.start();
        for part in parts.iter().filter(|part| part.kind() == "string") {
            let written = text.as_bytes().get(part.byte_range())?;
            let prefix = written.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            if written[..prefix].iter().any(|byte| b"bBfFtT".contains(byte)) {
                return None;
            }
            let quoted = &written[prefix..];
            let triple = quoted.starts_with(b"\"\"\"") || quoted.starts_with(b"'''");
            let mark = if triple { 3 } else { 1 };
            self.words.feed(quoted.get(mark..quoted.len().checked_sub(mark)?)?);
        }
        Some(self.words.count())
    }
}

fn is_compound(statement: Node<'_>) -> bool {
    matches!(
        statement.kind(),
        "if_statement"
            | "for_statement"
            | "while_statement"
            | "try_statement"
            | "with_statement"
            | "match_statement"
    )
}

#[derive(Default)]
struct Words {
    /// The input without white space; a word may come from several pieces.
    bytes: Vec<u8>,
    starts: Vec<usize>,
    in_word: bool,
    spaces: i64,
}

impl Words {
    fn start(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.in_word = false;
        self.spaces = 0;
    }

    /// Feeds the text without every second stretch between triple quotes. Text before and after a
    /// cut without white space forms one word.
    fn without_docstring(&mut self, text: &[u8]) {
        let mut kept = true;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            if (byte == b'"' || byte == b'\'') && text[at..].starts_with(&[byte; 3]) {
                kept = !kept;
                at += 3;
            } else if kept {
                at += self.step(&text[at..]);
            } else {
                at += 1;
            }
        }
    }

    fn feed(&mut self, text: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            at += self.step(&text[at..]);
        }
    }

    /// Takes one byte, or one white space character; returns its length.
    fn step(&mut self, rest: &[u8]) -> usize {
        // The separators of Python's `str.split`, as UTF-8.
        let space = match rest {
            [b'\t'..=b'\r' | 0x1c..=b' ', ..] => 1,
            [0xc2, 0x85 | 0xa0, ..] => 2,
            [0xe1, 0x9a, 0x80, ..]
            | [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..]
            | [0xe2, 0x81, 0x9f, ..]
            | [0xe3, 0x80, 0x80, ..] => 3,
            _ => 0,
        };
        if space > 0 {
            self.spaces += i64::from(rest[0] == b' ');
            self.in_word = false;
            return space;
        }
        if !self.in_word {
            self.in_word = true;
            self.starts.push(self.bytes.len());
        }
        self.bytes.extend(rest.first());
        1
    }

    fn count(&self) -> i64 {
        count(self.starts.len())
    }

    fn distinct(&self) -> i64 {
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes.len()]);
        let mut words: Vec<&[u8]> = self
            .starts
            .iter()
            .zip(ends)
            .filter_map(|(&from, to)| self.bytes.get(from..to))
            .collect();
        words.sort_unstable();
        words.dedup();
        count(words.len())
    }
}

#[cfg(test)]
mod tests;
