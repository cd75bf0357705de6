//! `--engine`: which steps a cluster would do, and a build that knows no clusters. Runs on a cluster
//! are in `tests/scripts/cluster.py`.

use serde_json::json;

use crate::harness::Project;

const WORKFLOW: &str = "galeras: 1
name: places
steps:
  data: { op: read, with: { path: data.csv, key: [id] } }
  features: { op: ast, from: data }
  prompts: { op: prompt, from: features, with: { treatments: { control: \"Go on: {{ code }}\" } } }
  answers:
    op: generate
    from: prompts
    with: { base_url: http://127.0.0.1:9/v1, model: m, max_tokens: 8 }
  means: { op: sql, from: features, with: { query: SELECT count(*) AS n FROM input, key: [n] } }
  pairs: { op: correlate, from: features, with: { outcomes: [nloc], variables: [n_words] } }
";

fn project() -> Project {
    Project::new(WORKFLOW).with("data.csv", "id,code\na,\"def f():\n    return 1\n\"\n")
}

#[test]
fn a_plan_says_who_would_do_what() {
    let project = project();
    let engine = ["--engine", "df://10.0.0.1:50050"];
    let planned = project.run(&[&["plan", "w.yaml"], &engine[..]].concat()).exits(0);
    for (step, place) in [
        ("data", "coordinator: it reads files of this machine"),
        ("features", "executors, by ranges of rows"),
        ("prompts", "one executor"),
        ("answers", "coordinator: answers are paid for once"),
        ("means", "one executor"),
        ("pairs", "coordinator: its tables are small"),
    ] {
        let mut lines = planned.stdout.lines();
        let said = |line: &str| line.trim_start().starts_with(step) && line.contains(place);
        assert!(lines.any(said), "{step}: {place}\n{planned}");
    }
    let json = project.run(&[&["plan", "w.yaml", "--format", "json"], &engine[..]].concat());
    assert_eq!(json.exits(0).json_lines()[0]["steps"][4]["place"], json!("one executor"));
    assert!(!project.run(&["plan", "w.yaml"]).exits(0).stdout.contains("coordinator"));
    // A build without clusters names the feature to build with.
    let run = project.run(&["run", "w.yaml", "--engine", "df://127.0.0.1:9"]).exits(2);
    run.reports(&["--features cluster"]);
    assert!(project.stored_nothing());
    let memory = ["run", "w.yaml", "--engine", "df://127.0.0.1:9", "--cache", "memory://x"];
    project.run(&memory).exits(2).reports(&["cannot be shared"]);
}
