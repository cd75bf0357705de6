//! `score` with `given`: only what the model wrote counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::Project;

/// Real methods of the program's corpus, cut; an echo, the continuation, the whole, and the whole in
/// another layout as predictions.
const WORKFLOW: &str = r#"galeras: 1
steps:
  methods: { op: methods, with: { corpus: python-stdlib, include: ["json/*.py", "email/*.py"] } }
  testbed: { op: cut, from: methods, with: { seed: 7 } }
  answers:
    op: sql
    from: testbed
    with:
      query: >
        SELECT id, code, random_cut, random_cut AS echo, cut_rest AS rest,
               replace(random_cut, '    ', '  ') || cut_rest AS laid_out FROM input
      key: [id]
  echo:     { op: score, from: answers, with: { reference: code, given: random_cut, prediction: echo } }
  rest:     { op: score, from: answers, with: { reference: code, given: random_cut, prediction: rest } }
  whole:    { op: score, from: answers, with: { reference: code, given: random_cut, prediction: code } }
  laid_out: { op: score, from: answers, with: { reference: code, given: random_cut, prediction: laid_out } }
  both:
    op: score
    from: rest
    with: { reference: code, prediction: echo, prefix: whole_, metrics: [bleu, similarity, parses] }
"#;

const SHARES: [&str; 4] = ["bleu", "chrf", "similarity", "rouge_l"];

#[test]
fn an_echo_gets_nothing_and_the_reference_all() {
    let project = Project::new(WORKFLOW);
    project.run_ok(&[]);
    let echo = project.rows("echo");
    assert!(echo.len() > 300, "{} rows", echo.len());
    for row in &echo {
        for share in SHARES {
            // A rest of nothing but punctuation has no words for ROUGE: 0 as well.
            assert_eq!(row[share], 0.0, "{share}: {row}");
        }
        let rest = row["code"].as_str().unwrap().strip_prefix(row["random_cut"].as_str().unwrap());
        let missing = rest.unwrap().trim().chars().count();
        assert_eq!(row["levenshtein"], missing, "{row}");
        assert_eq!(row["exact_match"], 0);
    }
    let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
        rows.into_iter().map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect()
    };
    let whole = by_id(project.rows("whole"));
    for (step, rows) in ["rest", "laid_out"].map(|step| (step, by_id(project.rows(step)))) {
        for (id, row) in &rows {
            for column in ["bleu", "chrf", "similarity", "levenshtein", "exact_match", "codebleu"] {
                assert_eq!(row[column], whole[id][column], "{step} {column}: {row}");
            }
        }
    }
    for row in whole.values() {
        for share in ["bleu", "chrf", "similarity"] {
            let value = row[share].as_f64().unwrap();
            assert!((value - 1.0).abs() < 1e-9, "{share}: {row}");
        }
        assert_eq!((&row["exact_match"], &row["levenshtein"]), (&json!(1), &json!(0)));
    }
    // The published way next to it: an echo has a part of the points.
    let both = project.rows("both");
    let mean = |column: &str| {
        both.iter().map(|row| row[column].as_f64().unwrap()).sum::<f64>() / both.len() as f64
    };
    assert!((mean("bleu") - 1.0).abs() < 1e-9);
    assert!(mean("whole_bleu") > 0.2 && mean("whole_similarity") > 0.4);
}

#[test]
fn what_does_not_fit_is_said() {
    let rows = |given: &str| {
        let project = Project::new(
            "galeras: 1\nsteps:\n  data: { op: read, with: { path: data.jsonl } }\n  \
             scores: { op: score, from: data, with: { reference: code, given: given } }\n",
        );
        let row = json!({"id": "1", "code": "a = 1\nb = 2\n", "given": given, "prediction": "b"});
        project.write("data.jsonl", format!("{row}\n"));
        project
    };
    let other = rows("c = 3").run(&["run", "w.yaml"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("does not begin with the given text"), "{}", other.stderr);
    // Nothing is left to write: there is nothing to score.
    let project = rows("a = 1\nb = 2");
    project.run_ok(&[]);
    let row = &project.rows("scores")[0];
    assert!(row["bleu"].is_null() && row["levenshtein"].is_null(), "{row}");
    let project = rows("");
    project.change("given: given", "given: gven");
    let unknown = project.run(&["run", "w.yaml"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("given"), "{}", unknown.stderr);
}
