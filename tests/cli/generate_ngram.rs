//! `generate` with `provider: ngram`: answers that need no server, are the same everywhere and
//! are never learned from what they complete.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, lines, text, values};

/// Rows of `data.jsonl` are completed by a model of the texts of `train.jsonl`.
const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  train: { op: read, with: { path: train.jsonl } }
  prompts: { op: prompt, from: data, with: { treatments: { t: 'Go on: {{ random_cut }}' } } }
  answers:
    op: generate
    from: { input: prompts, train: train }
    with: { provider: ngram, seed: 1, temperature: 0 }
";

fn project(data: &[Value], train: &[Value]) -> Project {
    Project::new(WORKFLOW).with("data.jsonl", lines(data)).with("train.jsonl", lines(train))
}

/// The project with one row to complete.
fn one(train: &[Value]) -> Project {
    project(&[json!({"id": "a", "random_cut": CUT})], train)
}

const METHOD: &str = "def area_of_disc(radius):
    squared = radius * radius
    scaled = squared * HALF_OF_TAU
    return scaled + unheard_of_offset
";
const CUT: &str = "def area_of_disc(radius):\n    squared = radius";

/// Methods that have nothing to do with [`METHOD`].
fn others() -> Vec<Value> {
    let code = |i: usize| {
        let (a, b) = (["left", "first", "low"][i % 3], ["right", "last", "high"][i % 3]);
        format!(
            "def join_{i}({a}, {b}):\n    if {a} is None:\n        return {b}\n    for item in {b}:\n        {a}.append(item)\n    return {a}\n"
        )
    };
    (0..9).map(|i| json!({"id": format!("o{i}"), "code": code(i)})).collect()
}

fn with_others(more: &[(&str, &str)]) -> Vec<Value> {
    let more = more.iter().map(|(id, code)| json!({"id": id, "code": code}));
    others().into_iter().chain(more).collect()
}

/// The completion of [`CUT`], a row with the id `a`, by a model that has seen `others` and these.
#[track_caller]
fn completed(more: &[(&str, &str)]) -> String {
    let found = text(&one(&with_others(more)).ran().only("answers"), "prediction").to_owned();
    assert!(found.starts_with(CUT), "{found}");
    found
}

/// A text that is not one of the row's own, and says the same but for its first character.
fn copy() -> String {
    format!("x{}", &METHOD[1..])
}

#[test]
fn a_row_is_completed_from_the_texts_of_others_alone() {
    let without = completed(&[]);
    assert!(!without.contains("unheard_of"), "{without}");
    let (copy, decorated) = (copy(), format!("@cached\n{METHOD}"));
    let begun = format!("{CUT} * radius + unheard_of\n");
    let edited = METHOD.replace("offset", "trick");
    let learned = METHOD.trim_end();
    let cases: [(&[(&str, &str)], &str); 11] = [
        (&[("other", &copy)], learned),
        // Next to the row's own text, which adds nothing.
        (&[("a", METHOD), ("other", &copy)], learned),
        (&[("a", METHOD)], &without),
        // The same under other ids, and texts that only begin alike.
        (&[("b", METHOD)], &without),
        (&[("a", METHOD), ("b", METHOD), ("c", METHOD)], &without),
        (&[("b", CUT), ("c", &begun)], &without),
        (&[("b", &edited)], &without),
        (&[("b", &decorated)], learned),
        // A text with the id of the data point, whatever it says; the prompt has an id of its own.
        (&[("a", &decorated)], &without),
        // Another row that says just the same is left out with it.
        (&[("a", &decorated), ("b", &decorated)], &without),
        (&[("b", &decorated), ("a", &copy)], learned),
    ];
    for (more, wanted) in cases {
        assert_eq!(completed(more), wanted, "{more:?}");
    }
    // Rows that are completed without a prompt in between.
    let project = one(&with_others(&[("a", &decorated)]));
    project.change("input: prompts,", "input: data,");
    project.rerun("provider: ngram,", "provider: ngram, messages: random_cut,");
    let direct = project.only("answers")["prediction"].to_string();
    assert!(!direct.contains("unheard_of"), "{direct}");
    project.write("train.jsonl", lines(&with_others(&[("b", &decorated)])));
    project.run_ok(&[]);
    assert_eq!(project.only("answers")["prediction"], learned);
    // Every id of a text counts. Ids are unique in a table with the key `id`, but not with another.
    let code = decorated.as_str();
    let train = [("a1", "a", "1", code), ("b2", "b", "2", code), ("a3", "a", "3", "pass\n")];
    let train = train
        .map(|(id, name, part, code)| json!({"id": id, "name": name, "part": part, "code": code}));
    let project = one(&train);
    let keyed = "  keyed:
    op: sql
    from: train
    with: { query: 'SELECT name AS id, part, code FROM input', key: [id, part] }
";
    project.write("w.yaml", project.read("w.yaml").replace("train: train", "train: keyed") + keyed);
    project.run_ok(&[]);
    // Both texts of `a` are its own, so that nothing is left but what `b` says, the same.
    let found = project.only("answers")["prediction"].to_string();
    assert!(!found.contains("unheard_of"), "{found}");
}

const LIBRARY: &str = "galeras: 1
params:
  seed: { type: int, default: 1 }
  samples: { type: int, default: 1 }
  max_tokens: { type: int, default: 40 }
  temperature: { type: float, default: 0.8 }
steps:
  methods: { op: methods, with: { corpus: python-stdlib, include: ['json/*.py'] } }
  testbed: { op: cut, from: methods, with: { seed: 42 } }
  prompts:
    op: prompt
    from: testbed
    with: { treatments: { a: '{{ random_cut }}', b: 'Write {{ fun_name }}: {{ random_cut }}' } }
  answers:
    op: generate
    from: { input: prompts, train: methods }
    with:
      provider: ngram
      seed: ${{ params.seed }}
      samples: ${{ params.samples }}
      max_tokens: ${{ params.max_tokens }}
      temperature: ${{ params.temperature }}
";

#[track_caller]
fn library(project: &Project, params: &[&str]) -> (Outcome, Vec<Value>) {
    let set: Vec<&str> = params.iter().flat_map(|param| ["--set", *param]).collect();
    (project.run_ok(&set), project.rows_with("answers", &set))
}

#[test]
fn answers_are_code_that_goes_on() {
    let project = Project::new(LIBRARY);
    let (outcome, rows) = library(&project, &[]);
    let found = outcome.step("answers")["rows"].clone();
    assert_eq!(found, 2 * outcome.step("testbed")["rows"].as_u64().unwrap());
    for row in &rows {
        let (cut, prediction) = (text(row, "random_cut"), text(row, "prediction"));
        assert!(prediction.starts_with(cut.trim_end()), "{row}");
        let raw = text(row, "raw_response");
        assert!(raw.starts_with(&format!("```python\n{cut}")) && raw.ends_with("\n```"), "{row}");
        assert!(["stop", "length"].contains(&row["finish_reason"].as_str().unwrap()), "{row}");
        let tokens = row["completion_tokens"].as_u64().unwrap();
        assert!(tokens <= 40 && row["prompt_tokens"].as_u64().unwrap() > 0, "{row}");
        assert_eq!(row["finish_reason"] == "length", tokens == 40, "{row}");
        assert_eq!(values(row, "model sample earlier_responses"), json!(["ngram", 0, []]));
        assert!(row["treatment"].is_string() && row["code"].is_string(), "{row}");
    }
    let prompts = project.rows("prompts");
    assert!(rows.iter().all(|row| prompts.iter().any(|p| p["id"] == row["prompt_id"])));
    assert!(rows.iter().all(|row| row["id"] != row["prompt_id"]));
    let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
    let summary = project.only("answers.summary");
    let wanted = json!([rows.len(), sum("completion_tokens"), sum("prompt_tokens"), null]);
    assert_eq!(values(&summary, "rows completion_tokens prompt_tokens cost_usd"), wanted);
    assert!(project.rows("answers.rejects").is_empty());
}

#[test]
fn answers_depend_on_no_machine_and_no_order() {
    let project = Project::new(LIBRARY);
    let one = project.run_ok(&["--jobs", "1", "--set", "samples=3"]);
    let many = project.run_ok(&["--jobs", "7", "--set", "samples=3", "--cache", "other"]);
    assert_eq!(one.digests(), many.digests());
    assert_eq!(many.status("answers"), "ran");
    project.run_ok(&["--jobs", "3", "--set", "samples=3"]).all_hit();
    let cut = |row: &Value| json!({"id": row["id"], "random_cut": &text(row, "code")[..40]});
    let cuts: Vec<Value> = others().iter().map(cut).collect();
    let project = self::project(&cuts, &others());
    let first = project.rerun("temperature: 0", "temperature: 1, samples: 4");
    let reversed = |rows: Vec<Value>| lines(&rows.into_iter().rev().collect::<Vec<_>>());
    project.write("data.jsonl", reversed(cuts));
    project.write("train.jsonl", reversed(others()));
    assert_eq!(first.digests(), project.run_ok(&["--cache", "fresh"]).digests());
    project.run_ok(&[]);
    // The ids of the texts do not count as long as they are no row's.
    let new = |row: &Value| json!({"id": format!("new{}", text(row, "id")), "code": row["code"]});
    let renamed: Vec<Value> = others().iter().map(new).collect();
    let before = project.cells("answers", "prediction");
    project.write("train.jsonl", lines(&renamed));
    project.run_ok(&[]);
    assert_eq!(project.cells("answers", "prediction"), before);
}

#[test]
fn a_seed_and_a_sample_make_answers_of_their_own() {
    let project = Project::new(LIBRARY);
    let (_, one) = library(&project, &[]);
    let (_, other) = library(&project, &["seed=2"]);
    assert_eq!(one.len(), other.len());
    let differ = |a: &[Value], b: &[Value]| {
        a.iter().zip(b).filter(|(a, b)| a["raw_response"] != b["raw_response"]).count()
    };
    assert!(differ(&one, &other) > one.len() / 2, "{} of {}", differ(&one, &other), one.len());
    // The ids are those of the prompt, the model and the sample.
    assert!(one.iter().zip(&other).all(|(a, b)| a["id"] == b["id"]));
    let (_, three) = library(&project, &["samples=3"]);
    assert_eq!(three.len(), 3 * one.len());
    let sample =
        |n: u64| three.iter().filter(|row| row["sample"] == n).cloned().collect::<Vec<_>>();
    // A sample more leaves those before as they are.
    assert_eq!(sample(0), one);
    assert!(sample(2).len() == one.len() && differ(&sample(1), &sample(2)) > 0);
    let ids: BTreeSet<&str> = three.iter().map(|row| text(row, "id")).collect();
    assert_eq!(ids.len(), three.len());
}

#[test]
fn answers_end_at_the_most_tokens_and_at_stops() {
    let project = Project::new(LIBRARY);
    let (_, rows) = library(&project, &["max_tokens=1"]);
    assert!(rows.iter().all(|row| row["completion_tokens"].as_u64().unwrap() <= 1), "{rows:?}");
    assert!(rows.iter().any(|row| row["finish_reason"] == "length"), "{rows:?}");
    project.append("      stop: [return, \"\\n\"]\n");
    let (_, rows) = library(&project, &["max_tokens=400"]);
    for row in &rows {
        let raw = text(row, "raw_response");
        let cut = format!("```python\n{}", text(row, "random_cut"));
        let written = raw.strip_prefix(&cut).unwrap().strip_suffix("\n```").unwrap();
        assert!(!written.contains("return") && !written.contains('\n'), "{row}");
    }
    assert!(rows.iter().any(|row| row["finish_reason"] == "stop"), "{rows:?}");
}

#[test]
fn a_model_without_texts_has_nothing_to_say_and_may_learn_from_other_columns() {
    for train in [
        "SELECT id, code FROM input WHERE false",
        "SELECT id, CAST(NULL AS VARCHAR) AS code FROM input",
        "SELECT id, code FROM input WHERE id = 'a'",
    ] {
        let project = one(&with_others(&[("a", METHOD)]));
        let none = format!("  none: {{ op: sql, from: train, with: {{ query: \"{train}\" }} }}\n");
        let text_of = project.read("w.yaml").replace("train: train", "train: none");
        project.write("w.yaml", text_of + &none);
        project.run_ok(&[]);
        let found = values(&project.only("answers"), "prediction finish_reason completion_tokens");
        assert_eq!(found, json!([CUT, "stop", 0]), "{train}");
    }
    let given = |row: &Value| json!({"id": row["id"], "text": row["code"]});
    let more = json!({"id": "z", "text": copy()});
    let train: Vec<Value> = others().iter().map(given).chain([more]).collect();
    let project = project(&[json!({"id": "a", "random_cut": "x", "begin": CUT})], &train);
    project.rerun("seed: 1", "seed: 1, code: begin, train_column: text, order: 4, model: m");
    let found = values(&project.only("answers"), "prediction model reported_model");
    assert_eq!(found, json!([METHOD.trim_end(), "m", null]));
}

#[test]
fn odd_code_comes_back_as_it_was() {
    let codes = [
        "def f():\n    \"\"\"\n    ```python\n    f()\n    ```\n    \"\"\"\n    return",
        "```\n~~~~\n`````python",
        "def f():\n    '''\n<think>\nno\n</think>\n'''\n    return",
        "    def indented(self):\n        return self",
        "\n\ndef f(): return",
        "def f():\r\n    return 1\r\n    x",
        "def añadir(ñ):\n    s = '世界' # 👩‍💻 {{ x }} {% if %} e\u{301}",
        "\tdef tab():\n\t\tx",
        "   x",
        "\u{feff}def f",
        "x\0y",
    ];
    let row = |(i, code): (usize, &&str)| json!({"id": format!("c{i:02}"), "random_cut": code});
    let rows: Vec<Value> = codes.iter().enumerate().map(row).collect();
    let project = project(&rows, &others()).ran();
    let rows = project.rows("answers");
    assert_eq!(rows.len(), codes.len());
    for row in &rows {
        let (cut, prediction) = (text(row, "random_cut"), text(row, "prediction"));
        assert!(prediction.starts_with(cut), "{cut:?} -> {prediction:?}");
    }
    // And so does no code at all, which may continue in any way.
    let empty = self::project(&[json!({"id": "e", "random_cut": ""})], &others()).ran();
    assert_eq!(empty.rows("answers").len(), 1);
    // As it came: with the fence, which is longer than any in the code.
    project.rerun("seed: 1", "seed: 1, extract: raw");
    for row in project.rows("answers") {
        assert_eq!(row["prediction"], row["raw_response"]);
        assert!(text(&row, "prediction").starts_with("```"), "{row}");
    }
    // Rows without code are set aside.
    let rows = [("a", Some(CUT), "x"), ("b", None, "y")];
    let rows = rows.map(|(id, cut, say)| json!({"id": id, "random_cut": cut, "say": say}));
    let project = self::project(&rows, &others());
    project.change("{{ random_cut }}", "{{ say }}");
    project.rerun("seed: 1", "seed: 1, samples: 2");
    assert_eq!(project.rows("answers").len(), 2);
    let wanted =
        [0, 1].map(|at| format!("b | answers | code | {at} | the column `random_cut` is null"));
    assert_eq!(project.cells("answers.rejects", "snippet_id step rule sample reason"), wanted);
}

#[track_caller]
fn refused(old: &str, new: &str, code: &str, word: &str) {
    let project = project(&[json!({"id": "a", "random_cut": CUT, "n": 1})], &others());
    project.change(old, new);
    assert!(project.refused_once(code, word)["line"].as_u64().unwrap() >= 6, "{new}");
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    refused("ngram, seed: 1,", "ngram,", "missing-argument", "`seed`");
    refused("{ input: prompts, train: train }", "prompts", "wrong-inputs", "`train`");
    refused("seed: 1", "seed: 1, train_column: cod", "unknown-column", "`code`");
    refused("seed: 1", "seed: 1, code: random_cu", "unknown-column", "`random_cut`");
    refused("seed: 1", "seed: 1, code: n", "wrong-type", "`n`");
    refused("seed: 1", "seed: 1, messages: n", "wrong-type", "`n`");
    refused("seed: 1", "seed: 1, messages: message", "unknown-column", "`messages`");
    refused("seed: 1", "seed: 1, concurrency: 4", "conflicting-arguments", "openai");
    refused("seed: 1", "seed: 1, on: [id]", "conflicting-arguments", "replay");
    refused("seed: 1", "seed: 1, order: 1", "wrong-value", "order");
    refused("seed: 1", "seed: 1, order: 9", "wrong-value", "order");
    refused("seed: 1", "seed: 1, samples: 0", "wrong-value", "samples");
    refused("seed: 1", "seed: 1, max_tokens: 0", "wrong-value", "max_tokens");
    refused("temperature: 0", "temperature: -1", "wrong-value", "temperature");
    refused("seed: 1", "seed: 1, stop: ['']", "out-of-range", "an empty text");
    refused("ngram", "ngrams", "wrong-value", "`ngram`");
    refused("train: train", "train: train, answers: data", "wrong-inputs", "`answers`");
}
