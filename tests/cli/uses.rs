//! `uses`: a workflow as a step of another.

use crate::harness::Project;

const INNER: &str = "galeras: 1
params:
  least: { type: int, default: 2, min: 0 }
steps:
  table:
    op: exec
    with: { command: cat data.jsonl, files: [data.jsonl], output: { id: utf8!, x: int64! } }
  valid:
    op: validate
    from: table
    with: { rules: [ { name: big, check: 'x >= ${{ params.least }}' } ] }
outputs:
  kept:    { from: valid,         path: kept.csv }
  dropped: { from: valid.rejects, path: dropped.csv }
";

const OUTER: &str = "galeras: 1
steps:
  collect:
    uses: ./sub/collect.yaml
    with: { least: 3 }
  counted: { op: sql, from: collect.kept, with: { query: 'SELECT count(*) AS n FROM input' } }
outputs:
  dropped: { from: collect.dropped, path: dropped.jsonl }
";

fn project() -> Project {
    let rows: String = (1..=5).map(|i| format!("{{\"id\":\"{i}\",\"x\":{i}}}\n")).collect();
    Project::new(OUTER).with("sub/collect.yaml", INNER).with("sub/data.jsonl", rows)
}

#[test]
fn outputs_of_the_embedded_workflow_are_ports() {
    let project = project();
    let outcome = project.run_ok(&[]);
    assert_eq!(project.rows("counted")[0]["n"], 3);
    assert_eq!(project.read("dropped.jsonl").lines().count(), 2);
    // Its own outputs are not written, its steps have its name before theirs.
    assert!(!project.path("kept.csv").exists() && !project.path("sub/kept.csv").exists());
    let names: Vec<String> = outcome.digests().into_iter().map(|d| d.0).collect();
    assert!(names.iter().any(|n| n.starts_with("collect") && n.ends_with("valid")), "{names:?}");
    project.run_ok(&[]).all_hit();
    let outcome = project.rerun("least: 3", "least: 4");
    assert_eq!(outcome.statuses().matches("=ran").count(), 2, "{}", outcome.statuses());
    // Its own run shares the results.
    let project = self::project().ran();
    let alone = project.run(&["run", "sub/collect.yaml", "--set", "least=3", "--format", "json"]);
    alone.exits(0).all_hit();
}

#[test]
fn a_matrix_goes_through() {
    let project = project();
    let cells = "    matrix: { least: [1, 5] }\n    with: { least: '${{ matrix.least }}' }\n";
    project.change("    with: { least: 3 }\n", cells);
    project.rerun("from: collect.dropped", "from: 'collect[*].dropped'");
    assert_eq!(project.rows("counted[least=1]")[0]["n"], 5);
    assert_eq!(project.rows("counted[least=5]")[0]["n"], 1);
    let dropped = project.read("dropped.jsonl");
    assert!(dropped.lines().count() == 4 && dropped.contains("\"least\":5"), "{dropped}");
    // Mistakes in either file have their place.
    let project = self::project();
    project.change("least: 3", "leest: 3");
    project.change("from: collect.kept", "from: collect.keptt");
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 2, "{outcome}");
    assert!(found[0].ends_with("w.yaml:5:13") && found[1].ends_with("w.yaml:6:37"), "{found:?}");
    outcome.prints(&["did you mean `least`?", "did you mean `kept`?"]);

    let project = self::project();
    project.edit("sub/collect.yaml", "x >= ", "y >= ");
    let found = project.run_json(&[]).exits(2).diagnostics();
    assert!(found.len() == 1 && found[0].contains("sub/collect.yaml:11:"), "{found:?}");
    // Values are checked against the params.
    for (value, code) in [("many", "wrong-type"), ("-1", "wrong-value")] {
        let project = self::project();
        project.change("least: 3", &format!("least: {value}"));
        project.refused_at("5:20", code, &[]);
    }
    // A workflow that embeds itself is refused.
    let project = self::project();
    project.write("sub/collect.yaml", "galeras: 1\nsteps:\n  again:\n    uses: ../w.yaml\n");
    assert!(!project.run_json(&[]).exits(2).diagnostics().is_empty());
    project.write("w.yaml", "galeras: 1\nsteps:\n  me:\n    uses: ./w.yaml\n");
    project.run_json(&[]).exits(2);
    // Its columns are checked outside.
    let project = self::project();
    project.change("count(*) AS n", "y");
    project.refused_at("6:66", "unknown-column", &[]);
}
