//! `union`: tables under each other.

use serde_json::json;

use crate::harness::{Project, every, refused};

/// Steps `a`, `b` and `c` of the columns id, x; id, x; id, x, y; then `rest`.
fn workflow(rest: &str) -> String {
    let step = |name: &str, rows: &str, more: &str| {
        format!(
            "  {name}:\n    op: exec\n    with:\n      command: printf '%s\\n' {rows}\n      output: {{ id: utf8!, x: int64!{more} }}\n"
        )
    };
    let row = |id: &str, x: i64, more: &str| format!("'{{\"id\":\"{id}\",\"x\":{x}{more}}}'");
    format!(
        "galeras: 1\nsteps:\n{}{}{}{rest}",
        step("a", &format!("{} {}", row("1", 10, ""), row("2", 20, "")), ""),
        step("b", &format!("{} {}", row("1", 10, ""), row("3", 30, "")), ""),
        step("c", &row("9", 90, ",\"y\":1"), ", y: int64"),
    )
}

const UNION: &str =
    "  all: { op: union, from: { Second: b, First: a }, with: { label: source } }\n";

#[test]
fn rows_of_all_tables_are_there_under_their_labels() {
    let project = Project::new(&workflow(UNION));
    let outcome = project.run_ok(&[]);
    // An id in two tables is two rows: the label is a part of the key.
    let expected = ["First | 1 | 10", "First | 2 | 20", "Second | 1 | 10", "Second | 3 | 30"];
    assert_eq!(project.cells("all", "source id x"), expected);
    // The order in the file changes nothing, and neither do the names of the steps.
    let again = project.rerun("{ Second: b, First: a }", "{ First: a, Second: b }");
    again.all_hit_as(&outcome);
    // The names in `from` do.
    assert_eq!(project.rerun("First: a", "Other: a").statuses(), "a=hit b=hit c=hit all=ran");
    // It equals the query that does the same.
    let text = format!(
        "{UNION}  by_hand:
    op: sql
    from: {{ a: a, b: b }}
    with:
      query: SELECT 'First' AS source, * FROM a UNION ALL SELECT 'Second', * FROM b
      key: [source, id]
"
    );
    for jobs in ["1", "4"] {
        let outcome = Project::new(&workflow(&text)).run_ok(&["--jobs", jobs]);
        assert_eq!(outcome.step("all")["digest"], outcome.step("by_hand")["digest"]);
    }
    // Columns choose from tables that differ.
    let with = "{ label: source, columns: [x] }";
    let step = format!("  all: {{ op: union, from: {{ A: a, C: c }}, with: {with} }}\n");
    let project = Project::new(&workflow(&step)).ran();
    assert_eq!(project.rows("all")[2], json!({"source": "C", "id": "9", "x": 90}));
    // A column that is not taken changes nothing.
    assert_eq!(project.rerun("\"y\":1", "\"y\":2").statuses(), "a=hit b=hit c=ran all=hit");
}

#[test]
fn ports_and_united_cells_are_tables_too() {
    let text = "  part:
    op: sample
    from: a
    matrix: { seed: [1, 2] }
    with: { n: 1, seed: '${{ matrix.seed }}' }
  all:
    op: union
    from: { In: 'part[*]', Out: 'part[*].rejects' }
    with: { label: source, columns: [x] }
  one: { op: union, from: { Only: b }, with: { label: source } }
  cell: { op: union, from: { Part: part, B: b }, with: { label: source } }
";
    let project = Project::new(&workflow(text));
    let outcome = project.run_ok(&[]);
    let rows = project.rows("all");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["seed"].is_i64()), "{rows:?}");
    assert_eq!(outcome.step("one")["rows"], 2);
    assert_eq!(outcome.step("cell[seed=2]")["rows"], 3);
    // Tables without rows have none.
    let text = "  none:
    op: sql
    from: a
    with: { query: 'SELECT id, x FROM input WHERE x > 100' }
  all: { op: union, from: { A: a, None: none }, with: { label: source } }
  nothing: { op: union, from: { A: none, B: none }, with: { label: source } }
";
    let outcome = Project::new(&workflow(text)).run_ok(&[]);
    let found = (&outcome.step("all")["rows"], &outcome.step("nothing")["rows"]);
    assert_eq!(found, (&json!(2), &json!(0)));
    // A row is traced through the union.
    let project = Project::new(&workflow(UNION)).ran();
    let told = project.run(&["trace", "w.yaml", "3"]).exits(0);
    assert!(told.stdout.contains("all") && told.stdout.contains('b'), "{told}");
}

/// One mistake in the step, at the mark `«`.
#[track_caller]
fn wrong(step: &str, code: &str, words: &[&str]) {
    refused(&workflow(step), code, words);
}

/// The steps with the mark at the only mistake, the code, words of the message.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("  all: { op: union, from: { A: a, «C: c }, with: { label: source } }\n", "wrong-inputs", &["`C` has `y`, which `A` lacks", "all tables have `id`, `x`"]),
    ("  all: { op: union, from: { «Z: a, C: c }, with: { label: source } }\n", "wrong-inputs", &["`Z` lacks `y` of `C`", "`columns`"]),
    ("  all: { op: union, from: { A: a, «C: b2 }, with: { label: source } }\n  b2: { op: sql, from: b, with: { query: 'SELECT id, CAST(x AS varchar) AS x FROM input' } }\n", "wrong-type", &["column `x` is utf8 in `C`, and int64 in `A`", "CAST"]),
    ("  all: { op: union, from: { A: a, «C: b2 }, with: { label: source } }\n  b2: { op: sql, from: b, with: { query: 'SELECT id, x FROM input', key: [id, x] } }\n", "wrong-inputs", &["the key of `C` is `id`, `x`, and that of `A` is `id`"]),
    ("  all: { op: union, from: { A: a, C: c }, with: { label: source, columns: [«xx] } }\n", "unknown-column", &["there is no column `xx`"]),
    ("  all: { op: union, from: { A: a, «B: c2 }, with: { label: source, columns: [x] } }\n  c2: { op: sql, from: c, with: { query: 'SELECT id, y FROM input' } }\n", "unknown-column", &["`B` has no column `x`"]),
    ("  all: { op: union, from: { A: a, B: b }, with: { label: «x } }\n", "duplicate-column", &["`A` has a column `x` already"]),
    ("  all: { op: union, from: «a, with: { label: source } }\n", "wrong-inputs", &["need names", "from: { A: step, B: other_step }"]),
    ("  «all: { op: union, with: { label: source } }\n", "wrong-inputs", &["need names"]),
    ("  all: { op: «union, from: { A: a, B: b } }\n", "missing-argument", &["needs the argument `label`"]),
];

#[test]
fn tables_that_differ_are_refused_where_they_do() {
    every(MISTAKES.iter().map(|case| (case.0, case)), |(a, b, c)| wrong(a, b, c));
}
