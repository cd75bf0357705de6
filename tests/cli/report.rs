//! `report`: one page that explains a study.

use serde_json::json;

use crate::harness::{Project, hides, lines, says};

const STUDY: &str = "galeras: 1
name: sizes
description: How large are **methods**?
params:
  least: { type: float, default: 2, help: the least size }
steps:
  rows: { op: read, with: { path: rows.jsonl } }
  large:
    op: validate
    from: rows
    with: { rules: [ { name: large_enough, check: 'size >= ${{ params.least }}' } ] }
  picture: { op: figure, from: large, with: { kind: histogram, x: size } }
  counted: { op: describe, from: large, with: { columns: [size] } }
outputs:
  counted: { from: counted, path: counted.csv, show: true }
";

const ROWS: &str = r#"{"id":"a","size":1.5,"name":"</script><script>alert(1)</script>"}
{"id":"b","size":2.5,"name":"two"}
{"id":"c","size":4.0,"name":"three \u001b[31m"}
"#;

fn project(report: &str) -> Project {
    Project::new(&format!("{STUDY}{report}")).with("rows.jsonl", ROWS)
}

#[test]
fn a_page_shows_what_suits_the_results() {
    let project = project("").ran();
    project.run(&["report", "w.yaml"]).exits(0).reports(&["report: w.html ("]);
    let page = project.read("w.html");
    says(
        &page,
        &[
            "<title>sizes",
            "How large are <strong>methods</strong>?",
            "<svg",
            "large_enough",
            "galeras run w.yaml",
            "counted",
            "95 % intervals: ",
        ],
    );
    // It needs nothing from elsewhere, and data is inert.
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
    hides(&page, &["src=\"http", "href=\"http", "url(http", "@import"]);
}

#[test]
fn the_workflow_orders_the_sections() {
    let project = project(
        "report:
  path: out/page.html
  title: Sizes of methods
  sections:
    - text: 'Only **large** ones.'
      heading: First
    - table: counted
      heading: Numbers
      columns: [column, n, mean]
    - figure: picture
      heading: Picture
      caption: As large as they come.
    - rows: large
      heading: Rows
      limit: 1
    - attrition
    - reproduce
",
    );
    project.run(&["run", "w.yaml"]).exits(0).reports(&["report: out/page.html ("]);
    let page = project.read("out/page.html");
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not there"));
    let order = [">First<", ">Numbers<", ">Picture<", ">Rows<"].map(place);
    assert!(order.is_sorted(), "{order:?}");
    assert!(page.contains("Sizes of methods") && page.contains("As large as they come."));
    // A run that changes nothing writes it again.
    project.run_ok(&[]);
    let events = project.run_json(&[]).exits(0);
    assert_eq!(events.events("report").len(), 1, "{events}");
}

#[test]
fn answers_of_models_are_shown_from_the_lowest_score_to_the_highest() {
    let project = Project::steps(
        "  data: { op: read, with: { path: data.jsonl } }
  given: { op: read, with: { path: given.jsonl } }
  prompts: { op: prompt, from: data, with: { treatments: { a: 'Go on: {{ code }}' } } }
  answers:
    op: generate
    from: { input: prompts, answers: given }
    with: { provider: replay, on: [n], model: earlier }
  scores: { op: score, from: answers, with: { reference: code, metrics: [similarity] } }
  echo: { op: generate, from: data, with: { provider: echo, given: code } }
  echo_scores: { op: score, from: echo, with: { reference: code, metrics: [similarity] } }
",
    );
    let row = |n| json!({"id": format!("d{n}"), "n": n, "code": format!("value = {n}")});
    let data = (1..=70).map(row);
    let answer = |n| if n == 70 { "zzz".to_string() } else { format!("value = {n}") };
    let given = (1..=70).map(|n| json!({"id": n, "n": n, "raw_response": answer(n)}));
    project.write("data.jsonl", lines(&data.collect::<Vec<_>>()));
    project.write("given.jsonl", lines(&given.collect::<Vec<_>>()));
    project.run_ok(&[]);
    project.run(&["report", "w.yaml"]).exits(0);
    let page = project.read("w.html");
    says(&page, &["60 of 70 data points: the 30 lowest and 30 highest by similarity."]);
    // The head and the guidelines have what reviewers ask.
    let fact = |name: &str, value: &str| format!("<dt>{name}</dt><dd>{value}</dd>");
    let facts = [("Models", "earlier"), ("Prompts", "a"), ("Data points asked about", "70")];
    for (name, value) in facts.into_iter().chain([("Answers", "70")]) {
        says(&page, &[&fact(name, value)]);
    }
    says(
        &page,
        &[
            "the version of <code>earlier</code>, whose answers are replayed from a table",
            "Baselines without a language model: <code>echo</code>.",
            "Metrics: <code>similarity</code>.",
            "<h3>5. Human validation</h3>",
            "ratings by people",
            "every prompt has one answer",
        ],
    );
    // The worst answer is the first.
    let first = page.split("<details class=\"point\"").nth(1).unwrap();
    assert!(first.contains("zzz"), "{first}");
}

#[test]
fn what_is_not_computed_is_said_and_nothing_else_is_replaced() {
    let project = project("");
    project.run(&["run", "w.yaml", "--select", "rows"]).exits(0);
    project.run(&["report", "w.yaml"]).exits(0).reports(&["warning: the report lacks results"]);
    let page = project.read("w.html");
    says(&page, &["--select large", "not computed"]);
    // A page with results is not replaced by one without.
    let empty = ["report", "w.yaml", "--cache", "elsewhere"];
    project.run(&empty).exits(1).reports(&["not computed yet", "--cache elsewhere"]);
    assert_eq!(project.read("w.html"), page);
    // Nothing else is replaced.
    let project = self::project("").ran().with("w.html", "my own page");
    project.run(&["report", "w.yaml"]).exits(2).reports(&["a file that Galeras did not write"]);
    assert_eq!(project.read("w.html"), "my own page");
    project.run(&["report", "w.yaml", "--overwrite"]).exits(0);
    // A report may replace a report.
    project.run(&["report", "w.yaml"]).exits(0);
    project.run(&["report", "w.yaml", "-o", "deep/er/page.html"]).exits(0);
    assert!(project.path("deep/er/page.html").is_file());
}

#[test]
fn mistakes_in_the_order_are_told() {
    for (report, told) in [
        ("report: page.html\n", "`report` must be a mapping"),
        ("report: { pat: x.html }\n", "did you mean `path`?"),
        ("report: { path: page.pdf }\n", "its path ends in .html"),
        ("report: { path: ../page.html }\n", "leaves the output folder"),
        ("report: { path: .x/page.html }\n", "is hidden, where programs keep their configuration"),
        ("report: { path: counted.html, sections: [grap] }\n", "did you mean `graph`?"),
        ("report: { sections: [ { table: countd } ] }\n", "countd"),
        ("report: { sections: [ { figure: rows } ] }\n", "the table has no column `svg`"),
        ("report: { sections: [ { findings: rows } ] }\n", "the table has no column `sentence`"),
        ("report: { sections: [ { table: rows, rows: rows } ] }\n", "shows one thing"),
        ("report: { sections: [ { heading: x } ] }\n", "shows nothing"),
        ("report: { sections: [ { table: rows, columns: [siz] } ] }\n", "did you mean `size`?"),
        ("report: { sections: [ { table: rows, limit: 0 } ] }\n", "`limit`"),
    ] {
        project(report).run(&["check", "w.yaml"]).exits(2).reports(&[told]);
    }
}
