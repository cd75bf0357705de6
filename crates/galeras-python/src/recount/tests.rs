//! Tests `recount` against the peers of `tests/reference/python_features.py`, against `features`,
//! and on hostile text.

use serde_json::json;

use super::super::features::{Features, features};
use super::*;
use crate::library::for_each_case;

fn measured(text: &str) -> (Recount, BodyFacts) {
    Recounter::default().measure(&mut PythonParser::new().unwrap(), text).unwrap()
}

fn facts(text: &str) -> BodyFacts {
    measured(text).1
}

fn complexity(text: &str) -> i64 {
    measured(text).0.complexity
}

fn counted(f: &Features) -> Recount {
    Recount {
        n_ast_nodes: f.n_ast_nodes,
        ast_levels: f.ast_levels,
        n_ast_errors: f.n_ast_errors,
        n_identifiers: f.n_identifiers,
        n_words: f.n_words,
        vocab_size: f.vocab_size,
        n_whitespaces: f.n_whitespaces,
        n_returns: f.n_returns,
        complexity: f.complexity,
        nloc: f.nloc,
        token_counts: f.token_counts,
    }
}

/// The recount, with size counts from `features`, which lizard may see differently.
fn but_for_size(recount: Recount, counted: &Recount) -> Recount {
    let Recount { complexity, nloc, token_counts, .. } = *counted;
    Recount { complexity, nloc, token_counts, ..recount }
}

#[test]
fn recounts_equal_the_peers() {
    for_each_case(|name, code, case| {
        let (r, _) = measured(code);
        let (tree, text) = (&case["syntax"], &case["text"]);
        let ours = json!([
            [r.n_ast_nodes, r.ast_levels, r.n_ast_errors, r.n_identifiers],
            [r.n_words, r.vocab_size, r.n_whitespaces],
        ]);
        let theirs = json!([
            [tree["n_ast_nodes"], tree["ast_levels"], tree["n_ast_errors"], tree["n_identifiers"]],
            [text["n_words"], text["vocab_size"], text["n_whitespaces"]],
        ]);
        assert_eq!(ours, theirs, "{name}");
        if let Some(returns) = case["python"]["n_returns"].as_i64() {
            assert_eq!(r.n_returns, returns, "{name}");
        }
    });
}

/// The snippets that differ: `case *y` as a product, `/* */`, a line left of the body, what the
/// header of `lizard` excludes, and texts that lizard reads as a comment, a generic type, the end of
/// a string or method, or a docstring.
#[test]
fn sizes_equal_lizards_but_for_known_snippets() {
    let (mut others, mut cases) = ([const { Vec::new() }; 3], 0);
    let mut parser = PythonParser::new().unwrap();
    for_each_case(|name, code, case| {
        let Some(complexity) = case["lizard"]["complexity"].as_i64() else { return };
        let (recount, _) = measured(code);
        let lizard = features(&mut parser, code).unwrap();
        cases += 1;
        let differ = [
            complexity != recount.complexity,
            lizard.token_counts != recount.token_counts,
            lizard.nloc != recount.nloc,
        ];
        for (names, _) in others.iter_mut().zip(differ).filter(|(_, differs)| *differs) {
            names.push(name.to_owned());
        }
    });
    assert!(cases > 100, "{cases}");
    others.iter_mut().for_each(|names| names.sort());
    assert_eq!(
        others.map(|names| names.join(" ")),
        [
            "c_comment case_call left_continuation one_liner_then_block",
            "c_comment escaped_triple_end generic_like left_continuation unterminated",
            "fstring_triple left_continuation triple_assign",
        ]
    );
}

#[test]
fn tokens_and_lines_are_those_of_the_leaves() {
    for (text, tokens, lines) in [
        ("def f(): pass\n", 5, 1),
        ("def f(a):\n    \"\"\"Doc\n    string.\"\"\"\n    # why\n\n    return a\n", 8, 2),
        // 1 . 5, :: as one, >> as two, a prefix alone
        ("def f():\n    return 1.5 >> a[::2] + b'x'\n", 18, 2),
        // Literal parts, and the tokens between the braces.
        ("def f(x):\n    return f'a {x!r:>{w}} b{x}'\n", 18, 2),
        ("def f():\n    return f''\n", 7, 2),
        // A backslash that joins lines, but not one in a comment.
        ("def f():\n    a = 1 + \\\n        2  # so \\\n    return a\n", 12, 4),
        // A nested function: `def` and its name.
        ("def f():\n    def g(a):\n        return a\n    return g\n", 8, 3),
    ] {
        let (recount, _) = measured(text);
        let features = features(&mut PythonParser::new().unwrap(), text).unwrap();
        assert_eq!((features.token_counts, features.nloc), (tokens, lines), "lizard: {text}");
        assert_eq!((recount.token_counts, recount.nloc), (tokens, lines), "{text}");
    }
}

#[test]
fn on_broken_text_everything_but_complexity_and_size_equals_features() {
    let mut parser = PythonParser::new().unwrap();
    let mut recounter = Recounter::default();
    for_each_case(|name, code, _| {
        for part in 1..8 {
            let cut = &code[..code.floor_char_boundary(code.len() * part / 8)];
            let counted = counted(&features(&mut parser, cut).unwrap());
            let (recount, _) = recounter.measure(&mut parser, cut).unwrap();
            assert_eq!(but_for_size(recount, &counted), counted, "{name} {cut}");
        }
    });
}

#[test]
fn every_second_part_between_triple_quotes_is_cut_out() {
    for text in [
        "def f():\n    a\"\"\"doc  x\"\"\"b\u{3000}c\u{1c}d\u{2003}a'''e''' '''",
        "def f():\n    \"\"\"a '''b\"\"\" c''' d",
        "\"\"\"\"\"\" x ''' ''''y''''",
        "ä\u{85}ä\u{a0}ß\u{200b}ß\u{1680}x\u{2028}y\u{205f}z\r\n\t x",
    ] {
        let counted = counted(&features(&mut PythonParser::new().unwrap(), text).unwrap());
        assert_eq!(but_for_size(measured(text).0, &counted), counted);
    }
}

#[test]
fn branches_of_nested_functions_do_not_count_and_those_of_classes_and_lambdas_do() {
    for (text, branches) in [
        ("def f(x=1 or 2) -> (a and b):\n    return lambda: 1 if x else 2\n", 3),
        (
            "def f(x):\n    @d(a or b)\n    def g(y=1 or 2):\n        if y: pass\n    if x: pass\n",
            2,
        ),
        ("def f(x):\n    class A:\n        if x: pass\n        def g(self): return 1 or 2\n", 1),
        ("def f(x):\n    return f'{x if x else [a for a in x if a]}'\n", 3),
        ("def f(x):\n    match x:\n        case (1): pass\n        case [a] if a: pass\n", 3),
        ("def f():\n    try: pass\n    except* E: pass\n    else: pass\n    finally: pass\n", 2),
        ("x = 1 or 2\n", -1),
    ] {
        assert_eq!(complexity(text), 1 + branches, "{text}");
    }
}

/// The differences of the header, with lizard's counts.
#[test]
fn where_lizard_sees_other_than_the_parser_the_parser_counts() {
    for (text, lizards, ours) in [
        ("def f(a) -> T[int,\n              str]:\n    if a: pass\n", 1, 2),
        ("def f(a=b()\n      ) -> int:\n    if a: pass\n", 1, 2),
        ("def f(a):\n    b = (\n  1, 2)\n    if a: pass\n", 1, 2),
        ("def f(x):\n    return f'{x:%H or %M}'\n", 2, 1),
        ("def f(x):\n    return f\"{x[\"if\"]}\"\n", 2, 1),
        ("def f(x):\n    return t'{x or 1}'\n", 1, 2),
        ("def f(x):\n    return 1if x else 2\n", 1, 2),
    ] {
        let lizard = features(&mut PythonParser::new().unwrap(), text).unwrap().complexity;
        assert_eq!((lizard, complexity(text)), (lizards, ours), "{text}");
    }
}

#[test]
fn a_body_on_one_line_is_told_from_one_statement() {
    for (text, one_line, one_statement) in [
        ("def f(a,\n      b): return 1\n", true, true),
        ("def f():\n    # why\n    '''doc\n    more'''\n\n    return 1  # so\n", true, true),
        ("def f():\n    return g(\n        1)\n", false, true),
        ("def f():\n    a = 1; return a\n", true, false),
        ("def f():\n    if a: return 1\n", true, false),
        ("def f():\n    a = 1\n    return a\n", false, false),
        ("def f():\n    '''doc'''\n", true, true),
        ("def f():\n    def g(): pass\n", true, false),
        ("x = 1\n", false, false),
    ] {
        let facts = facts(text);
        assert_eq!((facts.one_line, facts.one_statement), (one_line, one_statement), "{text}");
    }
}

#[test]
fn a_body_of_pass_and_ellipses_is_only_pass() {
    for text in [
        "def f(): pass\n",
        "def f(): ...\n",
        "def f():\n    \"doc\"\n    # c\n    ...\n    pass\n",
        "async def f():\n    \"doc\"\n",
    ] {
        assert!(facts(text).only_pass, "{text}");
    }
    for text in ["def f(): return\n", "def f():\n    pass\n    x\n", "def f(): x = ...\n", "pass\n"]
    {
        assert!(!facts(text).only_pass, "{text}");
    }
}

#[test]
fn a_docstring_is_a_plain_string_as_first_statement() {
    let words = |text: &str| facts(text).docstring_words;
    assert_eq!(words("def f():\n    # c\n    '''two\n    words'''\n"), Some(2));
    assert_eq!(words("def f(): r'a' \" b\"'c'\n"), Some(2));
    assert_eq!(words("def f(): ''\n"), Some(0));
    for text in ["f'a'", "b'a'", "x = 'a'", "1\n    'a'", "'a', 'b'", "'a'.b"] {
        assert_eq!(words(&format!("def f():\n    {text}\n")), None, "{text}");
    }
}

#[test]
fn returns_of_the_first_function_itself_count() {
    let inner = "    def g():\n        return 1\n    class A:\n        return\n";
    let text = format!("def f():\n{inner}    return g\ndef h(): return\n");
    assert_eq!((measured(&text).0.n_returns, facts(&text).returns), (1, 1));
}

#[test]
fn nesting_of_100_000_costs_no_stack() {
    for (open, close) in [("f(", ")"), ("", "()"), ("-", ""), ("(", ""), ("[", "]")] {
        let text = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let counted = counted(&features(&mut PythonParser::new().unwrap(), &text).unwrap());
        assert_eq!(measured(&text).0, counted);
    }
}

#[test]
fn a_refused_text_leaves_no_trace() {
    let mut parser = PythonParser::new().unwrap();
    let mut recounter = Recounter::default();
    let noise = "def f(".repeat(100_000);
    assert_eq!(recounter.measure(&mut parser, &noise), Err(ParseError::TooComplex));
    let text = "def f(x):\n    return x\n";
    assert_eq!(recounter.measure(&mut parser, text).unwrap(), measured(text));
}
