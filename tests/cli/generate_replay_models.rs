//! `generate` with `provider: replay` and a table of several models, as other runs and tools export
//! it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Project, lines};

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  given: { op: read, with: { path: given.jsonl, columns: { id: prompt_id }, KEY } }
  answers: { op: generate, from: { input: data, answers: given }, with: { provider: replay } }
";

/// Answers of the models `a` and `b`, each with two samples, to the rows `d1`, `d2` and `d3`.
fn given() -> Vec<Value> {
    let mut rows = Vec::new();
    for model in ["a", "b"] {
        for id in ["d1", "d2", "d3"] {
            for sample in 0..2 {
                let answer = format!("{model} = '{id}' # {sample}");
                rows.push(json!({"id": id, "model": model, "sample": sample,
                    "prediction": answer, "raw_response": format!("Here:\n```\n{answer}\n```"),
                    "reported_model": format!("{model}-1"), "completion_tokens": 3, "prompt_tokens": 2}));
            }
        }
    }
    rows
}

/// A table as other tools write it: the `id` is that of what was answered.
fn project(given: &[Value]) -> Project {
    keyed(given, "key: [prompt_id, model, sample]")
}

fn keyed(given: &[Value], key: &str) -> Project {
    let project = Project::new(&WORKFLOW.replace("KEY", key));
    let data = ["d1", "d2", "d3"].map(|id| json!({"id": id, "code": "x"}));
    project.write("data.jsonl", lines(&data));
    project.write("given.jsonl", lines(given));
    project
}

/// `model | id | sample | prediction` of every answer, sorted.
fn told(project: &Project) -> Vec<String> {
    project.cells("answers", "model prompt_id sample prediction")
}

#[test]
fn all_models_answer() {
    let project = project(&given());
    let outcome = project.run_ok(&[]);
    let of = |model: &str| {
        ["d1", "d2", "d3"].map(|id| format!("{model} | {id} | 0 | {model} = '{id}' # 0"))
    };
    let wanted = [of("a"), of("b")].concat();
    assert_eq!(told(&project), wanted);
    let ids: BTreeSet<String> = project.cells("answers", "id").into_iter().collect();
    assert_eq!(ids.len(), 6);
    let summary = project.cells("answers.summary", "model reported_model rows");
    assert_eq!(summary, ["a | a-1 | 3", "b | b-1 | 3"]);
    // In whatever order the table is.
    let digests = outcome.step("answers")["digest"].clone();
    project.write("given.jsonl", lines(&given().into_iter().rev().collect::<Vec<_>>()));
    assert_eq!(project.run_ok(&[]).step("answers")["digest"], digests);
    project.rerun("provider: replay", "provider: replay, samples: 2");
    let both = told(&project);
    assert_eq!(both.len(), 12);
    assert!(wanted.iter().all(|one| both.contains(one)), "{both:?}");
}

#[test]
fn one_model_is_chosen() {
    let project = project(&given());
    project.rerun("provider: replay", "provider: replay, model: b");
    let wanted = ["d1", "d2", "d3"].map(|id| format!("b | {id} | 0 | b = '{id}' # 0"));
    assert_eq!(told(&project), wanted);
    let before = project.rows("answers");
    // The other model's answers are none of its business, not even two for one row.
    let mut rows = given();
    rows[1] = rows[0].clone();
    rows[1]["raw_response"] = json!("c = 1");
    project.write("given.jsonl", lines(&rows));
    let key = "key: [prompt_id, model, sample";
    project.rerun(key, &format!("{key}, raw_response"));
    assert_eq!(project.rows("answers"), before);
    project.change("model: b", "model: a");
    project.fails("answers", &["two answers for prompt_id = d1"]);
}

#[test]
fn a_model_that_is_not_there_and_a_row_without_one_are_errors() {
    let mut rows = given();
    rows.iter_mut().for_each(|row| {
        row["model"] = json!(format!("qwen2.5-coder-{}", row["model"].as_str().unwrap()));
    });
    let project = project(&rows);
    project.change("provider: replay", "provider: replay, model: qwen2.5-codr-a");
    project.fails("answers", &["no answers of a model `qwen2.5-codr-a`"]);
    let shown = project.run(&["run", "w.yaml"]).exits(1);
    assert!(shown.stderr.contains("did you mean `qwen2.5-coder-a`?"), "{shown}");
    project.change("model: qwen2.5-codr-a", "model: gpt");
    let shown = project.run(&["run", "w.yaml"]).exits(1);
    assert!(shown.stderr.contains("it has answers of qwen2.5-coder-a, qwen2.5-coder-b"), "{shown}");
    let mut rows = given();
    rows[3]["model"] = Value::Null;
    let project = keyed(&rows, "key: [prompt_id, prediction]");
    project.fails("answers", &["prompt_id = d2, sample = 1 has no `model`"]);
}

#[test]
fn a_missing_answer_says_whose_it_is() {
    let mut rows = given();
    rows.retain(|row| !(row["model"] == "b" && row["id"] == "d2"));
    rows[0]["raw_response"] = Value::Null;
    let project = project(&rows).ran();
    assert_eq!(project.cells("answers.rejects", "model id"), ["a | d1", "b | d2"]);
    assert_eq!(told(&project).len(), 4);
    // Also if all of a model's are.
    let of_b = rows.iter_mut().filter(|row| row["model"] == "b");
    of_b.for_each(|row| row["raw_response"] = Value::Null);
    project.write("given.jsonl", lines(&rows));
    project.run_ok(&[]);
    assert_eq!((told(&project).len(), project.rows("answers.rejects").len()), (2, 4));
}

#[test]
fn a_table_of_predictions_is_taken_as_it_is() {
    let mut rows = given();
    for row in &mut rows {
        row.as_object_mut().unwrap().shift_remove("raw_response");
        let id = &row["id"];
        let text = format!("def f():\n    \"\"\"\n    ```\n    {id}\n    ```\n    \"\"\"\n");
        row["prediction"] = json!(text);
    }
    let project = project(&rows).ran();
    for row in project.rows("answers") {
        let given = rows.iter().find(|given| given["id"] == row["prompt_id"]).unwrap();
        assert_eq!(row["prediction"], given["prediction"], "it is code already");
    }
    // Said outright, the column is an answer like any other.
    let before = project.rows("answers");
    project.rerun("provider: replay", "provider: replay, answer: prediction, extract: raw");
    assert_eq!(project.rows("answers"), before);
}

/// One run exports, another one reads: two models united, and replayed as they are.
#[test]
fn an_exported_table_of_two_models_is_replayed() {
    let made = "galeras: 1
steps:
  methods: { op: methods, with: { corpus: python-stdlib, include: ['json/*.py'] } }
  testbed: { op: cut, from: methods, with: { seed: 42 } }
  echo: { op: generate, from: testbed, with: { provider: echo, given: random_cut, samples: 2 } }
  best: { op: generate, from: testbed, with: { provider: reference, reference: code } }
  both:
    op: sql
    from: { echo: echo, best: best }
    with: { query: SELECT * FROM echo UNION ALL SELECT * FROM best, key: [id] }
outputs:
  parquet: { from: both, path: answers.parquet }
  csv: { from: both, path: answers.csv }
  jsonl: { from: both, path: answers.jsonl }
";
    let project = Project::new(made).ran();
    let of = |rows: Vec<Value>| -> BTreeSet<String> {
        let columns = ["id", "model", "sample", "prediction", "raw_response", "finish_reason"];
        rows.iter().map(|row| columns.map(|name| row[name].to_string()).join(" ")).collect()
    };
    let before = of(project.rows("both"));
    assert!(before.len() > 60, "{}", before.len());
    for file in ["answers.parquet", "answers.jsonl", "answers.csv"] {
        let (steps, _) = made.split_once("  echo:").unwrap();
        let replay = format!(
            "  stored: {{ op: read, with: {{ path: {file} }} }}
  answers:
    op: generate
    from: {{ input: testbed, answers: stored }}
    with: {{ provider: replay, samples: 2, extract: raw }}
"
        );
        project.write("w.yaml", format!("{steps}{replay}"));
        project.run_ok(&[]);
        assert_eq!(of(project.rows("answers")), before, "{file}");
        // The second samples of the reference, which it never gave.
        let rejects = project.rows("answers.rejects");
        assert_eq!(rejects.len(), before.len() / 3, "{file}");
        let second = |row: &Value| row["model"] == "reference" && row["sample"] == 1;
        assert!(rejects.iter().all(second), "{file}");
    }
}
