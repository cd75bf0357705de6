//! The names of the functions that a Python method calls.
//!
//! Only the syntax counts: `@decorator` without arguments, operators and Python 2's `print x` are
//! not calls.

use std::collections::HashSet;
use std::sync::LazyLock;

use tree_sitter::Node;

use super::language::{field_id, kind_id};
use super::parse::{ParseError, PythonParser, nodes};

/// Looked up once: the grammar compares names to find an id.
static KINDS: LazyLock<[u16; 4]> =
    LazyLock::new(|| ["call", "attribute", "identifier", "parenthesized_expression"].map(kind_id));
static FIELDS: LazyLock<[u16; 2]> = LazyLock::new(|| ["function", "attribute"].map(field_id));

/// The distinct names that `text` calls, in order of first appearance: `f` for `f(x)`, `c` for
/// `a.b.c(x)`, nothing for `f()()` and `x[0]()`. Includes nested definitions, decorators,
/// comprehensions, f-strings, and intact calls amid syntax errors.
///
/// # Errors
/// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text exceeds the limits of
/// [`PythonParser::parse`].
pub fn calls(parser: &mut PythonParser, text: &str) -> Result<Vec<String>, ParseError> {
    let tree = parser.parse(text)?;
    let calls = nodes(tree.root_node()).filter(|node| node.kind_id() == KINDS[0]);
    let mut names: Vec<_> = calls.filter_map(name).map(|name| name.byte_range()).collect();
    // The outer call of `a().b()` comes first in the tree, but its name comes second in the text.
    names.sort_unstable_by_key(|range| range.start);
    let mut seen = HashSet::with_capacity(names.len());
    let texts = names.into_iter().filter_map(|range| text.get(range));
    Ok(texts.filter(|name| !name.is_empty() && seen.insert(*name)).map(str::to_owned).collect())
}

/// The identifier that `call` calls, without parentheses around it.
fn name(call: Node<'_>) -> Option<Node<'_>> {
    let ([_, attribute, identifier, parentheses], [of_call, of_attribute]) = (*KINDS, *FIELDS);
    let mut called = call.child_by_field_id(of_call)?;
    while called.kind_id() == parentheses {
        called = called.named_child(0)?;
    }
    if called.kind_id() == attribute {
        called = called.child_by_field_id(of_attribute)?;
    }
    (called.kind_id() == identifier).then_some(called)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        calls(&mut PythonParser::new().unwrap(), text).unwrap()
    }

    #[test]
    fn names_are_distinct_and_in_order_of_the_text() {
        for (text, names) in [
            ("def f():\n    a.b.c(d(), a.c(e()))\n    d()\n", "c d e"),
            ("def f(self):\n    super().__init__()\n", "super __init__"),
            ("a().b(c()).d\n", "a b c"),
            ("añadir(1)", "añadir"),
            ("", ""),
            // Calls without a name.
            ("f()()", "f"),
            ("x[0](); (lambda: 1)()", ""),
            ("x[0](g()); 'a'.join(y); (f)(); (a.b)()", "g join f b"),
            // Calls in every place.
            (
                "@a(1)\n@no\nclass C(b(), m=c()):\n    @d.e()\n    def f(self, x=g()) -> h(): x",
                "a b c e g h",
            ),
            ("[i(y) for y in j() if k()] + [f'{l(1)!r:{m()}}', lambda: n()]", "i j k l m n"),
            ("async def f():\n    await g(1)\n    async with h(): pass\n", "g h"),
            // Names that are keywords elsewhere.
            ("print(x); exec(y); match(z); case(w)", "print exec match case"),
            ("print x", ""),
            ("match x:\n    case Point(y) if f(y): pass\n", "f"),
            // Broken code.
            ("def f(:\n    a.b(c)\n", "b"),
            ("a.b(", ""),
            ("def f(x y z", ""),
        ] {
            assert_eq!(of(text).join(" "), names, "{text}");
        }
        let refused = calls(&mut PythonParser::new().unwrap(), &"def f(".repeat(100_000));
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
