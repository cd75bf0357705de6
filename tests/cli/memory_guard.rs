//! The memory guard: a run ends with exit code 4 before the machine runs out of memory, names its
//! steps, and keeps the results so far.

use crate::bombs::measured;
use crate::harness::Project;

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n";

/// The process may have 704 MiB with `--memory 64MiB`.
const LIMIT: u64 = 704;

fn project(step: &str) -> Project {
    let project = Project::new(&format!(
        "galeras: 1\nsteps:\n  data: {{ op: read, with: {{ path: d.jsonl }} }}\n  out:\n{step}"
    ));
    project.write("d.jsonl", DATA);
    project
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
    let again = project.run_json(&["--select", "data"]).exits(0);
    assert_eq!(again.statuses(), "data=hit");
    project.verifies("cache");
}

#[test]
fn a_list_of_a_thousand_million_items_ends_the_run() {
    ends(&query("SELECT id, cardinality(array_repeat(x, 1000000000)) AS n FROM input"));
}

#[test]
fn a_template_that_doubles_a_text_ends_the_run() {
    ends(&template(
        "{% set ns = namespace(x=id) %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}\
         {% endfor %}{{ ns.x }}",
    ));
}

#[test]
fn a_recursive_query_without_end_ends_the_run() {
    ends(&query(
        "WITH RECURSIVE t AS (SELECT id, x FROM input UNION ALL \
         SELECT id, unnest(range(0, 1000)) AS x FROM t) \
         SELECT max(id) AS id, count(*) AS n FROM t",
    ));
}

#[test]
fn a_text_that_no_column_holds_is_an_error_of_the_step() {
    for sql in [
        "SELECT id, repeat('a', 10000000000) AS t FROM input",
        "SELECT id, repeat(id, 10000000000) AS t FROM input",
    ] {
        let outcome = query(sql).run_json(&[]).exits(1);
        assert_eq!(outcome.statuses(), "data=ran out=failed");
        let detail = outcome.step("out")["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("string size overflow on repeat"), "{detail}");
    }
}

#[test]
fn a_text_beyond_the_address_space_is_an_error_of_the_template() {
    let project = template("{{ id | indent(9223372036854775807) }}");
    let outcome = project.run_json(&[]).exits(4);
    assert!(outcome.stderr.contains("while it worked on `out`"), "{outcome}");
    let project = template("{{ 'ab' * 9223372036854775807 }}");
    project.run_ok(&[]);
    let rejects = project.rows("out.rejects");
    assert!(!rejects.is_empty());
    for reject in rejects {
        assert!(reject["reason"].as_str().unwrap().contains("repeat"), "{reject}");
    }
}

/// Constants are evaluated while a query is planned.
#[test]
fn looking_at_a_workflow_has_the_guard_too() {
    let project = query("SELECT id, cardinality(range(0, 2000000000000)) AS n FROM input");
    for verb in ["check", "plan"] {
        let (exit, said, most) = measured(&project, &[verb, "w.yaml"]);
        assert_eq!(exit, Some(4), "{said}");
        assert!(said.contains("while it worked on `out`"), "{said}");
        assert!(most < LIMIT, "{most} MiB");
    }
}

#[test]
fn queries_whose_names_double_end_by_the_guard() {
    let with: Vec<String> = (1..41)
        .map(|i| format!("a{i} AS (SELECT id FROM a{} UNION ALL SELECT id FROM a{})", i - 1, i - 1))
        .collect();
    let with = format!("WITH a0 AS (SELECT id FROM input), {} SELECT id FROM a40", with.join(", "));
    let (exit, said, most) = measured(&query(&with), &["run", "w.yaml", "--memory", "1MiB"]);
    assert_eq!(exit, Some(4), "{said}");
    assert!(said.contains("while it worked on `out`") && most < 2 * LIMIT, "{most} MiB: {said}");
}
