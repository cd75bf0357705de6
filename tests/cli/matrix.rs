//! `matrix`, of lists and of mappings whose values vary together, and the forms of `from`.

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, refused, values};

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

fn column_of(rows: &[Value], column: &str) -> Vec<Value> {
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
  one: { op: sql, from: 'cells[size=3,kind=a]', with: { query: 'SELECT id, x FROM input' } }
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
    let keys: Vec<Value> = project.rows("all").iter().map(|row| values(row, "size kind")).collect();
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
    let text = "  cells: { op: sample, from: table, matrix: { size: [2, 3] }, with: { n: '${{ matrix.size }}', seed: 1 } }
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
    assert_eq!(column_of(&rows, "size"), [2, 2, 3, 3, 3]);
    for row in rows {
        assert_eq!(row["x"].as_i64().unwrap(), 10 * row["old"].as_i64().unwrap());
    }
    let text = "  a: { op: sample, from: table, matrix: { size: [2, 3] }, with: { n: '${{ matrix.size }}', seed: 1 } }
  b: { op: sample, from: table, matrix: { seed: [1, 2] }, with: { n: 6, seed: '${{ matrix.seed }}' } }
  both: { op: sql, from: { a: a, b: b }, with: { query: 'SELECT a.id FROM a JOIN b ON a.id = b.id' } }
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
    // A change of what comes along runs its cell only.
    let text = format!(
        "{SIZES}  all:\n    op: sql\n    from: 'cells[*]'\n    with: {{ query: 'SELECT id, name FROM input', key: [name, id] }}\n"
    );
    let project = self::project(&text).ran();
    // Nothing reads the list, and no one reads this column.
    project.rerun("tags: [c]", "tags: [d, e]").all_hit();
    let found = project.rerun("name: large, n: 4", "name: large, n: 3").statuses();
    assert_eq!(found, "table=hit cells[name=small]=hit cells[name=large]=ran all=ran");
}

#[test]
fn a_step_may_read_ports_and_two_steps_under_names() {
    let steps = "  part: { op: sample, from: table, with: { n: 2, seed: 1 } }
  rest: { op: sql, from: part.rejects, with: { query: 'SELECT id, x, rule FROM input' } }
  cells: { op: sample, from: table, matrix: { size: [1, 2] }, with: { n: '${{ matrix.size }}', seed: 1 } }
  rests:
    op: sql
    from: 'cells[*].rejects'
    with: { query: 'SELECT size, count(*) AS n FROM input GROUP BY size', key: [size] }
";
    let project = project(steps).ran();
    let mut all = [project.cells("part", "x"), project.cells("rest", "x")].concat();
    all.sort();
    assert_eq!(all, ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(column_of(&project.rows("rests"), "n"), [5, 4]);
    // A step may read two steps under names.
    let steps = "  part: { op: sample, from: table, with: { n: 2, seed: 1 } }
  joined:
    op: sql
    from: { left: table, right: part.rejects }
    with: { query: 'SELECT l.id, l.x FROM left l JOIN right r ON l.id = r.id' }
";
    let project = self::project(steps);
    assert_eq!(project.run_ok(&[]).step("joined")["rows"], 4);
    // The other way round is another step.
    project.rerun("left: table, right: part.rejects", "right: part.rejects, left: table").all_hit();
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

const SIZES: &str = "  cells:
    op: sample
    from: table
    matrix:
      - { name: small, n: 2, seed: 1, tags: [a, b], more: { unit: rows } }
      - { seed: 2, name: large, n: 4, tags: [c], more: { unit: lines } }
    with: { n: '${{ matrix.n }}', seed: '${{ matrix.seed }}' }
";

fn names(outcome: &Outcome, prefix: &str) -> Vec<String> {
    let finished = outcome.finished();
    let steps = finished["steps"].as_array().unwrap().iter();
    let names = steps.map(|step| step["step"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// Scalars become columns, of which the name is a part of the key; lists and mappings do not.
#[test]
fn each_mapping_is_a_cell_called_by_its_name_and_goes_with_other_axes() {
    let text = format!("{SIZES}outputs:\n  all: {{ from: 'cells[*]', path: all.csv }}\n");
    let project = project(&text);
    let outcome = project.run_ok(&[]);
    assert_eq!(names(&outcome, "cells"), ["cells[name=small]", "cells[name=large]"]);
    assert_eq!(outcome.step("cells[name=small]")["rows"], 2);
    assert_eq!(outcome.step("cells[name=large]")["rows"], 4);
    let all = project.read("all.csv");
    assert_eq!(all.lines().next().unwrap(), "id,x,name,n,seed");
    assert_eq!(all.lines().filter(|line| line.ends_with(",large,4,2")).count(), 4);
    assert_eq!(all.lines().count(), 1 + 2 + 4);
    // Without a name the first key calls the cell.
    let text =
        SIZES.replace("name: small, n: 2", "n: 2, kind: k").replace("name: large", "kind: k");
    assert_eq!(names(&self::project(&text).run_ok(&[]), "cells"), ["cells[n=2]", "cells[n=4]"]);
    // Null says that there is no value.
    let text = "  cells: { op: sample, from: table, matrix: [ { m: a, at: null }, { m: b, at: 7 } ], with: { n: 6, seed: 1 } }
outputs:
  all: { from: 'cells[*]', path: all.csv }
";
    let project = self::project(text).ran();
    let all = project.read("all.csv");
    assert_eq!(all.lines().next().unwrap(), "id,x,m,at");
    assert!(all.lines().any(|line| line.ends_with(",a,")), "{all}");
    assert!(all.lines().any(|line| line.ends_with(",b,7")), "{all}");
    // As in GitHub Actions: an axis of mappings next to another axis, and keys of the mapping.
    let text = "  cells:
    op: sample
    from: table
    matrix:
      seed: [1, 2]
      size: [ { name: small, n: 2 }, { name: large, n: 4 } ]
    with: { n: '${{ matrix.size.n }}', seed: '${{ matrix.seed }}' }
  counted: { op: sql, from: cells, with: { query: 'SELECT count(*) AS n FROM input' } }
  all: { op: sql, from: 'counted[*]', with: { query: 'SELECT seed, size, n FROM input', key: [seed, size] } }
";
    let project = self::project(text);
    let outcome = project.run_ok(&[]);
    let cells =
        ["seed=1,size=small", "seed=1,size=large", "seed=2,size=small", "seed=2,size=large"];
    assert_eq!(names(&outcome, "cells"), cells.map(|cell| format!("cells[{cell}]")));
    assert_eq!(names(&outcome, "counted"), cells.map(|cell| format!("counted[{cell}]")));
    let wanted = ["1 | large | 4", "1 | small | 2", "2 | large | 4", "2 | small | 2"];
    assert_eq!(project.cells("all", "seed size n"), wanted);
    // A step with mappings behind a plain matrix has all combinations.
    let text = "  first: { op: sample, from: table, matrix: { seed: [1, 2] }, with: { n: 5, seed: '${{ matrix.seed }}' } }
  second:
    op: sample
    from: first
    matrix: [ { size: 1, label: one }, { size: 3, label: three } ]
    with: { n: '${{ matrix.size }}', seed: '${{ matrix.seed }}' }
  third:
    op: sql
    from: { left: second, right: first }
    with:
      query: \"SELECT l.id, '${{ matrix.label }}' AS label FROM left l JOIN right r ON l.id = r.id\"
";
    let project = self::project(text);
    let outcome = project.run_ok(&[]);
    let cells = ["seed=1,size=1", "seed=1,size=3", "seed=2,size=1", "seed=2,size=3"];
    assert_eq!(names(&outcome, "second"), cells.map(|cell| format!("second[{cell}]")));
    assert_eq!(names(&outcome, "third"), cells.map(|cell| format!("third[{cell}]")));
    assert_eq!(project.cells("third[seed=2,size=3]", "label"), ["three"; 3]);
}

#[test]
fn values_keep_their_types_and_are_found_by_their_keys() {
    let text = "  shown:
    op: exec
    matrix:
      - { model: a, stop: [x, \"it's\"], server: { url: 'http://h/v1', port: 80 }, on: true }
      - { model: b, stop: [], server: { url: 'http://i/v1', port: 81 }, on: false }
    with:
      command: >-
        python3 -c 'import json, sys; print(json.dumps({\"id\": \" \".join(sys.argv[1:])}))'
        ${{ matrix.model }} ${{ matrix.server.url }} ${{ matrix.server.port }} ${{ matrix.on }}
      output: { id: utf8! }
  kept: { op: sql, from: 'shown[model=a]', with: { query: SELECT id FROM input } }
";
    let project = project(text).ran();
    assert_eq!(project.rows("shown[model=a]"), [json!({"id": "a http://h/v1 80 true"})]);
    assert_eq!(project.rows("shown[model=b]"), [json!({"id": "b http://i/v1 81 false"})]);
    // Values of a matrix come from params too.
    let text = format!(
        "{TABLE}  cells:\n    op: sample\n    from: table\n    matrix: {{ size: ['${{{{ params.n }}}}', 1] }}\n    with: {{ n: '${{{{ matrix.size }}}}', seed: 1 }}\n"
    )
    .replace("galeras: 1\n", "galeras: 1\nparams:\n  n: { type: int, default: 4 }\n");
    assert_eq!(Project::new(&text).run_ok(&[]).step("cells[size=4]")["rows"], 4);
}

#[test]
fn cells_are_selected_by_any_of_their_keys() {
    for (selection, expected) in
        [("name=large", 4), ("n=4", 4), ("seed=1", 2), ("n=2,seed=1", 2), ("name=small,n=2", 2)]
    {
        let text = format!(
            "{SIZES}  one:\n    op: sql\n    from: 'cells[{selection}]'\n    with: {{ query: 'SELECT id FROM input' }}\noutputs:\n  o: {{ from: 'cells[{selection}]', path: o.csv }}\n"
        );
        let project = project(&text);
        assert_eq!(project.run_ok(&[]).step("one")["rows"], expected, "{selection}");
        assert_eq!(project.read("o.csv").lines().count(), 1 + expected, "{selection}");
    }
    // A shared value selects all of its cells, and their reader has a cell for each.
    let text = "  cells:
    op: sample
    from: table
    matrix: [ { m: a, by: x, n: 1 }, { m: b, by: y, n: 2 }, { m: c, by: y, n: 3 } ]
    with: { n: '${{ matrix.n }}', seed: 1 }
  read: { op: sql, from: 'cells[by=y]', with: { query: 'SELECT id FROM input' } }
";
    assert_eq!(names(&project(text).run_ok(&[]), "read"), ["read[m=b]", "read[m=c]"]);
    let text = format!("{text}outputs:\n  o: {{ from: 'cells[by=y]', path: o.csv }}\n");
    project(&text).refuses(&[], "unknown-cell w.yaml:15:14", &["cells[m=b]"]);
}

const GENERATED: &str = "galeras: 1
steps:
  prompts:
    op: exec
    with:
      command: for i in 1 2 3; do echo '{\"id\":\"'$i'\",\"code\":\"a b c'$i' d\",\"random_cut\":\"a b\"}'; done
      output: { id: utf8!, code: utf8!, random_cut: utf8! }
  answers:
    op: generate
    from: { input: prompts, train: prompts }
    matrix: [ { model: one, asked: one }, { model: two, asked: three } ]
    with: { provider: ngram, seed: 1, messages: code, model: 'MODEL', max_tokens: 2 }
  all: { op: sql, from: 'answers[*]', with: { query: 'SELECT id, model FROM input', key: [model, id] } }
";

#[test]
fn a_column_of_the_name_of_a_key_must_say_the_same() {
    let project = Project::new(&GENERATED.replace("MODEL", "${{ matrix.asked }}"));
    let words = ["answers[model=two]", "`three`", "`model`", "`two`", "another name"];
    let outcome = project.fails("all", &words);
    assert_eq!(outcome.status("answers[model=one]"), "ran");
    assert_eq!(outcome.status("all"), "failed");
    // An output is a reader too.
    let text = project.read("w.yaml");
    let (text, _) = text.split_once("  all:").unwrap();
    let output = "outputs: { o: { from: 'answers[*]', path: o.csv } }\n";
    project.write("w.yaml", format!("{text}{output}"));
    let outcome = project.run_json(&[]);
    assert!(matches!(outcome.code, Some(1 | 4)), "{outcome}");
    assert!(outcome.stdout.contains("`three`"), "{outcome}");
    assert!(!project.path("o.csv").exists());
    // `model` is a column of what `generate` gives, and a matrix key: they say the same.
    let project = Project::new(&GENERATED.replace("MODEL", "${{ matrix.model }}")).ran();
    assert_eq!(project.cells("all", "model"), [["one"; 3], ["two"; 3]].concat());
}

#[track_caller]
fn wrong(matrix: &str, code: &str, word: &str) {
    let step = "{ op: sample, from: table, matrix: ";
    let text = format!("{TABLE}  cells: {step}{matrix}, with: {{ n: 1, seed: 1 }} }}\n");
    refused(&text, code, &[word]);
}

#[test]
fn mistakes_in_mappings_have_their_place() {
    wrong("[ { m: a, url: x }, { «m: b } ]", "missing-key", "no key `url`");
    wrong("[ { m: a }, { m: b, «url: x } ]", "unknown-key", "no key `url`");
    wrong("[ { m: a, url: x }, { m: b, «ulr: x } ]", "unknown-key", "did you mean `url`?");
    wrong("[ { m: a }, «b ]", "wrong-type", "must be a mapping");
    wrong("«[ a, b ]", "wrong-type", "a list of mappings");
    wrong("[ { m: a }, «{} ]", "wrong-type", "at least one key");
    wrong("[ { m: a }, «{ m: a } ]", "wrong-value", "two cells would be called `m=a`");
    wrong("[ { m: 1, n: 1 }, «{ m: '1', n: 2 } ]", "wrong-value", "called `m=1`");
    wrong("[ { m: «[a], n: 1 } ]", "wrong-type", "`m`, which names the cell, must be a scalar");
    wrong("[ { n: 1, name: «null } ]", "wrong-type", "`name`, which names the cell,");
    wrong("{ s: [1, 2], m: [ { a: 1 }, «3 ] }", "wrong-type", "must be a mapping");
    wrong("{ s: [1, «1.0] }", "wrong-value", "two cells would be called `s=1`");
    wrong("{ s: [a, «[b]] }", "wrong-type", "a scalar or a mapping");
    wrong("[ { m: a, «'b c': 1 } ]", "bad-name", "not a valid name");
    wrong("{ m: [ { a: x, b: '«${{ matrix.c }}' } ] }", "unknown-param", "no matrix key `c`");
    let next = "  next: { op: sample, from: cells, matrix: [ { m: a, «seed: 1 } ], with: { n: 1, seed: 1 } }\n";
    refused(&format!("{TABLE}{SIZES}{next}"), "duplicate-key", &[]);
    // The place is that of the expression in the quotes, the same for both cells.
    let text = format!("{TABLE}{SIZES}");
    let text = text.replace("'${{ matrix.n }}'", "'«${{ matrix.more.unti }}'");
    let words = ["`matrix.more` has no key `unti`", "did you mean `unit`?"];
    refused(&text, "unknown-param", &words);
    let cells =
        "  cells: { op: sample, from: table, matrix: { x: [many, few] }, with: { n: 1, seed: 1 } }
  all: { op: sql, from: «'cells[*]', with: { query: 'SELECT id FROM input' } }
";
    refused(&format!("{TABLE}{cells}"), "wrong-inputs", &["int64", "utf8"]);
}
