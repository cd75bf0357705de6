//! `schema`: what a step promises. Types are checked before anything runs, nulls afterwards.

use crate::harness::{Project, refused, says, text};

fn workflow(schema: &str) -> String {
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
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
        refused(&workflow(schema), "broken-contract", words);
    }
}

#[test]
fn a_null_in_a_column_that_promised_none_fails_the_run() {
    let project = Project::new(&workflow("{ id: utf8!, x: int64!, k: utf8! }"));
    let outcome = project.run_json(&[]).exits(3);
    assert_eq!(outcome.finished()["status"], "assert_failed");
    assert_eq!(outcome.statuses(), "table=failed after=skipped");
    says(text(&outcome.events("assertion")[0], "message"), &["k", "id = a", "w.yaml:8:"]);
    assert_eq!(project.rerun("k: utf8! }", "k: utf8 }").statuses(), "table=hit after=ran");
}

#[test]
fn a_contract_that_holds_says_nothing_and_may_be_a_file() {
    let project = Project::new(&workflow("{ id: utf8!, x: int64! }"));
    assert!(project.run_ok(&[]).events("assertion").is_empty());
    let project = Project::new(&workflow("contract.json"));
    project.write("contract.json", r#"{"columns": {"id": "utf8!", "x": "int64"}}"#);
    project.run_ok(&[]);
    project.edit("contract.json", "int64", "utf8");
    assert_eq!(project.run_json(&[]).exits(2).diagnostics(), ["broken-contract w.yaml:8:13"]);
    project.write("contract.json", "not json");
    project.run_json(&[]).exits(2);
}
