//! `outputs`: files by suffix, written when their content is another; outputs that are printed or are
//! the text of one value; and `--memory`.

use std::fs::File;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::harness::{Outcome, Project, flat, refused_with, says, values};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, x: int64, f: float64, b: bool, s: utf8, l: 'list<int64>', t: 'timestamp' }
  valid: { op: validate, from: table, with: { rules: [ { name: known, check: x IS NOT NULL } ] } }
outputs:
  p: { from: table, path: out/table.parquet }
  j: { from: table, path: out/table.jsonl }
  r: { from: valid.rejects, path: out/rejects.jsonl }
  v: { from: valid, path: out/valid.csv }
  a: { from: table, path: out/table.json }
";

fn project() -> Project {
    // Lists and times are left out of the CSV, which has no form for them.
    let rows = "{\"id\":\"b\",\"x\":2,\"f\":0.1,\"b\":true,\"s\":\"a \\\"q\\\", b\\nc é\"}
{\"id\":\"a\",\"x\":null,\"f\":1e300,\"b\":null,\"s\":null}
";
    Project::new(&WORKFLOW.replace(", l: 'list<int64>', t: 'timestamp'", ""))
        .with("data.jsonl", rows)
}

fn written(outcome: &Outcome) -> Vec<(String, bool)> {
    let of =
        |e: &Value| (e["output"].as_str().unwrap().to_owned(), e["written"].as_bool().unwrap());
    let mut all: Vec<_> = outcome.events("output").iter().map(of).collect();
    all.sort();
    all
}

#[test]
fn files_have_the_rows_in_the_order_of_the_key() {
    let project = project();
    let outcome = project.run_ok(&[]);
    assert_eq!(written(&outcome).iter().filter(|w| w.1).count(), 5);
    let file = File::open(project.path("out/table.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    let names: Vec<String> =
        batches[0].schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["id", "x", "f", "b", "s"]);
    assert_eq!(batches[0].column(0).as_string::<i32>().value(0), "a");
    assert_eq!(batches[0].column(1).as_primitive::<Int64Type>().value(1), 2);

    let lines: Vec<Value> =
        project.read("out/table.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(values(&lines[0], "id x f b s"), json!(["a", null, 1e300, null, null]));
    assert_eq!(values(&lines[1], "id x f b s"), json!(["b", 2, 0.1, true, "a \"q\", b\nc é"]));

    let array: Vec<Value> = serde_json::from_str(&project.read("out/table.json")).unwrap();
    assert_eq!(array, lines);
    assert_eq!(project.read("out/table.json").lines().count(), 4, "a row per line");

    assert_eq!(project.read("out/valid.csv"), "id,x,f,b,s\nb,2,0.1,true,\"a \"\"q\"\", b\nc é\"\n");

    let reject: Value = serde_json::from_str(&project.read("out/rejects.jsonl")).unwrap();
    assert_eq!(values(&reject, "id step rule"), json!(["a", "valid", "known"]));
    assert!(reject["reason"].as_str().unwrap().contains("x IS NOT NULL"), "{reject}");
}

#[test]
fn files_that_are_right_are_left_alone_and_others_written() {
    let project = project().ran();
    let names = ["out/table.parquet", "out/table.jsonl", "out/rejects.jsonl", "out/valid.csv"];
    let times = || names.map(|n| project.path(n).metadata().unwrap().modified().unwrap());
    let before = times();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let outcome = project.run_ok(&[]);
    assert!(written(&outcome).iter().all(|w| !w.1), "{outcome}");
    assert_eq!(times(), before);
    // Another rule, the same rows.
    project.rerun("x IS NOT NULL", "x > 1");
    let after = times();
    assert_eq!((after[0], after[1], after[3]), (before[0], before[1], before[3]));
    assert_ne!(after[2], before[2], "the reasons are others");
    // Files that were removed are written again and changed ones on demand.
    let project = self::project().ran();
    let right = project.read("out/valid.csv");
    project.write("out/valid.csv", right.replace('2', "3"));
    std::fs::remove_file(project.path("out/table.jsonl")).unwrap();
    project.run_json(&[]).exits(2);
    assert!(!project.path("out/table.jsonl").exists());
    let outcome = project.run_ok(&["--overwrite"]);
    outcome.all_hit();
    assert_eq!(project.read("out/valid.csv"), right);
    assert!(project.path("out/table.jsonl").exists());
    assert_eq!(written(&outcome).iter().filter(|w| w.1).count(), 2);
    // Changed rows change their files.
    let project = self::project().ran();
    project.edit("data.jsonl", "\"x\":2", "\"x\":5");
    let found = written(&project.run_ok(&[]));
    assert_eq!(found, ["a", "j", "p", "r", "v"].map(|output| (output.to_string(), output != "r")));
    assert!(project.read("out/valid.csv").contains("b,5,"));
}

#[test]
fn places_come_from_out_and_params_and_are_of_one_output() {
    let project = project();
    project.run_ok(&["--out", "elsewhere/deep"]);
    assert!(project.path("elsewhere/deep/out/valid.csv").exists());
    assert!(!project.path("out").exists());
    // A folder that cannot be made is not a fault of the store.
    project.write("file", "");
    let failed = project.run(&["run", "w.yaml", "--out", "file/x"]).exits(2);
    says(&flat(&failed.stderr), &["bad-path", "file` is a file, so nothing can be written below"]);
    assert!(!failed.stderr.contains("disk failed"), "{failed}");
    project.run_ok(&["--select", "table"]);
    assert!(project.path("out/table.jsonl").exists() && !project.path("out/valid.csv").exists());
    let project = self::project();
    project.change("steps:\n", "params:\n  name: { type: string, default: valid }\nsteps:\n");
    project.change("out/valid.csv", "'out/${{ params.name }}.csv'");
    project.run_ok(&["--set", "name=other"]);
    assert!(project.path("out/other.csv").exists());
    for name in ["name=../../x", "name=.x", "name=../.git/x"] {
        let outcome = project.run_json(&["--set", name]).exits(2);
        assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
        assert!(outcome.diagnostics()[0].starts_with("bad-path "), "{outcome}");
    }
    let project = self::project();
    project.change("out/table.jsonl", "out/rejects.jsonl");
    project.refuses(&[], "bad-path w.yaml:13:35", &[]);
    let project = self::project();
    project.change("out/table.jsonl", "out/./rejects.jsonl");
    project.run_json(&[]).exits(2);
}

#[test]
fn lists_and_times_go_through_every_format_but_csv_and_files_can_be_read_again() {
    let text = WORKFLOW.replace("  v: { from: valid, path: out/valid.csv }\n", "");
    let row = "{\"id\":\"a\",\"x\":1,\"l\":[1,null,3],\"t\":\"2024-02-29T12:00:00.5Z\"}\n";
    let project = Project::new(&text).with("data.jsonl", row).ran();
    let row: Value = serde_json::from_str(&project.read("out/table.jsonl")).unwrap();
    assert_eq!(row["l"], json!([1, null, 3]));
    assert!(row["t"].as_str().unwrap().starts_with("2024-02-29T12:00:00.5"), "{row}");
    assert_eq!(project.rows("table")[0], row);
    let project = self::project();
    let first = project.run_ok(&[]);
    let read = |suffix: &str| format!("{{ op: read, with: {{ path: out/table.{suffix} }} }}");
    let steps = format!("  p: {}\n  j: {}\n", read("parquet"), read("jsonl"));
    project.write("again.yaml", format!("galeras: 1\nsteps:\n{steps}"));
    let again = project.run(&["run", "again.yaml", "--format", "json"]).exits(0);
    assert_eq!(again.step("p")["digest"], first.step("table")["digest"]);
    assert_eq!(again.step("j")["rows"], 2);
}

const SHOWN: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: touch ran; cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, note: utf8, size: int64, share: float64 }
  small: { op: sql, from: table, with: { query: 'SELECT id, note FROM input WHERE size < 2' } }
outputs:
  all: { from: table, path: out/all.csv, show: true }
  few: { from: small, path: out/few.jsonl }
";

const DATA: &str = "{\"id\":\"b\",\"note\":\"second\",\"size\":2,\"share\":0.5}
{\"id\":\"a\",\"note\":\"first\",\"size\":1,\"share\":null}
";

fn shown() -> Project {
    Project::new(SHOWN).with("data.jsonl", DATA)
}

fn printed(outcome: &Outcome) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    outcome.stdout.lines().map(words).filter(|line| !line.is_empty()).collect()
}

#[test]
fn shown_outputs_are_printed_after_the_run() {
    let project = shown();
    for _ in 0..2 {
        let outcome = project.run(&["run", "w.yaml"]).exits(0);
        let lines = printed(&outcome);
        says(&lines[0], &["all", "out/all.csv"]);
        assert_eq!(lines[1], "id note size share", "{outcome}");
        assert_eq!(lines[lines.len() - 2..], ["a first 1 null", "b second 2 0.5"], "{outcome}");
        assert!(!outcome.stdout.contains("few"), "{outcome}");
    }
    assert_eq!(project.read("out/all.csv").lines().count(), 3);
    // In the order of the file, after whole runs, for people.
    let project = shown();
    project.change("few.jsonl }", "few.jsonl, show: true }");
    let outcome = project.run(&["run", "w.yaml"]).exits(0);
    let at = |text: &str| outcome.stdout.find(text).unwrap_or_else(|| panic!("{text}\n{outcome}"));
    assert!(at("out/all.csv") < at("second") && at("second") < at("out/few.jsonl"), "{outcome}");
    project.change("all.csv, show: true", "all.csv, show: false");
    project.change("few.jsonl, show: true", "few.jsonl");
    assert_eq!(project.run(&["run", "w.yaml"]).exits(0).stdout, "");
    let outcome = shown().run_ok(&[]);
    outcome.finished();
    assert_eq!(outcome.events("output").len(), 2);
    let project = shown();
    assert_eq!(project.run(&["run", "w.yaml", "--select", "table"]).exits(0).stdout, "");
    project.change("size < 2' } }", "size < 2' }, assert: [ { rows: { min: 5 } } ] }");
    assert_eq!(project.run(&["run", "w.yaml"]).exits(3).stdout, "");
    project.change("cat data.jsonl", "cat data.jsonl; exit 3");
    assert_eq!(project.run(&["run", "w.yaml", "--keep-going"]).exits(1).stdout, "");
    // An empty table and a long one.
    let project = shown().with("data.jsonl", "");
    project.change("show: true }", "show: true, rows: { min: 0 } }");
    project.change("out/few.jsonl }", "out/few.jsonl, rows: { min: 0 } }");
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
fn tables_for_papers_are_latex_and_markdown() {
    let project = shown();
    let paper = "columns: [note, share, size], caption: Sizes of 50 %, bold: { size: min }";
    project.change("all.csv, show: true", &format!("all.tex, {paper}"));
    let outputs = "few.jsonl }\n  md: { from: table, path: out/all.md, columns: [note], pivot: { \
                   columns: id, values: share }, digits: 2 }";
    project.change("few.jsonl }", outputs);
    project.run_ok(&[]);
    let latex = project.read("out/all.tex");
    let words = [
        "\\caption{Sizes of 50 \\%}\n  \\label{tab:all}\n  \\begin{tabular}{lrr}\n    \\toprule\n",
        "    note & share & size \\\\\n    \\midrule\n    first &  & \\textbf{1} \\\\\n",
        "    second & 0.5 & 2 \\\\\n    \\bottomrule\n",
    ];
    says(&latex, &words);
    let markdown =
        "| note | a | b |\n| --- | ---: | ---: |\n| first |  |  |\n| second |  | 0.50 |\n";
    assert_eq!(project.read("out/all.md"), markdown);
    // Another layout is another file.
    project.rerun("digits: 2", "digits: 1");
    assert!(project.read("out/all.md").contains("0.5 |"));
}

#[test]
fn texts_of_one_row_are_written_as_they_are() {
    let project = shown();
    project.change("all.csv, show: true", "note.txt, column: note");
    let note = "é \\\"q\\\"\\r\\n, \\u0000 no line feed at the end";
    project.write("data.jsonl", format!("{{\"id\":\"a\",\"note\":\"{note}\",\"size\":1}}\n"));
    project.run_ok(&[]);
    assert_eq!(project.read("out/note.txt"), "é \"q\"\r\n, \0 no line feed at the end");
    // Another column is another text, although the table is the same.
    let outcome = project.rerun("column: note", "column: id");
    assert_eq!(project.read("out/note.txt"), "a");
    assert_eq!(outcome.statuses(), "table=hit small=hit");
    let project = shown();
    let note = "<svg xmlns='http://www.w3.org/2000/svg'/>";
    project.write("data.jsonl", format!("{{\"id\":\"a\",\"note\":\"{note}\",\"size\":1}}\n"));
    for suffix in ["svg", "html", "txt", "json"] {
        let output = format!("out/note.{suffix}, column: note");
        project.write("w.yaml", SHOWN.replace("out/all.csv, show: true", &output));
        project.run_ok(&[]);
        assert_eq!(project.read(&format!("out/note.{suffix}")), note);
    }
    let project = shown();
    project.change("all.csv, show: true", "note.txt, column: note");
    for (data, exit, words) in
        [(DATA, 1, ["one row", "the table has 2"]), ("", 3, ["no rows in the output", "made none"])]
    {
        project.write("data.jsonl", data);
        project.run(&["run", "w.yaml"]).exits(exit).reports(&words);
        assert!(!project.path("out/note.txt").exists());
    }
}

#[track_caller]
fn wrong(output: &str, code: &str, words: &[&str]) {
    let text = SHOWN.replace("path: out/all.csv, show: true", output);
    refused_with(&[("data.jsonl", DATA)], &text, code, words);
}

#[test]
fn columns_that_are_no_text_or_no_file() {
    wrong("path: o.txt, column: «nota", "unknown-column", &["`nota`", "did you mean `note`?"]);
    wrong("path: o.txt, column: «size", "wrong-type", &["`size` has type int64, not utf8"]);
    let words = [".csv file is not the text of one `column`", ".txt"];
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
    // Tables for papers.
    let words = ["`caption` is for .tex and .md files"];
    wrong("path: o.csv, «caption: C", "conflicting-keys", &words);
    wrong("path: o.tex, columns: [«nota]", "unknown-column", &["did you mean `note`?"]);
    wrong("path: o.tex, bold: { «siz: max }", "unknown-column", &["did you mean `size`?"]);
    wrong("path: o.tex, bold: { size: «best }", "wrong-value", &["`max` or its `min`"]);
    wrong("path: o.md, digits: «20", "wrong-type", &["from 0 to 12"]);
    let pivot = "path: o.md, «pivot: { columns: note, values: size }";
    wrong(
        pivot,
        "missing-key",
        &["also needs `columns`", "add `columns: [outcome]` before `pivot`"],
    );
    // `show` says whether, not how.
    wrong("path: out/all.csv, show: «table", "wrong-type", &["true or false"]);
    wrong("path: out/all.csv, «shown: true", "unknown-key", &["did you mean `show`?"]);
}

#[test]
fn memory_is_a_size_that_may_be_given_in_the_environment() {
    let project = shown();
    for size in
        ["12 bananas", "12bananas", "", "MB", "1..5GB", "-1GB", "NaN", "inf", "1 TBB", "0x10MB"]
    {
        let argument = format!("--memory={size}");
        let words = ["--memory", "write a size such as 512MB or 4GiB"];
        let outcome = project.run(&["run", "w.yaml", &argument]).exits(2).reports(&words);
        assert_eq!(outcome.stdout, "");
    }
    for size in ["1KB", "0", "1023KiB", "1MB", "0.5MiB", "1048575"] {
        let args = ["run", "w.yaml", "--memory", size];
        project.run(&args).exits(2).reports(&["at least 1MiB is needed"]);
    }
    assert!(!project.path("ran").exists() && project.stored_nothing());
    for size in ["1MiB", "1048576", "1.5gib", "2 GB", " 64mb ", "1024KiB", "99999999999999999999GB"]
    {
        project.run(&["run", "w.yaml", "--memory", size]).exits(0);
    }
    let project = shown();
    let run = |size: &str, more: &[&str]| {
        project.run_with(&[&["run", "w.yaml"], more].concat(), &[("GALERAS_MEMORY", size)])
    };
    run("12 bananas", &[]).exits(2).reports(&["write a size such as"]);
    run("64MiB", &[]).exits(0);
    run("1KB", &["--memory", "64MiB"]).exits(0);
}
