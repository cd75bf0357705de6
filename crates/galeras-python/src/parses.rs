//! Decides if a text is valid Python.
//!
//! tree-sitter spends most of its time on recovery from errors, for a tree of which only the
//! presence of errors is needed. So two shortcuts come first: most valid texts are plain
//! (`outline::plain`), and half of the invalid ones end inside brackets or a string.

use tree_sitter::Tree;

use super::outline::read_plain;
use super::parse::{ParseError, PythonParser, named_children, nodes};
use super::scan::string_end;

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
    // Python 2's statement words are plain in calls; only the tree separates calls from statements.
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
    !nodes(root).any(|node| match node.kind() {
        "print_statement" | "exec_statement" | "<>" => true,
        "block" => named_children(node).iter().all(|child| child.kind() == "comment"),
        _ => false,
    })
}

/// True if a text certainly has an unmatched bracket or an unclosed triple-quoted string. In a tree
/// without errors every bracket outside strings and comments belongs to a rule with both, and every
/// string is closed.
///
/// Returns `false` where tree-sitter could see other tokens: at f-strings and prefixes other than
/// those of bytes and raw strings, at line ends in single-quoted strings, at `\N{`, which extends
/// to its brace, and at bytes that only some readers treat as the end of a line or text.
fn is_cut_off(text: &[u8]) -> bool {
    if text.iter().any(|byte| matches!(byte, 0 | b'\r'))
        || text.windows(3).any(|part| part == b"\\N{")
    {
        return false;
    }
    let mut open = Vec::new();
    let mut at = 0;
    // The start of the word that ends here.
    let mut word = 0;
    while let Some(&first) = text.get(at) {
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
                match string_end(text, at) {
                    Ok(end) => at = end - 1,
                    Err(end) => return end == text.len() && text[at..].starts_with(&[first; 3]),
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_tree(parser: &mut PythonParser, text: &str) -> Result<bool, ParseError> {
        parser.parse_anew(text).map(|tree| is_python(&tree))
    }

    #[test]
    fn only_python_3_with_a_statement_in_every_body_parses() {
        let mut parser = PythonParser::new().unwrap();
        let refused = "‖ \n\t\n‖def f(:\n    return 1‖x = (1,‖'''‖f(]‖def f(x):\
            ‖class A:\n    # soon‖print 'x'‖exec 'x'‖x <> y";
        let taken = "# nothing\n‖def f():\n    return 1‖x = '''\n('''‖x = '(' # [\
            ‖print('x')\nif x:\n    pass";
        for (texts, valid) in [(refused, false), (taken, true)] {
            for text in texts.split('‖') {
                assert_eq!(parses(&mut parser, text), Ok(valid), "{text:?}");
            }
        }
    }

    #[test]
    fn what_breaks_off_is_known_without_a_tree() {
        let broken = "f(‖x = [1, 2)‖}‖'''a‖\"\"\"a\\\"\"\"‖r'''\\'''";
        // Complete texts, and those in doubt.
        let others =
            "b'(' + rb'[' # (‖'''\n(\n'''‖'\\'('‖f'{'‖x('\n‖'\\N{(}' (‖(\r‖(\0‖if'(‖élan'''";
        for (texts, expected) in [(broken, true), (others, false)] {
            for text in texts.split('‖') {
                assert_eq!(is_cut_off(text.as_bytes()), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn noise_as_long_as_is_refused_without_a_tree_has_one() {
        let mut parser = PythonParser::new().unwrap();
        let noises = "(‖[‖{‖)‖def f(‖class ‖\\\n‖é→‖'''‖\"‖#\n‖def (]:= if ‖(\n‖ \n(‖if x:\n (‖lambda ‖not \
            ‖*‖f'{‖@‖print ‖match (‖\u{c}\\\n(‖a b ‖\n\n\t(‖, ‖: ‖async for (‖else:\n‖'''\\";
        for noise in noises.split('‖') {
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
