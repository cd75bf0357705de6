//! `galeras check --explain CODE`: what a diagnostic code stands for.

use crate::harness::{Project, says};

#[test]
fn a_code_is_explained_without_a_workflow() {
    let project = Project::empty();
    let explained = project.run(&["check", "--explain", "unknown-column"]).exits(0);
    let text = &explained.stdout;
    assert!(text.starts_with("unknown-column: A column does not exist.\n\n"), "{explained}");
    assert!(text.contains("\n```yaml\n") && text.ends_with("```\n"), "{explained}");
    assert!(explained.stderr.is_empty(), "{explained}");
}

#[test]
fn an_explanation_is_also_given_as_json() {
    let project = Project::empty();
    let args = ["check", "--explain", "cycle", "--format", "json"];
    let line = project.run(&args).exits(0).json_lines().remove(0);
    assert_eq!((&line["event"], &line["code"]), (&"explanation".into(), &"cycle".into()));
    assert_eq!(line["title"], "Steps need each other's results.");
    assert!(line["explanation"].as_str().unwrap().contains("from"), "{line}");
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

#[test]
fn an_unknown_code_is_refused_with_the_one_that_was_meant() {
    let project = Project::empty();
    let refused = project.run(&["check", "--explain", "unknown-colum"]).exits(2);
    assert!(refused.stderr.contains("did you mean `unknown-column`?"), "{refused}");
    assert!(refused.stdout.is_empty(), "{refused}");
    let refused = project.run(&["check", "--explain", "E0308"]).exits(2);
    says(&refused.stderr, &["there is no diagnostic code `E0308`", "yaml-syntax"]);
}

#[test]
fn files_are_either_checked_or_not() {
    let project = Project::empty();
    project.run(&["check"]).exits(2);
    project.run(&["check", "w.yaml", "--explain", "cycle"]).exits(2);
}
