//! Tests of `features`, `lizard` and `tokens` against the peers of
//! `tests/reference/python_features.py`, and on hostile text.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Recounter;
use crate::library::for_each_case;

fn measure(code: &str) -> Features<'_> {
    features(&mut PythonParser::new().unwrap(), code).unwrap()
}

fn numbers(size: CodeSize) -> (i64, i64, i64) {
    (size.token_count, size.nloc, size.complexity)
}

#[test]
fn features_equal_the_published_ones() {
    for_each_case(|name, code, case| {
        let f = measure(code);
        let syntax = json!({
            "n_ast_errors": f.n_ast_errors,
            "ast_errors": f.ast_errors,
            "ast_levels": f.ast_levels,
            "n_ast_nodes": f.n_ast_nodes,
            "n_identifiers": f.n_identifiers,
        });
        assert_eq!(syntax, case["syntax"], "{name}");
        let text = json!({
            "docstring": f.docstring,
            "code": f.code_no_docstring,
            "n_whitespaces": f.n_whitespaces,
            "n_words": f.n_words,
            "vocab_size": f.vocab_size,
        });
        assert_eq!(text, case["text"], "{name}");
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
        let f = features(&mut parser, code).unwrap();
        let (_, facts) = Recounter::default().measure(&mut parser, code).unwrap();
        let ours = json!({
            "parameters": f.parameters,
            "n_returns": f.n_returns,
            "has_docstring": facts.docstring_words.is_some(),
        });
        assert_eq!(&ours, theirs, "{name}\n{code}");
    });
}

#[test]
fn lizards_faults_are_not_copied() {
    let marked = |comment: &str| {
        format!("def f(x):\n    # {comment}\n    if x:\n        return 1\n    return 2\n")
    };
    let outer = "def f(x):\n    def g(y) -> int: return h(y,\n        1)\n    if x:\n        return g\n    return x\n";
    for (code, expected) in [
        // lizard adds to a function on one line until the next dedent: it counts (16, 3, 2) for the
        // second text, and the outer function of the third loses its `if`.
        ("def f(x): return x\n", Some((7, 1, 1))),
        ("def f(x): return x\nif True:\n    y = f(1)\n", Some((7, 1, 1))),
        (outer, Some((14, 5, 2))),
        // lizard leaves such a function out of its list, or stops reading the file.
        (&*marked("#lizard forgives"), Some((12, 4, 2))),
        (&*marked("GENERATED CODE"), Some((12, 4, 2))),
        // lizard lists no function whose signature never closes; here its tokens are counted.
        ("def f(x:\n    return x +\n", Some((7, 2, 1))),
        ("def f(", Some((2, 1, 1))),
        ("x = 1\n", None),
        ("", None),
    ] {
        assert_eq!(size(code).map(numbers), expected, "{code}");
    }
}

#[test]
fn signatures_and_parameters_are_those_of_the_first_function() {
    for (code, signature, parameters) in [
        (
            "@d\nasync def f(a: int = {1: 2}[1],\n        b=lambda: 0) -> 'x': pass\n",
            Some("async def f(a: int = {1: 2}[1],\n        b=lambda: 0) -> 'x':"),
            "a b",
        ),
        ("def m(self):\n        return 1", Some("def m(self):"), "self"),
        ("x = 1\n", None, ""),
        (
            "def f(a, b: int, c=1, d: int = 2, /, *args: str, e, f: T = g(h), **kw): pass\n",
            Some("def f(a, b: int, c=1, d: int = 2, /, *args: str, e, f: T = g(h), **kw):"),
            "a b c d args e f kw",
        ),
        ("def f(a, (b, (c, d)), e=1): pass\n", Some("def f(a, (b, (c, d)), e=1):"), "a b c d e"),
    ] {
        let f = measure(code);
        assert_eq!((f.signature, &*f.parameters.join(" ")), (signature, parameters), "{code}");
    }
}

#[test]
fn returns_of_inner_definitions_do_not_count() {
    let code = "def f(x):\n    def g():\n        return 1\n    class C:\n        def m(self): return 2\n    if x:\n        return g\n    h = lambda: 3\n    return h\n";
    assert_eq!(measure(code).n_returns, 2);
    assert_eq!(measure("return 1\ndef f(): pass\nreturn 2\n").n_returns, 0);
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
    let units = "\"\\‖'\\\"‖\"\"\"\\‖/*‖<a?‖f\"{‖f'{f\"{‖\\‖case (‖1'‖def f(‖def f(): ‖{‖f'{'";
    for unit in units.split('‖') {
        let text = format!("def f():\n {}", unit.repeat(2_000_000 / unit.len()));
        assert_eq!(size(&text), size(&text), "{unit}");
    }
    let nested: String =
        (0..100_000).map(|i| format!("\n{}def f():", "\t".repeat(i % 90))).collect();
    assert!(size(&nested).is_some());
    let line = format!("def f(): return [{}]", "1, ".repeat(16 << 20));
    assert_eq!(numbers(size(&line).unwrap()).0, 4 + 2 + 2 * (16 << 20) + 1);
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
        let once = features(&mut parser, &text).unwrap();
        prop_assert_eq!(&once, &features(&mut parser, &text).unwrap());
        prop_assert!(once.vocab_size <= once.n_words);
        prop_assert!(once.code_no_docstring.len() <= text.len());
        prop_assert_eq!(once.n_ast_errors, count(once.ast_errors.len()));
    }
}
