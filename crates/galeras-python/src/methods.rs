//! Finds the methods of a Python source file.
//!
//! The text of a method is its `function_definition` node as written: from `def` or `async` to the
//! last token of the body, without decorators, not dedented. So an indented method has its first
//! line at column 0 and keeps the indentation of the others, as in the published data set. It
//! parses on its own, and multi-line strings stay unchanged.

use std::collections::HashMap;

use tree_sitter::Node;

use super::parse::{ParseError, PythonParser};
use super::scope::{Scope, holds_definitions};

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
const MAX_COPIES: usize = 64;

/// The methods of `source` in the order of their first byte.
///
/// Includes methods in `if`, `try` and the like. Definitions inside a function are listed only if
/// `nested` is set, those inside a syntax error where the parser could still recognise them.
///
/// Lines are counted from 1, bytes from 0; `end_line` is inclusive, `end_byte` is not.
///
/// # Errors
/// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the source exceeds the limits of
/// [`PythonParser::parse`]; [`ParseError::TooComplex`] also if nested functions would take more
/// than 64 times the memory of the source.
pub fn methods(
    parser: &mut PythonParser,
    source: &str,
    nested: bool,
) -> Result<Vec<PythonMethod>, ParseError> {
    let tree = parser.parse(source)?;
    let mut methods = Vec::new();
    let mut ordinals: HashMap<String, u32> = HashMap::new();
    let mut scope = Scope::default();
    let mut copied: usize = 0;
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let is_function = node.kind() == "function_definition";
        if is_function || node.kind() == "class_definition" {
            let name = node
                .child_by_field_name("name")
                .and_then(|name| source.get(name.byte_range()))
                .unwrap_or_default();
            let qualified = scope.enter(name);
            if is_function {
                copied += node.byte_range().len() + qualified.len();
                if copied > MAX_COPIES.saturating_mul(source.len()) {
                    return Err(ParseError::TooComplex);
                }
                methods.push(method(node, source, name, qualified, &mut ordinals));
            }
        }
        // A definition may be anywhere in broken syntax.
        let may_hold = holds_definitions(node.kind()) || node.has_error();
        let enter = may_hold && (nested || !is_function);
        let moved = (enter && scope.descend(&mut cursor)) || scope.pass(&mut cursor);
        if !moved {
            return Ok(methods);
        }
    }
}

fn method(
    node: Node<'_>,
    source: &str,
    name: &str,
    qualified: &str,
    ordinals: &mut HashMap<String, u32>,
) -> PythonMethod {
    let code = source.get(node.byte_range()).unwrap_or_default();
    let start_line = node.start_position().row + 1;
    let next = ordinals.entry(qualified.to_owned()).or_default();
    let ordinal = *next;
    *next += 1;
    PythonMethod {
        fun_name: name.to_owned(),
        qualified_name: qualified.to_owned(),
        start_line,
        end_line: start_line + code.trim_end_matches('\n').matches('\n').count(),
        start_byte: node.start_byte(),
        end_byte: node.end_byte(),
        code: code.to_owned(),
        ordinal,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(source: &str, nested: bool) -> Vec<String> {
        let mut parser = PythonParser::new().unwrap();
        let list = methods(&mut parser, source, nested).unwrap();
        list.into_iter().map(|m| m.qualified_name).collect()
    }

    const NESTED: &str = "class A:\n    class B:\n        @property\n        def m(self):\n            def inner(): pass\n            class C:\n                def n(self): pass\n            return inner\n\nif X:\n    async def f(): pass\nelse:\n    def f(): pass\ntry:\n    def g(): pass\nexcept E:\n    def h(): pass\n";

    #[test]
    fn nested_functions_are_listed_on_request_only() {
        assert_eq!(names(NESTED, false), ["A.B.m", "f", "f", "g", "h"]);
        assert_eq!(names(NESTED, true), ["A.B.m", "A.B.m.inner", "A.B.m.C.n", "f", "f", "g", "h"]);
    }

    #[test]
    fn same_names_are_told_apart_by_position() {
        let list = methods(&mut PythonParser::new().unwrap(), NESTED, false).unwrap();
        let f: Vec<_> = list.iter().filter(|m| m.fun_name == "f").collect();
        assert_eq!((f[0].ordinal, f[1].ordinal), (0, 1));
        assert_eq!((f[0].start_line, f[0].end_line), (11, 11));
        assert!(f[0].code.starts_with("async def"));
    }

    #[test]
    fn text_is_the_exact_node_without_decorators() {
        let source = "class A:\n    @d\n    def m(self, x: int = 1,\n          y=2) -> int:\n        s = \"\"\"\nraw\n    \"\"\"\n        return x  # end\n\n    z = 1\n";
        let list = methods(&mut PythonParser::new().unwrap(), source, false).unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!(
            list[0].code,
            "def m(self, x: int = 1,\n          y=2) -> int:\n        s = \"\"\"\nraw\n    \"\"\"\n        return x  # end"
        );
        assert_eq!((list[0].start_line, list[0].end_line), (3, 8));
    }

    #[test]
    fn definitions_beside_a_syntax_error_are_kept() {
        let methods = names(
            "x = = 1 )\nclass A:\n    def m(self):\n        return 1\n\ndef f(:\n    pass\n",
            false,
        );
        assert!(methods.contains(&"A.m".to_owned()), "{methods:?}");
    }

    #[test]
    fn deep_broken_code_takes_linear_time() {
        let deep =
            format!("class A:\n    def m(self): pass\n    x = {}\n", "(a, [".repeat(100_000));
        assert!(names(&deep, true).len() <= 1);
        let defs: String = (0..1_500).map(|i| format!("{}def f():\n", " ".repeat(i))).collect();
        let mut parser = PythonParser::new().unwrap();
        let error = methods(&mut parser, &defs, true).unwrap_err();
        assert_eq!(error, ParseError::TooComplex);
        assert!(methods(&mut parser, &defs, false).is_ok());
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
            let mut parser = PythonParser::new().unwrap();
            let list = methods(&mut parser, &source, true).unwrap();
            for pair in list.windows(2) {
                prop_assert!(pair[0].start_byte < pair[1].start_byte);
            }
            for m in &list {
                prop_assert_eq!(&m.code, &source[m.start_byte..m.end_byte]);
                prop_assert_eq!(source[..m.start_byte].matches('\n').count() + 1, m.start_line);
                prop_assert!(m.end_line >= m.start_line);
            }
            prop_assert_eq!(methods(&mut parser, &source, true).unwrap(), list);
        }
    }
}
