//! Short SQL that asks for all memory, or for hours of planning. Looking at a workflow evaluates
//! nothing of it that takes long; what a query would make is refused before it is made.

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

/// Two million million numbers, or letters: looked at at no cost, and refused when it runs.
#[test]
fn a_large_result_is_looked_at_for_nothing_and_not_made() {
    let asks = [
        "cardinality(range(0, 2000000000000)) > x",
        "length(repeat(repeat('a', 1000000), 2000000)) > x",
        "length(lpad('a', 2000000000, 'b')) > x",
        "levenshtein(repeat('a', 900000), repeat('b', 900000)) > x",
        "cardinality(array_repeat(x, 2000000000)) > x",
    ];
    for ask in asks {
        let checked = check_of(ask);
        for verb in ["check", "plan", "explain"] {
            let step = if verb == "explain" { &["out"][..] } else { &[] };
            let (exit, said, most) = measured(&checked, &[&[verb, "w.yaml"][..], step].concat());
            assert_eq!(exit, Some(0), "{verb} {ask}: {said}");
            assert!(most < 400, "{verb} {ask}: {most} MiB");
        }
        if ask.starts_with("levenshtein") {
            continue;
        }
        let (exit, said, most) = measured(&checked, &["run", "w.yaml"]);
        assert_eq!(exit, Some(1), "{ask}: {said}");
        assert!(said.contains("would make") && said.contains("are the most"), "{ask}: {said}");
        assert!(most < 700, "{ask}: {most} MiB");
    }
}

#[test]
fn names_that_stand_for_ever_more_are_refused_at_their_place() {
    let with: Vec<String> = (1..41)
        .map(|i| format!("a{i} AS (SELECT id FROM a{} UNION ALL SELECT id FROM a{})", i - 1, i - 1))
        .collect();
    let with = format!("WITH a0 AS (SELECT id FROM input), {} SELECT id FROM a40", with.join(", "));
    let mut doubled = "SELECT id, x FROM input".to_string();
    for _ in 0..40 {
        doubled = format!("SELECT id, x + x AS x FROM ({doubled})");
    }
    for (sql, words) in [
        (with.as_str(), "reads tables 1099511627776 times"),
        (&format!("{doubled} WHERE x > 1"), "more than 20000 parts"),
    ] {
        let outcome = query_of(sql).run_json(&[]).exits(2);
        let found = outcome.diagnostics();
        assert_eq!(found.len(), 1, "{outcome}");
        assert!(found[0].starts_with("sql-limit w.yaml:9:"), "{found:?}");
        let message = outcome.events("diagnostic")[0]["message"].to_string();
        assert!(message.contains(words), "{message}");
    }
    let inner = with.replace("FROM input", "FROM (VALUES (1)) AS v (id)");
    let outcome = check_of(&format!("x IN ({inner})")).run_json(&[]).exits(2);
    assert!(outcome.diagnostics()[0].starts_with("not-a-row-expression w.yaml:10:"), "{outcome}");
}

#[test]
fn a_syntax_pattern_of_brackets_is_refused() {
    let sql = format!("python_has(id, '{}')", "(".repeat(400_000));
    let (exit, said, _) = measured(&check_of(&sql), &["check", "w.yaml"]);
    assert_eq!(exit, Some(2), "{}", &said[..said.len().min(2_000)]);
    assert!(said.contains("8192 are the most"), "{}", &said[..said.len().min(2_000)]);
}
