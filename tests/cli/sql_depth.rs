//! SQL that would overflow the stack of a thread is refused at its place. SQL as deep as the limit
//! allows is computed.

use crate::harness::Project;

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n";

fn project(workflow: &str) -> Project {
    let project = Project::new(workflow);
    project.write("d.jsonl", DATA);
    project
}

fn check_of(sql: &str) -> Project {
    project(&format!(
        "galeras: 1\nsteps:\n  data: {{ op: read, with: {{ path: d.jsonl }} }}\n  valid:\n    \
         op: validate\n    from: data\n    with: {{ rules: [{{ name: r, check: \"{sql}\" }}] }}\n"
    ))
}

fn query_of(sql: &str) -> Project {
    project(&format!(
        "galeras: 1\nsteps:\n  data: {{ op: read, with: {{ path: d.jsonl }} }}\n  out:\n    \
         op: sql\n    from: data\n    with: {{ query: \"{sql}\", key: [id] }}\n"
    ))
}

#[track_caller]
fn refuses(project: &Project) {
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 1, "{outcome}");
    assert!(found[0].starts_with("sql-limit w.yaml:7:"), "{found:?}");
    assert!(outcome.events("diagnostic")[0]["help"].is_string(), "{outcome}");
}

#[test]
fn ten_thousand_terms_are_refused_at_their_place() {
    for operator in [" OR x = ", " AND x <> ", " + "] {
        let terms: Vec<String> = (1..=10_000).map(|i| i.to_string()).collect();
        refuses(&check_of(&format!("x = {}", terms.join(operator))));
    }
    refuses(&query_of(&vec!["SELECT id, x FROM input"; 3_000].join(" UNION ALL ")));
    refuses(&query_of(&format!("SELECT id, x{} AS x FROM input", " + x".repeat(10_000))));
    let with: Vec<String> =
        (1..3_000).map(|i| format!("a{i} AS (SELECT id, x FROM a{})", i - 1)).collect();
    refuses(&query_of(&format!(
        "WITH a0 AS (SELECT id, x FROM input), {} SELECT id, x FROM a2999",
        with.join(", ")
    )));
}

#[test]
fn assertions_conditions_and_queries_of_the_command_line_are_refused_too() {
    let long = format!("x = 1{}", " OR x = 2".repeat(10_000));
    let assertion = project(&format!(
        "galeras: 1\nsteps:\n  data:\n    op: read\n    with: {{ path: d.jsonl }}\n    assert:\n      \
         - {{ expr: \"{long}\" }}\n"
    ));
    refuses(&assertion);
    let sound = project("galeras: 1\nsteps:\n  data: { op: read, with: { path: d.jsonl } }\n");
    sound.run_ok(&[]);
    let where_ = sound.run(&["show", "w.yaml", "data", "--where", &long]).exits(2);
    assert!(where_.stderr.contains("at most 2000"), "{where_}");
    let sql = format!("SELECT * FROM data WHERE {long}");
    let sql = sound.run(&["sql", "w.yaml", &sql]).exits(2);
    assert!(sql.stderr.contains("at most 2000"), "{sql}");
}

#[test]
fn what_the_limit_allows_is_computed() {
    // Operators that are quick to plan, nearly as many as there may be.
    let truths = check_of(&format!("x > 1{}", " IS TRUE".repeat(990)));
    assert_eq!(truths.run_ok(&[]).step("valid")["rows"], 1);
    let casts = query_of(&format!("SELECT id, x{} AS x FROM input", "::bigint".repeat(990)));
    assert_eq!(casts.run_ok(&[]).step("out")["rows"], 2);
    let terms = check_of(&format!("x = 2{}", " OR x = 3".repeat(150)));
    assert_eq!(terms.run_ok(&[]).step("valid")["rows"], 1);
    let list: Vec<String> = (2..10_000).map(|i| i.to_string()).collect();
    let list = check_of(&format!("x IN ({})", list.join(", ")));
    assert_eq!(list.run_ok(&[]).step("valid")["rows"], 1);
}
