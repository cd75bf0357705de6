//! Finds the methods of a Python source file.
//!
//! The text of a method goes from `def` or `async` to the end of the body, without decorators, not
//! dedented. So an indented method has its first line at column 0 and keeps the indentation of the
//! others, as in the published data set. It parses on its own, and multi-line strings stay
//! unchanged. Names and lines are those of Python's `ast`, except that comments below the last
//! statement belong to the body if they are not left of it.

use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr_iter, memrchr};
use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{ModModule, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::module::{Nesting, with_module};
use super::parse::ParseError;
use super::scan::find_newline;

/// A function or method definition in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonMethod {
    /// The name after `def`; empty where broken code has none.
    pub fun_name: String,
    /// Names of the enclosing classes and functions and its own name, joined by dots.
    pub qualified_name: String,
    /// First line of the definition (that of `def` or `async`), counted from 1.
    pub start_line: usize,
    /// Last line of the definition, counted from 1, inclusive.
    pub end_line: usize,
    /// Offset of the first byte in the source.
    pub start_byte: usize,
    /// Offset after the last byte in the source.
    pub end_byte: usize,
    /// `source[start_byte..end_byte]`.
    pub code: String,
    /// Position among the methods of the same qualified name in this file, from 0.
    pub ordinal: u32,
}

/// Methods repeat the text of the functions nested in them. All texts and names together may be
/// this many times as long as the source; real programs never nest so deep.
pub(super) const MAX_COPIES: usize = 64;

/// The methods of `source` in the order of their first byte.
///
/// Includes methods in `if`, `try` and the like. Definitions inside a function are listed only if
/// `nested` is set, those inside a syntax error where the parser could still recognise them.
///
/// # Errors
/// [`ParseError::TooLarge`] over 4 MiB; [`ParseError::TooComplex`] for brackets, blocks or operators
/// deeper within each other than Python accepts, and if nested functions would take more than 64
/// times the memory of the source.
pub fn methods(source: &str, nested: bool) -> Result<Vec<PythonMethod>, ParseError> {
    let mut methods = Vec::new();
    let mut ordinals: HashMap<String, u32> = HashMap::new();
    let mut copied: usize = 0;
    // The bytes before `counted` contain `lines` line ends.
    let (mut lines, mut counted) = (0, 0);
    let complete = with_module(source, Nesting::of(source)?, |module| {
        each_function(source, module.syntax(), nested, |function| {
            let Function { name, qualified, range, .. } = function;
            copied += range.len() + qualified.len();
            if copied > MAX_COPIES.saturating_mul(source.len()) {
                return None;
            }
            let code = source.get(range.clone()).unwrap_or_default();
            lines += newlines(source.get(counted..range.start).unwrap_or_default());
            counted = range.start;
            let next = ordinals.entry(qualified.to_owned()).or_default();
            methods.push(PythonMethod {
                fun_name: name.to_owned(),
                qualified_name: qualified.to_owned(),
                start_line: lines + 1,
                end_line: lines + 1 + newlines(code.trim_end_matches('\n')),
                start_byte: range.start,
                end_byte: range.end,
                code: code.to_owned(),
                ordinal: *next,
            });
            *next += 1;
            Some(())
        })
    })?;
    complete.map(|()| methods).ok_or(ParseError::TooComplex)
}

pub(super) fn newlines(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

/// A function of a module.
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// The name with those of the definitions around it.
    pub(super) qualified: &'a str,
    pub(super) range: Range<usize>,
    /// Inside of another function.
    pub(super) nested: bool,
}

/// Calls `found` with every function of a module in document order, those inside of functions only
/// if `nested` is set. Ends with `None` where `found` returns it.
pub(super) fn each_function(
    source: &str,
    module: &ModModule,
    nested: bool,
    found: impl FnMut(Function<'_>) -> Option<()>,
) -> Option<()> {
    let scope = String::new();
    let mut finder = Finder { source, nested, depth: 0, scope, found, complete: true };
    finder.visit_body(&module.body);
    finder.complete.then_some(())
}

struct Finder<'s, F> {
    source: &'s str,
    nested: bool,
    /// The number of functions around.
    depth: usize,
    /// The names of the definitions around, joined by dots.
    scope: String,
    found: F,
    complete: bool,
}

impl<'a, F: FnMut(Function<'_>) -> Option<()>> StatementVisitor<'a> for Finder<'_, F> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let (name, function) = match statement {
            Stmt::FunctionDef(function) => (&function.name, Some(function)),
            Stmt::ClassDef(class) => (&class.name, None),
            _ => return walk_stmt(self, statement),
        };
        if !self.complete {
            return;
        }
        let around = self.scope.len();
        self.scope.push_str(if around == 0 { "" } else { "." });
        self.scope.push_str(name);
        if let Some(function) = function {
            let (qualified, range) = (&*self.scope, definition(self.source, function));
            let function = Function { name, qualified, range, nested: self.depth > 0 };
            self.complete = (self.found)(function).is_some();
        }
        if self.nested || function.is_none() {
            self.depth += usize::from(function.is_some());
            walk_stmt(self, statement);
            self.depth -= usize::from(function.is_some());
        }
        self.scope.truncate(around);
    }
}

/// The place of a function without its decorators, with the comments that belong to its body.
fn definition(source: &str, function: &StmtFunctionDef) -> Range<usize> {
    let text = source.as_bytes();
    let end = body_end(text, function);
    let start = match function.decorator_list.last() {
        Some(decorator) => next_code(text, decorator.end().to_usize()),
        None => function.start().to_usize(),
    };
    start.min(end)..end
}

/// The first byte from `at` on that is not in a blank, a line end or a comment.
fn next_code(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            Some(b'#') => at = find_newline(text, at),
            Some(b' ' | b'\t' | b'\r' | b'\n' | b'\\' | 0x0c) => at += 1,
            _ => return at,
        }
    }
}

/// The end of a function: the last token of its body, or the last comment after it that is in the
/// same line, or in the lines below and not left of the body. So the block ends where it does in
/// tree-sitter's tree, from which the published data set was made.
fn body_end(text: &[u8], function: &StmtFunctionDef) -> usize {
    let mut end = function.end().to_usize();
    let mut at = end;
    loop {
        match text.get(at) {
            Some(b' ' | b'\t' | 0x0c) => at += 1,
            Some(b';') => (at, end) = (at + 1, at + 1),
            Some(b'#') => {
                at = find_newline(text, at);
                end = at;
                break;
            }
            _ => break,
        }
    }
    let Some(first) = function.body.first() else {
        return indented_end(text, function, find_newline(text, end));
    };
    let start = first.start().to_usize();
    let (body, code) = indent(text, line_start(text, start));
    if code != start {
        // The body is in the line of the colon.
        return indented_end(text, function, end);
    }
    loop {
        if text.get(at) == Some(&b'\r') {
            at += 1;
        }
        if text.get(at) != Some(&b'\n') {
            return end;
        }
        let (width, first) = indent(text, at + 1);
        match text.get(first) {
            Some(b'#') if width >= body => {
                at = find_newline(text, first);
                end = at;
            }
            Some(b'\n') => at = first,
            _ => return end,
        }
    }
}

/// The end of a function without an indented body, or with an error in its signature, as a tuple of
/// Python 2 is: of the lines below it that are indented, the last one with code, or else `end`.
fn indented_end(text: &[u8], function: &StmtFunctionDef, mut end: usize) -> usize {
    let (outer, _) = indent(text, line_start(text, function.start().to_usize()));
    let mut at = find_newline(text, end);
    while at < text.len() {
        let (width, first) = indent(text, at + 1);
        match text.get(first) {
            Some(b'\n') => at = first,
            Some(b'#') => at = find_newline(text, first),
            Some(_) if width > outer => {
                end = find_newline(text, first);
                at = end;
            }
            _ => break,
        }
    }
    end
}

fn line_start(text: &[u8], at: usize) -> usize {
    memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1)
}

/// The width of the indent at `at`, and its end. A tab is as wide as 8 blanks.
fn indent(text: &[u8], at: usize) -> (usize, usize) {
    let (mut width, mut end) = (0, at);
    while let Some(byte) = text.get(end) {
        width = match byte {
            b' ' => width + 1,
            b'\t' => width + 8,
            b'\r' | 0x0c => 0,
            _ => break,
        };
        end += 1;
    }
    (width, end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::parse::{PythonParser, nodes};
    use crate::parses::parses;

    fn list(source: &str, nested: bool) -> Vec<PythonMethod> {
        methods(source, nested).unwrap()
    }

    fn names(source: &str, nested: bool) -> String {
        let names: Vec<_> = list(source, nested).into_iter().map(|m| m.qualified_name).collect();
        names.join(" ")
    }

    const NESTED: &str = "class A:\n    class B:\n        @property\n        def m(self):\n            def inner(): pass\n            class C:\n                def n(self): pass\n            return inner\n\nif X:\n    async def f(): pass\nelse:\n    def f(): pass\ntry:\n    def g(): pass\nexcept E:\n    def h(): pass\n";

    #[test]
    fn methods_are_listed_with_the_names_around_them() {
        let broken =
            "x = = 1 )\nclass A:\n    def m(self):\n        return 1\n\ndef f(:\n    pass\n";
        assert_eq!(names(NESTED, false), "A.B.m f f g h");
        assert_eq!(names(NESTED, true), "A.B.m A.B.m.inner A.B.m.C.n f f g h");
        assert!(names(broken, false).contains("A.m"), "{}", names(broken, false));
        let list = list(NESTED, false);
        let f: Vec<_> = list.iter().filter(|m| m.fun_name == "f").collect();
        assert_eq!((f[0].ordinal, f[1].ordinal), (0, 1));
        assert_eq!((f[0].start_line, f[0].end_line), (11, 11));
        assert!(f[0].code.starts_with("async def"));
    }

    #[test]
    fn text_is_the_exact_node_without_decorators() {
        let code = "def m(self, x: int = 1,\n          y=2) -> int:\n        s = \"\"\"\nraw\n    \"\"\"\n        return x  # end";
        let list = list(&format!("class A:\n    @d\n    {code}\n\n    z = 1\n"), false);
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].code, code);
        assert_eq!((list[0].start_line, list[0].end_line), (3, 8));
    }

    /// The places of the functions in tree-sitter's tree.
    fn in_tree(text: &str) -> Vec<(usize, usize)> {
        let tree = PythonParser::new().unwrap().parse(text).unwrap();
        assert!(!tree.root_node().has_error(), "{text}");
        let functions = nodes(tree.root_node()).filter(|n| n.kind() == "function_definition");
        functions.map(|node| (node.start_byte(), node.end_byte())).collect()
    }

    #[test]
    fn comments_belong_to_blocks_as_in_the_published_data_set() {
        let ends = "‖# a\n‖    # a\n‖        # a\n‖            # a\n‖\n\n        # a\n\n‖  # a\n\
            ‖        # a\n    # b\n# c\n‖    # b\n        # a\n‖# c\n        # a\n\
            ‖          # a\n      # b\n";
        let bodies = [
            "def f():\n    def g():\n        return 1\n",
            "def f():\n    def g():\n        return 1  # x\n",
            "def f():\n    def g(): return 1  # x\n",
            "class A:\n    def g(self):\n        if a:\n            return 1\n",
            "def f():\n    try:\n        def g(): pass\n    finally:\n        pass\n",
        ];
        let after = ["", "x = 1\n", "    x = 1\n", "def h(): pass", "    # z", "        x = 1\n"];
        let mut valid = 0;
        for body in bodies {
            for (end, after) in ends.split('‖').flat_map(|end| after.map(|after| (end, after))) {
                let text = format!("{body}{end}{after}");
                for text in [text.trim_end(), &text, &text.replace('\n', "\r\n")] {
                    if parses(text) == Ok(true) {
                        valid += 1;
                        let places = list(text, true).into_iter();
                        let places: Vec<_> = places.map(|m| (m.start_byte, m.end_byte)).collect();
                        assert_eq!(places, in_tree(text), "{text}");
                    }
                }
            }
        }
        assert!(valid > 900, "{valid}");
    }

    /// Names and lines as Python's `ast` has them, in code that tree-sitter misreads.
    #[test]
    fn methods_are_those_of_pythons_ast() {
        let path = "../../tests/reference/python_syntax.json";
        let reference: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for module in reference["modules"].as_array().unwrap() {
            let source = module["source"].as_str().unwrap();
            let list = list(source, true).into_iter();
            let found: Vec<Value> =
                list.map(|m| json!([m.qualified_name, m.start_line, m.end_line])).collect();
            assert_eq!(Value::from(found), module["methods"], "{source}");
        }
    }

    /// Python 2.7's `ast` has these functions in these lines.
    #[test]
    fn methods_of_python_2_are_found() {
        let source = "class A:\n    def f(self, (a, b)):\n        print a\n\n        exec `b`\n\n    def g(self):\n        try: raise E, 0777\n        except E, e: print >>f, 10L, ur'x'\n\ndef h(): print 'x' % (\n1)\n";
        let found: Vec<_> = list(source, false)
            .into_iter()
            .map(|m| (m.qualified_name, m.start_line, m.end_line))
            .collect();
        let wanted: [(&str, usize, usize); 3] = [("A.f", 2, 5), ("A.g", 7, 9), ("h", 11, 12)];
        assert_eq!(found, wanted.map(|(name, start, end)| (name.to_owned(), start, end)));
    }

    #[test]
    fn deep_broken_code_takes_linear_time() {
        let deep =
            format!("class A:\n    def m(self): pass\n    x = {}\n", "(a, [".repeat(100_000));
        assert_eq!(methods(&deep, true), Err(ParseError::TooComplex));
        let defs: String = (0..1_500).map(|i| format!("{}def f():\n", " ".repeat(i))).collect();
        for nested in [true, false] {
            assert_eq!(methods(&defs, nested), Err(ParseError::TooComplex));
        }
        // All lines of the functions around are in the text of each.
        let inner = "    x = 1\n".repeat(2_000);
        let defs: String = (0..90).map(|i| format!("{}def f():\n", " ".repeat(i))).collect();
        let defs = format!("{defs}{}", inner.replace("    ", &" ".repeat(90)));
        assert_eq!(methods(&defs, true), Err(ParseError::TooComplex));
        assert_eq!(methods(&defs, false).map(|list| list.len()), Ok(1));
    }

    proptest! {
        #[test]
        fn code_is_the_slice_and_lists_are_ordered(
            parts in proptest::collection::vec(
                prop_oneof!["\\PC{0,8}", Just("def f(a):\n".to_owned()), Just("    return 1\n".to_owned()),
                    Just("class A:\n".to_owned()), Just("    def g(self): pass\n".to_owned()), "[ \\t\\r\\n]{0,4}"],
                0..12)
        ) {
            let source = parts.concat();
            let list = methods(&source, true).unwrap();
            for pair in list.windows(2) {
                prop_assert!(pair[0].start_byte < pair[1].start_byte);
            }
            for m in &list {
                prop_assert_eq!(&m.code, &source[m.start_byte..m.end_byte]);
                prop_assert_eq!(source[..m.start_byte].matches('\n').count() + 1, m.start_line);
                prop_assert!(m.end_line >= m.start_line);
            }
            prop_assert_eq!(methods(&source, true).unwrap(), list);
        }
    }
}
