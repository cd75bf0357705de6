//! `galeras check --explain CODE`: the meaning of a diagnostic code.

use serde_json::json;

use crate::harness::{Project, has, says, text};

#[test]
fn a_code_is_explained_without_a_workflow_and_an_unknown_one_is_refused() {
    let project = Project::empty();
    let explained = project.run(&["check", "--explain", "unknown-column"]).exits(0);
    let said = &explained.stdout;
    assert!(said.starts_with("unknown-column: A column does not exist.\n\n"), "{explained}");
    assert!(said.contains("\n```yaml\n") && said.ends_with("```\n"), "{explained}");
    assert!(explained.stderr.is_empty(), "{explained}");
    let line = project.answer(&["check", "--explain", "cycle"]);
    let title = "Steps need each other's results.";
    has(&line, "event code title", json!(["explanation", "cycle", title]));
    says(text(&line, "explanation"), &["from"]);
    for (code, words) in [
        ("unknown-colum", &["did you mean `unknown-column`?"][..]),
        ("E0308", &["there is no diagnostic code `E0308`", "yaml-syntax"]),
    ] {
        let refused = project.run(&["check", "--explain", code]).exits(2).reports(words);
        assert!(refused.stdout.is_empty(), "{refused}");
    }
    // Files are either checked or not.
    project.run(&["check"]).exits(2);
    project.run(&["check", "w.yaml", "--explain", "cycle"]).exits(2);
}

#[test]
fn what_check_reports_can_be_explained() {
    let project = Project::new("galeras: 1\nname: w\nsteps:\n  a: { op: methds }\n");
    let checked = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
    let lines = checked.json_lines();
    let code = lines[0]["code"].as_str().unwrap();
    assert_eq!(code, "unknown-operator", "{checked}");
    project.run(&["check", "--explain", code]).exits(0).prints(&["galeras ops"]);
}
