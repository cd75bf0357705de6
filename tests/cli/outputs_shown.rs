//! Outputs that are printed or are the text of one value, and `--memory`.

use crate::harness::{Outcome, Project, refused_with, says};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: touch ran; cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, note: utf8, size: int64, share: float64 }
  small:
    op: sql
    from: table
    with: { query: 'SELECT id, note FROM input WHERE size < 2' }
outputs:
  all: { from: table, path: out/all.csv, show: true }
  few: { from: small, path: out/few.jsonl }
";

const DATA: &str = "{\"id\":\"b\",\"note\":\"second\",\"size\":2,\"share\":0.5}
{\"id\":\"a\",\"note\":\"first\",\"size\":1,\"share\":null}
";

fn project() -> Project {
    Project::new(WORKFLOW).with("data.jsonl", DATA)
}

fn printed(outcome: &Outcome) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    outcome.stdout.lines().map(words).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_shown_output_is_printed_after_the_run() {
    let project = project();
    for _ in 0..2 {
        let outcome = project.run(&["run", "w.yaml"]).exits(0);
        let lines = printed(&outcome);
        says(&lines[0], &["all", "out/all.csv"]);
        assert_eq!(lines[1], "id note size share", "{outcome}");
        assert_eq!(lines[lines.len() - 2..], ["a first 1 null", "b second 2 0.5"], "{outcome}");
        assert!(!outcome.stdout.contains("few"), "{outcome}");
    }
    assert_eq!(project.read("out/all.csv").lines().count(), 3);
}

#[test]
fn shown_outputs_are_printed_in_the_order_of_the_file_after_whole_runs_for_people() {
    let project = project();
    project.change("few.jsonl }", "few.jsonl, show: true }");
    let outcome = project.run(&["run", "w.yaml"]).exits(0);
    let at = |text: &str| outcome.stdout.find(text).unwrap_or_else(|| panic!("{text}\n{outcome}"));
    assert!(at("out/all.csv") < at("second") && at("second") < at("out/few.jsonl"), "{outcome}");
    project.change("all.csv, show: true", "all.csv, show: false");
    project.change("few.jsonl, show: true", "few.jsonl");
    assert_eq!(project.run(&["run", "w.yaml"]).exits(0).stdout, "");
    let project = self::project();
    let outcome = project.run_ok(&[]);
    outcome.finished();
    assert_eq!(outcome.events("output").len(), 2);
    let project = self::project();
    assert_eq!(project.run(&["run", "w.yaml", "--select", "table"]).exits(0).stdout, "");
    project.change(
        "WHERE size < 2'",
        "WHERE size < 2', key: [id] }\n    assert: [ { rows: { min: 5 } } ]\n    #'",
    );
    assert_eq!(project.run(&["run", "w.yaml"]).exits(3).stdout, "");
    project.change("cat data.jsonl", "cat data.jsonl; exit 3");
    assert_eq!(project.run(&["run", "w.yaml", "--keep-going"]).exits(1).stdout, "");
}

#[test]
fn show_says_whether_not_how() {
    let data = [("data.jsonl", DATA)];
    let text = WORKFLOW.replace("show: true", "show: «table");
    refused_with(&data, &text, "wrong-type", &["true or false"]);
    let text = WORKFLOW.replace("show: true", "«shown: true");
    refused_with(&data, &text, "unknown-key", &["did you mean `show`?"]);
}

#[test]
fn an_empty_table_and_a_long_one_are_shown() {
    let project = project().with("data.jsonl", "");
    says(&project.run(&["run", "w.yaml"]).exits(0).stdout, &["out/all.csv", "note"]);
    let note = "x".repeat(500);
    let row = |i: usize| {
        format!("{{\"id\":\"{i:04}\",\"note\":\"{note}\",\"size\":{i},\"share\":null}}\n")
    };
    project.write("data.jsonl", (0..1_000).map(row).collect::<String>());
    let outcome = project.run(&["run", "w.yaml"]).exits(0);
    let lines = printed(&outcome);
    assert!(lines.len() < 200 && lines.iter().any(|l| l.starts_with("0000")), "{outcome}");
    assert!(outcome.stdout.lines().all(|line| line.chars().count() <= 80), "{outcome}");
}

#[test]
fn texts_of_one_row_are_written_as_they_are() {
    let project = project();
    project.change("all.csv, show: true", "note.txt, column: note");
    let note = "é \\\"q\\\"\\r\\n, \\u0000 no line feed at the end";
    project.write("data.jsonl", format!("{{\"id\":\"a\",\"note\":\"{note}\",\"size\":1}}\n"));
    project.run_ok(&[]);
    assert_eq!(project.read("out/note.txt"), "é \"q\"\r\n, \0 no line feed at the end");
    // Another column is another text, although the table is the same.
    let outcome = project.rerun("column: note", "column: id");
    assert_eq!(project.read("out/note.txt"), "a");
    assert_eq!(outcome.statuses(), "table=hit small=hit");
    let project = self::project();
    let note = "<svg xmlns='http://www.w3.org/2000/svg'/>";
    project.write("data.jsonl", format!("{{\"id\":\"a\",\"note\":\"{note}\",\"size\":1}}\n"));
    for suffix in ["svg", "html", "txt", "json"] {
        let output = format!("out/note.{suffix}, column: note");
        project.write("w.yaml", WORKFLOW.replace("out/all.csv, show: true", &output));
        project.run_ok(&[]);
        assert_eq!(project.read(&format!("out/note.{suffix}")), note);
    }
    let project = self::project();
    project.change("all.csv, show: true", "note.txt, column: note");
    for (data, rows) in [(DATA, "2"), ("", "0")] {
        project.write("data.jsonl", data);
        let outcome = project.run(&["run", "w.yaml"]).exits(1);
        let said = format!("the table has {rows}");
        assert!(outcome.stderr.contains("one row") && outcome.stderr.contains(&said), "{outcome}");
        assert!(!project.path("out/note.txt").exists());
    }
}

#[track_caller]
fn wrong(output: &str, code: &str, words: &[&str]) {
    let text = WORKFLOW.replace("path: out/all.csv, show: true", output);
    refused_with(&[("data.jsonl", DATA)], &text, code, words);
}

#[test]
fn columns_that_are_no_text_or_no_file() {
    wrong("path: o.txt, column: «nota", "unknown-column", &["`nota`", "did you mean `note`?"]);
    wrong("path: o.txt, column: «size", "wrong-type", &["`size` has type int64, not utf8"]);
    let words = [".csv file always has all columns", ".txt"];
    wrong("path: o.csv, column: «note", "conflicting-keys", &words);
    wrong("path: o.parquet, column: «note", "conflicting-keys", &[".parquet"]);
    for suffix in ["txt", "svg", "html"] {
        let said = format!("cannot be written as .{suffix}");
        wrong(&format!("path: «o.{suffix}"), "bad-path", &[&said, "`column: name`", ".jsonl"]);
    }
    let all = [".parquet", ".jsonl", ".json", ".csv", ".txt", ".svg", ".html"];
    wrong("path: «o.xlsx", "bad-path", &all);
    wrong("path: «o", "bad-path", &all);
    wrong("path: o.txt, column: «[note]", "wrong-type", &["column"]);
}

#[test]
fn memory_is_a_size_that_may_be_given_in_the_environment() {
    let project = project();
    for size in
        ["12 bananas", "12bananas", "", "MB", "1..5GB", "-1GB", "NaN", "inf", "1 TBB", "0x10MB"]
    {
        let argument = format!("--memory={size}");
        let words = ["--memory", "write a size such as 512MB or 4GiB"];
        let outcome = project.run(&["run", "w.yaml", &argument]).exits(2).complains(&words);
        assert_eq!(outcome.stdout, "");
    }
    for size in ["1KB", "0", "1023KiB", "1MB", "0.5MiB", "1048575"] {
        let args = ["run", "w.yaml", "--memory", size];
        project.run(&args).exits(2).complains(&["at least 1MiB is needed"]);
    }
    assert!(!project.path("ran").exists() && project.stored_nothing());
    for size in ["1MiB", "1048576", "1.5gib", "2 GB", " 64mb ", "1024KiB", "99999999999999999999GB"]
    {
        project.run(&["run", "w.yaml", "--memory", size]).exits(0);
    }
    let project = self::project();
    let run = |size: &str, more: &[&str]| {
        project.run_in_env(&[("GALERAS_MEMORY", size)], &[&["run", "w.yaml"], more].concat())
    };
    run("12 bananas", &[]).exits(2).complains(&["write a size such as"]);
    run("64MiB", &[]).exits(0);
    run("1KB", &["--memory", "64MiB"]).exits(0);
}
