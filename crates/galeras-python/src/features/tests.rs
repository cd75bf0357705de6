//! Tests of `features`, `lizard` and `tokens` against the peers of
//! `tests/reference/python_features.py`, and on hostile text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{CodeSize, size};

fn reference() -> Value {
    let path = "../../tests/reference/python_features.json";
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn for_each_case(check: impl Fn(&str, &str, &Value)) {
    let reference = reference();
    for part in ["snippets", "methods"] {
        for (name, case) in reference[part].as_object().unwrap() {
            check(name, case["code"].as_str().unwrap(), case);
        }
    }
}

fn measure(code: &str) -> Features<'_> {
    features(&mut PythonParser::new().unwrap(), code).unwrap()
}

fn numbers(size: Option<CodeSize>) -> (i64, i64, i64) {
    let size = size.unwrap();
    (size.token_count, size.nloc, size.complexity)
}

#[test]
fn syntax_features_equal_the_published_ones() {
    for_each_case(|name, code, case| {
        let f = measure(code);
        let ours = json!({
            "n_ast_errors": f.n_ast_errors,
            "ast_errors": f.ast_errors,
            "ast_levels": f.ast_levels,
            "n_ast_nodes": f.n_ast_nodes,
            "n_identifiers": f.n_identifiers,
        });
        assert_eq!(ours, case["syntax"], "{name}");
    });
}

#[test]
fn text_features_equal_the_published_ones() {
    for_each_case(|name, code, case| {
        let f = measure(code);
        let ours = json!({
            "docstring": f.docstring,
            "code": f.code_no_docstring,
            "n_whitespaces": f.n_whitespaces,
            "n_words": f.n_words,
            "vocab_size": f.vocab_size,
        });
        assert_eq!(ours, case["text"], "{name}");
        let words = f.docstring.map(|text| words(&text).count());
        assert_eq!(f.d_n_words, words.map(count), "{name}");
    });
}

#[test]
fn sizes_equal_lizard_but_for_its_faults() {
    for_each_case(|name, code, case| {
        let theirs = &case["lizard"];
        if theirs.is_null() || name == "one_liner_then_block" {
            return;
        }
        let size = size(code).unwrap();
        let ours = json!({
            "token_count": size.token_count,
            "nloc": size.nloc,
            "complexity": size.complexity,
        });
        assert_eq!(&ours, theirs, "{name}\n{code}");
    });
}

#[test]
fn parameters_returns_and_docstrings_equal_pythons_own_parser() {
    for_each_case(|name, code, case| {
        let theirs = &case["python"];
        if theirs.is_null() {
            return;
        }
        let mut parser = PythonParser::new().unwrap();
        let f = features_with(&mut parser, code, DocstringRule::FirstStatement).unwrap();
        let ours = json!({
            "parameters": f.parameters,
            "n_returns": f.n_returns,
            "has_docstring": f.docstring.is_some(),
        });
        assert_eq!(&ours, theirs, "{name}\n{code}");
    });
}

/// lizard adds to a function on one line until the next dedent: it counts (16, 3, 2) for the second
/// text, and the outer function of the third loses its `if`.
#[test]
fn a_function_on_one_line_ends_with_its_logical_line() {
    assert_eq!(numbers(size("def f(x): return x\n")), (7, 1, 1));
    assert_eq!(numbers(size("def f(x): return x\nif True:\n    y = f(1)\n")), (7, 1, 1));
    let outer = "def f(x):\n    def g(y) -> int: return h(y,\n        1)\n    if x:\n        return g\n    return x\n";
    assert_eq!(numbers(size(outer)), (14, 5, 2));
}

/// lizard leaves a function with such a comment out of its list.
#[test]
fn forgiven_functions_are_counted() {
    let code = "def f(x):\n    # #lizard forgives\n    if x:\n        return 1\n    return 2\n";
    assert_eq!(numbers(size(code)), (12, 4, 2));
}

/// lizard stops reading the file at such a comment.
#[test]
fn generated_code_is_counted() {
    let code = "def f(x):\n    # GENERATED CODE\n    if x:\n        return 1\n    return 2\n";
    assert_eq!(numbers(size(code)), (12, 4, 2));
}

/// lizard lists no function whose signature never closes; here its tokens are counted.
#[test]
fn cut_off_functions_count_as_far_as_they_go() {
    assert_eq!(numbers(size("def f(x:\n    return x +\n")), (7, 2, 1));
    assert_eq!(numbers(size("def f(")), (2, 1, 1));
    assert_eq!(size("x = 1\n"), None);
    assert_eq!(size(""), None);
}

#[test]
fn signature_reaches_from_def_to_its_colon() {
    let of = |code: &'static str| measure(code).signature;
    assert_eq!(
        of("@d\nasync def f(a: int = {1: 2}[1],\n        b=lambda: 0) -> 'x': pass\n").unwrap(),
        "async def f(a: int = {1: 2}[1],\n        b=lambda: 0) -> 'x':"
    );
    assert_eq!(of("def m(self):\n        return 1").unwrap(), "def m(self):");
    assert_eq!(of("x = 1\n"), None);
}

#[test]
fn parameters_are_names_in_order() {
    let f =
        measure("def f(a, b: int, c=1, d: int = 2, /, *args: str, e, f: T = g(h), **kw): pass\n");
    assert_eq!(f.parameters, ["a", "b", "c", "d", "args", "e", "f", "kw"]);
    assert_eq!(measure("def f(a, (b, (c, d)), e=1): pass\n").parameters, ["a", "b", "c", "d", "e"]);
}

#[test]
fn returns_of_inner_definitions_do_not_count() {
    let code = "def f(x):\n    def g():\n        return 1\n    class C:\n        def m(self): return 2\n    if x:\n        return g\n    h = lambda: 3\n    return h\n";
    assert_eq!(measure(code).n_returns, 2);
    assert_eq!(measure("return 1\ndef f(): pass\nreturn 2\n").n_returns, 0);
}

#[test]
fn first_statement_rule_keeps_strings_that_are_values() {
    let mut parser = PythonParser::new().unwrap();
    let mut split = |code: &str| {
        let f = features_with(&mut parser, code, DocstringRule::FirstStatement).unwrap();
        (f.code_no_docstring.into_owned(), f.docstring.map(Cow::into_owned))
    };
    let assigned = "def f():\n    q = \"\"\"\n    select 1\n    \"\"\"\n    return q\n";
    assert_eq!(split(assigned), (assigned.to_owned(), None));
    assert_eq!(
        split("def f():\n    # c\n    r'A' \"b\"\n    pass\n"),
        ("def f():\n    # c\n    \n    pass\n".to_owned(), Some("Ab".to_owned()))
    );
    let formatted = "def f():\n    f'''no {x}'''\n";
    assert_eq!(split(formatted), (formatted.to_owned(), None));
}

#[test]
fn hostile_texts_are_measured_in_linear_time() {
    let deep_ifs: String = (0..2_000).map(|i| format!("{}if x:\n", " ".repeat(i))).collect();
    let deep_defs: String = (0..2_000).map(|i| format!("{}def f():\n", " ".repeat(i))).collect();
    for text in [
        "(".repeat(100_000),
        format!("def f(a={}", "(".repeat(100_000)),
        format!("def f():{}", "if x:".repeat(10_000)),
        format!("def f():\n {}", "\0".repeat(1_000_000)),
        deep_ifs,
        deep_defs,
    ] {
        let mut parser = PythonParser::new().unwrap();
        let _ = features(&mut parser, &text);
    }
    for unit in [
        "\"\\",
        "'\\\"",
        "\"\"\"\\",
        "/*",
        "<a?",
        "f\"{",
        "f'{f\"{",
        "\\",
        "case (",
        "1'",
        "def f(",
        "def f(): ",
        "{",
        "f'{'",
    ] {
        let text = format!("def f():\n {}", unit.repeat(2_000_000 / unit.len()));
        assert_eq!(size(&text), size(&text), "{unit}");
    }
    let nested: String =
        (0..100_000).map(|i| format!("\n{}def f():", "\t".repeat(i % 90))).collect();
    assert!(size(&nested).is_some());
    let line = format!("def f(): return [{}]", "1, ".repeat(16 << 20));
    assert_eq!(numbers(size(&line)).0, 4 + 2 + 2 * (16 << 20) + 1);
}

proptest! {
    #[test]
    fn any_text_has_the_same_features_twice(
        parts in proptest::collection::vec(
            prop_oneof![
                "\\PC{0,6}", "[ \\t\\r\\n\\\\\"'{}()\\[\\]:#]{0,6}", Just("def f(a):\n".to_owned()),
                Just("\"\"\"".to_owned()), Just("f\"{x!r}".to_owned()), Just("case (".to_owned()),
                Just("    return 1\n".to_owned()), Just("é\u{2028}\u{0}".to_owned())
            ], 0..14)
    ) {
        let text = parts.concat();
        let mut parser = PythonParser::new().unwrap();
        for rule in [DocstringRule::Published, DocstringRule::FirstStatement] {
            let once = features_with(&mut parser, &text, rule).unwrap();
            prop_assert_eq!(&once, &features_with(&mut parser, &text, rule).unwrap());
            prop_assert!(once.vocab_size <= once.n_words);
            prop_assert!(once.code_no_docstring.len() <= text.len());
            prop_assert_eq!(once.n_ast_errors, count(once.ast_errors.len()));
        }
    }
}
