//! `score`: where ours differ from the peers, one test for each reason: `mode: correct` for texts,
//! and `codebleu_strict` next to `codebleu`, which is published in every mode.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Project, lines};

struct Scored {
    project: Project,
    modes: BTreeMap<&'static str, Vec<Value>>,
}

const MODES: [&str; 3] = ["correct", "compat", "codexglue"];

/// The column that is compared: of `correct`, ours.
fn column_of(mode: &str, column: &str) -> String {
    match column {
        "codebleu_ngram" => column.to_owned(),
        _ if mode == "correct" => column.replacen("codebleu", "codebleu_strict", 1),
        _ => column.to_owned(),
    }
}

/// Scores of `(reference, prediction)`; `more` are further arguments.
#[track_caller]
fn scored(pairs: &[(&str, &str)], more: &str) -> Scored {
    let more = more.replace("[codebleu]", "[codebleu, codebleu_strict]");
    let mut text =
        "galeras: 1\nsteps:\n  data: { op: read, with: { path: data.jsonl } }\n".to_owned();
    for mode in MODES {
        let with = format!("{{ reference: code, mode: {mode}{more} }}");
        text += &format!("  {mode}: {{ op: score, from: data, with: {with} }}\n");
    }
    let row = |(at, (code, prediction)): (usize, &(&str, &str))| json!({"id": format!("{at:03}"), "code": code, "prediction": prediction});
    let rows: Vec<Value> = pairs.iter().enumerate().map(row).collect();
    let project = Project::new(&text).with("data.jsonl", lines(&rows)).ran();
    let modes = MODES.into_iter().map(|mode| (mode, project.rows(mode))).collect();
    Scored { project, modes }
}

impl Scored {
    fn value(&self, mode: &str, row: usize, column: &str) -> &Value {
        let column = column_of(mode, column);
        self.modes[mode][row].get(&column).unwrap_or_else(|| panic!("{column}"))
    }

    #[track_caller]
    fn number(&self, mode: &str, row: usize, column: &str) -> f64 {
        self.value(mode, row, column).as_f64().unwrap_or_else(|| panic!("{mode} {row} {column}"))
    }

    /// The scores of one row in the order of [`MODES`].
    #[track_caller]
    fn are(&self, row: usize, column: &str, wanted: [f64; 3]) {
        for (mode, wanted) in MODES.iter().zip(wanted) {
            let ours = self.number(mode, row, column);
            assert!((ours - wanted).abs() < 1e-9, "{mode} {row} {column}: {ours}, not {wanted}");
        }
    }

    #[track_caller]
    fn corpus(&self, mode: &str, metric: &str) -> Value {
        let rows = self.project.rows(&format!("{mode}.corpus"));
        let metric = column_of(mode, metric);
        rows.into_iter().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("{metric}"))
    }
}

/// Reference, prediction, column, and its value in the order of [`MODES`].
#[rustfmt::skip]
const DIFFERENCES: &[(&str, &str, &str, [f64; 3])] = &[
    // A fence, or the end of a file, adds and takes line breaks: that is no edit of the code.
    ("def f():\n    return 1", "\n  def f():\n    return 1\n\n", "levenshtein", [0.0, 5.0, 5.0]),
    ("def f():\n    return 1\r\n\t", "def f():\n    return 1", "levenshtein", [0.0, 3.0, 3.0]),
    ("", " \n\t", "levenshtein", [0.0, 3.0, 3.0]),
    ("def f():\n    return 1", "\u{3000}\u{a0}def f():\n    return 1\u{2028}", "levenshtein", [0.0, 3.0, 3.0]),
    // White space within counts in every mode.
    ("def f():\n    return 1", "def f():\n  return 1", "levenshtein", [2.0; 3]),
    ("def f():\n    return 1", "def f():\n  return 1", "exact_match", [0.0; 3]),
    // Letters of all scripts make words: seven of eight; without ñ and é five of five and six.
    ("def f(ñ):\n    s = 'é'\n    return ñ + s", "def f(ñ):\n    s = 'e'\n    return ñ + s", "rouge_l", [0.875, 10.0 / 11.0, 10.0 / 11.0]),
    ("世界 = größe", "世界 = größe", "rouge_l", [1.0; 3]),
    ("世界", "世界", "rouge_l", [1.0, 0.0, 0.0]),
    // As sacrebleu: a sentence of one word has unigrams only.
    ("pass", "pass", "bleu", [1.0; 3]),
    // Comments and docstrings are no syntax.
    ("def f(a):\n    return a", "def f(a):\n    '''doc'''\n    # note\n    return a", "codebleu_syntax", [1.0, 1.0, 0.4]),
    ("def f(a):\n    return a", "def f(a):\n    '''doc'''\n    # note\n    return a", "codebleu_dataflow", [1.0; 3]),
    // One assignment matches one of three; to the peers it matches all, as does the statement.
    ("x = 1\ny = 2\nz = 3", "x = 1", "codebleu_syntax", [2.0 / 7.0, 6.0 / 7.0, 6.0 / 7.0]),
    // CodeXGLUE takes comments of Java out: `// c + 1` and all that follows in the line.
    ("def f(a, b):\n    x = a // b\n    return x", "def f(a, b):\n    x = a // c + 1\n    return x", "codebleu_dataflow", [0.5, 0.5, 1.0]),
];

#[test]
fn modes_differ_where_the_peers_are_wrong() {
    let pairs: Vec<(&str, &str)> = DIFFERENCES.iter().map(|case| (case.0, case.1)).collect();
    let metrics = "levenshtein, similarity, exact_match, rouge_l, bleu, codebleu, codebleu_strict";
    let scored = scored(&pairs, &format!(", metrics: [{metrics}]"));
    for (row, (_, _, column, wanted)) in DIFFERENCES.iter().enumerate() {
        scored.are(row, column, *wanted);
    }
    for row in 0..4 {
        scored.are(row, "exact_match", [1.0, 0.0, 0.0]);
        assert_eq!(scored.number("correct", row, "similarity"), 1.0);
        assert!(scored.number("compat", row, "similarity") < 1.0);
    }
    // The columns keep what they held, and the n-grams are of the text.
    assert_eq!(scored.value("correct", 2, "prediction"), " \n\t");
    assert!(scored.number("correct", 10, "codebleu_ngram") < 0.1);
    let words =
        self::scored(&[("Größe", "GRÖSSE größe"), ("pass", "pass")], ", metrics: [rouge_l]");
    let ours = words.number("correct", 0, "rouge_l");
    assert!((ours - 2.0 / 3.0).abs() < 1e-9, "{ours}");
    // A corpus has all four orders of n-grams.
    let scored = self::scored(&[("pass", "pass")], ", metrics: [bleu]");
    for mode in MODES {
        assert_eq!(scored.corpus(mode, "bleu")["value"], 0.0);
    }
}

#[test]
fn a_data_flow_without_a_match_is_nothing() {
    let assigned = ("def f(a):\n    b = a\n    return b", "def g():\n    pass");
    let scored = scored(&[assigned, ("def f(a):\n    return a", "")], ", metrics: [codebleu]");
    for row in [0, 1] {
        scored.are(row, "codebleu_dataflow", [0.0; 3]);
    }
    // The package codebleu counts this 0 as 1: a quarter is given away, also to no answer.
    let mean = |mode: &str, row: usize, flow: f64| {
        let parts = ["codebleu_ngram", "codebleu_weighted", "codebleu_syntax"];
        let sum: f64 = parts.iter().map(|part| scored.number(mode, row, part)).sum();
        (sum + flow) / 4.0
    };
    for row in [0, 1] {
        let wanted =
            [mean("correct", row, 0.0), mean("compat", row, 1.0), mean("codexglue", row, 0.0)];
        scored.are(row, "codebleu", wanted);
    }
    scored.are(1, "codebleu", [0.0, 0.25, 0.0]);
    assert!(scored.number("correct", 0, "codebleu") < 0.02);
    // And the same of a corpus.
    let value = |mode: &str| scored.corpus(mode, "codebleu")["value"].as_f64().unwrap();
    assert!(value("correct") < 0.02 && value("compat") > 0.25, "{}", value("compat"));
    // `codebleu` is the published one in every mode.
    let code = "def f(a):\n    b = a\n    return b";
    let scored = self::scored(&[(code, "\n\ndef g():\n    pass\n"), (code, code)], "");
    let columns = ["", "_ngram", "_weighted", "_syntax", "_dataflow"];
    for (row, suffix) in (0..2).flat_map(|row| columns.map(|suffix| (row, suffix))) {
        let of = |mode: &str, score: &str| &scored.modes[mode][row][format!("{score}{suffix}")];
        assert_eq!(of("correct", "codebleu"), of("compat", "codebleu"), "{row} {suffix}");
        if suffix != "_ngram" {
            let strict = MODES.map(|mode| of(mode, "codebleu_strict"));
            assert_eq!(strict, [strict[0]; 3], "{row} {suffix}");
        }
    }
}

#[test]
fn a_reference_without_data_flow_has_no_score_of_it() {
    let code = "def f():\n    pass";
    let other = "def f():\n    print('x')\n    pass";
    let scored = scored(&[(code, code), (code, other)], ", metrics: [codebleu]");
    // BLEU over four words: 3-grams and 4-grams are too few for a full score.
    let ngram = 0.5623413251903491;
    scored.are(0, "codebleu_ngram", [ngram; 3]);
    scored.are(0, "codebleu_weighted", [ngram; 3]);
    for row in [0, 1] {
        assert!(scored.value("correct", row, "codebleu_dataflow").is_null());
        assert_eq!(scored.number("compat", row, "codebleu_dataflow"), 0.0);
    }
    // The others share the weight; to the peers all have it, or none.
    let sum = ngram + ngram + 1.0;
    scored.are(0, "codebleu", [sum / 3.0, (sum + 1.0) / 4.0, sum / 4.0]);
    let corpus = scored.corpus("correct", "codebleu_dataflow");
    assert!(corpus["value"].is_null() && corpus["rows"] == 2, "{corpus}");
    assert!(scored.corpus("correct", "codebleu")["value"].is_number());
}

#[test]
fn uneven_weights_are_scaled_as_well() {
    let code = "def f():\n    pass";
    let flow = "def f(a):\n    return a";
    let pairs = [(code, code), (flow, "def f(a):\n    return 1")];
    let scored = scored(&pairs, ", metrics: [codebleu], codebleu_weights: [1, 4, 1, 2]");
    let part = |row: usize, name: &str| scored.number("correct", row, &format!("codebleu_{name}"));
    let rest = |row: usize| part(row, "ngram") + 4.0 * part(row, "weighted") + part(row, "syntax");
    let whole = (rest(1) + 2.0 * part(1, "dataflow")) / 8.0;
    assert!((scored.number("correct", 0, "codebleu") - rest(0) / 6.0).abs() < 1e-9);
    assert!((scored.number("correct", 1, "codebleu") - whole).abs() < 1e-9);
    // All weight on an absent flow gives no score.
    let code = "def f():\n    pass";
    let pairs = [(code, code), ("def f(a):\n    return a", "def f(a):\n    return a")];
    let scored = self::scored(&pairs, ", metrics: [codebleu], codebleu_weights: [0, 0, 0, 1]");
    assert!(scored.value("correct", 0, "codebleu").is_null());
    scored.are(1, "codebleu", [1.0; 3]);
    assert_eq!(scored.corpus("correct", "codebleu")["value"], 1.0);
}

#[test]
fn no_score_is_above_one() {
    // sacrebleu gives 100.00000000000004 per cent.
    let code = "def f(a, b):\n    return a + b";
    let scored =
        scored(&[(code, code), ("x = a ** b[1:2]\ny = -x", "x = a ** b[1:2]\ny = -x")], "");
    for mode in MODES {
        for row in [0, 1] {
            for column in ["bleu", "codebleu", "similarity", "chrf", "rouge_l"] {
                assert_eq!(scored.number(mode, row, column), 1.0, "{mode} {column}");
            }
        }
        for metric in ["bleu", "codebleu"] {
            assert_eq!(scored.corpus(mode, metric)["value"], 1.0, "{mode} {metric}");
        }
    }
    // A corpus is not the mean of its rows.
    let long = "def f(a, b):\n    c = a + b\n    d = c * a\n    return c + d";
    let scored = self::scored(&[(long, long), ("return 0", "x = 1 + 2 + 3")], "");
    for mode in MODES {
        for metric in ["bleu", "codebleu", "codebleu_ngram"] {
            let mean = (scored.number(mode, 0, metric) + scored.number(mode, 1, metric)) / 2.0;
            let corpus = scored.corpus(mode, metric);
            assert_eq!(corpus["rows"], 2);
            let value = corpus["value"].as_f64().unwrap();
            // The long text has more n-grams, and so more weight.
            assert!(value > mean + 0.05, "{mode} {metric}: {value}, mean {mean}");
        }
    }
}

#[test]
fn weighted_n_grams_are_a_precision_with_a_brevity_penalty() {
    let code = "def f(a):\n    b = a + 1\n    return b";
    let short = "def f(a):\n    b";
    let names = "alpha beta gamma delta eps zeta";
    let more = "alpha beta gamma delta eps zeta eta theta iota kappa";
    let pairs = [(code, short), (short, code), (names, more), (more, names)];
    let scored = scored(&pairs, ", metrics: [codebleu]");
    let ours = |row: usize| scored.number("correct", row, "codebleu_weighted");
    // Three of nine tokens, all of them right: all orders match but the missing 4-gram.
    let right = (1.0_f64 - 9.0 / 3.0).exp() * 0.1_f64.powf(0.25);
    assert!((ours(0) - right).abs() < 1e-9, "{} {right}", ours(0));
    // A long answer has no penalty. Its nine tokens, two of them keywords, weigh 17.
    let right = (7.0_f64 / 17.0 * (2.0 / 8.0) * (1.0 / 7.0) * (0.1 / 6.0)).powf(0.25);
    assert!((ours(1) - right).abs() < 1e-9, "{} {right}", ours(1));
    // Without keywords all weights are 1.
    for row in [2, 3] {
        let ngram = scored.number("correct", row, "codebleu_ngram");
        assert!((ours(row) - ngram).abs() < 1e-12, "{} {ngram}", ours(row));
    }
    // To the peers it is a recall, and each reference has two tokens here, whatever its length.
    let peers = scored.number("compat", 2, "codebleu_weighted");
    assert!((peers - 1.0).abs() < 1e-9, "{peers}");
}

#[test]
fn a_prediction_parses_if_it_is_python_and_something() {
    let texts = [
        ("def f():\n    return 1", 1),
        ("def f(:\n    return", 0),
        ("", 0),
        ("   \n\n", 0),
        ("x = 1", 1),
        ("return x if y", 0),
        ("x = = 1", 0),
        ("class A:\n    def f(self):\n        return 1\n\n    x = 2", 1),
        // Syntax errors to CPython 3.13: answers that end too early, and Python 2.
        ("def f():", 0),
        ("if x:", 0),
        ("class A:", 0),
        ("x = 1 + \\", 0),
        ("def f():\npass", 0),
        ("print 'x'", 0),
        ("exec 'x'", 0),
        ("x <> y", 0),
        ("x = 10L", 0),
        ("x = 0777", 0),
        ("raise E, 'x'", 0),
        ("try:\n    a()\nexcept E, e:\n    pass", 0),
        ("try:\n    a()\nb()", 0),
        ("def f():\n    x = 1\n      y = 2", 0),
        // What tree-sitter's grammar rejects.
        ("class C[T = int]:\n    pass", 1),
        ("def f(x) -> T[bool] or None:\n    return 0", 1),
        ("f'{title:=^40}'", 1),
        ("def f():\n    return g(x +\n1)", 1),
    ];
    let pairs: Vec<(&str, &str)> = texts.iter().map(|(text, _)| ("def f(:", *text)).collect();
    let scored = scored(&pairs, ", metrics: [parses]");
    for (row, (text, wanted)) in texts.into_iter().enumerate() {
        for mode in MODES {
            assert_eq!(scored.value(mode, row, "parses"), wanted, "{mode} {text}");
        }
    }
    assert!(scored.project.rows("correct.corpus").is_empty());
}
