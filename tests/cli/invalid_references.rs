//! Names in a workflow that name nothing: each is found before anything runs, with its place
//! and a suggestion.

use crate::harness::{Project, marked};

/// A table of three columns, then `rest`, indented as an entry of `steps`.
fn workflow(rest: &str) -> String {
    format!(
        "galeras: 1
params:
  seed: {{ type: int, default: 1 }}
steps:
  table:
    op: exec
    with:
      command: touch ran; printf '{{\"id\":\"a\",\"code\":\"x y\",\"size\":1}}'
      output: {{ id: utf8!, code: utf8!, size: int64! }}
{rest}"
    )
}

/// Just one diagnostic, at the mark `«`, and the same for people: the place, a mark below the text, the
/// suggestion. Nothing ran.
#[track_caller]
fn refused(workflow: &str, code: &str, suggestion: &str) {
    let (workflow, place) = marked(workflow);
    let project = Project::new(&workflow);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
    assert_eq!(outcome.finished()["status"], "invalid");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stdout.is_empty(), "{shown}");
    assert!(shown.stderr.contains(&format!("w.yaml:{place}")), "{shown}");
    assert!(shown.stderr.contains('─'), "a mark below the text\n{shown}");
    if !suggestion.is_empty() {
        let wanted = format!("did you mean `{suggestion}`?");
        assert!(shown.stderr.contains(&wanted), "{wanted}\n{shown}");
    }
    assert!(!project.path("ran").exists() && project.stored_nothing());
    project.run(&["check", "w.yaml"]).exits(2);
    project.run(&["plan", "w.yaml"]).exits(2);
}

#[test]
fn an_unknown_key_of_the_workflow() {
    refused(&workflow("«output: {}\n"), "unknown-key", "outputs");
}

#[test]
fn an_unknown_key_of_a_step() {
    let text = workflow("  b:\n    op: sample\n    «form: table\n    with: { n: 1, seed: 1 }\n");
    refused(&text, "unknown-key", "from");
}

#[test]
fn an_unknown_key_of_a_param() {
    let text = workflow("").replace("default: 1 }", "default: 1, «maxx: 0 }");
    refused(&text, "unknown-key", "max");
}

#[test]
fn an_unknown_key_of_an_output() {
    let text = workflow("outputs:\n  o: { from: table, path: o.csv, «fromat: csv }\n");
    refused(&text, "unknown-key", "");
}

#[test]
fn an_unknown_operator() {
    let text = workflow("  b:\n    op: «sampel\n    from: table\n    with: { n: 1, seed: 1 }\n");
    refused(&text, "unknown-operator", "sample");
}

#[test]
fn an_unknown_argument() {
    let text = workflow("  b:\n    op: sample\n    from: table\n    with: { n: 1, «sed: 1 }\n");
    refused(&text, "unknown-argument", "seed");
}

#[test]
fn an_unknown_argument_inside_of_a_list() {
    let rules = "rules: [ { name: r, check: 'size > 0', «onfail: flag } ]";
    let text =
        workflow(&format!("  b:\n    op: validate\n    from: table\n    with: {{ {rules} }}\n"));
    refused(&text, "unknown-argument", "on_fail");
}

#[test]
fn an_unknown_column_of_an_argument() {
    let text =
        workflow("  b:\n    op: cut\n    from: table\n    with: { column: «cod, seed: 1 }\n");
    refused(&text, "unknown-column", "code");
}

#[test]
fn an_unknown_column_of_a_rule() {
    let rules = "rules: [ { name: r, check: '«sise > 0' } ]";
    let text =
        workflow(&format!("  b:\n    op: validate\n    from: table\n    with: {{ {rules} }}\n"));
    refused(&text, "unknown-column", "size");
}

#[test]
fn an_unknown_column_of_a_query() {
    let text = workflow(
        "  b:\n    op: sql\n    from: table\n    with:\n      query: |\n        SELECT id,\n          sizes\n        FROM input\n",
    );
    let project = Project::new(&text);
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 1, "{outcome}");
    assert!(found[0].starts_with("unknown-column w.yaml:1"), "{outcome}");
    assert!(outcome.stdout.contains("did you mean `size`?"), "{outcome}");
}

#[test]
fn an_unknown_table_of_a_query() {
    let text = workflow(
        "  b:\n    op: sql\n    from: { left: table, right: table }\n    with: { query: 'SELECT id FROM input' }\n",
    );
    let project = Project::new(&text);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.events("diagnostic").len(), 1, "{outcome}");
    let message = &outcome.events("diagnostic")[0];
    let said = format!("{} {}", message["message"], message["help"]);
    assert!(said.contains("input") && said.contains("left"), "{outcome}");
    assert_eq!((&message["line"], &message["file"]), (&13.into(), &"w.yaml".into()));
}

#[test]
fn an_unknown_column_of_an_assertion() {
    let text = workflow("    assert:\n      - unique: [id]\n      - not_null: [«idd]\n");
    refused(&text, "unknown-column", "id");
    let text = workflow("    assert:\n      - { expr: '«sizee > 1' }\n");
    refused(&text, "unknown-column", "size");
}

#[test]
fn a_wrong_column_in_the_ninth_step_stops_the_first() {
    let mut rest = String::new();
    let mut before = String::from("table");
    for i in 2..9 {
        let more = "with: { query: 'SELECT id, code, size + 1 AS size FROM input' }";
        rest.push_str(&format!("  s{i}:\n    op: sql\n    from: {before}\n    {more}\n"));
        before = format!("s{i}");
    }
    rest.push_str("  s9:\n    op: describe\n    from: s8\n    with: { columns: [«siz] }\n");
    refused(&workflow(&rest), "unknown-column", "size");
}

#[test]
fn an_unknown_param_in_an_expression() {
    let text = workflow(
        "  b:\n    op: sample\n    from: table\n    with: { n: 1, seed: '«${{ params.sed }}' }\n",
    );
    refused(&text, "unknown-param", "seed");
}

#[test]
fn an_unknown_matrix_key_in_an_expression() {
    let text = workflow(
        "  b:\n    op: sample\n    from: table\n    matrix: { size: [1, 2] }\n    with: { seed: 1, n: '«${{ matrix.sice }}' }\n",
    );
    refused(&text, "unknown-param", "size");
}

#[test]
fn an_expression_with_a_typo() {
    for (typo, code) in [
        ("${{ param.seed }}", "bad-expression"),
        ("${{ seed }}", "bad-expression"),
        ("${{ params.seed + 1 }}", "bad-expression"),
        ("${{ params.seed", "bad-expression"),
        ("${{ }}", "bad-expression"),
    ] {
        let text = workflow(&format!(
            "  b:\n    op: sample\n    from: table\n    with: {{ n: 1, seed: '{typo}' }}\n"
        ));
        let outcome = Project::new(&text).run_json(&[]).exits(2);
        let found = outcome.diagnostics();
        assert_eq!(found.len(), 1, "{typo}: {outcome}");
        assert!(found[0].starts_with(&format!("{code} w.yaml:13:")), "{typo}: {outcome}");
        assert!(!outcome.events("diagnostic")[0]["help"].is_null(), "{typo}: {outcome}");
    }
}

#[test]
fn an_unknown_port() {
    let text = workflow(
        "  b:\n    op: sample\n    from: table\n    with: { n: 1, seed: 1 }\n  c:\n    op: sample\n    from: b.«reject\n    with: { n: 1, seed: 1 }\n",
    );
    refused(&text, "unknown-port", "rejects");
}

#[test]
fn an_unknown_port_of_an_output_and_of_an_assertion() {
    refused(
        &workflow("outputs:\n  o: { from: table.«outt, path: o.csv }\n"),
        "unknown-port",
        "out",
    );
    refused(
        &workflow("    assert:\n      - { rows: { min: 1 }, port: «rejects }\n"),
        "unknown-port",
        "",
    );
}

#[test]
fn an_unknown_step() {
    let text = workflow("  b:\n    op: sample\n    from: «tabel\n    with: { n: 1, seed: 1 }\n");
    refused(&text, "unknown-step", "table");
    let text = workflow("outputs:\n  o: { from: «tabel, path: o.csv }\n");
    refused(&text, "unknown-step", "table");
}

#[test]
fn an_unknown_cell() {
    let text = workflow(
        "  b:\n    op: sample\n    from: table\n    matrix: { model: [small, large] }\n    with: { n: 1, seed: 1 }\n  c:\n    op: sample\n    from: «b[model=smal]\n    with: { n: 1, seed: 1 }\n",
    );
    refused(&text, "unknown-cell", "small");
    refused(&text.replace("[model=smal]", "[modle=small]"), "unknown-cell", "model");
}

#[test]
fn steps_that_need_each_other() {
    let one = "    op: sample\n    with: { n: 1, seed: 1 }\n";
    let text = workflow(&format!(
        "  b:\n    from: d\n{one}  c:\n    from: b\n{one}  d:\n    from: c\n{one}"
    ));
    let project = Project::new(&text);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), ["cycle w.yaml:11:11"], "{outcome}");
    for step in ["`b`", "`c`", "`d`"] {
        assert!(outcome.events("diagnostic")[0]["message"].as_str().unwrap().contains(step));
    }
    assert!(!project.path("ran").exists());
}

#[test]
fn a_step_that_reads_itself() {
    let text = workflow("  b:\n    op: sample\n    from: «b\n    with: { n: 1, seed: 1 }\n");
    refused(&text, "cycle", "");
}

#[test]
fn a_cycle_of_three_thousand_steps_is_no_stack_overflow() {
    let mut rest = String::new();
    for i in 0..3_000 {
        let from = (i + 1) % 3_000;
        rest.push_str(&format!(
            "  s{i}: {{ op: sample, from: s{from}, with: {{ n: 1, seed: 1 }} }}\n"
        ));
    }
    let outcome = Project::new(&workflow(&rest)).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), ["cycle w.yaml:10:27"]);
    let shown = outcome.stdout.lines().next().unwrap().len();
    assert!(shown < 20_000, "one diagnostic of {shown} bytes");
}

#[test]
fn two_steps_of_one_name() {
    let text = workflow("  table:\n    op: sample\n    from: table\n    with: { n: 1, seed: 1 }\n");
    let project = Project::new(&text);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), ["duplicate-key w.yaml:10:3"], "{outcome}");
    let related = &outcome.events("diagnostic")[0]["related"][0];
    assert_eq!(related["line"], 5, "{outcome}");
}

#[test]
fn missing_files() {
    let read =
        |path: &str| workflow(&format!("  b:\n    op: read\n    with: {{ path: {path} }}\n"));
    let outcome = Project::new(&read("data.csv")).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), ["missing-file w.yaml:12:19"], "{outcome}");
    let text = workflow("  b:\n    op: methods\n    with: { dir: «nowhere }\n");
    refused(&text, "missing-file", "");
    let text = workflow(
        "  b:\n    op: exec\n    with: { command: cat x, files: [«x], output: { id: utf8 } }\n",
    );
    refused(&text, "missing-file", "");
    let text = workflow("  b:\n    uses: «./other.yaml\n");
    refused(&text, "missing-file", "");
    let text = workflow("    schema: «contract.json\n");
    refused(&text, "missing-file", "");
}

#[test]
fn settings_of_unknown_params_and_of_wrong_types() {
    let project = Project::new(&workflow(""));
    for (setting, wanted, help) in [
        ("sede=1", "unknown-param --set:1:1", "did you mean `seed`?"),
        ("seed=one", "wrong-type --set:1:6", ""),
        ("seed=1.5", "wrong-type --set:1:6", ""),
        ("seed", "unknown-option --set:1:1", ""),
    ] {
        let outcome = project.run_json(&["--set", setting]).exits(2);
        assert_eq!(outcome.diagnostics(), [wanted], "{outcome}");
        assert!(outcome.stdout.contains(help), "{outcome}");
        let shown = project.run(&["run", "w.yaml", "--set", setting]).exits(2);
        assert!(shown.stderr.contains(setting), "{shown}");
        assert!(!project.path("ran").exists() && project.stored_nothing());
    }
    // Two mistakes on the command line and one in the file are three.
    project.edit("w.yaml", "op: exec", "op: exce");
    let outcome = project.run_json(&["--set", "sede=1", "--set", "seed=x"]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 3, "{outcome}");
}

#[test]
fn steps_on_the_command_line_that_are_none() {
    let project = Project::new(&workflow(""));
    for option in ["--select", "--force"] {
        let shown = project.run(&["run", "w.yaml", option, "tabel"]).exits(2);
        assert!(shown.stderr.contains("did you mean `table`?"), "{shown}");
        assert!(!project.path("ran").exists());
        let outcome = project.run_json(&[option, "tabel"]).exits(2);
        assert_eq!(outcome.finished()["status"], "invalid", "{outcome}");
    }
}
