//! Tests of `scorer`: hostile texts, and the differences between the modes.

use super::super::EQUAL_WEIGHTS;
use super::*;

const MODES: [CodeBleuMode; 3] =
    [CodeBleuMode::Strict, CodeBleuMode::Published, CodeBleuMode::CodeXGlue];

fn scored(
    mode: CodeBleuMode,
    reference: &str,
    hypothesis: &str,
) -> Result<(CodeBleuScores, CodeBleuCounts), ParseError> {
    let mut parser = PythonParser::new()?;
    let mut scorer = CodeBleu::new(mode, EQUAL_WEIGHTS);
    let reference = scorer.reference(&mut parser, reference)?;
    scorer.score(&mut parser, &reference, hypothesis)
}

fn correct(reference: &str, hypothesis: &str) -> CodeBleuScores {
    scored(CodeBleuMode::Strict, reference, hypothesis).unwrap().0
}

/// Syntax and data flow are as for equal texts.
fn alike(a: &str, b: &str) {
    for (a, b) in [(a, b), (b, a)] {
        let scores = correct(a, b);
        assert_eq!(scores.syntax, 1.0, "{a:?} {b:?}");
        assert_eq!(scores.dataflow.unwrap_or(1.0), 1.0, "{a:?} {b:?}");
    }
}

#[test]
fn comments_docstrings_and_line_continuations_take_no_part() {
    let plain = "def f(a):\n    b = a + 1\n    return b\n";
    for other in [
        "# head\ndef f(a):  # why\n    b = a + 1\n    # note\n    return b\n# end",
        "def f(a):\n    '''doc'''\n    b = a + 1\n    return b",
        "def f(a):\n    r\"\"\"doc\n\n    more\"\"\"\n    b = a + 1\n    return b",
        "def f(a):\n    'one' 'two'\n    b = a + 1\n    'no docstring, but no effect'\n    return b",
        "def f(a):\n    b = a \\\n        + 1\n    return b",
        "def f(a):\r\n\tb = a + 1\r\n\treturn b\r\n",
        "\n\n    def f(a):\n        b = a + 1\n        return b\n",
    ] {
        alike(plain, other);
    }
    let same =
        scored(CodeBleuMode::CodeXGlue, plain, "def f(a):  # why\n    b = a + 1\n    return b");
    assert!(same.unwrap().0.syntax < 1.0);
}

#[test]
fn strings_that_do_something_take_part() {
    let plain = "def f(a):\n    return a";
    for other in [
        "def f(a):\n    f'{g(a)}'\n    return a",
        "def f(a):\n    x = 'doc'\n    return a",
        "def f(a):\n    ''.join(a)\n    return a",
    ] {
        assert!(correct(other, plain).syntax < 1.0, "{other}");
    }
}

#[test]
fn renaming_keeps_the_data_flow_and_swapping_breaks_it() {
    let one = "def f(a, b):\n    c = a + b\n    d = c - a\n    return d";
    alike(one, "def g(x, y):\n    z = x + y\n    w = z - x\n    return w");
    let scores = correct(one, "def f(a, b):\n    c = a + b\n    d = a - c\n    return d");
    assert!(scores.syntax == 1.0 && scores.dataflow.unwrap() < 1.0, "{scores:?}");
}

#[test]
fn a_string_in_an_assignment_does_not_lose_the_data_flow() {
    let text = "def f(self, a):\n    self.x = 'abc'\n    return a";
    assert_eq!(correct(text, text).dataflow, Some(1.0));
    let (scores, counts) = scored(CodeBleuMode::Published, text, text).unwrap();
    assert_eq!((scores.dataflow, counts.reference_flow), (Some(0.0), 0));
    assert_eq!(scores.codebleu, 1.0);
}

#[test]
fn the_body_of_a_loop_with_else_is_walked() {
    let text = "for a in b:\n    c = a\nelse:\n    d = c";
    let flow = |mode| scored(mode, text, text).unwrap().1.reference_flow;
    assert_eq!((flow(CodeBleuMode::Strict), flow(CodeBleuMode::Published)), (6, 2));
}

#[test]
fn empty_and_odd_texts_score_between_0_and_1() {
    let texts = "‖ \n\t ‖# only\n# comments‖'''only a docstring'''‖\u{feff}‖\0‖def f(:\n  return (((\
        ‖x = '\u{fffd}\u{fffd}' + \"\u{0}\"\r\n\ty = x\r\n‖é = ñ\n\u{2028}z = é // ñ\
        ‖\u{feff}def f():\n    return 1‖print 'x', y\nexec code in ns‖\u{1c}\u{85}x\
        ‖class A:\n\tdef f(self):\n\t    pass\n        return‖\\\n\\\n‖'''\
        ‖match x:\n    case [a, *b] if a: pass‖if‖for‖x = = 3 )";
    let texts: Vec<&str> = texts.split('‖').collect();
    for mode in MODES {
        for &a in &texts {
            for &b in &texts {
                let (scores, counts) = scored(mode, a, b).unwrap();
                let all = [scores.codebleu, scores.ngram, scores.weighted, scores.syntax];
                let good = all.iter().all(|x| (0.0..=1.0).contains(x));
                assert!(good, "{mode:?} {a:?} {b:?} {scores:?}");
                assert!(counts.reference_subtrees >= 1);
            }
            assert_eq!(scored(mode, a, a).unwrap().0.syntax, 1.0, "{a:?}");
        }
    }
    assert_eq!(correct("", "").dataflow, None);
    assert_eq!(correct("# a", "'b'").syntax, 1.0);
}

#[test]
fn deep_and_long_texts_end() {
    let n = 100_000;
    let texts = [
        format!("x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("x = {}", "[".repeat(n)),
        format!("x = {}a", "not ".repeat(n)),
        format!("x = {}a{}", "f(".repeat(n), ")".repeat(n)),
        format!("x = {}a", "lambda b: ".repeat(n)),
        format!("x = '{}'", "é".repeat(500_000)),
        format!("é = [{}]", "a, ".repeat(n)),
        format!("x = {}", "a + ".repeat(n)),
        "x ".repeat(20_000),
        "\0".repeat(1_000_000),
    ];
    for mode in MODES {
        for text in &texts {
            scored(mode, text, text).unwrap();
        }
    }
}

#[test]
fn quadratic_data_flow_ends_as_too_complex() {
    let n = 20_000;
    let chain = format!("{}b", "a = ".repeat(n));
    let branches: String = (0..n).map(|_| "if c:\n    x = 1\n").collect();
    for mode in MODES {
        for text in [&chain, &branches] {
            assert_eq!(scored(mode, text, "").unwrap_err(), ParseError::TooComplex);
        }
        // The same origins for many tokens are written once.
        let names = "a, ".repeat(n);
        let (_, counts) = scored(mode, &format!("{names}b = [{names}]"), "").unwrap();
        assert!(counts.reference_flow > n as u64);
    }
}

#[test]
fn loops_in_loops_are_walked_a_bounded_number_of_times() {
    let mut text = String::new();
    for depth in 0..40 {
        text += &format!("{}for a in b:\n", " ".repeat(depth));
    }
    text += &format!("{}b = a\n", " ".repeat(40));
    for mode in MODES {
        assert_eq!(scored(mode, &text, &text).unwrap().0.dataflow, Some(1.0));
    }
}

#[test]
fn a_scorer_keeps_nothing_between_texts() {
    let texts = ["def f(a):\n    b = a\n    return b", "x = é\nwhile x: x = y", "", "if a: b = 1"];
    for mode in MODES {
        let mut parser = PythonParser::new().unwrap();
        let mut scorer = CodeBleu::new(mode, EQUAL_WEIGHTS);
        for a in texts {
            let reference = scorer.reference(&mut parser, a).unwrap();
            for b in texts {
                assert!(scorer.reference(&mut parser, &"def f(".repeat(200_000)).is_err());
                let reused = scorer.score(&mut parser, &reference, b).unwrap();
                assert_eq!(format!("{reused:?}"), format!("{:?}", scored(mode, a, b).unwrap()));
            }
        }
    }
}

/// Equality of hashes is that of s-expressions, written out for every node.
#[test]
fn subtrees_match_where_their_s_expressions_do() {
    fn written(text: &str) -> Vec<String> {
        let tree = PythonParser::new().unwrap().parse(text).unwrap();
        let mut all = vec![tree.root_node().to_sexp()];
        let mut open = vec![tree.root_node()];
        while let Some(node) = open.pop() {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor).filter(|child| child.child_count() > 0) {
                all.push(child.to_sexp());
                open.push(child);
            }
        }
        all
    }
    let texts = "x.y = 1‖a not in b‖a is not b‖f(*a, **b)‖f(a\nx = (\
        ‖def f(a, b=1, *c: int, **d) -> e:\n  # x\n  return a‖x = [i for i in y if i]\n$$ é\
        ‖try:\n  a\nexcept* B as c:\n  pass‖print >>a, b‖if a:\nelif b: c = d\nelse: 'x'\
        ‖async with a as b, c: await d‖x: int = f'{a!r:>{b}}' 'c'‖class A(B, c=d): pass\
        ‖a = b if c else lambda: (yield)‖§ ? ! `‖a = \\\n b # c‖@a.b\ndef f(): global x‖def f(\
        ‖a[1:2, ::3] = x, = y";
    let texts: Vec<&str> = texts.split('‖').collect();
    for &a in &texts {
        for &b in &texts {
            let (ours, theirs) = (written(a), written(b));
            let matched = ours.iter().filter(|one| theirs.contains(one)).count();
            // No text begins with `//` or the like, so nothing is stripped.
            let (_, counts) = scored(CodeBleuMode::CodeXGlue, a, b).unwrap();
            let found = (counts.matched_subtrees, counts.reference_subtrees);
            assert_eq!(found, (matched as u64, ours.len() as u64), "{a:?} {b:?}");
        }
    }
}
