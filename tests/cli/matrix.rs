//! `matrix` and the forms of `from`.

use serde_json::{Value, json};

use crate::harness::{Project, fields};

const TABLE: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
";

fn project(rest: &str) -> Project {
    Project::new(&format!("{TABLE}{rest}"))
}

fn values(rows: &[Value], column: &str) -> Vec<Value> {
    rows.iter().map(|r| r[column].clone()).collect()
}

const CELLS: &str = "  cells:
    op: sample
    from: table
    matrix: { size: [2, 3], kind: [a, b] }
    with: { n: '${{ matrix.size }}', seed: 1 }
";

#[test]
fn a_matrix_makes_a_cell_for_each_combination_and_cells_unite_with_their_keys_as_columns() {
    let rest = "  all:
    op: sql
    from: cells[*]
    with: { query: 'SELECT id, size, kind, x FROM input', key: [size, kind, id] }
  one:
    op: sql
    from: 'cells[size=3,kind=a]'
    with: { query: 'SELECT id, x FROM input' }
outputs:
  all: { from: 'cells[*]', path: all.csv }
";
    let project = project(&format!("{CELLS}{rest}"));
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.step("cells[size=2,kind=a]")["rows"], 2);
    assert_eq!(outcome.step("cells[size=3,kind=b]")["rows"], 3);
    assert_eq!(outcome.finished()["steps"].as_array().unwrap().len(), 1 + 4 + 2);
    // Cells whose arguments are equal have one result.
    let digest = |cell: &str| outcome.step(cell)["digest"].clone();
    assert_eq!(digest("cells[size=2,kind=a]"), digest("cells[size=2,kind=b]"));
    assert_eq!(project.rows("cells[size=3,kind=a]").len(), 3);
    // A key is typed as its values are.
    let keys: Vec<Value> = project.rows("all").iter().map(|row| fields(row, "size kind")).collect();
    let of = |size: usize| ["a", "b"].map(|kind| vec![json!([size, kind]); size]).concat();
    assert_eq!(keys, [of(2), of(3)].concat());
    // An output may be all cells, and a step may read one.
    let text = project.read("all.csv");
    assert_eq!(text.lines().next().unwrap(), "id,x,size,kind");
    assert_eq!(text.lines().count(), 11);
    assert_eq!(outcome.step("one")["rows"], 3);
    assert_eq!(digest("one"), digest("cells[size=3,kind=a]"));
}

#[test]
fn a_step_behind_matrices_is_expanded_with_them() {
    let text = "  cells:
    op: sample
    from: table
    matrix: { size: [2, 3] }
    with: { n: '${{ matrix.size }}', seed: 1 }
  next: { op: sql, from: cells, with: { query: 'SELECT id, x * 10 AS x FROM input' } }
  last:
    op: sql
    from: { left: 'next[*]', right: table }
    with:
      query: SELECT l.size, l.id, l.x, r.x AS old FROM left l JOIN right r ON l.id = r.id
      key: [size, id]
";
    let project = project(text);
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.step("next[size=2]")["rows"], 2);
    assert_eq!(outcome.step("next[size=3]")["rows"], 3);
    let rows = project.rows("last");
    assert_eq!(values(&rows, "size"), [2, 2, 3, 3, 3]);
    for row in rows {
        assert_eq!(row["x"].as_i64().unwrap(), 10 * row["old"].as_i64().unwrap());
    }
    let text = "  a:
    op: sample
    from: table
    matrix: { size: [2, 3] }
    with: { n: '${{ matrix.size }}', seed: 1 }
  b:
    op: sample
    from: table
    matrix: { seed: [1, 2] }
    with: { n: 6, seed: '${{ matrix.seed }}' }
  both:
    op: sql
    from: { a: a, b: b }
    with: { query: 'SELECT a.id FROM a JOIN b ON a.id = b.id' }
";
    let outcome = self::project(text).run_ok(&[]);
    let names: Vec<String> =
        outcome.digests().into_iter().map(|d| d.0).filter(|n| n.starts_with("both")).collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn one_more_cell_runs_only_that_and_cells_can_be_selected() {
    let project = project(CELLS);
    let outcome = project.run_ok(&["--select", "cells[size=2,kind=a]"]);
    assert_eq!(outcome.statuses(), "table=ran cells[size=2,kind=a]=ran");
    let outcome = project.run_ok(&["--select", "cells"]);
    assert_eq!(outcome.finished()["steps"].as_array().unwrap().len(), 5);
    project.change("size: [2, 3]", "size: [2, 3, 4]");
    let outcome = project.run_ok(&["--jobs", "1"]);
    assert_eq!(outcome.statuses().matches("=ran").count(), 1, "{}", outcome.statuses());
    // A united table notices.
    project.rerun("size: [2, 3, 4]", "size: [4, 3, 2]").all_hit();
}

#[test]
fn a_step_may_read_ports_and_two_steps_under_names() {
    let project = project(
        "  part:
    op: sample
    from: table
    with: { n: 2, seed: 1 }
  rest: { op: sql, from: part.rejects, with: { query: 'SELECT id, x, rule FROM input' } }
  cells:
    op: sample
    from: table
    matrix: { size: [1, 2] }
    with: { n: '${{ matrix.size }}', seed: 1 }
  rests:
    op: sql
    from: 'cells[*].rejects'
    with: { query: 'SELECT size, count(*) AS n FROM input GROUP BY size', key: [size] }
",
    );
    project.run_ok(&[]);
    let mut all = [project.cells("part", "x"), project.cells("rest", "x")].concat();
    all.sort();
    assert_eq!(all, ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(values(&project.rows("rests"), "n"), [5, 4]);
    // A step may read two steps under names.
    let project = self::project(
        "  part:
    op: sample
    from: table
    with: { n: 2, seed: 1 }
  joined:
    op: sql
    from: { left: table, right: part.rejects }
    with: { query: 'SELECT l.id, l.x FROM left l JOIN right r ON l.id = r.id' }
",
    );
    assert_eq!(project.run_ok(&[]).step("joined")["rows"], 4);
    // The other way round is another step.
    project.rerun("left: table, right: part.rejects", "right: part.rejects, left: table").all_hit();
}

#[test]
fn values_of_a_matrix_come_from_params_too() {
    let text = format!(
        "{TABLE}  cells:\n    op: sample\n    from: table\n    matrix: {{ size: ['${{{{ params.n }}}}', 1] }}\n    with: {{ n: '${{{{ matrix.size }}}}', seed: 1 }}\n"
    )
    .replace("galeras: 1\n", "galeras: 1\nparams:\n  n: { type: int, default: 4 }\n");
    assert_eq!(Project::new(&text).run_ok(&[]).step("cells[size=4]")["rows"], 4);
}

#[test]
fn a_matrix_read_as_one_table_or_of_a_million_cells_is_refused() {
    let project = project(&format!("{CELLS}outputs:\n  all: {{ from: cells, path: all.csv }}\n"));
    project.refuses(&[], "unknown-cell w.yaml:14:16", &["cells[*]"]);
    let list = (0..100).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "  cells:\n    op: sample\n    from: table\n    matrix: {{ a: [{list}], b: [{list}], c: [{list}] }}\n    with: {{ n: 1, seed: 1 }}\n"
    );
    let outcome = self::project(&text).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
}
