//! Never a stale hit: whatever could change a result makes the step run.

use serde_json::json;

use crate::harness::{Project, says};

const TABLE: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
";

#[test]
fn a_renamed_value_of_a_matrix_is_seen_by_who_unites_the_cells() {
    let steps = "  cells:
    op: sample
    from: table
    matrix: { kind: [a, b] }
    with: { n: 2, seed: 1 }
  all:
    op: sql
    from: 'cells[*]'
    with: { query: 'SELECT kind, count(*) AS n FROM input GROUP BY kind', key: [kind] }
outputs:
  all: { from: 'cells[*]', path: all.csv }
";
    let project = Project::new(&(TABLE.to_owned() + steps)).ran();
    assert_eq!(project.rows("all")[1], json!({"kind": "b", "n": 2}));
    let outcome = project.rerun("kind: [a, b]", "kind: [a, c]");
    assert_eq!(outcome.status("cells[kind=c]"), "hit");
    assert_eq!(outcome.status("all"), "ran");
    assert_eq!(project.rows("all")[1], json!({"kind": "c", "n": 2}));
    says(&project.read("all.csv"), &[",c\n"]);
    // And a key that has another name.
    project.change("kind: [a, c]", "sort: [a, c]");
    project.change("SELECT kind,", "SELECT sort AS kind,");
    project.change("GROUP BY kind", "GROUP BY sort");
    project.run_ok(&[]);
    assert!(project.read("all.csv").starts_with("id,x,sort\n"), "{}", project.read("all.csv"));
}

#[test]
fn a_renamed_step_and_files_that_change_places_are_seen() {
    let steps = "  valid:
    op: validate
    from: table
    with: { rules: [ { name: big, check: x > 2 } ] }
  names: { op: sql, from: valid.rejects, with: { query: 'SELECT id, step FROM input' } }
outputs:
  rejected: { from: valid.rejects, path: rejected.csv }
";
    let project = Project::new(&(TABLE.to_owned() + steps)).ran();
    assert_eq!(project.rows("names")[0]["step"], "valid");
    let text = project.read("w.yaml").replace("  valid:", "  checked:");
    project.write("w.yaml", text.replace("from: valid", "from: checked"));
    project.run_ok(&[]);
    assert_eq!(project.rows("names")[0]["step"], "checked");
    says(&project.read("rejected.csv"), &["checked"]);
    // Files that change places.
    let steps = "  table:
    op: exec
    with: { command: 'cat a; sed s/one/other/ b', files: [a, b], output: { id: utf8! } }
";
    let project = Project::steps(steps)
        .with("a", "{\"id\":\"one 1\"}\n")
        .with("b", "{\"id\":\"one 2\"}\n")
        .ran();
    let before = project.rows("table");
    project.write("a", "{\"id\":\"one 2\"}\n");
    project.write("b", "{\"id\":\"one 1\"}\n");
    assert_eq!(project.run_ok(&[]).statuses(), "table=ran");
    assert_ne!(project.rows("table"), before);
}

#[test]
fn an_edited_file_that_the_command_names_is_seen_without_files() {
    let echo = |id: &str| format!("echo '{{\"id\":\"{id}\"}}'\n");
    for (command, file) in [
        ("sh make.sh", "make.sh"),
        ("cd . && sh ./src/make.sh", "src/make.sh"),
        ("sh < make", "make"),
        ("cat make | sh > $TMPDIR/made; cat $TMPDIR/made", "make"),
    ] {
        let with = format!("{{ command: '{command}', output: {{ id: utf8! }} }}");
        let project = Project::steps(&format!("  table: {{ op: exec, with: {with} }}\n"));
        project.write(file, echo("one"));
        project.run_ok(&[]);
        project.write(file, echo("two"));
        let outcome = project.run_ok(&[]);
        assert!(outcome.detail("table").contains(file), "{command}: {outcome}");
        assert_eq!(project.only("table")["id"], "two", "{command}");
    }
}

fn methods() -> Project {
    Project::steps("  methods: { op: methods, with: { dir: src } }\n")
        .with("src/a.py", "def f():\n    return 1\n")
}

#[test]
fn renamed_source_files_and_folders_and_inputs_that_change_places_are_seen() {
    let project = methods().ran();
    std::fs::rename(project.path("src/a.py"), project.path("src/b.py")).unwrap();
    project.run_ok(&[]);
    assert_eq!(project.rows("methods")[0]["path"], "b.py");
    // Two files that exchange their contents.
    project.write("src/c.py", "def g():\n    return 2\n");
    project.run_ok(&[]);
    project.write("src/b.py", "def g():\n    return 2\n");
    project.write("src/c.py", "def f():\n    return 1\n");
    project.run_ok(&[]);
    assert_eq!(project.cells("methods", "path fun_name"), ["b.py | g", "c.py | f"]);
    // A folder, in the column `repo`.
    let project = methods();
    let first = project.run_ok(&[]);
    std::fs::rename(project.path("src"), project.path("lib")).unwrap();
    let second = project.rerun("dir: src", "dir: lib");
    assert_eq!(project.rows("methods")[0]["repo"], "lib");
    assert_ne!(first.digests(), second.digests());
    // Inputs that change places.
    let steps = "  part:
    op: sample
    from: table
    with: { n: 2, seed: 1 }
  count:
    op: sql
    from: { left: table, right: part }
    with: { query: 'SELECT (SELECT count(*) FROM left) - (SELECT count(*) FROM right) AS n' }
";
    let project = Project::new(&(TABLE.to_owned() + steps)).ran();
    assert_eq!(project.rows("count")[0]["n"], 2);
    project.rerun("left: table, right: part", "left: part, right: table");
    assert_eq!(project.rows("count")[0]["n"], -2);
    // Another type of a column is seen.
    let steps = "  data: { op: read, with: { path: data.jsonl } }
  valid:
    op: validate
    from: data
    with: { rules: [ { name: r, check: \"CAST(x AS VARCHAR) <> '2.0'\" } ] }
  table: { op: sql, from: data, with: { query: 'SELECT id, arrow_typeof(x) AS t FROM input' } }
";
    let project = Project::steps(steps)
        .with("data.jsonl", "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n")
        .ran();
    assert_eq!(project.rows("valid").len(), 2);
    project.write("data.jsonl", "{\"id\":\"a\",\"x\":1.0}\n{\"id\":\"b\",\"x\":2.0}\n");
    project.run_ok(&[]);
    assert_eq!(project.rows("table")[0]["t"], "Float64");
    assert_eq!(project.rows("valid").len(), 1);
    // Values that look alike differ.
    let row = |a: &str, b: &str| format!("{{\"id\":\"1\",\"a\":{a},\"b\":{b}}}\n");
    let steps = "  data:
    op: exec
    with: { command: cat data.jsonl, files: [data.jsonl], output: { id: utf8!, a: utf8, b: utf8 } }
  valid:
    op: validate
    from: data
    with: { rules: [ { name: r, check: \"a = 'x' AND b IS NOT NULL\", on_fail: flag } ] }
";
    let project = Project::steps(steps);
    for (a, b, passes) in [
        ("\"x\"", "\"\"", true),
        ("\"x\"", "null", false),
        ("\"\"", "\"x\"", false),
        ("null", "\"x\"", false),
        ("\"x\"", "\"null\"", true),
        ("\"xn\"", "\"ull\"", false),
    ] {
        project.write("data.jsonl", row(a, b));
        project.run_ok(&[]);
        assert_eq!(project.rows("valid")[0]["r"], passes, "{a} {b}");
    }
}

#[test]
fn the_order_of_columns_is_part_of_a_result() {
    let steps = "  data: { op: exec, with: { command: cat data.jsonl, files: [data.jsonl], output: { id: utf8!, a: int64 , b: int64 } } }
  all: { op: sql, from: data, with: { query: SELECT * FROM input } }
";
    let project =
        Project::steps(steps).with("data.jsonl", "{\"id\":\"1\",\"a\":1,\"b\":2}\n").ran();
    project.rerun("a: int64 , b: int64", "b: int64, a: int64");
    let shown = project.run(&["show", "w.yaml", "all", "--format", "csv"]).exits(0);
    assert_eq!(shown.stdout, "id,b,a\n1,2,1\n");
    // An embedded workflow that changed is seen.
    let project = Project::new( "galeras: 1\nsteps:\n  sub: { uses: ./sub.yaml }\n  all: { op: sql, from: sub.t, with: { query: SELECT * FROM input } }\n", ).with("sub.yaml", format!("{TABLE}outputs: {{ t: {{ from: table, path: t.csv }} }}\n")).ran();
    assert_eq!(project.rows("all").len(), 4);
    project.edit("sub.yaml", "1 2 3 4", "1 2 3");
    project.run_ok(&[]);
    assert_eq!(project.rows("all").len(), 3);
    // A file that changes while it is read gives no result, and removed rows are gone.
    let steps = "  table:
    op: exec
    with: { sandbox: none, command: cat data.jsonl; echo >> data.jsonl, files: [data.jsonl], output: { id: utf8! } }
";
    let project = Project::steps(steps).with("data.jsonl", "{\"id\":\"1\"}\n");
    project.fails("table", &["changed"]);
    project.run(&["show", "w.yaml", "table"]).exits(1);
    let steps = "  data: { op: read, with: { path: data.jsonl } }
  valid: { op: validate, from: data, with: { rules: [ { name: r, check: x > 0 } ] } }
";
    let project = Project::steps(steps)
        .with("data.jsonl", "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n")
        .ran();
    project.write("data.jsonl", "{\"id\":\"b\",\"x\":2}\n");
    project.run_ok(&[]);
    assert_eq!(project.rows("valid"), [json!({"id": "b", "x": 2})]);
}
