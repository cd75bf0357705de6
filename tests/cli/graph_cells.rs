//! `graph`: the cells of a matrix step are one node, with what a run would do with them.

use crate::harness::{Project, says};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  cells:
    op: sample
    from: table
    matrix: { size: [2, 3], seed: [1, 2, 3] }
    with: { n: '${{ matrix.size }}', seed: '${{ matrix.seed }}' }
  dropped: { op: sql, from: cells.rejects, with: { query: 'SELECT id FROM input' } }
  all:
    op: sql
    from: cells[*]
    with: { query: 'SELECT id, size, seed FROM input', key: [id, size, seed] }
";

const FORMATS: [&str; 4] = ["mermaid", "dot", "svg", "text"];

fn graph(project: &Project, format: &str, more: &[&str]) -> String {
    let args = [&["graph", "w.yaml", "--format", format], more].concat();
    let drawn = project.run(&args).exits(0);
    assert!(drawn.stderr.is_empty(), "{drawn}");
    drawn.stdout
}

#[test]
fn a_matrix_is_one_node_with_its_count_and_its_states() {
    let project = Project::new(WORKFLOW);
    for format in FORMATS {
        let drawn = graph(&project, format, &[]);
        assert!(drawn.contains("6 cells: 6 waiting"), "{format}: {drawn}");
        assert!(!drawn.contains("cells[size"), "{format}: {drawn}");
    }
    assert!(!project.path("cache").exists(), "a graph writes nothing");
    project.run_ok(&["--select", "dropped"]);
    project.edit("w.yaml", "seed: [1, 2, 3]", "seed: [1, 2, 3, 4]");
    for format in FORMATS {
        let drawn = graph(&project, format, &[]);
        says(&drawn, &["8 cells: 6 hit, 2 new", "8 cells: 6 hit, 2 waiting"]);
    }
}

#[test]
fn edges_of_cells_are_one_edge_unless_cells_are_unfolded() {
    let project = Project::new(WORKFLOW);
    assert_eq!(graph(&project, "mermaid", &[]).matches("-->").count(), 3);
    assert_eq!(graph(&project, "dot", &[]).matches(" -> ").count(), 3);
    let lines = graph(&project, "text", &[]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("table    exec"), "{lines:?}");
    assert!(lines[2].ends_with("← cells.rejects") && lines[3].ends_with("← cells"), "{lines:?}");
    let drawn = graph(&project, "mermaid", &["--cells"]);
    assert_eq!(drawn.matches("cells[size=").count(), 6, "{drawn}");
    assert_eq!(drawn.matches("-->").count(), 6 + 6 + 6, "{drawn}");
    let lines = graph(&project, "text", &["--cells"]);
    assert_eq!(lines.lines().count(), 1 + 6 + 6 + 1, "{lines}");
    for format in FORMATS {
        assert!(!graph(&project, format, &["--cells"]).contains("6 cells"), "{format}");
    }
}

#[test]
fn a_matrix_around_an_embedded_workflow_is_folded_too() {
    let outer = "galeras: 1
steps:
  part:
    uses: ./inner.yaml
    matrix: { n: [1, 2] }
    with: { n: '${{ matrix.n }}' }
  all:
    op: sql
    from: part[*]
    with: { query: 'SELECT id, n FROM input', key: [id, n] }
";
    let inner = "galeras: 1
params:
  n: { type: int }
steps:
  table:
    op: exec
    with: { command: 'echo ''{\"id\":\"a\"}''', output: { id: utf8! } }
  some:
    op: sample
    from: table
    with: { n: '${{ params.n }}', seed: 1 }
outputs:
  some: { from: some, path: some.csv }
";
    let project = Project::new(outer).with("inner.yaml", inner);
    let lines = graph(&project, "text", &[]);
    let names: Vec<&str> =
        lines.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["part/table", "part/some", "all"], "{lines}");
    assert!(lines.contains("2 cells: 2 new"), "{lines}");
}
