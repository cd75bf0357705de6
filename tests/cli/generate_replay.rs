//! `generate` with `provider: replay`: answers of an earlier study, found again by prompt or by
//! columns, and tables of several models, as other runs and tools export them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Project, every, lines, says, text, values};

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  given: { op: read, with: { path: given.jsonl } }
  prompts:
    op: prompt
    from: data
    with: { treatments: { a: 'Go on: {{ code }}', b: 'Write {{ code }}' } }
  answers:
    op: generate
    from: { input: prompts, answers: given }
    with: { provider: replay, on: [snippet_id, treatment] }
";

fn data() -> Vec<Value> {
    (1..=3).map(|i| json!({"id": format!("d{i}"), "code": format!("x = {i}"), "n": i})).collect()
}

fn given() -> Vec<Value> {
    let of = |i: usize, treatment: &str| {
        json!({
            "id": format!("{treatment}{i}"), "snippet_id": format!("d{i}"), "treatment": treatment,
            "raw_response": format!("Here:\n```python\n{treatment} = {i}\n```\nDone.")
        })
    };
    (1..=3).flat_map(|i| [of(i, "a"), of(i, "b")]).collect()
}

fn project(given: &[Value]) -> Project {
    Project::new(WORKFLOW).with("data.jsonl", lines(&data())).with("given.jsonl", lines(given))
}

/// `snippet | treatment | sample | prediction` of every answer, sorted.
fn told(project: &Project) -> Vec<String> {
    project.cells("answers", "snippet_id treatment sample prediction")
}

#[test]
fn answers_are_found_by_columns_or_ids() {
    let project = project(&given());
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.step("answers")["rows"], 6);
    assert_eq!(told(&project)[..2], ["d1 | a | 0 | a = 1", "d1 | b | 0 | b = 1"]);
    let prompts = project.rows("prompts");
    for row in project.rows("answers") {
        let prompt = prompts.iter().find(|prompt| prompt["id"] == row["prompt_id"]).unwrap();
        let columns = "snippet_id treatment prompt messages code n";
        assert_eq!(values(&row, columns), values(prompt, columns));
        let columns = "model sample finish_reason reported_model prompt_tokens completion_tokens \
                       earlier_responses";
        assert_eq!(values(&row, columns), json!(["replay", 0, null, null, null, null, []]));
    }
    assert!(project.rows("answers.rejects").is_empty());
    // The order of the answers does not count.
    let before = outcome.step("answers")["digest"].clone();
    project.write("given.jsonl", lines(&given().into_iter().rev().collect::<Vec<_>>()));
    assert_eq!(project.run_ok(&["--jobs", "1"]).step("answers")["digest"], before);
    project.run_ok(&[]).all_hit();
    let project = self::project(&given()).ran();
    let prompts = project.rows("prompts");
    let answer = |(at, row): (usize, &Value)| json!({"id": at, "prompt_id": row["id"], "text": format!("y = {at}"), "reported_model": "old"});
    let by_id: Vec<Value> = prompts.iter().enumerate().map(answer).collect();
    project.write("given.jsonl", lines(&by_id));
    project.rerun(", on: [snippet_id, treatment] }", ", answer: text, model: earlier }");
    let rows = project.rows("answers");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let at = prompts.iter().position(|prompt| prompt["id"] == row["prompt_id"]).unwrap();
        // Without a fence all of it is code. The model is the one of the workflow.
        assert_eq!(row["prediction"], format!("y = {at}"));
        assert_eq!(row["raw_response"], format!("y = {at}"));
        assert_eq!((&row["model"], &row["reported_model"]), (&json!("earlier"), &json!("old")));
    }
    // Columns of different types are compared.
    let rows: Vec<Value> = (1..=3)
        .map(|i| json!({"id": i, "n": i.to_string(), "raw_response": format!("y = {i}")}))
        .collect();
    let project = self::project(&rows);
    project.rerun("[snippet_id, treatment]", "[n]");
    let wanted = ["d1 | a | 0 | y = 1", "d1 | b | 0 | y = 1", "d2 | a | 0 | y = 2"];
    assert_eq!(told(&project)[..3], wanted);
}

#[test]
fn columns_of_answers_are_taken_over() {
    let mut given = given();
    for (at, row) in given.iter_mut().enumerate() {
        row["finish_reason"] = json!((["stop", "length"][at % 2]));
        row["reported_model"] = json!((["m-1", "m-2"][at % 2]));
        row["prompt_tokens"] = json!(at);
        row["completion_tokens"] = if at == 5 { Value::Null } else { json!(10 * at) };
        row["comment"] = json!("not taken");
    }
    let project = project(&given).ran();
    for row in project.rows("answers") {
        let of =
            |g: &&Value| g["snippet_id"] == row["snippet_id"] && g["treatment"] == row["treatment"];
        let found = given.iter().find(of).unwrap();
        let columns = "finish_reason reported_model prompt_tokens completion_tokens";
        assert_eq!(values(&row, columns), values(found, columns));
        assert!(row.get("comment").is_none(), "{row}");
    }
    let columns = "reported_model rows answers prompt_tokens completion_tokens";
    let summary = project.cells("answers.summary", columns);
    assert_eq!(summary, ["m-1 | 3 | 3 | 6 | 60", "m-2 | 3 | 3 | 9 | 40"]);
}

#[test]
fn samples_are_told_apart_and_prompts_without_an_answer_are_set_aside() {
    let mut rows = given();
    rows.iter_mut().for_each(|row| row["sample"] = json!(0));
    for (at, mut row) in given().into_iter().enumerate().take(5) {
        row["id"] = json!(format!("second{at}"));
        row["sample"] = json!(1);
        row["raw_response"] = json!(format!("again = {at}"));
        rows.push(row);
    }
    let project = project(&rows);
    // One answer is asked for: the first sample.
    let further = "left out: 5 further answers to these prompts (`samples: 2` takes them)";
    assert_eq!(project.run_ok(&[]).warnings(), [further]);
    let one = told(&project);
    assert_eq!(one.len(), 6);
    assert!(one.iter().all(|told| told.contains(" | 0 | ")), "{one:?}");
    let before = project.cells("answers", "id");
    project.rerun("treatment] }", "treatment], samples: 2 }");
    let two = told(&project);
    assert_eq!(two.len(), 11);
    assert!(one.iter().all(|told| two.contains(told)), "{two:?}");
    assert!(two.contains(&"d1 | b | 1 | again = 1".to_owned()), "{two:?}");
    let ids = project.cells("answers", "id");
    assert!(before.iter().all(|id| ids.contains(id)));
    // The last one has no second answer.
    let reject = project.only("answers.rejects");
    assert_eq!(values(&reject, "sample rule"), json!([1, "answer"]));
    says(text(&reject, "reason"), &["snippet_id = d3", "treatment = b", "sample = 1"]);
    let mut rows = given();
    rows.remove(3);
    // No text is no answer; an empty one is.
    rows[0]["raw_response"] = Value::Null;
    rows[1]["raw_response"] = json!("");
    let project = self::project(&rows);
    assert_eq!(project.run_ok(&[]).step("answers")["rows"], 4);
    assert!(told(&project).contains(&"d1 | b | 0 | ".to_owned()));
    let wanted = [
        "answers | answer | the table has no answer for snippet_id = d1, treatment = a",
        "answers | answer | the table has no answer for snippet_id = d2, treatment = b",
    ];
    assert_eq!(project.cells("answers.rejects", "step rule reason"), wanted);
    // The answer arrives later.
    project.write("given.jsonl", lines(&given()));
    project.run_ok(&[]);
    assert!(project.rows("answers.rejects").is_empty());
    assert_eq!(project.rows("answers").len(), 6);
    rows = given();
    rows[5]["snippet_id"] = json!("d9");
    let told = self::project(&rows).run_ok(&[]).warnings();
    let other = "left out: 1 answer to other prompts, such as snippet_id = d9, treatment = b; a prompt \
                 has snippet_id = d1, treatment = a";
    assert_eq!(told[0], other);
    says(&told[1], &["1 of 6 answers is missing", "snippet_id = d3, treatment = b"]);
    let project = self::project(&given());
    let none =
        "  none: { op: sql, from: given, with: { query: 'SELECT * FROM input WHERE false' } }\n";
    let text = project.read("w.yaml").replace("answers: given", "answers: none");
    project.write("w.yaml", text + none);
    project.run_ok(&[]);
    assert!(project.rows("answers").is_empty());
    assert_eq!(project.rows("answers.rejects").len(), 6);
    assert!(project.rows("answers.summary").is_empty());
}

#[test]
fn two_answers_for_one_prompt_and_samples_without_a_number_are_errors() {
    let mut rows = given();
    let mut twice = rows[2].clone();
    twice["id"] = json!("twice");
    rows.push(twice.clone());
    // The same answer twice is one answer.
    let project = project(&rows).ran();
    assert_eq!(told(&project).len(), 6);
    twice["raw_response"] = json!("z = 1");
    *rows.last_mut().unwrap() = twice;
    project.write("given.jsonl", lines(&rows));
    project.fails("answers", &["two answers", "snippet_id = d2", "treatment = a"]);
    let within = "position: { column: sample, within: [snippet_id, treatment] }";
    let words = ["the columns in `on` must identify an answer", "within: [snippet_id, treatment]"];
    project.cli("run w.yaml").exits(1).reports(&words);
    let several = self::project(&rows);
    several.change("treatment] }", "treatment], samples: 2 }");
    several.change("path: given.jsonl", &format!("path: given.jsonl, {within}"));
    several.run_ok(&[]);
    assert_eq!(told(&several)[2..4], ["d2 | a | 0 | a = 2", "d2 | a | 1 | z = 1"]);
    // Nor do answers pass that `on` is too short for.
    project.write("given.jsonl", lines(&given()));
    project.change("[snippet_id, treatment]", "[snippet_id]");
    project.run_json(&[]).exits(1);
    let mut rows = given();
    rows.iter_mut().for_each(|row| row["sample"] = json!("first"));
    self::project(&rows).fails("answers", &["`sample`"]);
}

#[test]
fn the_code_is_taken_out_of_answers() {
    let answers = [
        ("```python\nx = 1\n```", "x = 1"),
        ("No.\n```\nplain\n```\n```py\nx = 2\n\n```", "x = 2"),
        ("```text\nlog\n```\n```\ndef f(): pass\n```", "def f(): pass"),
        ("<think>```python\nno\n```</think>\nx = 3\n", "\nx = 3"),
        ("~~~python\nx = 4", "x = 4"),
        ("x = 5\r\n", "x = 5"),
    ];
    let mut rows = given();
    rows.iter_mut().zip(answers).for_each(|(row, (answer, _))| row["raw_response"] = json!(answer));
    let project = project(&rows).ran();
    let prompt = |at: usize| format!("d{} | {}", at / 2 + 1, ["a", "b"][at % 2]);
    let columns = "snippet_id treatment prediction raw_response";
    let found = project.cells("answers", columns);
    for (at, (answer, code)) in answers.iter().enumerate() {
        assert_eq!(found[at], format!("{} | {code} | {answer}", prompt(at)));
    }
    project.rerun("treatment] }", "treatment], extract: raw }");
    let found = project.cells("answers", columns);
    for (at, (answer, _)) in answers.iter().enumerate() {
        assert_eq!(found[at], format!("{} | {answer} | {answer}", prompt(at)));
    }
}

#[test]
fn answers_that_were_written_are_replayed() {
    let made = "galeras: 1
steps:
  methods: { op: methods, with: { corpus: python-stdlib, include: ['json/*.py'] } }
  testbed: { op: cut, from: methods, with: { seed: 42 } }
  prompts:
    op: prompt
    from: testbed
    with: { system: Be brief., treatments: { a: '{{ random_cut }}', b: ['{{ fun_name }}', Go.] } }
  answers:
    op: generate
    from: { input: prompts, train: methods }
    with: { provider: ngram, seed: 1, samples: 2, max_tokens: 30 }
outputs:
  parquet: { from: answers, path: answers.parquet }
  jsonl: { from: answers, path: answers.jsonl }
";
    let project = Project::new(made).ran();
    let columns = "id prompt_id sample prediction raw_response finish_reason prompt_tokens \
                   completion_tokens model messages code";
    let before = project.cells("answers", columns);
    assert!(before.len() > 40, "{}", before.len());
    for file in ["answers.parquet", "answers.jsonl"] {
        let (steps, _) = made.split_once("  answers:").unwrap();
        let replay = format!(
            "  stored: {{ op: read, with: {{ path: {file} }} }}
  answers:
    op: generate
    from: {{ input: prompts, answers: stored }}
    with: {{ provider: replay, samples: 2, model: ngram }}
"
        );
        project.write("w.yaml", format!("{steps}{replay}"));
        assert_eq!(project.run_ok(&[]).step("answers")["rows"], before.len(), "{file}");
        assert_eq!(project.cells("answers", columns), before, "{file}");
        assert!(project.rows("answers.rejects").is_empty());
    }
}

/// The change of the workflow, the code of its only mistake, and a word of the message.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    ("{ input: prompts, answers: given }", "prompts", "wrong-inputs", "`answers`"),
    ("answers: given }", "answers: given, train: data }", "wrong-inputs", "`train`"),
    ("on: [snippet_id, treatment]", "on: [snippet]", "unknown-column", "`snippet_id`"),
    (", on: [snippet_id, treatment] }", " }", "missing-argument", "prompt_id"),
    ("treatment] }", "treatment], answer: response }", "unknown-column", "`raw_response`"),
    ("treatment] }", "treatment], seed: 1 }", "conflicting-arguments", "`seed`"),
    ("treatment] }", "treatment], temperature: 0 }", "conflicting-arguments", "temperature"),
    ("treatment] }", "treatment], base_url: 'http://x' }", "conflicting-arguments", "openai"),
    // A column that one of the two tables has.
    ("on: [snippet_id, treatment]", "on: [snippet_id, code]", "unknown-column", "`code`"),
];

#[test]
fn mistakes_are_found_before_anything_runs() {
    every(MISTAKES.iter().map(|case| (case.1, case)), |(old, new, code, word)| {
        let project = project(&given());
        project.change(old, new);
        project.refused_once(code, word);
    });
}

const MODELS: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  given: { op: read, with: { path: given.jsonl, columns: { id: prompt_id }, KEY } }
  answers: { op: generate, from: { input: data, answers: given }, with: { provider: replay } }
";

/// Answers of the models `a` and `b`, each with two samples, to the rows `d1`, `d2` and `d3`.
fn of_models() -> Vec<Value> {
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
fn with_models(given: &[Value]) -> Project {
    keyed(given, "key: [prompt_id, model, sample]")
}

fn keyed(given: &[Value], key: &str) -> Project {
    let project = Project::new(&MODELS.replace("KEY", key));
    let data = ["d1", "d2", "d3"].map(|id| json!({"id": id, "code": "x"}));
    project.write("data.jsonl", lines(&data));
    project.write("given.jsonl", lines(given));
    project
}

/// `model | id | sample | prediction` of every answer, sorted.
fn answered(project: &Project) -> Vec<String> {
    project.cells("answers", "model prompt_id sample prediction")
}

#[test]
fn all_models_answer_or_one_is_chosen() {
    let project = with_models(&of_models());
    let outcome = project.run_ok(&[]);
    let of = |model: &str| {
        ["d1", "d2", "d3"].map(|id| format!("{model} | {id} | 0 | {model} = '{id}' # 0"))
    };
    let wanted = [of("a"), of("b")].concat();
    assert_eq!(answered(&project), wanted);
    let ids: BTreeSet<String> = project.cells("answers", "id").into_iter().collect();
    assert_eq!(ids.len(), 6);
    let summary = project.cells("answers.summary", "model reported_model rows");
    assert_eq!(summary, ["a | a-1 | 3", "b | b-1 | 3"]);
    // In whatever order the table is.
    let digests = outcome.step("answers")["digest"].clone();
    project.write("given.jsonl", lines(&of_models().into_iter().rev().collect::<Vec<_>>()));
    assert_eq!(project.run_ok(&[]).step("answers")["digest"], digests);
    project.rerun("provider: replay", "provider: replay, samples: 2");
    let both = answered(&project);
    assert_eq!(both.len(), 12);
    assert!(wanted.iter().all(|one| both.contains(one)), "{both:?}");
    let project = with_models(&of_models());
    project.rerun("provider: replay", "provider: replay, model: b");
    let wanted = ["d1", "d2", "d3"].map(|id| format!("b | {id} | 0 | b = '{id}' # 0"));
    assert_eq!(answered(&project), wanted);
    let before = project.rows("answers");
    // The other model's answers are none of its business, not even two for one row.
    let mut rows = of_models();
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
    let mut rows = of_models();
    rows.iter_mut().for_each(|row| {
        row["model"] = json!(format!("qwen2.5-coder-{}", row["model"].as_str().unwrap()));
    });
    let project = with_models(&rows);
    project.change("provider: replay", "provider: replay, model: qwen2.5-codr-a");
    project.fails("answers", &["no answers of a model `qwen2.5-codr-a`"]);
    project.cli("run w.yaml").exits(1).reports(&["did you mean `qwen2.5-coder-a`?"]);
    project.change("model: qwen2.5-codr-a", "model: gpt");
    let words = ["it has answers of qwen2.5-coder-a, qwen2.5-coder-b"];
    project.cli("run w.yaml").exits(1).reports(&words);
    let mut rows = of_models();
    rows[3]["model"] = Value::Null;
    let project = keyed(&rows, "key: [prompt_id, prediction]");
    project.fails("answers", &["prompt_id = d2, sample = 1 has no `model`"]);
}

#[test]
fn a_missing_answer_says_whose_it_is() {
    let mut rows = of_models();
    rows.retain(|row| !(row["model"] == "b" && row["id"] == "d2"));
    rows[0]["raw_response"] = Value::Null;
    let project = with_models(&rows);
    let told = project.run_ok(&[]).warnings();
    says(&told[0], &["left out: 5 further answers to these prompts (`samples: 2` takes them)"]);
    says(&told[1], &["2 of 6 answers are missing: the table has no answer for id = d1"]);
    assert_eq!(project.cells("answers.rejects", "model id"), ["a | d1", "b | d2"]);
    assert_eq!(answered(&project).len(), 4);
    // Also if all of a model's are.
    let of_b = rows.iter_mut().filter(|row| row["model"] == "b");
    of_b.for_each(|row| row["raw_response"] = Value::Null);
    project.write("given.jsonl", lines(&rows));
    project.run_ok(&[]);
    assert_eq!((answered(&project).len(), project.rows("answers.rejects").len()), (2, 4));
}

#[test]
fn a_table_of_predictions_is_taken_as_it_is() {
    let mut rows = of_models();
    for row in &mut rows {
        row.as_object_mut().unwrap().shift_remove("raw_response");
        let id = &row["id"];
        let text = format!("def f():\n    \"\"\"\n    ```\n    {id}\n    ```\n    \"\"\"\n");
        row["prediction"] = json!(text);
    }
    let project = with_models(&rows).ran();
    for row in project.rows("answers") {
        let given = rows.iter().find(|given| given["id"] == row["prompt_id"]).unwrap();
        assert_eq!(row["prediction"], given["prediction"], "it is code already");
    }
    // Said outright, the column is an answer like any other.
    let before = project.rows("answers");
    project.rerun("provider: replay", "provider: replay, answer: prediction, extract: raw");
    assert_eq!(project.rows("answers"), before);
}

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
