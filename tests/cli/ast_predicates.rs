//! `python_has` and `python_count`: tests on the syntax of methods, in rules and in SQL.

use crate::harness::Project;

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
    let project = Project::new(WORKFLOW);
    let rows = [
        ("a", r"def f(x):\n    try:\n        return eval(x)\n    except E:\n        return 1\n"),
        ("b", r"def g(x):\n    '''Does what try: does.'''\n    return x\n"),
        ("c", r"def h(:\n    try:\n        pass\n    finally:\n        eval(eval(x))\n"),
    ];
    let text: String = rows
        .iter()
        .map(|(id, code)| format!("{{\"id\":\"{id}\",\"code\":\"{code}\"}}\n"))
        .collect();
    project.write("data.jsonl", format!("{text}{{\"id\":\"d\",\"code\":null}}\n"));
    project
}

#[test]
fn a_docstring_fools_no_predicate() {
    let project = project().ran();
    let ids = |step: &str| -> Vec<String> {
        project.rows(step).iter().map(|r| r["id"].as_str().unwrap_or_default().into()).collect()
    };
    assert_eq!(ids("tries"), ["a", "c"]);
    let rows = project.rows("counted");
    let of = |id: &str| rows.iter().find(|r| r["id"] == id).cloned().unwrap_or_default();
    assert_eq!((of("a")["returns"].as_i64(), of("a")["evals"].as_i64()), (Some(2), Some(1)));
    assert_eq!((of("b")["returns"].as_i64(), of("b")["fooled"].as_bool()), (Some(1), Some(true)));
    assert_eq!(of("c")["evals"].as_i64(), Some(2));
    assert!(of("d")["returns"].is_null());
}

#[test]
fn a_wrong_pattern_is_found_before_anything_runs() {
    let project = project();
    for (from, to, wanted) in [
        ("try_statement", "try_statment", "did you mean `try_statement`?"),
        ("try_statement", "(try_statement", "the tree-sitter query is wrong in line 1"),
        ("try_statement", "", "node types are such as"),
        ("'return_statement'", "id", "must be a text in quotes"),
        ("#eq?", "#like?", "predicate `#like?`"),
    ] {
        project.write("w.yaml", WORKFLOW.replace(from, to));
        let outcome = project.run_json(&[]);
        assert_eq!(outcome.code, Some(2), "{to}: {}", outcome.stderr);
        assert!(outcome.stdout.contains(wanted), "{to}: {}", outcome.stdout);
    }
}
