//! Counts lines of code and tokens of a function from the syntax tree.
//!
//! This recounts `lizard` by the leaves of the tree. A leaf counts as many tokens as lizard makes
//! of its text (`1.5` three, `>>` two), a string one and its prefix another, an f-string its
//! literal parts and the leaves of its interpolations.
//!
//! In 16,596 methods of Python's standard library, 19 differ in tokens and 20 in lines. There
//! lizard reads a `#` in a format specification as a comment, quotes of the other kind in a string
//! as a string, and a triple-quoted argument without an operator, a comma or a bracket before it as
//! a docstring.

use std::collections::HashSet;

use tree_sitter::Node;

use super::super::parse::nodes;
use super::count;

#[derive(Default)]
struct SizeCounter {
    tokens: i64,
    lines: i64,
    /// The first row without a token so far.
    next_row: usize,
    bare: i64,
    end: Option<usize>,
    /// The last leaf, if it may form one token with the next one of its kind.
    double: Option<(usize, u8)>,
}

/// Tokens from the name on, and lines of code, of the function at `function` in `text`.
pub(super) fn size(function: Node<'_>, text: &str) -> (i64, i64) {
    let Some(name) = function.child_by_field_name("name") else { return (0, 0) };
    let begin = name.start_byte();
    let mut size = SizeCounter { next_row: name.start_position().row, ..SizeCounter::default() };
    // Braces and colons of f-strings that are not tokens, and the end of skipped text.
    let mut ignored: HashSet<usize> = HashSet::new();
    let mut done = 0;
    for node in nodes(function) {
        // Skips nodes before the name and finished ones.
        if node.start_byte() >= begin.max(done) {
            match node.kind() {
                "comment" => size.gap(node, text),
                "function_definition" => {
                    size.nested(node, text);
                    done = node.end_byte();
                }
                "expression_statement" => size.bare(node, text),
                "string" if size.string(node, text) => {}
                "string" => done = node.end_byte(),
                "interpolation" => {
                    ignored.insert(node.start_byte());
                    ignored.insert(node.end_byte().saturating_sub(1));
                }
                "format_specifier" => {
                    size.specification(node, text);
                    ignored.insert(node.start_byte());
                }
                "type_conversion" => {
                    size.leaf(node, text);
                    done = node.end_byte();
                }
                "string_start"
                | "string_content"
                | "string_end"
                | "escape_sequence"
                | "escape_interpolation"
                | "line_continuation" => {}
                _ if node.child_count() == 0 && !ignored.contains(&node.start_byte()) => {
                    size.leaf(node, text);
                }
                _ => {}
            }
        }
    }
    (size.tokens, size.lines - size.bare)
}

impl SizeCounter {
    /// Counts the backslashes that join lines between the last leaf and `node`: each is a token for
    /// lizard.
    fn gap(&mut self, node: Node<'_>, text: &str) {
        if let Some(between) = self.end.and_then(|end| text.get(end..node.start_byte())) {
            self.tokens += count(between.matches("\\\n").count());
        }
        self.end = Some(self.end.unwrap_or(0).max(node.end_byte()));
    }

    fn add(&mut self, node: Node<'_>, text: &str, tokens: usize) {
        self.gap(node, text);
        self.tokens += count(tokens);
        let first = node.start_position().row.max(self.next_row);
        let end = node.end_position().row + 1;
        self.lines += count(end.saturating_sub(first));
        self.next_row = self.next_row.max(end);
    }

    fn leaf(&mut self, node: Node<'_>, text: &str) {
        let range = node.byte_range();
        let (start, end) = (range.start, range.end);
        let Some(said) = text.get(range).filter(|said| !said.is_empty()) else { return };
        // `::`, `++` and `--` are one token for lizard.
        let mark = match said.as_bytes() {
            [mark @ (b':' | b'+' | b'-')] => Some(*mark),
            _ => None,
        };
        if let (Some(mark), Some((end_of_last, last))) = (mark, self.double.take())
            && (end_of_last, last) == (start, mark)
        {
            self.end = Some(end);
            return;
        }
        self.double = mark.map(|mark| (end, mark));
        self.add(node, text, tokens_of(said));
    }

    /// Of a nested function, only `def` and the name count.
    fn nested(&mut self, function: Node<'_>, text: &str) {
        let name = function.child_by_field_name("name");
        let mut cursor = function.walk();
        for part in function.children(&mut cursor) {
            let is_name = name.is_some_and(|name| name.id() == part.id());
            if is_name || matches!(part.kind(), "async" | "def") {
                self.add(part, text, 1);
            }
            if is_name {
                break;
            }
        }
        self.double = None;
        self.end = Some(function.end_byte());
    }

    /// A triple-quoted string as a statement, usually a docstring, is not a line of code.
    fn bare(&mut self, statement: Node<'_>, text: &str) {
        let only = statement.child(0).filter(|_| statement.child_count() == 1);
        let Some(string) = only.filter(|only| only.kind() == "string") else { return };
        let said = text.get(string.byte_range()).unwrap_or_default();
        let quoted = said.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        if quoted.starts_with("\"\"\"") || quoted.starts_with("'''") {
            let rows = string.end_position().row - string.start_position().row;
            self.bare += count(rows + 1);
        }
    }

    /// Counts a string; returns whether its parts must also be counted.
    fn string(&mut self, string: Node<'_>, text: &str) -> bool {
        self.double = None;
        let begin = string.child(0).map_or(string.start_byte(), |start| start.end_byte());
        let opening = text.get(string.start_byte()..begin).unwrap_or_default();
        let prefix = opening.trim_end_matches(['"', '\'']);
        let split = prefix.len() <= 2 && prefix.contains(['f', 'F']);
        let mut parts = 0;
        let mut interpolated = false;
        if split {
            let mut at = begin;
            let mut cursor = string.walk();
            let mut end = string.end_byte();
            for child in string.children(&mut cursor) {
                match child.kind() {
                    "interpolation" => {
                        parts += usize::from(child.start_byte() > at);
                        at = child.end_byte();
                        interpolated = true;
                    }
                    "string_end" => end = child.start_byte(),
                    _ => {}
                }
            }
            parts += usize::from(end > at);
        }
        let whole = usize::from(!interpolated && parts == 0);
        self.add(string, text, usize::from(!prefix.is_empty()) + parts + whole);
        interpolated
    }

    /// Counts the literal text of a format specification.
    fn specification(&mut self, specification: Node<'_>, text: &str) {
        let mut at = specification.start_byte();
        let mut tokens = 0;
        let mut cursor = specification.walk();
        for child in specification.children(&mut cursor) {
            if matches!(child.kind(), "format_expression" | "interpolation") {
                tokens += text.get(at..child.start_byte()).map_or(0, tokens_of);
                at = child.end_byte();
            }
        }
        tokens += text.get(at..specification.end_byte()).map_or(0, tokens_of);
        self.tokens += count(tokens);
    }
}

/// Symbols of several characters that are one token for lizard, longest first.
const SYMBOLS: [&str; 21] = [
    "//=", "<<=", ">>=", "...", "//", ":=", "::", "**", "==", "!=", "<=", ">=", "->", "=>", "++",
    "--", "+=", "-=", "^=", "&=", "|=",
];

/// The number of lizard's tokens in a text without strings.
fn tokens_of(text: &str) -> usize {
    let word = |c: char| c == '_' || c.is_alphanumeric();
    let mut rest = text.trim_start();
    let mut tokens = 0;
    while let Some(first) = rest.chars().next() {
        rest = if word(first) {
            rest.trim_start_matches(word)
        } else {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let length = symbol.map_or(first.len_utf8(), |symbol| symbol.len());
            rest.get(length..).unwrap_or_default()
        };
        rest = rest.trim_start();
        tokens += 1;
    }
    tokens
}
