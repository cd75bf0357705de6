//! `shape: galeras`: outputs with the keys and types of the published files, which are in
//! `tests/reference/published_fields.json` (`tests/scripts/published_fields.py` reads them).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::harness::{Project, has, lines, marked, text, values};
use crate::paper::paper;

pub fn published() -> Value {
    serde_json::from_str(include_str!("../reference/published_fields.json")).unwrap()
}

/// The type of a value, or the types of its keys; a null has no type.
fn kind(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => json!("bool"),
        Value::Number(number) if number.is_f64() => json!("float"),
        Value::Number(_) => json!("int"),
        Value::String(_) => json!("text"),
        Value::Array(_) => json!("list"),
        Value::Object(map) => map.iter().map(|(key, part)| (key.clone(), kind(part))).collect(),
    }
}

fn merge(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            for (key, part) in other {
                let before = one.remove(&key).unwrap_or_default();
                one.insert(key, merge(before, part));
            }
            Value::Object(one)
        }
        (Value::Null, other) => other,
        (one, _) => one,
    }
}

pub fn of_rows(rows: &[Value]) -> Value {
    rows.iter().map(kind).fold(Value::Object(Map::new()), merge)
}

/// The keys of only one of two shapes, and those of different types.
pub fn differences(published: &Value, ours: &Value, at: &str) -> Vec<String> {
    let (Some(theirs), Some(own)) = (published.as_object(), ours.as_object()) else {
        let same = ours.is_null() || published == ours;
        return if same { Vec::new() } else { vec![format!("{at}: {published} and {ours}")] };
    };
    let keys: BTreeSet<&String> = theirs.keys().chain(own.keys()).collect();
    let mut found = Vec::new();
    for key in keys {
        let place = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match (theirs.get(key), own.get(key)) {
            (Some(one), Some(other)) => found.extend(differences(one, other, &place)),
            (Some(_), None) => found.push(format!("{place}: published alone")),
            (None, _) => found.push(format!("{place}: ours alone")),
        }
    }
    found
}

#[test]
fn testbeds_have_the_keys_and_types_of_the_published_files() {
    let mut paper = paper();
    paper.run(&[]).exits(0);
    let mut ids = BTreeSet::new();
    let steps =
        ["random_cut", "with_docstring", "from_docstring", "commit_gen", "collected/raw_data"];
    for step in steps {
        let name = step.trim_start_matches("collected/");
        let read = paper.project.read(&format!("galeras/published/{name}.json"));
        let rows: Vec<Value> = serde_json::from_str(&read).unwrap();
        let points = paper.rows(step);
        assert_eq!(rows.len(), points.len(), "{step}");
        // Prompts are of the case study.
        let mut expected = vec!["T1: published alone", "T2: published alone"];
        expected.extend(["control: published alone", "galeras_id: ours alone"]);
        if !step.contains("cut") && step != "with_docstring" {
            expected.push("random_cut: published alone");
        }
        assert_eq!(differences(&published(), &of_rows(&rows), ""), expected, "{step}");
        for (row, point) in rows.iter().zip(&points) {
            // In the order of ids.
            let wanted = values(point, "id code_no_docstring n_whitespaces");
            has(row, "galeras_id code n_whitespaces", wanted);
            has(row, "language ast_errors", json!(["Python", ""]));
            assert_eq!(row["documentation"]["docstring"], point["docstring"]);
            let number = row["id"].as_u64().unwrap();
            assert!(number < 1 << 53, "{number}");
            ids.insert((number, text(row, "galeras_id").to_owned()));
            let documentation = &row["documentation"];
            match point["docstring"].as_str() {
                None => assert!(row["d_id"].is_null() && documentation["n_words"].is_null()),
                Some(docstring) => {
                    let words: Vec<&str> = docstring.split_whitespace().collect();
                    let distinct: BTreeSet<&str> = words.iter().copied().collect();
                    assert_eq!(row["d_id"], row["id"]);
                    let spaces = docstring.matches(' ').count();
                    let wanted = json!([words.len(), distinct.len(), spaces, "UNKNOWN"]);
                    has(documentation, "n_words vocab_size n_whitespaces language", wanted);
                }
            }
        }
    }
    // One number for one id, wherever it is written.
    let numbers: BTreeSet<u64> = ids.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers.len(), ids.len());
    // Nothing is written again, and the rows are counted as they are in the file.
    paper.set("seed", "42");
    for event in paper.run(&[]).exits(0).events("output") {
        assert_eq!(event["written"], false, "{event}");
    }
}

/// Data points and answers as a file, and an output of them with `rest`.
fn shaped(rows: &[Value], rest: &str) -> (Project, String) {
    let text = format!(
        "galeras: 1
steps:
  points: {{ op: read, with: {{ path: points.jsonl, key: [id] }} }}
outputs:
  out: {{ from: points, {rest} }}
"
    );
    let (text, place) = if text.contains('«') { marked(&text) } else { (text, String::new()) };
    (Project::new(&text).with("points.jsonl", lines(rows)), place)
}

fn answer(id: &str, snippet: &str, treatment: &str) -> Value {
    json!({
        "id": id, "snippet_id": snippet, "treatment": treatment, "template": "t", "prompt": "a b",
        "prompt_size": 2, "p_n_whitespaces": 1, "p_vocab_size": 2, "prediction": " x  x\ty ",
        "commit_id": "c", "repo": "o/r", "path": "p/f.py", "file_name": "f.py", "fun_name": "f",
        "commit_message": "m", "url": "u", "code_no_docstring": "def f(): pass", "docstring": "",
        "ast_errors": ["=", "x y"], "n_ast_errors": 2, "ast_levels": 3, "n_whitespaces": 2,
        "n_words": 3, "vocab_size": 3, "complexity": 1, "nloc": 1, "token_counts": 5,
        "n_ast_nodes": 8, "n_identifiers": 1,
    })
}

#[test]
fn rows_of_treatments_become_one_of_the_data_point() {
    let asked = [("1", "a", "control"), ("2", "a", "it's \"odd\""), ("3", "b", "control")];
    let mut rows = asked.map(|(id, snippet, treatment)| answer(id, snippet, treatment));
    rows[2]["docstring"] = json!("Gibt die Anzahl der Zeilen zurück.");
    for (path, by_line) in [("o.json", false), ("o.jsonl", true)] {
        let (project, _) = shaped(&rows, &format!("path: {path}, shape: galeras"));
        let outcome = project.run_ok(&[]);
        assert_eq!(outcome.events("output")[0]["rows"], 2, "{outcome}");
        let read = project.read(path);
        let written: Vec<Value> = match by_line {
            true => read.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            false => serde_json::from_str(&read).unwrap(),
        };
        assert_eq!(written.len(), 2);
        let (a, b) = (&written[0], &written[1]);
        assert_eq!((&a["galeras_id"], &b["galeras_id"]), (&json!("a"), &json!("b")));
        assert_eq!(a["ast_errors"], "=x y");
        let predicted =
            json!({"prediction": " x  x\ty ", "n_words": 3, "n_whitespaces": 4, "vocab_size": 2});
        assert_eq!(a["it's \"odd\""]["predicted"], predicted);
        assert_eq!(a["control"]["prompt"]["p_n_words"], 2);
        assert_eq!(b["it's \"odd\""]["predicted"]["prediction"], Value::Null);
        assert_eq!(a["documentation"]["vocab_size"], 0);
        let languages = [a, b].map(|row| &row["documentation"]["language"]);
        assert_eq!(languages, ["UNKNOWN", "de"]);
        // Again: the file is known, and so is how many rows it has.
        let event = &project.run_ok(&[]).events("output")[0];
        assert_eq!((&event["written"], &event["rows"]), (&json!(false), &json!(2)));
    }
    let (project, _) = shaped(&rows, "path: o.parquet, shape: galeras");
    project.run_ok(&[]);
    assert!(std::fs::read(project.path("o.parquet")).unwrap().starts_with(b"PAR1"));
}

#[test]
fn what_the_shape_cannot_hold_is_refused() {
    let twice = [answer("1", "a", "T1"), answer("2", "a", "T1")];
    let (project, _) = shaped(&twice, "path: o.json, shape: galeras");
    project.run_json(&[]).exits(1).prints(&["several of a under T1"]);
    assert!(!project.path("o.json").exists());
    let (project, _) = shaped(&[answer("1", "a", "code")], "path: o.json, shape: galeras");
    project.run_json(&[]).exits(1).prints(&["a treatment is called `code`"]);
    // Mistakes are found before anything runs.
    for (rest, code, says) in [
        ("path: o.json, shape: «galera", "wrong-value", "did you mean `galeras`?"),
        ("path: o.csv, shape: «galeras", "conflicting-keys", "nested"),
        ("path: o.json, shapes: galeras", "unknown-key", "did you mean `shape`?"),
    ] {
        let (project, place) = shaped(&[answer("1", "a", "T1")], rest);
        let outcome = project.run_json(&[]).exits(2).prints(&[says]);
        assert!(outcome.diagnostics()[0].starts_with(code), "{outcome}");
        if rest.contains('«') {
            assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")]);
        }
    }
    let mut row = answer("1", "a", "T1");
    for name in ["fun_name", "p_vocab_size"] {
        row.as_object_mut().unwrap().remove(name);
    }
    let (project, _) = shaped(&[row], "path: o.json, shape: galeras");
    project.run_json(&[]).exits(2).prints(&["`fun_name`, `p_vocab_size`"]);
}
