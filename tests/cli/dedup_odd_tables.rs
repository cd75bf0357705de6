//! `dedup` of tables with unusual columns: its own names, names in need of quotes, ids and
//! orders of every type.

use serde_json::{Value, json};

use crate::dedup::words;
use crate::harness::{Outcome, Project};

fn project(with: &str, rows: impl IntoIterator<Item = Value>) -> Project {
    let project = Project::steps(&format!(
        "  data: {{ op: read, with: {{ path: data.jsonl }} }}
  unique: {{ op: dedup, from: data, with: {{ {with} }} }}
"
    ));
    let lines: String = rows.into_iter().map(|row| format!("{row}\n")).collect();
    project.write("data.jsonl", lines);
    project
}

fn ids(project: &Project, port: &str) -> Vec<String> {
    project.rows(port).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// The duplicates `a` and `b`, and `c`, with one more column.
fn with_column(name: &str) -> [Value; 3] {
    let row = |id: &str, code: &str| json!({"id": id, "code": code, name: format!("mine {id}")});
    [row("a", &words(0, 25)), row("b", &words(0, 25)), row("c", &words(50, 75))]
}

#[test]
fn columns_of_the_names_that_rejects_adds_are_replaced_there_and_kept_elsewhere() {
    let mut wrong = Vec::new();
    for name in ["step", "rule", "reason", "duplicate_of", "jaccard", "multiset_jaccard"] {
        let project = project("column: code", with_column(name));
        let outcome = project.run_json(&[]);
        if outcome.code != Some(0) {
            let finished = outcome.finished();
            let detail = finished["steps"][1]["detail"].as_str().unwrap_or_default().to_owned();
            wrong.push(format!("{name}: {detail}"));
            continue;
        }
        let kept = project.rows("unique");
        assert_eq!((&kept[0][name], &kept[1][name]), (&json!("mine a"), &json!("mine c")));
        let reject = &project.rows("unique.rejects")[0];
        assert_eq!((&reject["id"], &reject["duplicate_of"]), (&json!("b"), &json!("a")));
        assert_eq!((&reject["jaccard"], &reject["rule"]), (&json!(1.0), &json!("duplicate")));
        assert_ne!(reject[name], "mine b", "{name}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn columns_of_the_other_names_are_left_alone() {
    for name in ["cluster", "size", "kept", "rows", "Code", "ID", "table"] {
        let project = project("column: code", with_column(name)).ran();
        assert_eq!(project.rows("unique")[1][name], "mine c", "{name}");
        assert_eq!(project.rows("unique.rejects")[0][name], "mine b", "{name}");
    }
}

#[test]
fn duplicates_can_be_deduplicated_again() {
    let project = project(
        "column: code",
        (0..6).map(|i| json!({"id": format!("{i}"), "code": words(i % 2 * 50, i % 2 * 50 + 25)})),
    );
    let again = "  again: { op: dedup, from: unique.rejects, with: { column: code } }\n";
    project.append(again);
    project.run_ok(&[]);
    assert_eq!(ids(&project, "unique.rejects"), ["2", "3", "4", "5"]);
    assert_eq!(ids(&project, "again"), ["2", "3"]);
    let rejects = project.rows("again.rejects");
    assert_eq!((&rejects[0]["step"], &rejects[0]["duplicate_of"]), (&json!("again"), &json!("2")));
}

#[test]
fn names_in_need_of_quotes_are_columns_like_others() {
    for name in ["My \"Code\"", "a.b", "select", "CODE", "größe", "a b", "it's", "{x}"] {
        let rows =
            (0..3).map(|i| json!({"id": format!("r{i}"), name: words(0, 25), "Rank Of": 3 - i}));
        let quoted = name.replace('\'', "''");
        let with = format!("column: '{quoted}', order_by: ['Rank Of', '{quoted}']");
        assert_eq!(ids(&project(&with, rows).ran(), "unique"), ["r2"], "{name}");
    }
}

/// A clear error before anything runs, or a run. Says whether it ran.
#[track_caller]
fn ran_or_was_refused(outcome: &Outcome) -> bool {
    match outcome.code {
        Some(0) => true,
        Some(2) => {
            assert_eq!(outcome.events("diagnostic").len(), 1, "{outcome}");
            false
        }
        _ => panic!("{outcome}"),
    }
}

#[test]
fn ids_may_be_what_is_compared() {
    let rows = || ["", " "].map(|more| json!({"id": words(0, 25) + more, "x": 1}));
    let project = project("column: id", rows());
    if ran_or_was_refused(&project.run_json(&[])) {
        assert_eq!(project.rows("unique.rejects").len(), 1);
    }
}

#[test]
fn a_column_may_stand_twice_in_the_order() {
    let rows = (0..3).map(|i| json!({"id": format!("r{i}"), "code": words(0, 25), "n": 3 - i}));
    let project = project("column: code, order_by: [n, n, id, n]", rows);
    if ran_or_was_refused(&project.run_json(&[])) {
        assert_eq!(ids(&project, "unique"), ["r2"]);
    }
}

#[test]
fn values_of_every_plain_type_have_an_order() {
    let row = |id: &str, f: Value, b: Value, s: &str| json!({"id": id, "code": words(0, 25), "f": f, "b": b, "s": s});
    let rows = || {
        [
            row("a", json!(0.5), json!(true), "b"),
            row("b", json!(-1.5), Value::Null, "B"),
            row("c", json!(1e300), json!(false), "ä"),
            row("d", Value::Null, json!(true), ""),
        ]
    };
    for (order, first, last) in
        [("f", "b", "c"), ("b", "c", "d"), ("s", "d", "c"), ("code", "a", "d")]
    {
        for (keep, wanted) in [("first", first), ("last", last)] {
            let project =
                project(&format!("column: code, order_by: [{order}], keep: {keep}"), rows());
            project.run_ok(&[]);
            assert_eq!(ids(&project, "unique"), [wanted], "{order} {keep}");
        }
    }
}

#[test]
fn a_matrix_of_thresholds_gives_a_table_of_summaries() {
    let project = project("column: code, threshold: '${{ matrix.t }}'", with_column("note"));
    project.change("op: dedup,", "op: dedup, matrix: { t: [0.5, 0.8] },");
    let more =
        "  all: { op: sql, from: 'unique[*].summary', with: { query: 'SELECT * FROM input' } }
outputs:
  sums: { from: all, path: sums.csv, show: true }
  members: { from: 'unique[*].clusters', path: members.csv, show: true }
";
    project.append(more);
    let outcome = project.run(&["run", "w.yaml"]).exits(0);
    assert_eq!(project.read("sums.csv").lines().count(), 3, "{outcome}");
    assert_eq!(project.read("members.csv").lines().count(), 5, "{outcome}");
    assert!(outcome.stdout.contains("sums.csv") && outcome.stdout.contains("members.csv"));
}

#[test]
fn numbers_as_ids_are_refused_with_advice() {
    let project = project("column: code", (0..3).map(|i| json!({"id": i, "code": words(0, 25)})));
    let outcome = project.run_json(&[]).exits(2);
    let found = &outcome.events("diagnostic")[0];
    assert_eq!(found["code"], "wrong-type", "{outcome}");
    assert!(found["message"].as_str().unwrap().contains("`id` has type int64"), "{found}");
}

#[test]
fn long_texts_take_no_more_memory_than_there_is() {
    // 240 MB of texts; a batch of them is larger than what a sort may take.
    let words: String = (0..3_000).map(|i| format!("name_{i:04} ")).collect();
    let long = words.repeat(40);
    let rows = (0..200)
        .map(|i| json!({"id": format!("{i:03}"), "code": format!("own{} {long}", i % 150)}));
    let project = project("column: code, threshold: 1", rows);
    assert_eq!(project.run_ok(&["--memory", "64MiB"]).step("unique")["rows"], 150);
}
