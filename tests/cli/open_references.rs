//! Params in `from:`: what they name, and that every choice of a param names something.

use crate::harness::{Outcome, Project, marked};

const STEPS: &str = "galeras: 1
params:
  which: { type: string, default: small, choices: [small, large] }
  port: { type: string, default: out }
  model: { type: string, default: a }
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  small: { op: sample, from: table, with: { n: 1, seed: 1 } }
  large: { op: sample, from: table, with: { n: 4, seed: 1 } }
  cells:
    op: sample
    from: table
    matrix: [ { model: a, n: 2 }, { model: b, n: 3 } ]
    with: { n: '${{ matrix.n }}', seed: 1 }
";

fn project(rest: &str) -> Project {
    Project::new(&format!("{STEPS}{rest}"))
}

fn sql(from: &str) -> String {
    format!(
        "  read:\n    op: sql\n    from: {from}\n    with: {{ query: 'SELECT id FROM input' }}\n"
    )
}

#[test]
fn a_param_names_the_step() {
    let project = project(&sql("'${{ params.which }}'"));
    assert_eq!(project.run_ok(&[]).step("read")["rows"], 1);
    let other = project.run_ok(&["--set", "which=large"]);
    assert_eq!(other.step("read")["rows"], 4);
    assert_eq!(other.status("small"), "hit");
}

#[test]
fn a_param_names_a_port_or_a_cell() {
    let project = self::project(&sql("{ input: 'small.${{ params.port }}' }"));
    assert_eq!(project.run_ok(&["--set", "port=rejects"]).step("read")["rows"], 5);
    let project = self::project(&sql("'cells[model=${{ params.model }}]'"));
    assert_eq!(project.run_ok(&[]).step("read")["rows"], 2);
    assert_eq!(project.run_ok(&["--set", "model=b"]).step("read")["rows"], 3);
    let refused = project.run_json(&["--set", "model=c"]).exits(2);
    assert_eq!(refused.diagnostics().len(), 1, "{refused}");
    assert!(refused.diagnostics()[0].starts_with("unknown-cell w.yaml:"), "{refused}");
}

#[test]
fn a_param_names_what_is_written() {
    let project = project("outputs:\n  o: { from: '${{ params.which }}', path: o.csv }\n").ran();
    assert_eq!(project.read("o.csv").lines().count(), 2);
    project.run_ok(&["--set", "which=large"]);
    assert_eq!(project.read("o.csv").lines().count(), 5);
}

#[test]
fn the_value_of_a_param_is_one_of_its_choices() {
    let project = project(&sql("'${{ params.which }}'"));
    let refused = project.run_json(&["--set", "which=largee"]).exits(2);
    assert_eq!(refused.diagnostics(), ["wrong-value --set:1:7"], "{refused}");
    assert!(refused.stdout.contains("did you mean `large`?"), "{refused}");
}

#[track_caller]
fn refused(text: &str, set: &[&str], code: &str, says: &[&str]) -> Outcome {
    let (text, place) = marked(text);
    let project = Project::new(&text);
    let outcome = project.run_json(set).exits(2);
    assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
    let problem = outcome.events("diagnostic").remove(0).to_string();
    let shown = project.run(&[&["check", "w.yaml"], set].concat()).exits(2);
    for part in says {
        assert!(
            problem.contains(part) || format!("{shown}").contains(part),
            "{part}: {problem} {shown}"
        );
    }
    assert!(project.stored_nothing());
    outcome
}

#[test]
fn every_choice_is_checked_whatever_the_param_is_now() {
    let step = STEPS.replace("choices: [small, large]", "choices: [small, lagre]");
    let text = format!("{step}{}", sql("«'${{ params.which }}'"));
    refused(
        &text,
        &[],
        "unknown-step",
        &["there is no step `lagre`", "did you mean `large`?", "with which = lagre"],
    );
    let text = format!("{STEPS}{}", sql("«'small.${{ params.port }}'"))
        .replace("default: out", "default: out, choices: [out, rejected]");
    refused(&text, &[], "unknown-port", &["no port `rejected`", "with port = rejected"]);
    let text = format!("{STEPS}{}", sql("«'cells[model=${{ params.model }}]'"))
        .replace("default: a", "default: a, choices: [a, b, c]");
    refused(&text, &[], "unknown-cell", &["model=c", "with model = c"]);
    let text =
        format!("{STEPS}outputs:\n  o: {{ from: «'${{{{ params.which }}}}', path: o.csv }}\n")
            .replace("choices: [small, large]", "choices: [small, none]");
    refused(&text, &[], "unknown-step", &["`none`"]);
}

#[test]
fn choices_of_two_params_are_checked_together() {
    let text = format!("{STEPS}{}", sql("«'${{ params.which }}.${{ params.port }}'"))
        .replace("choices: [small, large]", "choices: [small, table]")
        .replace("default: out", "default: out, choices: [out, rejects]");
    refused(
        &text,
        &[],
        "unknown-port",
        &["`table`", "`rejects`", "with which = table, port = rejects"],
    );
}

#[test]
fn a_circle_under_another_choice_is_found() {
    let text = format!("{STEPS}{}", sql("«'${{ params.which }}'"))
        .replace("choices: [small, large]", "choices: [small, after]");
    let text = format!(
        "{text}  after:\n    op: sql\n    from: read\n    with: {{ query: 'SELECT id FROM input' }}\n"
    );
    refused(&text, &[], "cycle", &["`read`, `after`", "with which = after"]);
}

#[test]
fn an_embedded_workflow_has_its_own_params() {
    let project = Project::new(
        "galeras: 1\nsteps:\n  inner:\n    uses: ./inner.yaml\n    matrix: { which: [small, large] }\n    with: { which: '${{ matrix.which }}' }\noutputs:\n  all: { from: 'inner[*].read', path: all.csv }\n",
    );
    let inner = format!(
        "{STEPS}{}outputs:\n  read: {{ from: read, path: r.csv }}\n",
        sql("'${{ params.which }}'")
    );
    project.write("inner.yaml", inner);
    project.run_ok(&[]);
    assert_eq!(project.read("all.csv").lines().count(), 1 + 1 + 4);
}

#[test]
fn what_cannot_name_a_step_is_refused() {
    let text = |from: &str| format!("{STEPS}{}", sql(from));
    refused(
        &text("«'${{ params.whihc }}'").replace("«'", "'«"),
        &[],
        "unknown-param",
        &["did you mean `which`?"],
    );
    refused(
        &text("'«${{ matrix.which }}'"),
        &[],
        "bad-expression",
        &["is not allowed in a reference"],
    );
    refused(&text("'«${{ params.which'"), &[], "bad-expression", &["never closed"]);
    let numbers = text("«'${{ params.which }}'").replace(
        "{ type: string, default: small, choices: [small, large] }",
        "{ type: int, default: 3 }",
    );
    refused(
        &numbers,
        &[],
        "wrong-type",
        &["a reference must be a string, and this is of type integer"],
    );
    let odd = text("«'${{ params.model }}'");
    refused(&odd, &["--set", "model=a b"], "bad-reference", &["`a b` is not the name of a step"]);
    refused(&odd, &["--set", "model="], "bad-reference", &["names no step"]);
}
