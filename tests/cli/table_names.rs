//! Names of tables on the command line: the same as in `from:`, and what a mistake gets.

use serde_json::{Value, json};

use crate::harness::{Project, says, text};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  testbed:
    op: sample
    from: table
    matrix: { size: [2, 3], kind: [a, b] }
    with: { n: '${{ matrix.size }}', seed: 1 }
  collected:
    uses: ./collect.yaml
    matrix: { least: [1, 5] }
    with: { least: '${{ matrix.least }}' }
  single:
    uses: ./collect.yaml
";

const INNER: &str = "galeras: 1
params:
  least: { type: int, default: 3 }
steps:
  source:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  valid:
    op: validate
    from: source
    with: { rules: [ { name: big, check: 'x >= ${{ params.least }}' } ] }
outputs:
  raw_data: { from: valid, path: raw.csv }
  dropped:  { from: valid.rejects, path: dropped.csv }
";

fn project() -> Project {
    Project::new(WORKFLOW).with("collect.yaml", INNER).ran()
}

fn sql(project: &Project, query: &str) -> Vec<Value> {
    project.json(&["sql", "w.yaml", query])
}

#[test]
fn cells_and_outputs_of_embedded_workflows_are_tables_of_every_verb() {
    let project = project();
    let rows = project.rows("testbed[*]");
    assert_eq!(rows.len(), 2 + 2 + 3 + 3);
    let keys: Vec<_> =
        rows.iter().map(|row| (row["size"].as_i64().unwrap(), text(row, "kind"))).collect();
    let expected = [[(2, "a"); 2].as_slice(), &[(2, "b"); 2], &[(3, "a"); 3], &[(3, "b"); 3]];
    assert_eq!(keys, expected.concat(), "one cell after the other");
    let counted =
        sql(&project, "SELECT size, count(*) AS n FROM \"testbed[*]\" GROUP BY 1 ORDER BY 1");
    assert_eq!(counted, [json!({"size": 2, "n": 4}), json!({"size": 3, "n": 6})]);
    // So is a selection of several; one cell is as it is stored.
    let rows = project.rows("testbed[size=3]");
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row["size"] == 3 && row["kind"].is_string()), "{rows:?}");
    for name in ["testbed[size=3,kind=b]", "testbed[kind=b,size=3]", "testbed[ kind=b , size=3 ]"] {
        let rows = project.rows(name);
        assert_eq!(rows.len(), 3, "{name}");
        assert!(rows[0].get("kind").is_none(), "{rows:?}");
    }
    assert_eq!(project.rows("testbed[kind=a].rejects").len(), 4 + 3);
    let query = "SELECT count(*) AS n FROM \"testbed[kind=a].rejects\" WHERE size = 2";
    assert_eq!(sql(&project, query), [json!({"n": 4})]);
    // Outputs of embedded workflows are spelt as in a workflow.
    assert_eq!(project.rows("single.raw_data").len(), 4);
    assert_eq!(project.rows("collected[least=5].raw_data").len(), 2);
    let united = project.rows("collected[*].dropped");
    assert_eq!(united.len(), 4);
    assert!(united.iter().all(|row| row["least"] == 5), "{united:?}");
    assert_eq!(sql(&project, "SELECT count(*) AS n FROM single.raw_data"), [json!({"n": 4})]);
    let query = "SELECT count(*) AS n FROM \"collected[*].raw_data\"";
    assert_eq!(sql(&project, query), [json!({"n": 8})]);
    // Steps inside have their full name, as `plan` writes it.
    assert_eq!(project.rows("single/valid.rejects").len(), 2);
    assert_eq!(project.rows("collected[least=1]/source").len(), 6);
    assert_eq!(sql(&project, "SELECT count(*) AS n FROM \"single/source\""), [json!({"n": 6})]);
    // Every verb takes these names.
    let explained = project.run(&["explain", "w.yaml", "testbed[size=2]"]).exits(0);
    assert_eq!(explained.stdout.matches("op sample").count(), 2, "{explained}");
    assert_eq!(project.json(&["explain", "w.yaml", "testbed[*]"]).len(), 4);
    project.cli("explain w.yaml single.raw_data").exits(0).prints(&["single/valid: op validate"]);
    let paths = project.run(&["path", "w.yaml", "testbed[*].rejects"]).exits(0);
    assert_eq!(paths.stdout.lines().count(), 4, "{paths}");
    let rows = project.rows("testbed[size=3,kind=b]");
    let args = ["trace", "w.yaml", text(&rows[0], "id"), "--in", "testbed[kind=b]"];
    let traced = project.json(&args).remove(0);
    let places = traced["places"].as_array().unwrap().iter();
    let steps: Vec<&str> = places.filter_map(|place| place["step"].as_str()).collect();
    assert_eq!(steps[0], "table");
    assert!(steps[1..].iter().all(|step| step.ends_with("kind=b]")), "{steps:?}");
    let traced = project.cli("trace w.yaml 7 --in testbed[*]").exits(1);
    traced.reports(&["`testbed[*]` has no row with the id 7"]);
    let selected = project.run_ok(&["--select", "testbed[*]"]).finished();
    assert_eq!(selected["steps"].as_array().unwrap().len(), 5);
    // A slip gets one suggestion and no list of cells.
    for (name, meant) in [
        ("tesbed", "did you mean `testbed`?"),
        ("tesbed[size=2]", "did you mean `testbed`?"),
        ("testbed[sise=2]", "did you mean `size`?"),
        ("testbed[kind=aa]", "did you mean `a`?"),
        ("testbed[size=2].reject", "did you mean `rejects`?"),
        ("single.raw_dat", "did you mean `raw_data`?"),
        ("single/valit", "did you mean `single/valid`?"),
        ("collected/valid", "name one cell: `collected[least=1]/valid`"),
        ("testbed", "write `testbed[*]` for all of them, or name one: `testbed[size=2,kind=a]`"),
        ("single", "the outputs are single.dropped, single.raw_data"),
        ("collected[*]", "name one"),
        ("zzz", "the steps are"),
        ("testbed[", "never closed"),
        ("", "names no step"),
        ("testbed[*].rejects.x", "not the name of a port"),
    ] {
        for verb in ["show", "explain", "path"] {
            let told = project.run(&[verb, "w.yaml", name]).exits(2);
            assert!(told.stdout.is_empty() && told.stderr.contains(meant), "{name}: {told}");
            assert_eq!(told.stderr.trim_end().lines().count(), 1, "{name}: {told}");
            assert!(told.stderr.len() < 400, "{name}: {told}");
        }
    }
    let told = project.cli("run w.yaml --select tesbed[size=2]").exits(2);
    told.reports(&["did you mean `testbed`?"]);
}

#[test]
fn many_cells_are_not_listed_one_by_one() {
    let sizes = (1..=60).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let project = Project::new(&WORKFLOW.replace("[2, 3]", &format!("[{sizes}]")));
    project.write("collect.yaml", INNER);
    project.run(&["show", "w.yaml", "tesbed"]).exits(2).reports(&["did you mean `testbed`?"]);
    let told = project.cli("show w.yaml testbed").exits(2).reports(&["`testbed` has 120 cells"]);
    assert!(told.stderr.contains("and 115 more") && told.stderr.len() < 400, "{told}");
    // Cells that are not computed yet are reported with the command.
    let project = self::project();
    project.change("size: [2, 3]", "size: [2, 3, 4]");
    let told = project.run(&["show", "w.yaml", "testbed[*]"]).exits(1);
    says(&told.stderr, &["`testbed[size=4,kind=a]` and 1 more are not computed yet"]);
    for size in [4, 2] {
        let advised = told.stderr.lines().find(|line| line.trim().starts_with("galeras run"));
        let command = advised.unwrap().trim().replacen("galeras", "\"$GALERAS\"", 1);
        if size == 4 {
            project.sh(&(command + " --allow exec")).exits(0);
        }
        assert_eq!(project.rows(&format!("testbed[size={size}]")).len(), 2 * size);
    }
    project.change("seed: 1", "seed: 2");
    let told = project.run(&["sql", "w.yaml", "SELECT 1 FROM \"testbed[*]\""]).exits(1);
    assert!(told.stderr.contains("and 5 more are not computed yet"), "{told}");
    assert!(told.stderr.replace('\'', "").trim_end().ends_with("--select testbed"), "{told}");
    // A query with brackets but no quotes gets advice.
    let told = project.run(&["sql", "w.yaml", "SELECT * FROM testbed[size=2]"]).exits(2);
    assert!(told.stderr.contains("double quotes: \"testbed[size=2]\""), "{told}");
    let told = project.run(&["sql", "w.yaml", "SELECT * FROM \"tesbed[*]\""]).exits(2);
    assert!(told.stderr.contains("did you mean `testbed`?"), "{told}");
    // A value that the notation cannot hold is reached by the full name.
    let text = WORKFLOW.replace("kind: [a, b]", "kind: ['x]y.z', 'a=b,c/d']");
    let project = Project::new(&text).with("collect.yaml", INNER).ran();
    assert_eq!(project.rows("testbed[size=2,kind=x]y.z]").len(), 2);
    assert_eq!(project.rows("testbed[size=3,kind=a=b,c/d]").len(), 3);
    assert_eq!(project.rows("testbed[size=3,kind=x]y.z].rejects").len(), 3);
}
