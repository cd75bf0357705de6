//! Decides if a text is valid Python.

use super::module::{Nesting, with_module};
use super::parse::ParseError;

/// True if Python 3.13's `ast.parse` accepts `text`, and it is not only white space.
///
/// Errors that Python finds only when it compiles the tree do not count, as a `return` outside a
/// function or a keyword argument that is repeated.
///
/// # Errors
/// [`ParseError::TooLarge`] over 4 MiB; [`ParseError::TooComplex`] for more than 10,000 operators
/// within each other, of which Python's parser runs out of memory.
pub fn parses(text: &str) -> Result<bool, ParseError> {
    let nesting = Nesting::of(text)?;
    if text.contains('\0') || text.trim_ascii().is_empty() || nesting.is_refused() {
        return Ok(false);
    }
    with_module(text, nesting, |module| module.has_no_syntax_errors())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::library::python_files;

    #[test]
    fn texts_parse_if_python_says_so() {
        let path = "../../tests/reference/python_syntax.json";
        let reference: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut wrong = Vec::new();
        for case in reference["texts"].as_array().unwrap() {
            let (text, valid) = (case[0].as_str().unwrap(), case[1].as_bool().unwrap());
            if parses(text) != Ok(valid) {
                wrong.push(text);
            }
        }
        assert_eq!(wrong, Vec::<&str>::new());
    }

    /// Where we leave Python.
    #[test]
    fn empty_texts_do_not_parse_and_a_byte_order_mark_does() {
        for (text, valid) in
            [("", false), (" \n\t\r\n\x0c", false), ("# nothing", true), ("\u{feff}x = 1\n", true)]
        {
            assert_eq!(parses(text), Ok(valid), "{text:?}");
        }
    }

    #[test]
    fn depth_is_refused_as_by_python_or_without_an_answer() {
        let nested = |open: &str, close: &str, depth: usize| {
            parses(&format!("x = {}1{}\n", open.repeat(depth), close.repeat(depth)))
        };
        for (open, close) in [("(", ")"), ("[", "]"), ("f(", ")"), ("{", "}")] {
            assert_eq!(nested(open, close, 200), Ok(true), "{open}");
            assert_eq!(nested(open, close, 201), Ok(false), "{open}");
            assert_eq!(nested(open, close, 100_000), Ok(false), "{open}");
        }
        assert_eq!(nested("f'{", "}'", 149), Ok(true));
        assert_eq!(nested("f'{", "}'", 150), Ok(false));
        for operator in ["-", "not ", "1 + ", "a or not ", "a.b + "] {
            assert_eq!(nested(operator, "", 3_000), Ok(true), "{operator}");
            assert_eq!(nested(operator, "", 50_000), Err(ParseError::TooComplex), "{operator}");
        }
        let blocks = |depth: usize| {
            let lines = (0..depth).map(|at| format!("{}if x:\n", " ".repeat(at)));
            lines.collect::<String>() + &" ".repeat(depth) + "pass\n"
        };
        assert_eq!(parses(&blocks(99)), Ok(true));
        assert_eq!(parses(&blocks(100)), Ok(false));
        assert_eq!(parses(&blocks(2_500)), Ok(false));
        // Wide is not deep.
        assert_eq!(parses(&format!("x = [{}]\n", "(a.b, -1), ".repeat(100_000))), Ok(true));
        assert_eq!(parses(&"x = f(1) + 2\n".repeat(100_000)), Ok(true));
        assert!(matches!(parses(&"#".repeat(5 << 20)), Err(ParseError::TooLarge { .. })));
    }

    #[test]
    fn the_standard_library_parses() {
        let mut refused: Vec<_> = python_files([])
            .into_iter()
            .filter(|(_, text)| !text.trim().is_empty() && parses(text) != Ok(true))
            .filter_map(|(path, _)| {
                path.file_name().map(|name| name.to_string_lossy().into_owned())
            })
            .collect();
        refused.sort();
        // Python 3.14: `except A, B:` and template strings.
        assert_eq!(refused, ["annotationlib.py", "site.py", "templatelib.py"]);
    }
}
