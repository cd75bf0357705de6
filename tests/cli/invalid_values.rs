//! Values of the wrong type or out of bounds: found before anything runs.

use crate::harness::{Project, marked};

const TABLE: &str = "galeras: 1
params:
  n: { type: int, default: 1, min: 1, max: 9 }
  share: { type: float, default: 0.5 }
  kind: { type: string, default: a, choices: [a, b] }
  on: { type: bool, default: true }
steps:
  table:
    op: exec
    with:
      command: touch ran; printf '{\"id\":\"a\",\"code\":\"x y\",\"size\":1}'
      output: { id: utf8!, code: utf8!, size: int64! }
";

/// Just one diagnostic, at the mark `«`; nothing ran.
#[track_caller]
fn refused(workflow: &str, code: &str) {
    let (workflow, place) = marked(workflow);
    let project = Project::new(&workflow);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
    let message = outcome.events("diagnostic")[0]["message"].as_str().unwrap().to_owned();
    assert!(!message.contains("a integer") && !message.contains("null"), "{message}");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains(&format!("w.yaml:{place}")), "{shown}");
    assert!(!project.path("ran").exists() && project.stored_nothing());
}

/// `with` of a `sample` step is refused.
#[track_caller]
fn sample_refused(with: &str, code: &str) {
    let text = format!("{TABLE}  b:\n    op: sample\n    from: table\n    with: {with}\n");
    refused(&text, code);
}

#[test]
fn arguments_of_the_wrong_type() {
    sample_refused("{ n: «many, seed: 1 }", "wrong-type");
    sample_refused("{ n: «1.5, seed: 1 }", "wrong-type");
    sample_refused("{ n: «'1', seed: 1 }", "wrong-type");
    sample_refused("{ n: «[1], seed: 1 }", "wrong-type");
    sample_refused("{ n: 1, seed: 1, stratify: «code }", "wrong-type");
    sample_refused("«[n, 1]", "wrong-type");
}

#[test]
fn arguments_out_of_bounds() {
    sample_refused("{ n: «-1, seed: 1 }", "wrong-value");
    sample_refused("{ fraction: «1.5, seed: 1 }", "wrong-value");
    sample_refused("{ n: «99999999999999999999, seed: 1 }", "wrong-value");
}

#[test]
fn missing_arguments() {
    let project = Project::new(&format!(
        "{TABLE}  b:\n    op: sample\n    from: table\n    with: {{ n: 1 }}\n"
    ));
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 1, "{outcome}");
    assert!(found[0].starts_with("missing-argument w.yaml:1"), "{outcome}");
    assert!(outcome.stdout.contains("seed"), "{outcome}");
}

#[test]
fn a_word_that_is_not_allowed() {
    let cut = |at: &str| {
        format!("{TABLE}  b:\n    op: cut\n    from: table\n    with: {{ seed: 1, at: {at} }}\n")
    };
    refused(&cut("«lines"), "wrong-value");
    let shown = Project::new(&cut("lines")).run(&["check", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains("did you mean `line`?"), "{shown}");
}

#[test]
fn a_cut_whose_least_share_is_above_its_largest() {
    let text =
        format!("{TABLE}  b:\n    op: cut\n    from: table\n    with: {{ seed: 1, min: 0.9 }}\n");
    let outcome = Project::new(&text).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
}

#[test]
fn a_column_of_the_wrong_type() {
    let text = format!(
        "{TABLE}  b:\n    op: cut\n    from: table\n    with: {{ seed: 1, column: «size }}\n"
    );
    refused(&text, "wrong-type");
    let text = format!(
        "{TABLE}  b:\n    op: describe\n    from: table\n    with: {{ columns: [size, «code] }}\n"
    );
    refused(&text, "wrong-type");
}

#[test]
fn conditions_that_are_no_conditions() {
    let rule = |check: &str| {
        format!(
            "{TABLE}  b:\n    op: validate\n    from: table\n    with:\n      rules:\n        - {{ name: r, check: «'{check}' }}\n"
        )
    };
    for check in ["size + 1", "size >", "size = (SELECT 1)", "count(*) > 1", "size > size > 1", ""]
    {
        let (text, place) = marked(&rule(check));
        let project = Project::new(&text);
        let outcome = project.run_json(&[]).exits(2);
        let found = outcome.diagnostics();
        assert_eq!(found.len(), 1, "{check}: {outcome}");
        // The word that is wrong, if it can be told, else the whole of it.
        let line = place.split(':').next().unwrap();
        assert!(found[0].contains(&format!("w.yaml:{line}:")), "{check}: {outcome}");
        assert!(!project.path("ran").exists());
    }
}

#[test]
fn settings_out_of_bounds() {
    let project = Project::new(TABLE);
    for (setting, wanted) in [
        ("n=0", "wrong-value --set:1:3"),
        ("n=10", "wrong-value --set:1:3"),
        ("kind=c", "wrong-value --set:1:6"),
        ("on=yes", "wrong-type --set:1:4"),
        ("share=half", "wrong-type --set:1:7"),
        ("share=nan", "wrong-type --set:1:7"),
    ] {
        let outcome = project.run_json(&["--set", setting]).exits(2);
        assert_eq!(outcome.diagnostics(), [wanted], "{setting}: {outcome}");
    }
    project.run_ok(&["--set", "n=9", "--set", "kind=b", "--set", "on=false", "--set", "share=1"]);
}

#[test]
fn defaults_out_of_bounds() {
    refused(&TABLE.replace("default: 1,", "default: «0,"), "wrong-value");
    refused(&TABLE.replace("default: a,", "default: «c,"), "wrong-value");
    refused(&TABLE.replace("type: bool", "type: «boole"), "unknown-type");
}

#[test]
fn a_param_without_a_value() {
    let project = Project::new(&TABLE.replace("type: int, default: 1,", "type: int,"));
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), ["missing-argument w.yaml:3:3"], "{outcome}");
    assert!(outcome.stdout.contains("--set n="), "{outcome}");
    project.run_ok(&["--set", "n=2"]);
}

#[test]
fn parts_of_the_workflow_of_the_wrong_type() {
    refused(&TABLE.replace("galeras: 1", "galeras: «2"), "wrong-value");
    refused(&TABLE.replace("galeras: 1\n", "«name: x\n"), "missing-key");
    refused(&TABLE.replace("op: exec", "op: «[exec]"), "wrong-type");
    let with = |rest: &str| format!("{TABLE}{rest}");
    refused(&with("    from: «[a, b]\n"), "wrong-type");
    refused(&with("    assert: «{ unique: [id] }\n"), "wrong-type");
    refused(&with("    assert: [ { unique: «id } ]\n"), "wrong-type");
    refused(&with("    assert: [ { rows: { min: «-1 } } ]\n"), "wrong-type");
    refused(&with("    schema: { id: «text }\n"), "unknown-type");
    refused(&with("    matrix: { a: «[] }\n"), "wrong-type");
    refused(&with("outputs: { o: { from: table, path: «../o.csv } }\n"), "bad-path");
    refused(&with("outputs: { o: { from: table, path: «/tmp/o.csv } }\n"), "bad-path");
    refused(
        &with("  «bad name: { op: exec, with: { command: x, output: { id: utf8 } } }\n"),
        "bad-name",
    );
    refused(
        &with(
            "  c:\n    op: sample\n    from: table\n    with: { n: 1, seed: 1 }\n    «uses: ./x.yaml\n",
        ),
        "conflicting-keys",
    );
}

#[test]
fn inputs_that_the_operator_does_not_take() {
    let text = format!("{TABLE}  «b:\n    op: sample\n    with: {{ n: 1, seed: 1 }}\n");
    refused(&text, "wrong-inputs");
    let text = format!(
        "{TABLE}  b:\n    op: sample\n    from: {{ left: «table, right: table }}\n    with: {{ n: 1, seed: 1 }}\n"
    );
    refused(&text, "wrong-inputs");
    let text = format!(
        "{TABLE}  b:\n    op: methods\n    from: «table\n    with: {{ corpus: python-stdlib }}\n"
    );
    refused(&text, "wrong-inputs");
}

#[test]
fn the_command_line_itself() {
    let project = Project::new(TABLE);
    for args in [
        &["run"][..],
        &["runn", "w.yaml"],
        &["run", "w.yaml", "--job", "2"],
        &["run", "w.yaml", "--jobs", "0"],
        &["run", "w.yaml", "--format", "xml"],
        &[],
    ] {
        let shown = project.run(args).exits(2);
        assert!(shown.stdout.is_empty() && !shown.stderr.is_empty(), "{args:?}: {shown}");
    }
    let shown = project.run(&["run", "w.yaml", "--job", "2"]).exits(2);
    assert!(shown.stderr.contains("--jobs"), "{shown}");
    let help = project.run(&["--help"]).exits(0);
    assert!(help.stdout.contains("130 interrupted") && help.stderr.is_empty(), "{help}");
    project.run(&["--version"]).exits(0);
}
