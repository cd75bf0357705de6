//! `dedup` of tables with unusual columns: its own names, names in need of quotes, ids and
//! orders of every type.

use serde_json::{Value, json};

use crate::dedup::words;
use crate::harness::{Outcome, Project, every, has, lines, says, text, values};

fn project(with: &str, rows: impl IntoIterator<Item = Value>) -> Project {
    let workflow = format!(
        "  data: {{ op: read, with: {{ path: data.jsonl }} }}
  unique: {{ op: dedup, from: data, with: {{ {with} }} }}
"
    );
    let rows: Vec<_> = rows.into_iter().collect();
    Project::steps(&workflow).with("data.jsonl", lines(&rows))
}

/// The duplicates `a` and `b`, and `c`, with one more column.
fn with_column(name: &str) -> [Value; 3] {
    let row = |id: &str, code: &str| json!({"id": id, "code": code, name: format!("mine {id}")});
    [row("a", &words(0, 25)), row("b", &words(0, 25)), row("c", &words(50, 75))]
}

#[test]
fn columns_of_the_names_that_rejects_adds_are_replaced_there_and_a_matrix_gives_summaries() {
    let names = ["step", "rule", "reason", "duplicate_of", "jaccard", "multiset_jaccard"];
    every(names.map(|name| (name, name)), |name| {
        let project = project("column: code", with_column(name)).ran();
        assert_eq!(project.texts("unique", name), ["mine a", "mine c"]);
        let reject = &project.rows("unique.rejects")[0];
        let found = values(reject, "id duplicate_of jaccard rule");
        assert_eq!(found, json!(["b", "a", 1.0, "duplicate"]));
        assert_ne!(reject[name], "mine b");
    });
    for name in ["cluster", "size", "kept", "rows", "Code", "ID", "table"] {
        let project = project("column: code", with_column(name)).ran();
        assert_eq!(project.rows("unique")[1][name], "mine c", "{name}");
        assert_eq!(project.rows("unique.rejects")[0][name], "mine b", "{name}");
    }
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
fn duplicates_can_be_deduplicated_again_and_numbers_as_ids_are_refused() {
    let project = project(
        "column: code",
        (0..6).map(|i| json!({"id": format!("{i}"), "code": words(i % 2 * 50, i % 2 * 50 + 25)})),
    );
    project.append("  again: { op: dedup, from: unique.rejects, with: { column: code } }\n");
    project.run_ok(&[]);
    assert_eq!(project.texts("unique.rejects", "id"), ["2", "3", "4", "5"]);
    assert_eq!(project.texts("again", "id"), ["2", "3"]);
    let reject = &project.rows("again.rejects")[0];
    has(reject, "step duplicate_of", json!(["again", "2"]));
    let project =
        self::project("column: code", (0..3).map(|i| json!({"id": i, "code": words(0, 25)})));
    let found = project.refused_once("wrong-type", "int64");
    says(text(&found, "message"), &["`id` has type int64"]);
}

#[test]
fn names_in_need_of_quotes_are_columns_and_every_plain_type_has_an_order() {
    for name in ["My \"Code\"", "a.b", "select", "CODE", "größe", "a b", "it's", "{x}"] {
        let rows =
            (0..3).map(|i| json!({"id": format!("r{i}"), name: words(0, 25), "Rank Of": 3 - i}));
        let quoted = name.replace('\'', "''");
        let with = format!("column: '{quoted}', order_by: ['Rank Of', '{quoted}']");
        assert_eq!(project(&with, rows).ran().texts("unique", "id"), ["r2"], "{name}");
    }
    let row = |(id, f, b, s)| json!({"id": id, "code": words(0, 25), "f": f, "b": b, "s": s});
    let rows = [
        ("a", Some(0.5), Some(true), "b"),
        ("b", Some(-1.5), None, "B"),
        ("c", Some(1e300), Some(false), "ä"),
        ("d", None, Some(true), ""),
    ];
    for (order, first, last) in
        [("f", "b", "c"), ("b", "c", "d"), ("s", "d", "c"), ("code", "a", "d")]
    {
        for (keep, wanted) in [("first", first), ("last", last)] {
            let with = format!("column: code, order_by: [{order}], keep: {keep}");
            let project = project(&with, rows.map(row)).ran();
            assert_eq!(project.texts("unique", "id"), [wanted], "{order} {keep}");
        }
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
fn ids_may_be_what_is_compared_and_a_column_may_stand_twice_in_the_order() {
    let ids = ["", " "].map(|more| json!({"id": words(0, 25) + more, "x": 1}));
    let by_id = project("column: id", ids);
    if ran_or_was_refused(&by_id.run_json(&[])) {
        assert_eq!(by_id.rows("unique.rejects").len(), 1);
    }
    let rows = (0..3).map(|i| json!({"id": format!("r{i}"), "code": words(0, 25), "n": 3 - i}));
    let twice = project("column: code, order_by: [n, n, id, n]", rows);
    if ran_or_was_refused(&twice.run_json(&[])) {
        assert_eq!(twice.texts("unique", "id"), ["r2"]);
    }
}

#[test]
fn long_texts_take_no_more_memory_than_there_is() {
    // 240 MB of texts; a batch of them is larger than a sort may take.
    let words: String = (0..3_000).map(|i| format!("name_{i:04} ")).collect();
    let long = words.repeat(40);
    let rows = (0..200)
        .map(|i| json!({"id": format!("{i:03}"), "code": format!("own{} {long}", i % 150)}));
    let project = project("column: code, threshold: 1", rows);
    assert_eq!(project.run_ok(&["--memory", "64MiB"]).step("unique")["rows"], 150);
}
