//! `generate` with `provider: echo` and `provider: reference`: what every model is measured against.

use serde_json::{Value, json};

use crate::harness::{Project, has, lines};

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  prompts:
    op: prompt
    from: data
    with:
      system: You are a programmer.
      treatments:
        control: \"Complete this:\\n```python\\n{{ begin }}\\n```\"
        two_turns: ['{{ begin }}', 'Go on.']
  echo: { op: generate, from: prompts, with: { provider: echo, given: begin } }
  best: { op: generate, from: prompts, with: { provider: reference, reference: code } }
";

/// Texts of which an extraction would make something else.
fn data() -> Vec<Value> {
    let fence = "def g():\n    \"\"\"\n    ```\n    x";
    let all: [(&str, &str); 5] = [
        ("def f(a):", "def f(a):\n    return a\n\n"),
        (fence, &format!("{fence}\n    ```\n    \"\"\"\r\n")),
        ("", "pass"),
        ("<think>", "<think>\nx = '</think>'"),
        ("é\u{202e}\u{0}", "é\u{202e}\u{0}\u{1b}[31m"),
    ];
    let row = |(at, (begin, code)): (usize, &(&str, &str))| json!({"id": format!("d{at}"), "begin": begin, "code": code});
    all.iter().enumerate().map(row).collect()
}

fn project(rows: &[Value]) -> Project {
    Project::new(WORKFLOW).with("data.jsonl", lines(rows))
}

fn without_prompts(rows: &[Value]) -> Project {
    project(rows).with("w.yaml", WORKFLOW.replace("from: prompts", "from: data"))
}

#[test]
fn what_was_given_comes_back_and_the_reference_is_right() {
    let project = project(&data());
    let outcome = project.run_ok(&[]);
    for (step, column, model) in [("echo", "begin", "echo"), ("best", "code", "reference")] {
        let rows = project.rows(step);
        assert_eq!(rows.len(), 10);
        for row in rows {
            let columns = "prediction raw_response model sample finish_reason prompt_tokens \
                           completion_tokens reported_model";
            let wanted = json!([row[column], row[column], model, 0, "stop", null, null, null]);
            has(&row, columns, wanted);
        }
        let summary = project.only(&format!("{step}.summary"));
        has(&summary, "rows cost_usd", json!([10, null]));
        assert!(project.rows(&format!("{step}.rejects")).is_empty());
    }
    assert_eq!(project.run_ok(&["--jobs", "1", "--cache", "other"]).digests(), outcome.digests());
    project.run_ok(&[]).all_hit();
}

#[test]
fn without_a_column_the_last_message_of_the_user_comes_back() {
    let project = project(&data()[..1]);
    project.rerun("echo, given: begin }", "echo, model: parrot, samples: 2 }");
    // The code of a chat is taken out of its fence.
    let control = "Complete this:\n```python\ndef f(a):\n``` | def f(a):";
    let turns = "Go on. | Go on.";
    let wanted = [("control", 0), ("control", 1), ("two_turns", 0), ("two_turns", 1)];
    let wanted = wanted.map(|(treatment, sample)| {
        let said = if treatment == "control" { control } else { turns };
        format!("parrot | {treatment} | {sample} | {said}")
    });
    assert_eq!(project.cells("echo", "model treatment sample raw_response prediction"), wanted);
    assert_eq!(project.only("echo.summary")["rows"], 4);
    project.rerun("model: parrot", "model: parrot, extract: raw");
    assert!(project.rows("echo").iter().all(|row| row["prediction"] == row["raw_response"]));
}

#[test]
fn no_prompt_is_needed_and_nothing_to_give_is_set_aside() {
    let rows = without_prompts(&data()).ran().rows("echo");
    assert_eq!(rows.len(), 5);
    let own = |row: &Value| row["prediction"] == row["begin"] && row["prompt_id"] != row["id"];
    assert!(rows.iter().all(own));
    let mut rows = data();
    rows[1]["begin"] = Value::Null;
    rows[2]["code"] = Value::Null;
    let project = without_prompts(&rows).ran();
    for (step, id, column) in [("echo", "d1", "begin"), ("best", "d2", "code")] {
        assert_eq!(project.rows(step).len(), 4);
        let reject = project.only(&format!("{step}.rejects"));
        let wanted = json!([id, "column", format!("the column `{column}` is null")]);
        has(&reject, "id rule reason", wanted);
    }
    // An empty table gives an empty one.
    project.write("data.jsonl", "{\"id\":\"a\",\"begin\":\"x\",\"code\":\"y\"}\n");
    let none =
        "  none: { op: sql, from: data, with: { query: 'SELECT * FROM input WHERE false' } }\n";
    let text = project.read("w.yaml");
    let (before, steps) = text.split_once("  echo:").unwrap();
    let steps = steps.replace("from: data", "from: none");
    project.write("w.yaml", format!("{before}  echo:{steps}{none}"));
    project.run_ok(&[]);
    assert!(project.rows("echo").is_empty() && project.rows("best.summary").is_empty());
}

#[test]
fn scores_lie_between_the_two() {
    let steps =
        "  methods: { op: methods, with: { corpus: python-stdlib, include: ['json/*.py'] } }
  testbed: { op: cut, from: methods, with: { seed: 42 } }
  echo: { op: generate, from: testbed, with: { provider: echo, given: random_cut } }
  best: { op: generate, from: testbed, with: { provider: reference, reference: code } }
  low: { op: score, from: echo, with: { reference: code } }
  high: { op: score, from: best, with: { reference: code } }
";
    let project = Project::steps(steps).ran();
    let high = project.rows("high");
    assert!(high.len() > 20);
    for row in &high {
        for name in ["bleu", "similarity", "exact_match", "chrf"] {
            let score = row[name].as_f64().unwrap_or(f64::from(u8::from(row[name] == true)));
            assert!((score - 1.0).abs() < 1e-12, "{name}: {row}");
        }
        assert_eq!(row["levenshtein"], 0, "{row}");
    }
    for row in project.rows("low") {
        assert!(row["levenshtein"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["random_cut"] == row["prediction"], "{row}");
    }
}
