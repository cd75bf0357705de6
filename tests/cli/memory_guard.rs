//! The memory guard: a run ends with exit code 4 before the machine runs out of memory, names its
//! steps, and keeps the results so far.

use crate::bombs::measured;
use crate::harness::{Project, every};

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n";

/// The process may have 704 MiB with `--memory 64MiB`.
const LIMIT: u64 = 704;

fn project(step: &str) -> Project {
    let head = "galeras: 1\nsteps:\n  data: { op: read, with: { path: d.jsonl } }\n  out:\n";
    Project::new(&format!("{head}{step}")).with("d.jsonl", DATA)
}

fn query(sql: &str) -> Project {
    project(&format!(
        "    op: sql\n    from: data\n    with:\n      key: [id]\n      query: >-\n        {sql}\n"
    ))
}

fn template(text: &str) -> Project {
    project(&format!(
        "    op: prompt\n    from: data\n    with:\n      treatments:\n        t: >-\n          {text}\n"
    ))
}

/// The run ends by the guard, names `out`, stays near its limit and keeps `data`.
#[track_caller]
fn ends(project: &Project) {
    let (exit, said, most) = measured(project, &["run", "w.yaml", "--memory", "64MiB"]);
    assert_eq!(exit, Some(4), "{said}");
    assert!(said.contains("out of memory: galeras needed"), "{said}");
    assert!(said.contains("while it worked on `out`, and "), "{said}");
    assert!(said.contains("the results so far are kept") && said.contains("--memory"), "{said}");
    assert!(most < 3 * LIMIT, "{most} MiB");
    assert_eq!(project.run_json(&["--select", "data"]).exits(0).statuses(), "data=hit");
    project.verifies("cache");
}

#[test]
fn what_needs_too_much_memory_ends_the_run() {
    let many = "SELECT id, cardinality(array_repeat(x, 1000000000)) AS n FROM input";
    let doubled = "{% set ns = namespace(x=id) %}{% for a in range(99) %}\
                   {% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}";
    let endless = "WITH RECURSIVE t AS (SELECT id, x FROM input UNION ALL \
                   SELECT id, unnest(range(0, 1000)) AS x FROM t) \
                   SELECT max(id) AS id, count(*) AS n FROM t";
    let cases = [
        ("a list of a thousand million items", query(many)),
        ("a template that doubles a text", template(doubled)),
        ("a recursive query without end", query(endless)),
    ];
    every(cases, |project| ends(&project));
}

#[test]
fn texts_that_no_column_holds_are_errors_and_looking_has_the_guard_too() {
    for sql in [
        "SELECT id, repeat('a', 10000000000) AS t FROM input",
        "SELECT id, repeat(id, 10000000000) AS t FROM input",
    ] {
        let outcome = query(sql).fails("out", &["string size overflow on repeat"]);
        assert_eq!(outcome.statuses(), "data=ran out=failed");
    }
    let project = template("{{ id | indent(9223372036854775807) }}");
    project.run_program().exits(4).reports(&["while it worked on `out`"]);
    let project = template("{{ 'ab' * 9223372036854775807 }}").ran();
    let reasons = project.cells("out.rejects", "reason");
    let repeated = reasons.iter().all(|reason| reason.contains("repeat"));
    assert!(!reasons.is_empty() && repeated, "{reasons:?}");
    // Constants are evaluated while a query is planned.
    let project = query("SELECT id, cardinality(range(0, 2000000000000)) AS n FROM input");
    for verb in ["check", "plan"] {
        let (exit, said, most) = measured(&project, &[verb, "w.yaml"]);
        assert_eq!(exit, Some(4), "{said}");
        assert!(said.contains("while it worked on `out`"), "{said}");
        assert!(most < LIMIT, "{most} MiB");
    }
    // Queries whose names double end by the guard.
    let with: Vec<String> = (1..41)
        .map(|i| format!("a{i} AS (SELECT id FROM a{} UNION ALL SELECT id FROM a{})", i - 1, i - 1))
        .collect();
    let with = format!("WITH a0 AS (SELECT id FROM input), {} SELECT id FROM a40", with.join(", "));
    let (exit, said, most) = measured(&query(&with), &["run", "w.yaml", "--memory", "1MiB"]);
    assert_eq!(exit, Some(4), "{said}");
    assert!(said.contains("while it worked on `out`") && most < 2 * LIMIT, "{most} MiB: {said}");
}

#[test]
fn refused_threads_and_memory_are_messages_and_never_an_endless_wait() {
    let rows: String = (0..20_000).map(|n| format!("r{n},{n}\n")).collect();
    let steps = "  data: { op: read, with: { path: d.csv } }
  one: { op: sql, from: data, with: { query: 'SELECT id, x + 1 AS y FROM input' } }
  two: { op: sql, from: data, with: { query: 'SELECT id, x + 2 AS y FROM input' } }
";
    let project = Project::steps(steps).with("d.csv", format!("id,x\n{rows}"));
    let run = |limit: u32| {
        let run = "exec timeout 60 \"$GALERAS\" run w.yaml --jobs 4";
        project.sh(&format!("ulimit -v {limit}; {run} --cache cache{limit}"))
    };
    // The stacks of the threads alone take more.
    run(300_000).exits(4).reports(&["starts no more threads", "292 MiB", "`ulimit -v`", "--jobs"]);
    let told = ["starts no more threads", "the system gives no more", "not enough memory"];
    for limit in (400_000..2_000_000).step_by(100_000) {
        let outcome = run(limit);
        let told = told.iter().any(|text| outcome.stderr.contains(text));
        assert!(outcome.code == Some(0) || told, "{limit}: {outcome}");
    }
}
