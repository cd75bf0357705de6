//! The names of the functions that a Python method calls.
//!
//! Only the syntax counts: `@decorator` without arguments, operators and Python 2's `print x` are
//! not calls.

use std::collections::HashSet;
use std::sync::LazyLock;

use tree_sitter::{Language, Node};

use super::parse::{ParseError, PythonParser};

/// The distinct names that `text` calls, in order of first appearance: `f` for `f(x)`, `c` for
/// `a.b.c(x)`, nothing for `f()()` and `x[0]()`. Includes nested definitions, decorators,
/// comprehensions, f-strings, and intact calls amid syntax errors.
///
/// # Errors
/// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text exceeds the limits of
/// [`PythonParser::parse`].
pub fn calls(parser: &mut PythonParser, text: &str) -> Result<Vec<String>, ParseError> {
    let tree = parser.parse(text)?;
    let ids = &*IDS;
    let mut names = Vec::new();
    let mut cursor = tree.walk();
    'walk: loop {
        let node = cursor.node();
        if node.kind_id() == ids.call {
            names.extend(name(node, ids).map(|name| name.byte_range()));
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'walk;
            }
        }
    }
    // The outer call of `a().b()` comes first in the tree, but its name comes second in the text.
    names.sort_unstable_by_key(|range| range.start);
    let mut seen = HashSet::with_capacity(names.len());
    let texts = names.into_iter().filter_map(|range| text.get(range));
    Ok(texts.filter(|name| !name.is_empty() && seen.insert(*name)).map(str::to_owned).collect())
}

struct GrammarIds {
    call: u16,
    attribute: u16,
    identifier: u16,
    parentheses: u16,
    function_field: u16,
    attribute_field: u16,
}

/// Looked up once: the grammar compares names to find an id.
static IDS: LazyLock<GrammarIds> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_python::LANGUAGE);
    let kind = |kind| language.id_for_node_kind(kind, true);
    // No field has the number 0.
    let field = |name| language.field_id_for_name(name).map_or(0, u16::from);
    GrammarIds {
        call: kind("call"),
        attribute: kind("attribute"),
        identifier: kind("identifier"),
        parentheses: kind("parenthesized_expression"),
        function_field: field("function"),
        attribute_field: field("attribute"),
    }
});

/// The identifier that `call` calls, without parentheses around it.
fn name<'t>(call: Node<'t>, ids: &GrammarIds) -> Option<Node<'t>> {
    let mut called = call.child_by_field_id(ids.function_field)?;
    while called.kind_id() == ids.parentheses {
        called = called.named_child(0)?;
    }
    if called.kind_id() == ids.attribute {
        called = called.child_by_field_id(ids.attribute_field)?;
    }
    (called.kind_id() == ids.identifier).then_some(called)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        calls(&mut PythonParser::new().unwrap(), text).unwrap()
    }

    #[test]
    fn names_are_distinct_and_in_order_of_the_text() {
        assert_eq!(of("def f():\n    a.b.c(d(), a.c(e()))\n    d()\n"), ["c", "d", "e"]);
        assert_eq!(of("def f(self):\n    super().__init__()\n"), ["super", "__init__"]);
        assert_eq!(of("a().b(c()).d\n"), ["a", "b", "c"]);
        assert_eq!(of("añadir(1)"), ["añadir"]);
        assert!(of("").is_empty());
    }

    #[test]
    fn what_is_called_without_a_name_gives_none() {
        assert_eq!(of("f()()"), ["f"]);
        assert!(of("x[0](); (lambda: 1)()").is_empty());
        assert_eq!(of("x[0](g()); 'a'.join(y); (f)(); (a.b)()"), ["g", "join", "f", "b"]);
    }

    #[test]
    fn calls_count_wherever_they_stand() {
        let class =
            "@a(1)\n@no\nclass C(b(), m=c()):\n    @d.e()\n    def f(self, x=g()) -> h():\n";
        let body = "[i(y) for y in j() if k()] + [f'{l(1)!r:{m()}}', lambda: n()]\n";
        let names = ["a", "b", "c", "e", "g", "h", "i", "j", "k", "l", "m", "n"];
        assert_eq!(of(&format!("{class}        return {body}")), names);
        assert_eq!(of("async def f():\n    await g(1)\n    async with h(): pass\n"), ["g", "h"]);
    }

    #[test]
    fn words_that_are_keywords_elsewhere_are_names() {
        assert_eq!(of("print(x); exec(y); match(z); case(w)"), ["print", "exec", "match", "case"]);
        assert!(of("print x").is_empty());
        assert_eq!(of("match x:\n    case Point(y) if f(y): pass\n"), ["f"]);
    }

    #[test]
    fn invalid_code_gives_the_calls_that_are_intact() {
        assert_eq!(of("def f(:\n    a.b(c)\n"), ["b"]);
        assert!(of("a.b(").is_empty());
        assert!(of("def f(x y z").is_empty());
        let noise = "def f(".repeat(100_000);
        let refused = calls(&mut PythonParser::new().unwrap(), &noise);
        assert_eq!(refused, Err(ParseError::TooComplex));
    }

    #[test]
    fn nesting_of_100_000_costs_no_stack() {
        let deep = |open: &str, middle: &str, close: &str| {
            of(&format!("{}{middle}{}", open.repeat(100_000), close.repeat(100_000)))
        };
        assert_eq!(deep("f(", "g()", ")"), ["f", "g"]);
        assert_eq!(deep("", "f", "()"), ["f"]);
        assert_eq!(deep("", "f", ".b()"), ["b"]);
        assert_eq!(deep("(", "f", ")()"), ["f"]);
        assert_eq!(deep("lambda: ", "f()", ""), ["f"]);
    }
}
