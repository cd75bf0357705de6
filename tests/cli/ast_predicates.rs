//! `python_has` and `python_count`: tests on the syntax of methods, in rules and in SQL.

use serde_json::json;

use crate::harness::{Project, lines, values};

const WORKFLOW: &str = r#"galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  tries:
    op: validate
    from: data
    with:
      rules:
        - { name: has_try, check: "python_has(code, 'try_statement')" }
  counted:
    op: sql
    from: data
    with:
      query: >
        SELECT id, python_count(code, 'return_statement') AS returns,
               python_count(code, '(call function: (identifier) @f (#eq? @f "eval"))') AS evals,
               code LIKE '%try:%' AS fooled
        FROM input
"#;

fn project() -> Project {
    let rows = [
        (
            "a",
            Some("def f(x):\n    try:\n        return eval(x)\n    except E:\n        return 1\n"),
        ),
        ("b", Some("def g(x):\n    '''Does what try: does.'''\n    return x\n")),
        ("c", Some("def h(:\n    try:\n        pass\n    finally:\n        eval(eval(x))\n")),
        ("d", None),
    ];
    let rows = rows.map(|(id, code)| json!({"id": id, "code": code}));
    Project::new(WORKFLOW).with("data.jsonl", lines(&rows))
}

#[test]
fn a_docstring_fools_no_predicate_and_a_wrong_pattern_is_found_before_anything_runs() {
    let project = project().ran();
    assert_eq!(project.texts("tries", "id"), ["a", "c"]);
    let rows = project.rows("counted");
    let of =
        |id: &str, columns: &str| values(rows.iter().find(|row| row["id"] == id).unwrap(), columns);
    assert_eq!(of("a", "returns evals"), json!([2, 1]));
    assert_eq!(of("b", "returns fooled"), json!([1, true]));
    assert_eq!(of("c", "evals"), json!([2]));
    assert_eq!(of("d", "returns"), json!([null]));
    for (from, to, wanted) in [
        ("try_statement", "try_statment", "did you mean `try_statement`?"),
        ("try_statement", "(try_statement", "the tree-sitter query is wrong in line 1"),
        ("try_statement", "", "node types are such as"),
        ("'return_statement'", "id", "must be a text in quotes"),
        ("#eq?", "#like?", "predicate `#like?`"),
    ] {
        project.write("w.yaml", WORKFLOW.replace(from, to));
        project.run_json(&[]).exits(2).prints(&[wanted]);
    }
}
