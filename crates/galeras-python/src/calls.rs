//! The names of the functions that a Python method calls, and of what it calls them on.
//!
//! Only the syntax counts: `@decorator` without arguments, operators and Python 2's `print x` are
//! not calls.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use tree_sitter::Node;

use super::language::{field_id, kind_id};
use super::parse::{ParseError, PythonParser, nodes};

/// Looked up once: the grammar compares names to find an id.
static KINDS: LazyLock<[u16; 4]> =
    LazyLock::new(|| ["call", "attribute", "identifier", "parenthesized_expression"].map(kind_id));
static FIELDS: LazyLock<[u16; 2]> = LazyLock::new(|| ["function", "attribute"].map(field_id));
/// The ways to name the result of a call.
static BINDINGS: LazyLock<[u16; 2]> = LazyLock::new(|| ["assignment", "as_pattern"].map(kind_id));
static BINDING_FIELDS: LazyLock<[u16; 4]> =
    LazyLock::new(|| ["left", "right", "alias", "object"].map(field_id));

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

/// The distinct names that `text` calls, each behind the last name of its receiver: `f` for `f(x)`,
/// `b.c` for `a.b.c(x)` and for `a.b().c(x)`, `.c` for `''.c(x)`. A receiver that `text` assigns a
/// call to counts twice: after `a = B(x)`, `a.c()` is `a.c` and `B.c`.
///
/// # Errors
/// As [`calls`].
pub fn call_targets(parser: &mut PythonParser, text: &str) -> Result<Vec<String>, ParseError> {
    let tree = parser.parse(text)?;
    let of = |node: Node<'_>| text.get(node.byte_range()).unwrap_or_default();
    // One call for each variable, so that the time is linear.
    let mut bound: HashMap<&str, &str> = HashMap::new();
    for (variable, value) in nodes(tree.root_node()).filter_map(binding) {
        bound.entry(of(variable)).or_insert_with(|| of(value));
    }
    let mut found: Vec<(usize, String)> = Vec::new();
    for call in nodes(tree.root_node()).filter(|node| node.kind_id() == KINDS[0]) {
        let Some((object, name)) = target(call) else { continue };
        let (start, callee) = (name.start_byte(), of(name));
        let Some(object) = object else {
            found.push((start, callee.to_owned()));
            continue;
        };
        let receiver = last_name(object).map(of).unwrap_or_default();
        for one in [Some(receiver), bound.get(receiver).copied()].into_iter().flatten() {
            found.push((start, format!("{one}.{callee}")));
        }
    }
    found.sort_by_key(|(start, _)| *start);
    let mut seen = HashSet::with_capacity(found.len());
    let targets = found.into_iter().map(|(_, target)| target);
    Ok(targets.filter(|target| seen.insert(target.clone())).collect())
}

/// The variable that a statement gives the result of a call to, and the last name of the called.
fn binding(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let ([assignment, alias], [left, right, target, _]) = (*BINDINGS, *BINDING_FIELDS);
    let (variable, value) = if node.kind_id() == assignment {
        (node.child_by_field_id(left)?, node.child_by_field_id(right)?)
    } else if node.kind_id() == alias {
        (node.child_by_field_id(target)?.named_child(0)?, node.named_child(0)?)
    } else {
        return None;
    };
    let [call, _, identifier, _] = *KINDS;
    if variable.kind_id() != identifier || value.kind_id() != call {
        return None;
    }
    Some((variable, last_name(value)?))
}

/// The last name of an expression: `c` of `c`, `a.b.c`, `c(x)` and `(c)`.
fn last_name(mut node: Node<'_>) -> Option<Node<'_>> {
    let ([call, attribute, identifier, parentheses], [of_call, of_attribute]) = (*KINDS, *FIELDS);
    while node.kind_id() != identifier {
        node = match node.kind_id() {
            kind if kind == call => node.child_by_field_id(of_call)?,
            kind if kind == attribute => node.child_by_field_id(of_attribute)?,
            kind if kind == parentheses => node.named_child(0)?,
            _ => return None,
        };
    }
    Some(node)
}

/// The identifier that `call` calls, without parentheses around it.
fn name(call: Node<'_>) -> Option<Node<'_>> {
    target(call).map(|(_, name)| name)
}

/// The same, and the object whose attribute it is, if it is one.
fn target(call: Node<'_>) -> Option<(Option<Node<'_>>, Node<'_>)> {
    let ([_, attribute, identifier, parentheses], [of_call, of_attribute]) = (*KINDS, *FIELDS);
    let mut called = call.child_by_field_id(of_call)?;
    while called.kind_id() == parentheses {
        called = called.named_child(0)?;
    }
    let mut object = None;
    if called.kind_id() == attribute {
        object = called.child_by_field_id(BINDING_FIELDS[3]);
        called = called.child_by_field_id(of_attribute)?;
    }
    (called.kind_id() == identifier).then_some((object, called))
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
    fn targets_have_the_last_name_of_their_receiver() {
        for (text, targets) in [
            ("f(g(x))", "f g"),
            ("self.store.save(a.b(c))", "store.save a.b"),
            ("URL(x).join(y); (url).join(y); a[0].join(y)", "URL URL.join url.join .join"),
            ("b''.join(x); ', '.join(y); f'{z}'.join(x)", ".join"),
            ("u = URL(x)\nu.join(y)\nu.join(z)\nv.join(u)", "URL u.join URL.join v.join"),
            ("with a.Store() as s, f() as (p, q):\n    s.save()", "a.Store f s.save Store.save"),
            ("x = y\nx.a()", "x.a"),
            ("super().save()", "super super.save"),
            ("f()()", "f"),
            ("", ""),
        ] {
            let found = call_targets(&mut PythonParser::new().unwrap(), text).unwrap();
            assert_eq!(found.join(" "), targets, "{text}");
        }
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
