//! `assert`: data tests gate the steps that follow, and are not part of a result. `schema`: types are
//! checked before anything runs, nulls afterwards.

use crate::harness::{Project, every, refused, says, text};

fn workflow(assertion: &str) -> String {
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: echo ran >> log; printf '{{\"id\":\"a\",\"x\":1,\"k\":\"u\"}}\\n{{\"id\":\"b\",\"x\":2,\"k\":null}}\\n{{\"id\":\"c\",\"x\":2,\"k\":\"v\"}}\\n'
      output: {{ id: utf8!, x: int64!, k: utf8 }}
    assert:
      - {assertion}
  after: {{ op: sample, from: table, with: {{ n: 2, seed: 1 }} }}
  beside: {{ op: exec, with: {{ command: 'true', output: {{ id: utf8! }} }} }}
outputs:
  table: {{ from: table, path: table.csv }}
  after: {{ from: after, path: after.csv }}
"
    )
}

#[track_caller]
fn fails(assertion: &str, words: &[&str]) {
    let project = Project::new(&workflow(assertion));
    let outcome = project.run_json(&["--keep-going"]).exits(3);
    assert_eq!(outcome.finished()["status"], "assert_failed", "{outcome}");
    assert_eq!(outcome.statuses(), "table=failed after=skipped beside=ran");
    let found = outcome.events("assertion");
    assert_eq!(found.len(), 1, "{outcome}");
    assert_eq!((&found[0]["severity"], &found[0]["step"]), (&"error".into(), &"table".into()));
    let all = [words, &["w.yaml:10:9"]].concat();
    says(text(&found[0], "message"), &all);
    project.run(&["run", "w.yaml"]).exits(3).reports(&all);
    for file in ["table.csv", "after.csv"] {
        assert!(!project.path(file).exists(), "{file}: what is downstream is not written");
    }

    // With the severity `warn` it is only a warning.
    let entry = assertion.trim_start_matches('{').trim_end_matches('}').trim();
    project.write("w.yaml", workflow(&format!("{{ {entry}, severity: warn }}")));
    let outcome = project.run_ok(&[]).went("table=hit after=ran beside=hit");
    assert_eq!(outcome.events("assertion")[0]["severity"], "warn");
    project.run(&["run", "w.yaml"]).exits(0).reports(words);
    assert_eq!(project.read("log"), "ran\n", "the step ran once");
}

#[test]
fn assertions_that_do_not_hold_fail_and_those_that_hold_say_nothing() {
    let cases = [
        ("{ expr: 'x > 1' }", &["x > 1", "1 rows", "id = a"][..]),
        // An expression that is null does not hold.
        ("{ expr: \"k <> 'w'\" }", &["1 rows", "id = b"]),
        ("{ unique: [x] }", &["unique", "x = 2"]),
        ("{ not_null: [id, k] }", &["not_null", "id = b"]),
        ("{ accepted_values: { column: k, values: [u, w] } }", &["accepted_values", "id = c"]),
        ("{ rows: { min: 4 } }", &["rows", "3 rows"]),
        ("{ rows: { max: 2 } }", &["rows", "3 rows"]),
    ];
    every(cases.map(|case| (case.0, case)), |(assertion, words)| fails(assertion, words));
    let cases = [
        "{ expr: 'x > 0' }",
        "{ unique: [id] }",
        "{ unique: [x, k] }",
        "{ not_null: [id, x] }",
        "{ accepted_values: { column: x, values: [1, 2] } }",
        "{ rows: { min: 3, max: 3 } }",
    ];
    every(cases.map(|assertion| (assertion, assertion)), |assertion| {
        let outcome = Project::new(&workflow(assertion)).run_ok(&[]);
        assert!(outcome.events("assertion").is_empty(), "{outcome}");
    });
}

#[test]
fn mending_an_assertion_does_not_run_the_step_again() {
    let project = Project::new(&workflow("{ expr: 'x > 1' }"));
    project.run_json(&["--keep-going"]).exits(3);
    assert_eq!(project.rerun("x > 1", "x > 0").statuses(), "table=hit after=ran beside=hit");
    project.change("x > 0", "x > 1");
    // The failure is found again although everything is stored.
    let outcome = project.run_json(&["--keep-going"]).exits(3);
    assert_eq!(outcome.statuses(), "table=failed after=skipped beside=hit");
    assert_eq!(project.read("log"), "ran\n");
}

#[test]
fn the_first_failure_ends_a_run_without_keep_going_and_every_failed_assertion_is_told() {
    let project = Project::new(&workflow("{ rows: { min: 4 } }"));
    assert_eq!(project.run_json(&["--jobs", "1"]).exits(3).status("after"), "skipped");
    assert!(!project.path("table.csv").exists() && !project.path("after.csv").exists());
    let project = Project::new(&workflow(
        "{ rows: { min: 4 } }\n      - { expr: 'x > 1', severity: warn }\n      - { not_null: [k] }",
    ));
    assert_eq!(project.run_json(&[]).exits(3).events("assertion").len(), 3);
    project.run(&["run", "w.yaml"]).exits(3).reports(&["w.yaml:10:", "w.yaml:11:", "w.yaml:12:"]);
}

#[test]
fn other_ports_are_tested_too_and_params_work() {
    let steps = "  table:
    op: exec
    with: { command: 'printf \"{\\\"id\\\":\\\"a\\\",\\\"x\\\":1}\"', output: { id: utf8!, x: int64! } }
  valid:
    op: validate
    from: table
    with: { rules: [ { name: big, check: x > 1 } ] }
    assert:
      - { rows: { max: 0 }, port: rejects }
";
    let project = Project::steps(steps);
    let found = project.run_json(&[]).exits(3).events("assertion");
    says(text(&found[0], "message"), &["rejects", "w.yaml:11:9"]);
    let project = Project::new(&workflow("{ rows: { min: '${{ params.least }}' } }"));
    project.change("steps:\n", "params: { least: { type: int, default: 4 } }\nsteps:\n");
    project.run_json(&[]).exits(3);
    project.run_ok(&["--set", "least=3"]);
    assert_eq!(project.read("log"), "ran\n");
}

fn promise(schema: &str) -> String {
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: touch ran; printf '{{\"id\":\"a\",\"x\":1,\"k\":null}}\\n'
      output: {{ id: utf8!, x: int64, k: utf8 }}
    schema: {schema}
  after: {{ op: sample, from: table, with: {{ n: 2, seed: 1 }} }}
"
    )
}

#[test]
fn wrong_types_and_missing_columns_are_found_before_anything_runs() {
    for (schema, words) in [
        ("{ id: utf8!, x: «utf8 }", &["`x`", "int64", "utf8"][..]),
        ("{ id: utf8!, x: «float64 }", &["`x`", "int64", "float64"]),
        ("{ «idd: utf8!, x: int64 }", &["did you mean `id`?"]),
    ] {
        refused(&promise(schema), "broken-contract", words);
    }
}

#[test]
fn a_null_where_none_was_promised_fails_the_run_and_a_contract_that_holds_says_nothing() {
    let project = Project::new(&promise("{ id: utf8!, x: int64!, k: utf8! }"));
    let outcome = project.run_json(&[]).exits(3);
    assert_eq!(outcome.finished()["status"], "assert_failed");
    assert_eq!(outcome.statuses(), "table=failed after=skipped");
    says(text(&outcome.events("assertion")[0], "message"), &["k", "id = a", "w.yaml:9:"]);
    assert_eq!(project.rerun("k: utf8! }", "k: utf8 }").statuses(), "table=hit after=ran");
    let project = Project::new(&promise("{ id: utf8!, x: int64! }"));
    assert!(project.run_ok(&[]).events("assertion").is_empty());
    let project = Project::new(&promise("contract.json"));
    project.write("contract.json", r#"{"columns": {"id": "utf8!", "x": "int64"}}"#);
    project.run_ok(&[]);
    project.edit("contract.json", "int64", "utf8");
    assert_eq!(project.run_json(&[]).exits(2).diagnostics(), ["broken-contract w.yaml:9:13"]);
    project.write("contract.json", "not json");
    project.run_json(&[]).exits(2);
}
