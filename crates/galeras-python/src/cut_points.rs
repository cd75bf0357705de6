//! Places where a method may be cut: after its signature, after its docstring, before a token.

use tree_sitter::Node;

use super::parse::{ParseError, PythonParser, named_children, nodes};
use super::plain::read_plain;

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
    let docstring = first_string(function).filter(|string| {
        let text = code.get(string.byte_range()).unwrap_or_default();
        // Bytes and f-strings are not docstrings.
        let prefix = text.split(['"', '\'']).next().unwrap_or_default();
        !prefix.contains(['b', 'B', 'f', 'F'])
    });
    Ok(docstring.map(|string| string.end_byte()).or_else(|| colon_end(function)))
}

/// The string, or strings side by side, that are the first statement of a function.
fn first_string(function: Node<'_>) -> Option<Node<'_>> {
    let body = named_children(function.child_by_field_name("body")?);
    let first = body.into_iter().find(|node| node.kind() != "comment")?;
    let string = first.named_child(0)?;
    let alone = first.kind() == "expression_statement" && first.named_child_count() == 1;
    (alone && matches!(string.kind(), "string" | "concatenated_string")).then_some(string)
}

fn first_function(root: Node<'_>) -> Option<Node<'_>> {
    nodes(root).find(|node| node.kind() == "function_definition")
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
    for node in nodes(tree.root_node()) {
        if node.start_byte() < inside_string {
            continue;
        }
        if node.kind() == "string" {
            inside_string = node.end_byte();
            points.push(node.start_byte());
        } else if node.child_count() == 0 && node.end_byte() > node.start_byte() {
            points.push(node.start_byte());
        }
    }
    points.dedup();
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_plain_code_end_where_the_tree_says() {
        let mut parser = PythonParser::new().unwrap();
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
    fn a_signature_ends_after_its_colon_and_a_docstring_after_its_quotes() {
        let mut parser = PythonParser::new().unwrap();
        let long = "async def f(\n    a: int = {1: 2}[1],\n) -> dict:\n    return a\n";
        let with_docstring = "def f():\n    # first\n    '''Say: \\'hi\\'.'''\n    return 1\n";
        for (code, signature, docstring) in [
            (long, "-> dict:", "-> dict:"),
            (with_docstring, "f():", ".'''"),
            ("def f():\n    return 'x'\n", "f():", "f():"),
            ("def f():\n    x = 'y'\n", "f():", "f():"),
            ("def f():\n    f'x'\n", "f():", "f():"),
        ] {
            let end = signature_end(&mut parser, code).unwrap().unwrap();
            assert!(code[..end].ends_with(signature), "{code}");
            let end = docstring_end(&mut parser, code).unwrap().unwrap();
            assert!(code[..end].ends_with(docstring), "{code}");
        }
        assert_eq!(signature_end(&mut parser, "x = 1\n"), Ok(None));
    }

    #[test]
    fn tokens_begin_where_they_are_written() {
        let code = "def f(x):\n    return f\"{x} y\" + 'z'\n";
        let points = cut_points(&mut PythonParser::new().unwrap(), code).unwrap();
        let firsts: Vec<&str> = points.iter().map(|p| &code[*p..*p + 1]).collect();
        assert_eq!(firsts, ["d", "f", "(", "x", ")", ":", "r", "f", "+", "'"]);
    }
}
