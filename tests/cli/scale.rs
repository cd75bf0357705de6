//! Workflows of thousands of steps, hundreds of cells and columns: what is done for each does not
//! depend on how many others there are. (`benches/scale.py` has the sizes that count.)

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Outcome, Project, text};

/// Far more than any of these takes, far less than what grows with the square.
const AMPLE: Duration = Duration::from_secs(30);

const TABLE: &str = "galeras: 1
steps:
  t: { op: read, with: { path: t.csv } }
";

fn project(steps: &str) -> Project {
    Project::new(&format!("{TABLE}{steps}")).with("t.csv", "id,x\na,1\nb,2\nc,3\nd,4\n")
}

#[track_caller]
fn in_time(project: &Project, args: &[&str]) -> Outcome {
    let outcome = project.run(args);
    assert!(outcome.took < AMPLE, "{args:?} took {:?}", outcome.took);
    outcome
}

#[test]
fn thousands_of_steps_are_planned() {
    let step = |at: usize| {
        let before = if at == 0 { "t".to_string() } else { format!("chain{}", at - 1) };
        format!(
            "  chain{at}: {{ op: sample, from: {before}, with: {{ n: 3, seed: 1 }} }}
  fan{at}: {{ op: sample, from: t, with: {{ n: 2, seed: {at} }} }}
"
        )
    };
    let project = project(&(0..1500).map(step).collect::<String>());
    in_time(&project, &["check", "w.yaml"]).exits(0).prints(&["ok, 3001 steps"]);
    in_time(&project, &["plan", "w.yaml"]).exits(0).prints(&["0 of 3001 steps are stored"]);
}

#[test]
fn hundreds_of_cells_meet_their_own_and_are_united() {
    let seeds: Vec<String> = (0..300).map(|seed| seed.to_string()).collect();
    let project = project(&format!(
        "  cell:
    op: sample
    from: t
    matrix: {{ seed: [{}] }}
    with: {{ n: 3, seed: \"${{{{ matrix.seed }}}}\" }}
  each:
    op: sql
    from: {{ drawn: cell, others: cell.rejects }}
    with: {{ query: \"SELECT d.id, d.x FROM drawn d LEFT ANTI JOIN others o ON d.id = o.id\" }}
  all:
    op: sql
    from: each[*]
    with: {{ query: \"SELECT seed, count(*) AS n FROM input GROUP BY seed\", key: [seed] }}
  one: {{ op: sql, from: 'each[seed=7]', with: {{ query: SELECT * FROM input }} }}
",
        seeds.join(", ")
    ));
    in_time(&project, &["check", "w.yaml"]).exits(0).prints(&["ok, 603 steps"]);
    in_time(&project, &["run", "w.yaml", "--format", "json"]).exits(0);
    let rows = project.rows("all");
    assert_eq!(rows.len(), 300);
    assert!(rows.iter().enumerate().all(|(at, r)| *r == json!({"seed": at, "n": 3})), "{rows:?}");
    assert_eq!(project.rows("one"), project.rows("each[seed=7]"));
    // A step cannot have the cells of everything times everything.
    let values = seeds[..200].join(", ");
    let project = self::project(&format!(
        "  a: {{ op: sample, from: t, matrix: {{ a: [{values}] }}, with: {{ n: 1 }} }}
  b: {{ op: sample, from: t, matrix: {{ b: [{values}] }}, with: {{ n: 1 }} }}
  both: {{ op: sql, from: {{ a: a, b: b }}, with: {{ query: SELECT * FROM a }} }}
"
    ));
    let outcome = in_time(&project, &["check", "w.yaml"]).exits(2);
    assert!(outcome.stderr.contains("the step has more than 10000 cells"), "{outcome}");
    // The name that was meant is found among thousands.
    let step = |at| format!("  step_{at}: {{ op: sample, from: setp_{at}, with: {{ n: 1 }} }}\n");
    let project = self::project(&(0..2000).map(step).collect::<String>());
    let outcome = in_time(&project, &["check", "w.yaml", "--format", "json"]).exits(2);
    let first = &outcome.json_lines()[0];
    let found = (text(first, "code"), text(first, "help"));
    assert_eq!(found, ("unknown-step", "did you mean `step_0`?"));
}

#[test]
fn hundreds_of_columns_are_tested_described_and_written() {
    const COLUMNS: usize = 300;
    let names: Vec<String> = (0..COLUMNS).map(|at| format!("c{at}")).collect();
    let mut csv = format!("id,{}\n", names.join(","));
    for row in 0..50 {
        let values: Vec<String> = (0..COLUMNS).map(|at| (row * at).to_string()).collect();
        let _ = writeln!(csv, "r{row},{}", values.join(","));
    }
    let names = names.join(", ");
    let project = project(&format!(
        "  wide:
    op: read
    with: {{ path: wide.csv }}
    assert: [{{ not_null: [{names}] }}]
  valid: {{ op: validate, from: wide, with: {{ rules: [{{ name: some, check: \"c1 >= 10\" }}] }} }}
  about: {{ op: describe, from: valid, with: {{ columns: [{names}] }} }}
outputs:
  valid: {{ from: valid, path: valid.parquet }}
"
    ));
    project.write("wide.csv", csv);
    in_time(&project, &["run", "w.yaml", "--format", "json"]).exits(0);
    let about = project.rows("about");
    assert_eq!(about.len(), COLUMNS);
    // The rows 10 to 49 times 7.
    let seventh = about.iter().find(|row| row["column"] == "c7").unwrap();
    let numbers = ["n", "mean", "median", "max"].map(|name| seventh[name].as_f64().unwrap());
    assert_eq!(numbers, [40.0, 29.5 * 7.0, 29.5 * 7.0, 49.0 * 7.0]);
}
