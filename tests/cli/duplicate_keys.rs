//! Rows that share a key: which they are, and how they differ.

use crate::harness::{Project, hides, says};

fn project(rows: &[&str], key: &str) -> Project {
    let step = format!("  t:\n    op: read\n    with: {{ path: t.jsonl, key: {key} }}\n");
    Project::steps(&step).with("t.jsonl", rows.join("\n") + "\n")
}

#[test]
fn the_key_and_what_differs_are_shown_and_do_not_steer_the_terminal() {
    let rows = [
        r#"{"repo":"a/b","path":"x.py","line":1,"note":"same"}"#,
        r#"{"repo":"a/b","path":"y.py","line":7,"note":"same"}"#,
        r#"{"repo":"c/d","path":"x.py","line":1,"note":"same"}"#,
    ];
    let shown = project(&rows, "[repo]").run(&["run", "w.yaml"]).exits(1);
    let differs = ["path: x.py, line: 1", "path: y.py, line: 7", "`path` or `line`"];
    says(&shown.stderr, &differs);
    hides(&shown.reports(&["the key id: "]).stderr, &["note: same"]);
    // Equal rows are called equal.
    let row = r#"{"repo":"a/b","path":"x.py"}"#;
    let shown = project(&[row, row], "[repo, path]").run(&["run", "w.yaml"]).exits(1);
    shown.reports(&["two rows are equal", "repo: a/b, path: x.py", "`position`"]);
    let rows = [
        "{\"id\":\"a\\u001b[31m\",\"x\":\"\\u202e1\"}",
        "{\"id\":\"a\\u001b[31m\",\"x\":\"2\\n\"}",
    ];
    project(&rows, "[id]").run(&["run", "w.yaml"]).exits(1).reports(&["a\\u{1b}[31m", "2\\n"]);
}
