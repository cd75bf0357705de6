//! Places where a method may be cut: after its signature, after its docstring, before a token.

use tree_sitter::Node;

use super::outline::read_plain;
use super::parse::{ParseError, PythonParser};

/// The byte after the colon of the first function's signature; `None` without a function.
///
/// # Errors
/// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text exceeds the limits of
/// [`PythonParser::parse`].
pub fn signature_end(parser: &mut PythonParser, code: &str) -> Result<Option<usize>, ParseError> {
    if let Some(plain) = read_plain(code) {
        let first = plain.definitions.iter().find(|definition| definition.is_function);
        return Ok(first.map(|function| function.colon));
    }
    let tree = parser.parse(code)?;
    Ok(first_function(tree.root_node()).and_then(colon_end))
}

/// The byte after the first function's docstring, or after its signature if it has none; `None`
/// without a function. A docstring is a plain string as first statement (PEP 257), not bytes or an
/// f-string.
///
/// # Errors
/// As [`signature_end`].
pub fn docstring_end(parser: &mut PythonParser, code: &str) -> Result<Option<usize>, ParseError> {
    let tree = parser.parse(code)?;
    let Some(function) = first_function(tree.root_node()) else { return Ok(None) };
    let docstring = function.child_by_field_name("body").and_then(|body| {
        let mut cursor = body.walk();
        let first = body.named_children(&mut cursor).find(|node| node.kind() != "comment")?;
        let string = first.named_child(0)?;
        let is_string = matches!(string.kind(), "string" | "concatenated_string");
        let alone = first.kind() == "expression_statement" && first.named_child_count() == 1;
        // Bytes and f-strings are not docstrings.
        let text = code.get(string.byte_range())?;
        let prefix = text.split(['"', '\'']).next().unwrap_or_default();
        let plain = !prefix.contains(['b', 'B', 'f', 'F']);
        (alone && is_string && plain).then(|| string.end_byte())
    });
    Ok(docstring.or_else(|| colon_end(function)))
}

fn first_function(root: Node<'_>) -> Option<Node<'_>> {
    let mut function = None;
    walk(root, |node| {
        if function.is_none() && node.kind() == "function_definition" {
            function = Some(node);
        }
    });
    function
}

fn colon_end(function: Node<'_>) -> Option<usize> {
    let mut cursor = function.walk();
    function.children(&mut cursor).find(|c| c.kind() == ":").map(|c| c.end_byte())
}

/// The bytes at which the tokens of `code` begin, in ascending order. A string is one token.
///
/// # Errors
/// As [`signature_end`].
pub fn cut_points(parser: &mut PythonParser, code: &str) -> Result<Vec<usize>, ParseError> {
    let tree = parser.parse(code)?;
    let mut points = Vec::new();
    let mut inside_string = 0;
    walk(tree.root_node(), |node| {
        if node.start_byte() < inside_string {
            return;
        }
        if node.kind() == "string" {
            inside_string = node.end_byte();
            points.push(node.start_byte());
        } else if node.child_count() == 0 && node.end_byte() > node.start_byte() {
            points.push(node.start_byte());
        }
    });
    points.dedup();
    Ok(points)
}

/// Visits every node in pre-order, without recursion.
fn walk<'tree>(root: Node<'tree>, mut visit: impl FnMut(Node<'tree>)) {
    let mut cursor = root.walk();
    loop {
        visit(cursor.node());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn parser() -> PythonParser {
        PythonParser::new().unwrap()
    }

    #[test]
    fn a_signature_ends_after_its_colon() {
        let code = "async def f(\n    a: int = {1: 2}[1],\n) -> dict:\n    return a\n";
        let end = signature_end(&mut parser(), code).unwrap().unwrap();
        assert!(code[..end].ends_with("-> dict:"));
        assert_eq!(signature_end(&mut parser(), "x = 1\n").unwrap(), None);
    }

    #[test]
    fn signatures_of_plain_code_end_where_the_tree_says() {
        let mut parser = parser();
        for code in [
            "def f(a: int, b={1: 2}, *c, d=lambda: 1, **e) -> dict[str, int]: # :\n    pass\n",
            "x = {1: 2}\nclass A(B, c=lambda x: x):\n    @d(y[1:2])\n    async def g(\n        self,\n    )->'a':\n        def h(): pass\n",
            "def f(x=':', # :\n      y=1) :\n    '''doc:'''\n",
            "class A:\n    x: int = 1\n",
            "def f():pass",
            "if x:\n    def f(a): return a[:]\nelse:\n    def g(): pass\n",
        ] {
            assert!(read_plain(code).is_some(), "{code}");
            let tree = parser.parse_anew(code).unwrap();
            let end = first_function(tree.root_node()).and_then(colon_end);
            assert_eq!(signature_end(&mut parser, code), Ok(end), "{code}");
        }
    }

    #[test]
    fn a_docstring_ends_after_its_last_quotes() {
        let code = "def f():\n    # first\n    '''Say: \\'hi\\'.'''\n    return 1\n";
        let end = docstring_end(&mut parser(), code).unwrap().unwrap();
        assert!(code[..end].ends_with(".'''"), "{}", &code[..end]);
        for without in
            ["def f():\n    return 'x'\n", "def f():\n    x = 'y'\n", "def f():\n    f'x'\n"]
        {
            let end = docstring_end(&mut parser(), without).unwrap().unwrap();
            assert!(without[..end].ends_with("f():"));
        }
    }

    #[test]
    fn tokens_begin_where_they_are_written() {
        let code = "def f(x):\n    return f\"{x} y\" + 'z'\n";
        let points = cut_points(&mut parser(), code).unwrap();
        let firsts: Vec<&str> = points.iter().map(|p| &code[*p..*p + 1]).collect();
        assert_eq!(firsts, ["d", "f", "(", "x", ")", ":", "r", "f", "+", "'"]);
    }
}
