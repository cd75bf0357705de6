//! `score`: its columns, the port `corpus`, what a change costs, and arguments that are wrong.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, lines};
use crate::score_odd_texts::COLUMNS;

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  scores: { op: score, from: data, with: { reference: code, by: [treatment] } }
";

fn data() -> Vec<Value> {
    let code = |i: usize| format!("def f{i}(a, b):\n    c = a + {i}\n    d = c * b\n    return d");
    let made = |i: usize| match i % 3 {
        0 => code(i),
        1 => format!("def f{i}(a, b):\n    return a + b * {i}"),
        _ => format!("def g(x):\n    c = x + {i}\n    return c"),
    };
    let row = |i: usize| {
        json!({
            "id": format!("{i:03}"), "code": code(i), "prediction": made(i), "note": "n",
            "treatment": (["control", "t1", "t2", "t2"][i % 4])
        })
    };
    (0..40).map(row).collect()
}

fn project(rows: &[Value]) -> Project {
    Project::new(WORKFLOW).with("data.jsonl", lines(rows))
}

/// Writes the workflow with other arguments, and runs it.
#[track_caller]
fn run_with(project: &Project, with: &str) -> Outcome {
    set(project, with);
    project.run_ok(&[])
}

fn set(project: &Project, with: &str) {
    project.write("w.yaml", WORKFLOW.replace(", by: [treatment]", with));
}

/// The names of the columns of a step, without those of the input.
#[track_caller]
fn added(project: &Project) -> Vec<String> {
    let rows = project.rows("scores");
    let own = ["id", "code", "prediction", "note", "treatment"];
    rows[0].as_object().unwrap().keys().filter(|k| !own.contains(&k.as_str())).cloned().collect()
}

/// Value and rows by group and metric.
#[track_caller]
fn corpus(project: &Project, by: &[&str]) -> BTreeMap<(String, String), (Value, u64)> {
    let rows = project.rows("scores.corpus");
    let group = |row: &Value| by.iter().map(|b| row[b].to_string()).collect::<Vec<_>>().join(",");
    let of = |row: &Value| {
        let key = (group(row), row["metric"].as_str().unwrap().to_owned());
        (key, (row["value"].clone(), row["rows"].as_u64().unwrap()))
    };
    let found: BTreeMap<_, _> = rows.iter().map(of).collect();
    assert_eq!(found.len(), rows.len(), "{rows:?}");
    found
}

/// The metrics of the port `corpus`.
#[rustfmt::skip]
const CORPUS: [&str; 10] = [
    "bleu", "codebleu", "codebleu_dataflow", "codebleu_ngram", "codebleu_strict",
    "codebleu_strict_dataflow", "codebleu_strict_syntax", "codebleu_strict_weighted",
    "codebleu_syntax", "codebleu_weighted",
];

#[test]
fn all_scores_are_columns_of_every_row() {
    let project = project(&data()).ran();
    assert_eq!(added(&project), COLUMNS);
    let rows = project.rows("scores");
    assert_eq!(rows.len(), 40);
    for (row, input) in rows.iter().zip(data()) {
        for (column, value) in row.as_object().unwrap() {
            match column.as_str() {
                "levenshtein" | "exact_match" | "parses" => assert!(value.is_u64(), "{row}"),
                column if input.get(column).is_some() => assert_eq!(value, &input[column]),
                _ => assert!((0.0..=1.0).contains(&value.as_f64().unwrap()), "{column}: {row}"),
            }
        }
        let equal = row["code"] == row["prediction"];
        assert_eq!(row["exact_match"] == 1, equal);
        assert_eq!(row["levenshtein"] == 0, equal);
    }
}

#[test]
fn only_the_chosen_scores_are_there() {
    let project = project(&data());
    let published: Vec<&str> =
        CORPUS[1..].iter().filter(|metric| !metric.contains("strict")).copied().collect();
    let codebleu = [&["exact_match"], &COLUMNS[1..6]].concat();
    for (metrics, columns, of_corpus) in [
        ("[bleu]", vec!["bleu"], vec!["bleu"]),
        ("[parses, levenshtein]", vec!["parses", "levenshtein"], vec![]),
        ("[exact_match, codebleu]", codebleu, published),
    ] {
        run_with(&project, &format!(", metrics: {metrics}"));
        assert_eq!(added(&project), columns, "{metrics}");
        let metrics = corpus(&project, &[]).into_keys().map(|(_, metric)| metric);
        assert_eq!(metrics.collect::<Vec<String>>(), of_corpus);
    }
    // Another column may hold the prediction.
    run_with(&project, ", prediction: note, metrics: [levenshtein, similarity]");
    assert!(project.rows("scores").iter().all(|row| row["levenshtein"].as_u64().unwrap() > 30));
    // Also the reference itself.
    run_with(&project, ", prediction: code");
    let perfect =
        |row: &Value| row["exact_match"] == 1 && row["bleu"] == 1.0 && row["codebleu"] == 1.0;
    assert!(project.rows("scores").iter().all(perfect));
}

#[test]
fn a_group_has_the_scores_of_its_rows_as_one_text() {
    let mut rows = data();
    rows.push(json!({
        "id": "alone", "code": "def f(a):\n    b = a + 1\n    return b * a",
        "prediction": "def f(a):\n    b = a + 2\n    return b", "note": "", "treatment": "alone"
    }));
    let project = project(&rows).ran();
    let found = corpus(&project, &["treatment"]);
    let groups = [("\"alone\"", 1), ("\"control\"", 10), ("\"t1\"", 10), ("\"t2\"", 20)];
    let keys = groups
        .iter()
        .flat_map(|(group, _)| CORPUS.map(|metric| (group.to_string(), metric.to_string())));
    assert_eq!(found.keys().cloned().collect::<Vec<_>>(), keys.collect::<Vec<_>>());
    for ((group, metric), (value, count)) in &found {
        let wanted = groups.iter().find(|(name, _)| name == group).unwrap().1;
        assert_eq!(*count, wanted, "{group} {metric}");
        assert!((0.0..=1.0).contains(&value.as_f64().unwrap()), "{group} {metric} {value}");
    }
    // A corpus of one row is that row.
    let scores = project.rows("scores");
    let alone = scores.iter().find(|row| row["id"] == "alone").unwrap();
    for metric in CORPUS {
        assert_eq!(found[&("\"alone\"".into(), metric.into())].0, alone[metric], "{metric}");
    }
    // A group does not know of the others.
    rows.retain(|row| row["treatment"] == "t1");
    project.write("data.jsonl", lines(&rows));
    run_with(&project, "");
    let whole = corpus(&project, &[]);
    for metric in CORPUS {
        let of_group = &found[&("\"t1\"".into(), metric.into())];
        assert_eq!(&whole[&(String::new(), metric.into())], of_group, "{metric}");
    }
}

#[test]
fn groups_of_several_columns_and_of_nulls() {
    let mut rows = data();
    for (i, row) in rows.iter_mut().enumerate() {
        row["part"] = json!(i % 2);
        row["note"] = if i < 20 { Value::Null } else { json!("n") };
        row["share"] = json!(0.5 * (i % 2) as f64);
        row["even"] = json!(i % 2 == 0);
    }
    let project = project(&rows);
    run_with(&project, ", by: [note, part], metrics: [bleu]");
    let found = corpus(&project, &["note", "part"]);
    let keys: Vec<(&str, u64)> =
        found.iter().map(|(key, value)| (key.0.as_str(), value.1)).collect();
    assert_eq!(keys, [("\"n\",0", 10), ("\"n\",1", 10), ("null,0", 10), ("null,1", 10)]);
    for by in ["share", "even"] {
        run_with(&project, &format!(", by: [{by}], metrics: [bleu]"));
        assert_eq!(project.rows("scores.corpus").len(), 2, "{by}");
    }
}

#[test]
fn a_change_of_the_metrics_or_groups() {
    let project = project(&data());
    let first = project.run_ok(&[]);
    assert_eq!(first.step("scores")["computed_rows"], 40);
    let before = project.rows("scores");
    // Other groups need no score again.
    let grouped = run_with(&project, ", by: [note]");
    assert_eq!(grouped.status("scores"), "ran");
    assert_eq!(grouped.step("scores")["computed_rows"], 0, "{grouped}");
    assert_eq!(corpus(&project, &["note"]).len(), 10);
    assert_eq!(project.rows("scores"), before);
    // Fewer metrics have the same values.
    run_with(&project, ", metrics: [chrf, bleu]");
    for (row, before) in project.rows("scores").iter().zip(&before) {
        assert_eq!((&row["chrf"], &row["bleu"]), (&before["chrf"], &before["bleu"]));
    }
    // Back to the first: stored.
    project.write("w.yaml", WORKFLOW);
    project.run_ok(&[]).all_hit();
    // Only new pairs are scored.
    let project = self::project(&data());
    let first = project.run_ok(&[]);
    let mut rows = data();
    rows.iter_mut().for_each(|row| row["note"] = json!("other"));
    rows[7]["prediction"] = json!("pass");
    let new = json!({"id": "new", "code": "x", "prediction": "y", "note": "", "treatment": "t1"});
    rows.push(new);
    rows.reverse();
    project.write("data.jsonl", lines(&rows));
    let second = project.run_ok(&[]);
    let step = second.step("scores");
    assert_eq!((&step["computed_rows"], &step["reused_rows"]), (&json!(2), &json!(39)), "{second}");
    assert_eq!(project.run_ok(&["--cache", "fresh", "--jobs", "1"]).digests(), second.digests());
    // A group is another one, and no row has to be scored.
    let mut rows = data();
    rows[0]["treatment"] = json!("t9");
    project.write("data.jsonl", lines(&rows));
    let third = project.run_ok(&[]);
    assert_eq!(third.step("scores")["computed_rows"], 0, "{third}");
    assert_eq!(project.rows("scores.corpus").len(), 4 * 10);
    project.write("data.jsonl", lines(&data()));
    project.run_ok(&[]).all_hit_as(&first);
}

#[test]
fn neither_order_nor_threads_matter() {
    // Names that come from several places: the order of a hash table decides there with peers.
    let mut rows = data();
    for (i, row) in rows.iter_mut().enumerate() {
        let code = |n: usize| {
            let lines = "    if a:\n        x = b\n    elif c:\n        x = c + {n}\n    else:\n        x = a\n    for y in x:\n        z = y + x\n    return z + x";
            format!("def f(a, b, c):\n{}", lines.replace("{n}", &n.to_string()))
        };
        row["code"] = json!(code(i));
        row["prediction"] = json!(code(i % 5));
    }
    let project = project(&rows);
    let first = project.run_ok(&["--jobs", "1"]);
    rows.reverse();
    project.write("data.jsonl", lines(&rows));
    assert_eq!(first.digests(), project.run_ok(&["--jobs", "5", "--cache", "fresh"]).digests());
    project.verifies("fresh");
}

#[test]
fn rows_without_a_text_have_nulls_and_belong_to_no_corpus() {
    let mut rows = data();
    rows[0]["code"] = Value::Null;
    rows[4]["prediction"] = Value::Null;
    rows[8]["code"] = Value::Null;
    rows[8]["prediction"] = Value::Null;
    let project = project(&rows).ran();
    let columns = added(&project);
    for (at, row) in project.rows("scores").iter().enumerate() {
        let null = [0, 4, 8].contains(&at);
        assert!(columns.iter().all(|column| row[column].is_null() == null), "{row}");
    }
    let found = corpus(&project, &["treatment"]);
    for metric in CORPUS {
        assert_eq!(found[&("\"control\"".into(), metric.into())].1, 7, "{metric}");
    }
    // A group of nulls only has no scores, and neither have no rows.
    rows.iter_mut().filter(|r| r["treatment"] == "t1").for_each(|r| r["code"] = Value::Null);
    project.write("data.jsonl", lines(&rows));
    project.run_ok(&[]);
    assert!(corpus(&project, &["treatment"]).keys().all(|(group, _)| group != "\"t1\""));
}

#[test]
fn no_rows_have_no_scores() {
    let project = project(&data());
    let none = "{ op: sql, from: data, with: { query: 'SELECT * FROM input WHERE false' } }";
    for by in ["", ", by: [treatment]"] {
        set(&project, by);
        project.change("from: data,", "from: none,");
        project.append(&format!("  none: {none}\n"));
        project.run_ok(&[]);
        assert!(project.rows("scores").is_empty());
        // There are no groups; the whole is there, and has no value.
        let corpus = project.rows("scores.corpus");
        assert_eq!(corpus.len(), if by.is_empty() { 10 } else { 0 }, "{corpus:?}");
        assert!(corpus.iter().all(|row| row["value"].is_null() && row["rows"] == 0), "{corpus:?}");
    }
    // Scores feed other steps.
    let project = self::project(&data());
    let more = "  best: { op: validate, from: scores, with: { rules: [ { name: same, check: exact_match = 1 } ] } }
  table: { op: describe, from: scores, with: { columns: [bleu, codebleu, levenshtein, parses] } }
  wide:
    op: sql
    from: scores.corpus
    with: { query: \"SELECT treatment, value FROM input WHERE metric = 'bleu'\", key: [treatment] }
outputs:
  corpus: { from: scores.corpus, path: corpus.csv }
  scores: { from: scores, path: scores.parquet }
";
    project.write("w.yaml", WORKFLOW.to_owned() + more);
    project.run_ok(&[]);
    assert_eq!(project.rows("best").len(), 14);
    assert_eq!((project.rows("table").len(), project.rows("wide").len()), (4, 3));
    let csv = project.read("corpus.csv");
    assert_eq!(csv.lines().next().unwrap(), "treatment,metric,value,rows");
    assert_eq!(csv.lines().count(), 1 + 3 * 10);
}

#[track_caller]
fn wrong(with: &str, code: &str, word: &str) {
    let project = project(&data());
    set(&project, with);
    assert_eq!(project.refused_once(code, word)["line"], 4);
}

#[test]
fn arguments_that_are_wrong() {
    wrong(", metrics: [blue]", "wrong-value", "did you mean `bleu`?");
    wrong(", metrics: []", "out-of-range", "at least one");
    wrong(", metrics: [bleu, chrf, bleu]", "conflicting-arguments", "`bleu`");
    wrong(", metrics: bleu", "wrong-type", "metrics");
    wrong(", mode: right", "wrong-value", "compat");
    wrong(", bleu_tokenize: 13b", "wrong-value", "`13a`");
    wrong(", bleu_smooth: addk", "wrong-value", "`add-k`");
    wrong(", codebleu_weights: [1, 1, 1]", "out-of-range", "four");
    wrong(", codebleu_weights: [1, 1, 1, 1, 1]", "out-of-range", "four");
    wrong(", codebleu_weights: []", "out-of-range", "four");
    wrong(", codebleu_weights: [0.5, 0.5, 0.5, -0.5]", "out-of-range", "0 or more");
    wrong(", codebleu_weights: [0, 0, 0, 0]", "out-of-range", "more than 0");
    wrong(", codebleu_weights: [1.0e+308, 1.0e+308, 1.0e+308, 1]", "out-of-range", "weight");
    wrong(", codebleu_weights: [.inf, 0, 0, 1]", "wrong-value", "finite");
    wrong(", codebleu_weights: [.nan, 0, 0, 1]", "wrong-value", "finite");
    wrong(", by: [treatmen]", "unknown-column", "`treatment`");
    wrong(", by: [note, note]", "conflicting-arguments", "`note`");
    wrong(", prediction: predictio", "unknown-column", "`prediction`");
    wrong(", smooth: exp", "unknown-argument", "bleu_smooth");
}

#[test]
fn columns_that_cannot_be_scored() {
    let mut rows = data();
    rows.iter_mut().for_each(|row| row["n"] = json!(1));
    let project = project(&rows);
    let starts_with = |code: &str| {
        let outcome = project.run_json(&[]).exits(2);
        assert!(outcome.diagnostics()[0].starts_with(code), "{outcome}");
    };
    set(&project, ", prediction: n");
    starts_with("wrong-type");
    project.write("w.yaml", WORKFLOW.replace("reference: code, ", ""));
    starts_with("missing-argument");
    // A group would have a column that the port has already.
    for name in ["metric", "value", "rows"] {
        rows.iter_mut().for_each(|row| row[name] = json!("x"));
        project.write("data.jsonl", lines(&rows));
        set(&project, &format!(", by: [{name}]"));
        starts_with("conflicting-arguments");
    }
    // Weights are shares.
    let project = self::project(&data());
    let mut before: Option<Vec<f64>> = None;
    for weights in ["[0.1, 0.2, 0.3, 0.4]", "[1, 2, 3, 4]", "[10, 20, 30, 40]"] {
        run_with(&project, &format!(", metrics: [codebleu], codebleu_weights: {weights}"));
        let rows = project.rows("scores");
        let found: Vec<f64> = rows.iter().map(|row| row["codebleu"].as_f64().unwrap()).collect();
        let before = before.get_or_insert_with(|| found.clone());
        assert!(found.iter().zip(before.iter()).all(|(a, b)| (a - b).abs() < 1e-12), "{weights}");
    }
}
