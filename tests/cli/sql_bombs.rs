//! SQL whose values do not fit: of two types, beyond 64 bits, or a pattern that is too long.
//! `memory_guard` has SQL that asks for all memory.

use crate::bombs::measured;
use crate::harness::Project;

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n";

fn project(step: &str, sql: &str) -> Project {
    let project = Project::new(&format!(
        "galeras: 1\nsteps:\n  data: {{ op: read, with: {{ path: d.jsonl }} }}\n  out:\n    \
         op: {step}: >-\n          {sql}\n"
    ));
    project.write("d.jsonl", DATA);
    project
}

fn check_of(sql: &str) -> Project {
    project(
        "validate\n    from: data\n    with:\n      rules:\n      - name: r\n        check",
        sql,
    )
}

fn query_of(sql: &str) -> Project {
    project("sql\n    from: data\n    with:\n      key: [id]\n      query", sql)
}

#[test]
fn an_expression_over_one_row_contains_no_query() {
    let with: Vec<String> = (1..41)
        .map(|i| format!("a{i} AS (SELECT id FROM a{} UNION ALL SELECT id FROM a{})", i - 1, i - 1))
        .collect();
    let with = format!(
        "WITH a0 AS (SELECT id FROM (VALUES (1)) AS v (id)), {} SELECT id FROM a40",
        with.join(", ")
    );
    let outcome = check_of(&format!("x IN ({with})")).run_json(&[]).exits(2);
    assert!(outcome.diagnostics()[0].starts_with("not-a-row-expression w.yaml:11:"), "{outcome}");
}

#[test]
fn values_of_two_types_become_one_that_holds_both_or_an_error() {
    let table = |project: &Project| {
        let shown = project.run(&["show", "w.yaml", "out", "--format", "json"]).exits(0);
        shown.stdout.trim().replace('\n', " ")
    };
    let united = query_of("SELECT id, x AS v FROM input UNION ALL SELECT 'c', 'q'");
    united.run_ok(&[]);
    assert!(table(&united).contains(r#""id":"c","v":"q""#), "{}", table(&united));
    let cases =
        query_of("SELECT id, CASE WHEN x > 1 THEN 1 WHEN x = 1 THEN 'a' END AS v FROM input");
    cases.run_ok(&[]);
    assert!(table(&cases).contains(r#""id":"a","v":"a""#), "{}", table(&cases));
    let fractions = query_of("SELECT id, x AS v FROM input UNION ALL SELECT 'c', 1.5");
    fractions.run_ok(&[]);
    assert!(table(&fractions).contains(r#""id":"c","v":1.5"#), "{}", table(&fractions));
    let signs = |big: &str| {
        query_of(&format!(
            "SELECT id, x AS v FROM input UNION ALL SELECT 'c', CAST({big} AS BIGINT UNSIGNED)"
        ))
    };
    let small = signs("7");
    small.run_ok(&[]);
    assert!(table(&small).contains(r#""id":"c","v":7"#), "{}", table(&small));
    let large = signs("18446744073709551615").run(&["run", "w.yaml"]).exits(1);
    assert!(large.stderr.contains("18446744073709551615"), "{large}");
    let cases = query_of("SELECT id, CASE WHEN x > 1 THEN x ELSE 'small' END AS v FROM input");
    cases.run_ok(&[]);
    assert!(table(&cases).contains(r#""v":"small""#), "{}", table(&cases));
}

#[test]
fn a_sum_that_64_bits_do_not_hold_is_an_error() {
    for sum in ["sum(y)", "sum(DISTINCT y + x) OVER ()", "sum(y) OVER (ORDER BY id)"] {
        let query = format!(
            "SELECT 'k' AS id, {sum} AS s FROM (SELECT id, x, 9223372036854775800 + x AS y FROM input) AS t"
        );
        let query = match sum.contains("OVER") {
            true => query.replace("'k' AS id", "id"),
            false => query,
        };
        let project = query_of(&query.replace("DISTINCT ", ""));
        let outcome = project.run_json(&[]).exits(1);
        let said = outcome.to_string();
        assert!(said.contains("more than 64 bits hold"), "{sum}: {said}");
    }
}

#[test]
fn a_syntax_pattern_of_brackets_is_refused() {
    let sql = format!("python_has(id, '{}')", "(".repeat(400_000));
    let (exit, said, _) = measured(&check_of(&sql), &["check", "w.yaml"]);
    assert_eq!(exit, Some(2), "{}", &said[..said.len().min(2_000)]);
    assert!(said.contains("8192 are the most"), "{}", &said[..said.len().min(2_000)]);
}
