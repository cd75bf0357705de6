//! Values of the wrong type or out of bounds: found before anything runs.

use crate::harness::{Project, every, marked, refused, told};

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

/// The entries behind the table with the mark at the only mistake, and the code.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str)] = &[
    ("  b: { op: sample, from: table, with: { n: «many, seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «1.5, seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «'1', seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «[1], seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: 1, seed: 1, stratify: «code } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: «[n, 1] }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «-1, seed: 1 } }", "wrong-value"),
    ("  b: { op: sample, from: table, with: { fraction: «1.5, seed: 1 } }", "wrong-value"),
    ("  b: { op: sample, from: table, with: { n: «99999999999999999999, seed: 1 } }", "wrong-value"),
    ("  b: { op: cut, from: table, with: { seed: 1, column: «size } }", "wrong-type"),
    ("  b: { op: describe, from: table, with: { columns: [size, «code] } }", "wrong-type"),
    ("  «b: { op: sample, with: { n: 1, seed: 1 } }", "wrong-inputs"),
    ("  b: { op: sample, from: { left: «table, right: table }, with: { n: 1, seed: 1 } }", "wrong-inputs"),
    ("  b: { op: methods, from: «table, with: { corpus: python-stdlib } }", "wrong-inputs"),
    ("    from: «[a, b]", "wrong-type"),
    ("    assert: «{ unique: [id] }", "wrong-type"),
    ("    assert: [ { unique: «id } ]", "wrong-type"),
    ("    assert: [ { rows: { min: «-1 } } ]", "wrong-type"),
    ("    schema: { id: «text }", "unknown-type"),
    ("    matrix: { a: «[] }", "wrong-type"),
    ("outputs: { o: { from: table, path: «../o.csv } }", "bad-path"),
    ("outputs: { o: { from: table, path: «/tmp/o.csv } }", "bad-path"),
    ("  «bad name: { op: exec, with: { command: x, output: { id: utf8 } } }", "bad-name"),
    ("  c: { op: sample, from: table, with: { n: 1, seed: 1 }, «uses: ./x.yaml }", "conflicting-keys"),
];

/// Replacements in the table, with the mark.
const CHANGES: [(&str, &str, &str); 6] = [
    ("default: 1,", "default: «0,", "wrong-value"),
    ("default: a,", "default: «c,", "wrong-value"),
    ("type: bool", "type: «boole", "unknown-type"),
    ("galeras: 1", "galeras: «2", "wrong-value"),
    ("galeras: 1\n", "«name: x\n", "missing-key"),
    ("op: exec", "op: «[exec]", "wrong-type"),
];

#[test]
fn values_are_checked_at_their_place() {
    let entries = MISTAKES.iter().map(|(rest, code)| (format!("{TABLE}{rest}\n"), *code));
    let changes = CHANGES.iter().map(|(old, new, code)| (TABLE.replace(old, new), *code));
    every(entries.chain(changes).map(|case| (case.0.clone(), case)), |(text, code)| {
        let message = told(&refused(&text, code, &[]).events("diagnostic")[0]);
        assert!(!message.contains("a integer") && !message.contains("null"), "{message}");
    });
    let cut = format!("{TABLE}  b: {{ op: cut, from: table, with: {{ seed: 1, at: «lines }} }}\n");
    refused(&cut, "wrong-value", &["did you mean `line`?"]);
}

#[test]
fn arguments_that_are_missing_or_contradict_a_default() {
    let project = Project::new(&format!(
        "{TABLE}  b:\n    op: sample\n    from: table\n    with: {{ n: 1 }}\n"
    ));
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 1, "{outcome}");
    assert!(found[0].starts_with("missing-argument w.yaml:1"), "{outcome}");
    assert!(outcome.stdout.contains("seed"), "{outcome}");
    let project = Project::new(&TABLE.replace("type: int, default: 1,", "type: int,"));
    project.refuses(&[], "missing-argument w.yaml:3:3", &["--set n="]);
    project.run_ok(&["--set", "n=2"]);
    let text =
        format!("{TABLE}  b:\n    op: cut\n    from: table\n    with: {{ seed: 1, min: 0.9 }}\n");
    let outcome = Project::new(&text).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
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
        project.refuses(&["--set", setting], wanted, &[]);
    }
    project.run_ok(&["--set", "n=9", "--set", "kind=b", "--set", "on=false", "--set", "share=1"]);
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
    project.run(&["run", "w.yaml", "--job", "2"]).exits(2).complains(&["--jobs"]);
    let help = project.run(&["--help"]).exits(0);
    assert!(help.stdout.contains("interrupted") && help.stderr.is_empty(), "{help}");
    project.run(&["--version"]).exits(0);
}
