//! `score`: texts that no one wrote by hand: huge, empty, broken, hostile.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Project, every, hides, patience, text};

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  scores: { op: score, from: data, with: { reference: code } }
";

#[rustfmt::skip]
pub const COLUMNS: [&str; 16] = [
    "bleu", "codebleu", "codebleu_ngram", "codebleu_weighted", "codebleu_syntax",
    "codebleu_dataflow", "codebleu_strict", "codebleu_strict_weighted", "codebleu_strict_syntax",
    "codebleu_strict_dataflow", "levenshtein", "similarity", "exact_match", "chrf", "rouge_l", "parses",
];

const ALL: [&str; 3] = ["correct", "compat", "codexglue"];

/// Checks the rows by their id in some modes.
#[track_caller]
fn scored(
    modes: &[&str],
    rows: &[(&str, &str, &str)],
    check: impl Fn(&str, &BTreeMap<String, Value>, &Project),
) {
    for mode in modes {
        let project = Project::new(&WORKFLOW.replace("code }", &format!("code, mode: {mode} }}")));
        let line = |(id, code, prediction): &(&str, &str, &str)| {
            format!("{}\n", json!({"id": id, "code": code, "prediction": prediction}))
        };
        project.write("data.jsonl", rows.iter().map(line).collect::<String>());
        // The texts are not shown: they may be huge.
        let query = format!("SELECT id, {} FROM input", COLUMNS.join(", "));
        let with = format!("{{ query: '{query}' }}");
        project.append(&format!("  numbers: {{ op: sql, from: scores, with: {with} }}\n"));
        let outcome = project.run_ok(&[]);
        assert!(outcome.took < patience(40), "{mode}: {outcome}");
        let found: BTreeMap<String, Value> =
            project.rows("numbers").into_iter().map(|row| (text(&row, "id").into(), row)).collect();
        assert_eq!(found.len(), rows.len());
        for row in found.values() {
            for column in COLUMNS.iter().filter(|column| **column != "levenshtein") {
                let value = &row[*column];
                let share = value.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share));
                assert!(value.is_null() || share, "{mode} {column}: {row}");
            }
        }
        check(mode, &found, &project);
    }
}

/// The columns of scores that every two texts have.
const TEXTS: [&str; 6] = ["bleu", "levenshtein", "similarity", "chrf", "rouge_l", "exact_match"];

fn nulls(row: &Value) -> Vec<&'static str> {
    COLUMNS.into_iter().filter(|column| row[*column].is_null()).collect()
}

const CODE: &str = "def f(a):\n    b = a + 1\n    return b";
/// The columns of scores that need a syntax tree of the reference.
fn trees() -> &'static [&'static str] {
    &COLUMNS[1..10]
}

#[test]
fn a_text_that_is_too_large_to_be_parsed_has_the_other_scores() {
    let large = "x = [1, 2, 3]\n".repeat(5_000_000 / 14);
    scored(
        &ALL[..1],
        &[("answer", CODE, &large), ("reference", &large, CODE), ("small", CODE, CODE)],
        |mode, rows, project| {
            assert_eq!(nulls(&rows["answer"]), [trees(), &["parses"]].concat(), "{mode}");
            assert_eq!(nulls(&rows["reference"]), trees(), "{mode}");
            assert!(rows["answer"]["levenshtein"].as_u64().unwrap() > 4_900_000);
            assert_eq!(rows["reference"]["parses"], 1);
            assert_eq!(nulls(&rows["small"]), [""; 0]);
            // A corpus has the rows that have the score.
            for row in project.rows("scores.corpus") {
                let counted = if row["metric"] == "bleu" { 3 } else { 1 };
                assert_eq!(row["rows"], counted, "{mode} {row}");
                if row["metric"] == "codebleu" {
                    assert_eq!(row["value"], 1.0);
                }
            }
        },
    );
}

#[test]
fn brackets_without_end() {
    let open = "(".repeat(100_000);
    let both = format!("x = {open}1{}", ")".repeat(100_000));
    let minus = format!("x = {}1", "-".repeat(20_000));
    let lists = "[".repeat(20_000) + &"{".repeat(20_000);
    let blocks: String = (0..500).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
    let names: String = (0..5_000).map(|i| format!("a{i} = a{}\n", i / 2)).collect();
    scored(
        &ALL[..2],
        &[
            ("open", CODE, &open),
            ("closed", CODE, &both),
            ("minus", CODE, &minus),
            ("lists", &lists, &lists),
            ("blocks", CODE, &blocks),
            ("quotes", CODE, &"'\"".repeat(10_000)),
            ("dots", CODE, &"x.".repeat(20_000)),
            ("lambdas", CODE, &format!("x = {}1", "lambda: ".repeat(5_000))),
            ("names", CODE, &names),
        ],
        |mode, rows, _| {
            for (id, row) in rows {
                for column in TEXTS {
                    assert!(!row[column].is_null(), "{mode} {id} {column}");
                }
            }
            assert_ne!(rows["open"]["parses"], 1, "{mode}");
        },
    );
}

#[test]
fn empty_texts() {
    scored(
        &ALL,
        &[("both", "", ""), ("answer", CODE, ""), ("reference", "", CODE), ("spaces", " \n", "\t")],
        |mode, rows, project| {
            for id in ["answer", "reference"] {
                for column in TEXTS.iter().chain(&["codebleu_ngram"]) {
                    let wanted = if *column == "levenshtein" { CODE.len() } else { 0 };
                    let found = rows[id][column].as_f64();
                    assert_eq!(found, Some(wanted as f64), "{mode} {id} {column}");
                }
            }
            let both = &rows["both"];
            assert_eq!((&both["levenshtein"], &both["exact_match"]), (&json!(0), &json!(1)));
            assert_eq!((&both["similarity"], &both["parses"]), (&json!(1.0), &json!(0)));
            // White space is nothing to `correct`.
            let same = COLUMNS.iter().all(|column| rows["spaces"][*column] == both[*column]);
            assert_eq!(same, mode == "correct", "{mode}");
            assert!(project.rows("scores.corpus").iter().all(|row| row["rows"] == 4));
        },
    );
}

#[test]
fn broken_code_is_scored_like_other_code() {
    let broken = ["def f(a:\n    return a +", "return return", "}{", "```python\nx\n```", "if"];
    let rows: Vec<(&str, &str, &str)> = broken.iter().map(|text| (*text, CODE, *text)).collect();
    scored(&ALL, &rows, |mode, rows, _| {
        for (id, row) in rows {
            assert_eq!(nulls(row), [""; 0], "{mode} {id}");
            assert_eq!(row["parses"], 0, "{mode} {id}");
        }
    });
    // As its own reference, it is as near as can be.
    let rows: Vec<(&str, &str, &str)> = broken.iter().map(|text| (*text, *text, *text)).collect();
    scored(&ALL, &rows, |mode, rows, _| {
        for (id, row) in rows {
            for column in ["similarity", "exact_match", "codebleu_syntax"] {
                assert_eq!(row[column].as_f64(), Some(1.0), "{mode} {id} {column}");
            }
        }
    });
}

#[test]
fn texts_that_are_no_text() {
    scored(
        &ALL,
        &[
            ("zeros", "x\0y", "x\0\0y"),
            ("marks", "\u{feff}x = 1", "x = 1"),
            ("joined", "👩‍💻", "👩"),
            ("right to left", "שלום = 1 # \u{202e}abc", "שלום = 2"),
            ("lines", "a\u{2028}b\u{85}c\rd", "a\nb\nc\nd"),
            ("one line", &"x".repeat(300_000), &"x".repeat(299_999)),
            ("prose", "The method returns what it was given.", "Das Verfahren gibt nichts zurück."),
        ],
        |mode, rows, _| {
            for (id, edits) in [("zeros", 1), ("joined", 2), ("lines", 3), ("one line", 1)] {
                assert_eq!(rows[id]["levenshtein"], edits, "{mode} {id}");
            }
            for row in rows.values() {
                let flows = nulls(row).iter().all(|column| column.ends_with("_dataflow"));
                assert!(flows, "{mode} {row}");
            }
        },
    );
}

#[test]
fn functions_that_are_called_with_something_else_do_not_break() {
    // Also those that are made for operators: every function can be named in `sql`.
    let spec = "{\\\"metrics\\\":[\\\"bleu\\\"],\\\"mode\\\":\\\"correct\\\",\\\"bleu_tokenize\\\":\\\"13a\\\",\\\"bleu_smooth\\\":\\\"exp\\\",\\\"codebleu_weights\\\":[1,1,1,1]}";
    let calls = [
        "bleu(code)",
        "bleu(code, NULL)",
        "codebleu(NULL, NULL)",
        "pass_at_k(1, 2)",
        "pass_at_k(NULL, 1, 1)",
        "pass_hat_k(1, NULL, 1)",
        "score_pair(code, code, code)",
        "score_pair('SPEC', code, 1)",
        "corpus_scores('SPEC', 'a', 'b')",
        "corpus_scores('SPEC', 1, make_array('x'))",
        "corpus_scores('no', 1, make_array(1))",
        "render_prompts('no', '[]')",
        "render_prompts('[]', '[\\\"a\\\", \\\"b\\\"]', code)",
        "python_taxonomy(code, code = 'x')",
    ];
    every(calls.map(|call| (call, call.replace("SPEC", spec))), |call| {
        let with = format!("{{ query: \"SELECT id, {call} AS value FROM input\" }}");
        let project = Project::steps(&format!(
            "  data: {{ op: read, with: {{ path: data.jsonl }} }}
  asked: {{ op: sql, from: data, with: {with} }}
"
        ));
        project.write("data.jsonl", "{\"id\":\"a\",\"code\":\"x\"}\n");
        let outcome = project.run_json(&[]);
        assert!(matches!(outcome.code, Some(0..=2)), "{outcome}");
        hides(&format!("{}{}", outcome.stdout, outcome.stderr), &["panicked"]);
    });
}
