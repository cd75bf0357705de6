//! Values of params and matrices in SQL and in commands: they are what they say, never code.

use serde_json::json;

use crate::harness::{Project, marked};

/// The workflow whose values come from a param and a matrix.
const VALUES: &str = "galeras: 1
params:
  name: { type: string, default: b }
  least: { type: int, default: 0 }
steps:
  data:
    op: read
    with: { path: data.csv, key: [name] }
  found:
    op: sql
    from: data
    with:
      query: |
        SELECT * FROM input  -- it's here
        WHERE name = ${{ params.name }} AND 'a${{ params.name }}' = concat('a', name)
          AND \"${{ matrix.column }}\" >= ${{ params.least }}
    matrix: { column: [n] }
  kept:
    op: validate
    from: data
    with: { rules: [ { name: same, check: \"name = '${{ params.name }}'\" } ] }
    assert:
      - { expr: \"name = ${{ params.name }}\" }
";

const NAMES: [&str; 5] = ["b", "x' OR 1=1 --", "it''s", "\\' OR 'a'='a", "${x} \"q\" `y` $(z)"];

#[test]
fn a_param_is_a_literal_in_sql() {
    for name in NAMES {
        let project = Project::new(VALUES);
        let rows: Vec<String> =
            NAMES.iter().map(|name| format!("\"{}\",1", name.replace('"', "\"\""))).collect();
        project.write("data.csv", format!("name,n\n{}\n", rows.join("\n")));
        let set = format!("name={name}");
        project.run_ok(&["--set", &set]);
        for step in ["found[column=n]", "kept"] {
            let rows = project.rows_with(step, &["--set", &set]);
            assert_eq!(rows.len(), 1, "{name:?} {step}: {rows:?}");
            assert_eq!(rows[0]["name"], name);
        }
    }
    // A negative number after a minus begins no comment.
    let project =
        Project::new(&VALUES.replace("AND \"$", "AND 5 -${{ params.least }} = 8 AND \"$"));
    project.write("data.csv", "name,n\nb,1\n");
    project.run_ok(&["--set", "least=-3"]);
    assert_eq!(project.rows_with("found[column=n]", &["--set", "least=-3"]).len(), 1);
}

#[test]
fn a_param_is_a_word_in_a_command() {
    let workflow = "galeras: 1
params: { name: { type: string, default: b } }
steps:
  rows:
    op: exec
    matrix: { other: [\"o'k; touch hit\"] }
    with:
      command: |
        # it's a comment
        python3 -c 'import json, sys; print(json.dumps({\"id\": \"|\".join(sys.argv[1:])}))' \\
          ${{ params.name }} '${{ params.name }}' \"${{ params.name }}\" -x=${{ matrix.other }}
      output: { id: utf8! }
";
    for name in
        NAMES.iter().chain(&["a; touch hit", "a\nb", "$(touch hit)", "'; touch hit; '", "", "-n"])
    {
        let project = Project::new(workflow);
        let set = format!("name={name}");
        project.run_ok(&["--set", &set]);
        assert!(!project.path("hit").exists(), "{name:?}");
        let rows = project.rows_with("rows[other=o'k; touch hit]", &["--set", &set]);
        assert_eq!(rows, [json!({"id": format!("{name}|{name}|{name}|-x=o'k; touch hit")})]);
    }
}

#[test]
fn where_no_quotes_help_a_param_is_refused() {
    let exec = "op: exec\n    with: { command: 'TEXT', output: { id: utf8! } }";
    let sql = "op: sql\n    from: data\n    with: { query: 'TEXT' }";
    for (step, text, word) in [
        (exec, "«${{ params.x }}", "command"),
        (exec, "echo `ls «${{ params.x }}`", "backticks"),
        (exec, "echo $((1 + «${{ params.x }}))", "arithmetic"),
        (sql, "«${{ params.x }}", "SQL"),
        (sql, "SELECT * FROM input /* «${{ params.x }} */", "comment"),
    ] {
        let step = step.replace("TEXT", text);
        let text = format!(
            "galeras: 1\nparams: {{ x: {{ type: string, default: 'a; b' }} }}\nsteps:\n  data: {{ op: methods, with: {{ corpus: python-stdlib, include: ['json/*.py'] }} }}\n  s:\n    {step}\n"
        );
        let (text, place) = marked(&text);
        let outcome = Project::new(&text).run(&["check", "w.yaml", "--format", "json"]).exits(2);
        assert_eq!(outcome.diagnostics(), [format!("unsafe-substitution w.yaml:{place}")]);
        assert!(outcome.stdout.contains(word), "{word}: {outcome}");
    }
}
