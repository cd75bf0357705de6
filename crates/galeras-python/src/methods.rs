//! Finds the methods of a Python source file.
//!
//! The text of a method is its `function_definition` node as written: from `def` or `async` to the
//! last token of the body, without decorators, not dedented. So an indented method has its first
//! line at column 0 and keeps the indentation of the others, as in the published data set. It
//! parses on its own, and multi-line strings stay unchanged.

use std::collections::HashMap;

use tree_sitter::{Node, Tree};

use super::parse::{ParseError, PythonParser};

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
    let mut copied: usize = 0;
    let name_of = |node: Node<'_>| {
        let name = node.child_by_field_name("name");
        Some(name.and_then(|name| source.get(name.byte_range())).unwrap_or_default())
    };
    let complete = each_function(&tree, nested, name_of, |node, name, qualified| {
        copied += node.byte_range().len() + qualified.len();
        if copied > MAX_COPIES.saturating_mul(source.len()) {
            return None;
        }
        let code = source.get(node.byte_range()).unwrap_or_default();
        let start_line = node.start_position().row + 1;
        let next = ordinals.entry(qualified.to_owned()).or_default();
        methods.push(PythonMethod {
            fun_name: name.to_owned(),
            qualified_name: qualified.to_owned(),
            start_line,
            end_line: start_line + code.trim_end_matches('\n').matches('\n').count(),
            start_byte: node.start_byte(),
            end_byte: node.end_byte(),
            code: code.to_owned(),
            ordinal: *next,
        });
        *next += 1;
        Some(())
    });
    complete.map(|()| methods).ok_or(ParseError::TooComplex)
}

/// Calls `found` with every function of a tree in document order, its name and its name with those
/// of the definitions around it. Ends with `None` where `name_of` or `found` returns it.
pub(super) fn each_function<'t, 's>(
    tree: &'t Tree,
    nested: bool,
    name_of: impl Fn(Node<'t>) -> Option<&'s str>,
    mut found: impl FnMut(Node<'t>, &'s str, &str) -> Option<()>,
) -> Option<()> {
    // The names of the open definitions, joined by dots; for each, its level and the length of the
    // names around it. The level is counted, as the cursor takes time that grows with it.
    let (mut scope, mut open, mut level) = (String::new(), Vec::new(), 0_u32);
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let kind = node.kind();
        let is_function = kind == "function_definition";
        if is_function || kind == "class_definition" {
            let name = name_of(node)?;
            open.push((level, scope.len()));
            scope.push_str(if scope.is_empty() { "" } else { "." });
            scope.push_str(name);
            if is_function {
                found(node, name, &scope)?;
            }
        }
        // A definition may be anywhere in broken syntax.
        let may_hold = holds_definitions(kind) || node.has_error();
        if may_hold && (nested || !is_function) && cursor.goto_first_child() {
            level += 1;
            continue;
        }
        loop {
            if let Some((_, length)) = open.pop_if(|(of, _)| *of == level) {
                scope.truncate(length);
            }
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return Some(());
            }
            level -= 1;
        }
    }
}

/// True if a node of this kind in a tree without errors may contain definitions: statements with a
/// suite. Expressions and simple statements are skipped.
fn holds_definitions(kind: &str) -> bool {
    matches!(
        kind,
        "module"
            | "block"
            | "if_statement"
            | "for_statement"
            | "while_statement"
            | "try_statement"
            | "with_statement"
            | "match_statement"
    ) || kind.ends_with("_definition")
        || kind.ends_with("_clause")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(source: &str, nested: bool) -> Vec<PythonMethod> {
        methods(&mut PythonParser::new().unwrap(), source, nested).unwrap()
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

    #[test]
    fn deep_broken_code_takes_linear_time() {
        let deep =
            format!("class A:\n    def m(self): pass\n    x = {}\n", "(a, [".repeat(100_000));
        assert!(list(&deep, true).len() <= 1);
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
