//! Decides if a text is valid Python.
//!
//! tree-sitter spends most of its time on recovery from errors, for a tree of which only the
//! presence of errors is needed. So two shortcuts come first: most valid texts are plain
//! (`outline::plain`), and half of the invalid ones end inside brackets or a string.

use tree_sitter::Tree;

use super::outline::read_plain;
use super::parse::{ParseError, PythonParser};

/// Longest text that is rejected without a tree. Such a short text never reaches the limits of
/// `parse`, which begin at 24 operations per byte, and fits into one lexer chunk; so `parse` would
/// have returned a tree with an error.
const MAX_REFUSED: usize = 4 << 10;

/// True if `text` is Python 3 without a syntax error and not only white space.
///
/// tree-sitter's grammar accepts more than Python does. Also rejected are bodies without a
/// statement, as in a truncated answer, and statements and operators of Python 2.
///
/// # Errors
/// As [`PythonParser::parse`].
pub fn parses(parser: &mut PythonParser, text: &str) -> Result<bool, ParseError> {
    if let Some(tree) = parser.kept(text) {
        return Ok(is_python(&tree));
    }
    if let Some(known) = without_tree(text) {
        return Ok(known);
    }
    parser.parse(text).map(|tree| is_python(&tree))
}

fn without_tree(text: &str) -> Option<bool> {
    // Python 2's statement words are plain in calls; only the tree can tell calls from statements.
    let needs_tree = ["print", "exec"].iter().any(|word| text.contains(word));
    if !needs_tree && !text.trim_ascii().is_empty() && read_plain(text).is_some() {
        return Some(true);
    }
    (text.len() <= MAX_REFUSED && is_cut_off(text.as_bytes())).then_some(false)
}

/// True if a tree has neither errors nor the constructs that are also rejected.
fn is_python(tree: &Tree) -> bool {
    let root = tree.root_node();
    if root.has_error() || root.named_child_count() == 0 {
        return false;
    }
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let refused = match node.kind() {
            "print_statement" | "exec_statement" | "<>" => true,
            "block" => {
                let mut statements = node.walk();
                node.named_children(&mut statements).all(|child| child.kind() == "comment")
            }
            _ => false,
        };
        if refused {
            return false;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return true;
            }
        }
    }
}

/// True if a text certainly has an unmatched bracket or an unclosed triple-quoted string. In a tree
/// without errors every bracket outside strings and comments belongs to a rule with both, and every
/// string is closed.
///
/// Returns `false` where tree-sitter could see other tokens: at f-strings and prefixes other than
/// those of bytes and raw strings, at line ends in single-quoted strings, at `\N{`, which extends
/// to its brace, and at bytes that only some readers treat as the end of a line or text.
fn is_cut_off(text: &[u8]) -> bool {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    if text.iter().any(|byte| matches!(byte, 0 | b'\r'))
        || text.windows(3).any(|part| part == b"\\N{")
    {
        return false;
    }
    let mut open = Vec::new();
    let mut at = 0;
    // The start of the word that ends here.
    let mut word = 0;
    while at < text.len() {
        let first = byte(at);
        match first {
            b'#' => {
                let rest = &text[at..];
                at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            }
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            // Closes nothing, or the wrong bracket.
            b')' | b']' | b'}' if open.pop() != Some(first) => return true,
            b'"' | b'\'' => {
                let prefix = &text[word..at];
                let plain = |byte: &u8| matches!(byte.to_ascii_lowercase(), b'r' | b'b' | b'u');
                if prefix.len() > 2 || !prefix.iter().all(plain) {
                    return false;
                }
                let triple = byte(at + 1) == first && byte(at + 2) == first;
                at += if triple { 3 } else { 1 };
                loop {
                    let rest = text.get(at..).unwrap_or_default();
                    let stops = |byte: &u8| *byte == first || matches!(byte, b'\\' | b'\n');
                    let Some(length) = rest.iter().position(stops) else { return triple };
                    at += length;
                    match byte(at) {
                        // It escapes a whole character; none of its bytes matters here.
                        b'\\' => at += 2,
                        b'\n' if !triple => return false,
                        b'\n' => at += 1,
                        _ if !triple => break,
                        _ if byte(at + 1) == first && byte(at + 2) == first => break at += 2,
                        _ => at += 1,
                    }
                }
            }
            _ => {}
        }
        at += 1;
        if !(first.is_ascii_alphanumeric() || first == b'_' || first >= 0x80) {
            word = at;
        }
    }
    !open.is_empty()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_tree(parser: &mut PythonParser, text: &str) -> Result<bool, ParseError> {
        parser.parse_anew(text).map(|tree| is_python(&tree))
    }

    #[test]
    fn an_empty_text_is_no_program() {
        let mut parser = PythonParser::new().unwrap();
        let mut parses = |text| parses(&mut parser, text).unwrap();
        for refused in ["", " \n\t\n", "def f(:\n    return 1", "x = (1,", "'''", "f(]"] {
            assert!(!parses(refused), "{refused:?}");
        }
        for taken in ["# nothing\n", "def f():\n    return 1", "x = '''\n('''", "x = '(' # ["] {
            assert!(parses(taken), "{taken:?}");
        }
    }

    #[test]
    fn bodies_without_a_statement_and_python_2_are_refused() {
        let mut parser = PythonParser::new().unwrap();
        let mut parses = |text| parses(&mut parser, text).unwrap();
        for refused in ["def f(x):", "class A:\n    # soon", "print 'x'", "exec 'x'", "x <> y"] {
            assert!(!parses(refused), "{refused:?}");
        }
        assert!(parses("print('x')\nif x:\n    pass"));
    }

    #[test]
    fn what_breaks_off_is_known_without_a_tree() {
        for (text, broken) in [
            ("f(", true),
            ("x = [1, 2)", true),
            ("}", true),
            ("'''a", true),
            ("\"\"\"a\\\"\"\"", true),
            ("r'''\\'''", true),
            ("b'(' + rb'[' # (", false),
            ("'''\n(\n'''", false),
            ("'\\'('", false),
            // In doubt.
            ("f'{'", false),
            ("x('\n", false),
            ("'\\N{(}' (", false),
            ("(\r", false),
            ("(\0", false),
            ("if'(", false),
            ("élan'''", false),
        ] {
            assert_eq!(is_cut_off(text.as_bytes()), broken, "{text:?}");
        }
    }

    #[test]
    fn noise_as_long_as_is_refused_without_a_tree_has_one() {
        let mut parser = PythonParser::new().unwrap();
        for noise in [
            "(",
            "[",
            "{",
            ")",
            "def f(",
            "class ",
            "\\\n",
            "é→",
            "'''",
            "\"",
            "#\n",
            "def (]:= if ",
            "(\n",
            " \n(",
            "if x:\n (",
            "lambda ",
            "not ",
            "*",
            "f'{",
            "@",
            "print ",
            "match (",
            "\u{c}\\\n(",
            "a b ",
            "\n\n\t(",
            ", ",
            ": ",
            "async for (",
            "else:\n",
            "'''\\",
        ] {
            let text = noise.repeat(MAX_REFUSED / noise.len());
            assert!(parser.parse_anew(&text).is_ok(), "{noise:?}");
            assert_eq!(parses(&mut parser, &text), by_tree(&mut parser, &text), "{noise:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn the_short_ways_lead_where_the_tree_does(
            parts in proptest::collection::vec(
                prop_oneof![
                    4 => proptest::sample::select(vec![
                        "def f(a, b=1):\n", "    return a\n", "    x = [1,\n  2]\n", "class A:\n",
                        "if x:\n", "    if y:\n", "        pass\n", "else:\n", "    '''doc'''\n",
                        "print('x')\n", "print x\n", "x.exec()\n", "x <> y\n", "# c\n", "    # c\n",
                        "f'{a}'", "rb'\\''", "'\\N{x}'", "match (x):\n", " + ", "async ", "await x\n",
                        "lambda: ", "x: int = 1\n", "import a.b as c\n", "for a in b:\n", "\\\n",
                    ]).prop_map(str::to_owned),
                    2 => "[()\\[\\]{}'\"]{1,3}",
                    1 => "[a-b \n:=,.#\\\\frbu]{1,4}",
                    1 => "\\PC{0,3}",
                ],
                0..10)
        ) {
            let text = parts.concat();
            let mut parser = PythonParser::new().unwrap();
            let wanted = by_tree(&mut parser, &text);
            prop_assert_eq!(parses(&mut parser, &text), wanted.clone());
            // Again, from the kept tree.
            let _ = parser.parse(&text);
            prop_assert_eq!(parses(&mut parser, &text), wanted);
        }
    }
}
