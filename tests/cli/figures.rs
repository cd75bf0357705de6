//! `figure`: pictures of tables, and refusals.

use serde_json::json;

use crate::harness::{Project, hides, lines, says, text};

const ROWS: &str = r#"{"id":"a","size":1.5,"group":"one","low":1.0,"high":2.0}
{"id":"b","size":2.5,"group":"two","low":2.0,"high":3.0}
{"id":"c","size":4.0,"group":"one","low":3.5,"high":4.5}
{"id":"d","size":null,"group":"two","low":null,"high":null}
"#;

/// A project with one figure, and outputs of it in every format.
fn project(arguments: &str) -> Project {
    let project = Project::new(&format!(
        "galeras: 1
steps:
  rows: {{ op: read, with: {{ path: rows.jsonl }} }}
  picture: {{ op: figure, from: rows, with: {arguments} }}
outputs:
  svg: {{ from: picture, path: picture.svg }}
  png: {{ from: picture, path: picture.png }}
  pdf: {{ from: picture, path: picture.pdf }}
  csv: {{ from: picture, path: picture.csv }}
"
    ));
    project.with("rows.jsonl", ROWS)
}

const BOX: &str = "{ kind: box, y: size, x: group, title: Sizes }";

#[test]
fn a_figure_is_written_as_its_suffix_says() {
    let project = project(BOX).ran();
    let svg = project.read("picture.svg");
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{}", &svg[..80]);
    assert!(svg.contains("Sizes"), "the title is there as text");
    let bytes = |name: &str| std::fs::read(project.path(name)).unwrap();
    assert!(bytes("picture.png").starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(bytes("picture.pdf").starts_with(b"%PDF-"));
    assert!(project.read("picture.csv").starts_with("svg,caption,alt\n"));
    // A row without a number is counted in the caption.
    let row = &project.rows("picture")[0];
    says(text(row, "caption"), &["n = 3", "1"]);
    assert!(!text(row, "alt").is_empty());
    // Also on a terminal.
    let drawn =
        |more: &[&str]| project.run(&[&["show", "w.yaml", "rows", "--plot"], more].concat());
    let histogram = drawn(&["--columns", "size"]).exits(0).stdout;
    assert!(histogram.contains("n = 3") && histogram.lines().count() == 4, "{histogram}");
    drawn(&["--columns", "size,group"]).exits(0).prints(&["one", "two"]);
    // A table of means by groups: each line has its group.
    project.change(
        "outputs:\n",
        "  means: { op: describe, from: rows, with: { columns: [size, low], by: [group] } }\noutputs:\n",
    );
    project.run_ok(&[]);
    let means = project.run(&["show", "w.yaml", "means", "--plot"]).exits(0).stdout;
    for label in ["low, one", "low, two", "size, one", "size, two"] {
        assert_eq!(means.lines().filter(|line| line.starts_with(label)).count(), 1, "{means}");
    }
    drawn(&[]).exits(2).reports(&["size, low, high"]);
    drawn(&["--columns", "group"]).exits(2).reports(&["one column of numbers"]);
    drawn(&["--columns", "size", "--format", "json"]).exits(2);
}

#[test]
fn the_same_rows_give_the_same_bytes_and_only_a_drawn_column_other_ones() {
    let drawn = |jobs| {
        let project = project(BOX);
        project.run_ok(&["--jobs", jobs]);
        ["svg", "png", "pdf"]
            .map(|end| std::fs::read(project.path(&format!("picture.{end}"))).unwrap())
    };
    assert!(drawn("1") == drawn("4"), "the bytes differ");
    let project = project(BOX).ran().with("rows.jsonl", ROWS.replace("\"low\":1.0", "\"low\":0.5"));
    assert_eq!(project.run_ok(&[]).step("picture")["status"], "hit");
    project.write("rows.jsonl", ROWS.replace("\"size\":1.5", "\"size\":1.25"));
    assert_eq!(project.run_ok(&[]).step("picture")["status"], "ran");
}

#[test]
fn the_order_of_rows_can_be_said_and_names_are_never_markup() {
    let project = project("{ kind: funnel, x: group, y: size, order_by: [-size] }");
    let row = |id, size, group| json!({"id": id, "size": size, "group": group});
    let rows = [row("a", 5, "last"), row("b", 50, "first")];
    let svg = project.with("rows.jsonl", lines(&rows)).ran().read("picture.svg");
    assert!(svg.find(">first").unwrap() < svg.find(">last").unwrap(), "{svg}");
    let project = self::project("{ kind: bar, x: group, y: size }");
    let group = "</text><script>alert(1)</script>\u{1b}[31m";
    let row = json!({"id": "a", "size": 1, "group": group});
    let svg = project.with("rows.jsonl", lines(&[row])).ran().read("picture.svg");
    hides(&svg, &["<script", "\u{1b}"]);
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    for (arguments, told) in [
        ("{ kind: pie, x: size }", "pie"),
        ("{ kind: histogram }", "a histogram needs `x`"),
        ("{ kind: forest, x: size }", "help: it takes `y`, `x`, `low`, `high`"),
        ("{ kind: histogram, x: group }", "column `group` has type utf8"),
        ("{ kind: histogram, x: sise }", "did you mean `size`?"),
        ("{ kind: histogram, x: size, low: low, high: high }", "does not take `low`"),
        ("{ kind: scatter, x: size, y: size, low: low }", "an interval has two ends"),
        ("{ kind: histogram, x: size, width: 500 }", "`width` must be at most 100"),
        ("{ kind: histogram, x: size, bins: 0 }", "`bins` must be at least 1"),
        ("{ kind: histogram, x: size, order_by: [nothing] }", "nothing"),
    ] {
        project(arguments).run(&["check", "w.yaml"]).exits(2).reports(&[told]);
    }
    // A table that has no picture is not written as one.
    let steps = "  rows: { op: read, with: { path: rows.jsonl } }\noutputs: { png: { from: rows, path: rows.png } }\n";
    let project = Project::steps(steps).with("rows.jsonl", ROWS);
    project.run(&["check", "w.yaml"]).exits(2).reports(&["a .png file is a figure"]);
}

#[test]
fn what_only_rows_show_fails_the_step_with_a_sentence() {
    let project = project("{ kind: scatter, x: size, y: size, low: high, high: low }");
    project.change("outputs:\n", "outputs:\n  rows: { from: rows, path: rows.csv }\n");
    let lost = "no output was written; --keep-going writes those whose steps are done";
    project.run(&["run", "w.yaml"]).exits(1).reports(&["`high`", lost]);
    let kept = project.run(&["run", "w.yaml", "--keep-going"]).exits(1).reports(&["rows.csv"]);
    assert!(project.path("rows.csv").exists() && !kept.stderr.contains(lost), "{kept}");
    project.write("rows.jsonl", "{\"id\":\"a\",\"size\":null,\"low\":null,\"high\":null}\n");
    // A column of nulls has no numbers.
    project.run(&["check", "w.yaml"]).exits(2).reports(&["size"]);
}
