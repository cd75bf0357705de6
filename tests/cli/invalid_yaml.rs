//! Files that are no workflow: broken YAML, bombs, empty, huge; and many mistakes at once.

use crate::harness::{Outcome, Project, patience};

/// Refused: exit 2, nothing stored, the answer ends with a `finished` event.
#[track_caller]
fn refused(project: &Project) -> Outcome {
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.finished()["status"], "invalid");
    assert!(project.stored_nothing(), "{outcome}");
    assert!(!outcome.events("diagnostic").is_empty(), "{outcome}");
    outcome
}

#[test]
fn a_syntax_error_has_its_place() {
    let project = Project::new("galeras: 1\nsteps:\n  a: { op: exec, with: [ }\n");
    let found = refused(&project).diagnostics();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("yaml-syntax w.yaml:3:"), "{found:?}");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stdout.is_empty(), "{shown}");
    assert!(shown.stderr.contains("w.yaml:3:"), "{shown}");
}

#[test]
fn a_tab_as_indentation_is_a_syntax_error() {
    let project = Project::new("galeras: 1\nsteps:\n\ta:\n\t\top: exec\n");
    let found = refused(&project).diagnostics();
    assert!(found[0].starts_with("yaml-syntax w.yaml:3:"), "{found:?}");
}

#[test]
fn an_empty_file_is_refused() {
    for text in ["", "\n\n", "# only a comment\n", "---\n"] {
        let project = Project::new(text);
        let found = refused(&project).diagnostics();
        assert_eq!(found.len(), 1, "{text:?}: {found:?}");
        assert!(found[0].starts_with("empty-file w.yaml:"), "{text:?}: {found:?}");
    }
}

#[test]
fn a_list_is_no_workflow() {
    let project = Project::new("- a\n- b\n");
    let found = refused(&project).diagnostics();
    assert_eq!(found, ["wrong-type w.yaml:1:1"]);
}

#[test]
fn a_missing_file_is_named() {
    let project = Project::empty();
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    assert!(outcome.diagnostics()[0].starts_with("missing-file w.yaml:"), "{outcome}");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains("cannot read w.yaml"), "{shown}");
}

#[test]
fn a_folder_is_no_workflow() {
    let project = Project::empty();
    let shown = project.run(&["run", "."]).exits(2);
    assert!(shown.stderr.contains("is a folder"), "{shown}");
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let project = Project::empty();
    project.write("w.yaml", b"galeras: 1\nname: \xff\xfe\n");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains("not UTF-8"), "{shown}");
}

#[test]
fn a_bomb_of_aliases_is_refused_in_bounded_time() {
    let mut text = String::from("galeras: 1\nx0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for i in 1..30 {
        let one = format!("*x{}", i - 1);
        text.push_str(&format!("x{i}: &x{i} [{}]\n", vec![one; 8].join(", ")));
    }
    text.push_str("steps: { a: { op: exec, with: *x29 } }\n");
    let outcome = refused(&Project::new(&text));
    assert!(outcome.took < patience(5), "{:?}", outcome.took);
    assert!(outcome.diagnostics().iter().any(|d| d.starts_with("yaml-limit ")), "{outcome}");
}

#[test]
fn a_deep_file_is_refused_in_bounded_time() {
    for text in [
        format!("galeras: 1\nsteps: {}{}\n", "[".repeat(200_000), "]".repeat(200_000)),
        format!("galeras: 1\nsteps: {}", "{a: ".repeat(200_000)),
        format!("galeras: 1\nsteps: {}x\n", "- ".repeat(200_000)),
    ] {
        let outcome = refused(&Project::new(&text));
        assert!(outcome.took < patience(5), "{:?}", outcome.took);
        assert!(outcome.stdout.len() < 20_000, "{}", outcome.stdout.len());
    }
}

#[test]
fn a_file_of_ten_megabytes_is_refused_in_bounded_time() {
    let mut text = String::from("galeras: 1\nsteps:\n");
    let mut i = 0;
    while text.len() < 10 << 20 {
        text.push_str(&format!("  s{i}: {{ op: exec, with: {{ command: \"true\" }} }}\n"));
        i += 1;
    }
    let project = Project::new(&text);
    let outcome = refused(&project);
    assert!(outcome.took < patience(10), "{:?}", outcome.took);
    assert!(outcome.diagnostics()[0].starts_with("yaml-limit w.yaml:"), "{outcome}");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.len() < 10_000, "{}", shown.stderr.len());
}

#[test]
fn a_comment_of_ten_megabytes_on_one_line_does_not_flood_the_terminal() {
    let project = Project::new(&format!("galeras: 1 # {}\nsteps: {{}}\n", "x".repeat(10 << 20)));
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.len() < 10_000, "{}", shown.stderr.len());
}

const TEN_MISTAKES: &str = "\
galeras: 1
params:
  seed: { type: int, default: many }
colour: blue
steps:
  a:
    op: exec
    with: { command: echo, output: { id: utf8!, x: int64, text: utf8 } }
  b:
    op: validat
    from: a
  c:
    op: sql
    from: a
    with: { query: 'SELECT id, z FROM input' }
  d:
    op: sample
    from: a.rejcts
    with: { n: 1, seed: 1 }
  e:
    op: sample
    from: a
    with: { n: '${{ params.sed }}', seed: 1 }
  f:
    op: cut
    from: a
    with: { column: text, seed: 1, max: wide }
  g:
    op: sample
    from: nowhere
    with: { n: 1, seed: 1 }
  h:
    op: cut
    from: h
    with: { column: text, seed: 1 }
outputs:
  out: { from: a, path: out.xlsx }
";

#[test]
fn ten_mistakes_are_ten_diagnostics() {
    let project = Project::new(TEN_MISTAKES);
    let outcome = refused(&project);
    assert_eq!(
        outcome.diagnostics(),
        [
            "wrong-type w.yaml:3:31",
            "unknown-key w.yaml:4:1",
            "unknown-operator w.yaml:10:9",
            "unknown-column w.yaml:15:32",
            "unknown-port w.yaml:18:13",
            "unknown-param w.yaml:23:17",
            "wrong-type w.yaml:27:41",
            "unknown-step w.yaml:30:11",
            "cycle w.yaml:34:11",
            "bad-path w.yaml:37:25",
        ],
        "{outcome}"
    );
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    for line in [3, 4, 10, 15, 18, 23, 27, 30, 34, 37] {
        assert!(shown.stderr.contains(&format!("w.yaml:{line}:")), "line {line}\n{shown}");
    }
    assert!(shown.stdout.is_empty() && project.stored_nothing());
}
