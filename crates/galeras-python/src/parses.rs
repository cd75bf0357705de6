//! Whether a text is Python.
//!
//! Here: the answer by tree-sitter's tree, and two short ways to it for the texts about which there
//! is no doubt. Not here: plain code (`outline::plain`), the parser and its limits (`parse`).
//!
//! Asking for the tree of a text that was cut anywhere is dear: tree-sitter spends most of its time
//! on recovering from errors, for a tree of which only their presence is asked. But most texts that
//! are right are plain, and half of those that are wrong break off inside of brackets or of a string.

use tree_sitter::Tree;

use super::outline::read_plain;
use super::parse::{ParseError, PythonParser};

/// Longest text that is refused without a tree. `parse` never comes to its limits in so short a
/// one, as they begin at 24 operations for each of its bytes, and it is in the lexer's hands as a
/// whole; so it would have given a tree, with an error in it.
const MAX_REFUSED: usize = 4 << 10;

/// Whether `text` is Python 3 without a syntax error; a text of nothing but white space is not.
///
/// The grammar of tree-sitter takes more than Python does. Refused beyond its errors are bodies
/// without a statement, as an answer has that was cut, and statements and operators of Python 2.
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

/// The answer, if it takes no tree.
fn without_tree(text: &str) -> Option<bool> {
    // Words of Python 2's statements are plain in calls, but whether it is one the tree says.
    let told_by_tree = ["print", "exec"].iter().any(|word| text.contains(word));
    if !told_by_tree && !text.trim_ascii().is_empty() && read_plain(text).is_some() {
        return Some(true);
    }
    (text.len() <= MAX_REFUSED && breaks_off(text.as_bytes())).then_some(false)
}

/// Whether a tree has neither errors nor what is refused beyond them.
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

/// Whether a text certainly has a bracket without its counterpart, or a string in three quotes
/// without an end. In a tree without errors every bracket outside of strings and comments is a
/// token of a rule that has both, and every string has its end.
///
/// Gives up, with `false`, where tree-sitter could see other tokens: at f-strings and other
/// prefixes than those of bytes and raw strings, at line ends in strings of one quote, at `\N{`,
/// which takes all up to its brace, and at bytes that end lines or texts for one and not for others.
fn breaks_off(text: &[u8]) -> bool {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    if text.iter().any(|byte| matches!(byte, 0 | b'\r'))
        || text.windows(3).any(|part| part == b"\\N{")
    {
        return false;
    }
    let mut open = Vec::new();
    let mut at = 0;
    // Where the word began that ends here.
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
            // What closes none, or another one.
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
                        // It takes a whole character with it; none of its bytes stops here.
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

    /// The answer by the tree alone.
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
            assert_eq!(breaks_off(text.as_bytes()), broken, "{text:?}");
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
            // Once more, from the tree that is kept.
            let _ = parser.parse(&text);
            prop_assert_eq!(parses(&mut parser, &text), wanted);
        }
    }
}
