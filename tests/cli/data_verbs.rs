//! `show` and `sql`: looking at results.

use std::fs::File;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::harness::{Project, lines, says};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, size: int64!, text: utf8 }
  valid: { op: validate, from: table, with: { rules: [ { name: small, check: size < 90 } ] } }
  cells: { op: sample, from: valid, matrix: { n: [2, 3] }, with: { n: '${{ matrix.n }}', seed: 1 } }
";

fn project() -> Project {
    let row = |i: i32| json!({"id": format!("r{i:02}"), "size": i, "text": format!("line {i}\n\"x\", 日本")});
    let rows: Vec<_> = (0..100).map(row).collect();
    Project::new(WORKFLOW).with("data.jsonl", lines(&rows)).ran()
}

#[test]
fn rows_ports_and_cells_are_shown_to_people_and_written_as_csv_and_as_parquet() {
    let project = project();
    let shown = project.run(&["show", "w.yaml", "table"]).exits(0);
    assert!(shown.stderr.is_empty(), "{shown}");
    assert_eq!((0..100).filter(|i| shown.stdout.contains(&format!("r{i:02}"))).count(), 10);
    says(&shown.stdout, &["size", "日本"]);
    assert!(!shown.stdout.contains("\n\"x\""), "a row is one line: {shown}");
    // Rows, columns and conditions are chosen.
    let asked = "show w.yaml table --columns size,id --rows 3 --format json --where".split(' ');
    let args: Vec<&str> = asked.chain(["size >= 10 AND id <> 'r11'"]).collect();
    let rows = [(10, "r10"), (12, "r12"), (13, "r13")];
    let wanted = rows.map(|(size, id)| format!("{{\"size\":{size},\"id\":\"{id}\"}}"));
    assert_eq!(project.run(&args).exits(0).stdout.trim_end(), wanted.join("\n"));
    assert_eq!(project.rows("table").len(), 100);
    let shown = project.cli("show w.yaml table --rows 1 --format csv").exits(0);
    assert_eq!(shown.stdout, "id,size,text\nr00,0,\"line 0\n\"\"x\"\", 日本\"\n");
    let show = "show w.yaml table --format parquet -o t.parquet --columns id";
    assert!(project.cli(show).exits(0).stdout.is_empty());
    let file = File::open(project.path("t.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 100);
    // The suffix chooses the format, and a file has all rows.
    let first = |file: &str| {
        project.cli(&format!("show w.yaml table --columns id -o {file}")).exits(0);
        let text = project.read(file);
        (text.lines().next().unwrap().to_owned(), text.lines().count())
    };
    assert_eq!(first("t.csv"), ("id".to_owned(), 101));
    assert_eq!(first("t.jsonl"), ("{\"id\":\"r00\"}".to_owned(), 100));
    let all = project.cli("show w.yaml table --columns id --rows all").exits(0).stdout;
    assert!((0..100).all(|i| all.contains(&format!("r{i:02}"))), "{all}");
    let written = project.cli("show w.yaml table --format csv -o no/such/folder/t.csv");
    written.exits(4).reports(&["no/such/folder"]);
    assert_eq!(project.rows("valid.rejects").len(), 10);
    assert_eq!(project.rows("valid.summary")[0]["failed"], 10);
    assert_eq!(project.rows("cells[n=3]").len(), 3);
    assert_eq!(project.rows("cells[*]").len(), 5);
    for (step, word) in
        [("cells", "cells[n=2]"), ("valid.reject", "rejects"), ("vaild", "did you mean `valid`?")]
    {
        project.run(&["show", "w.yaml", step]).exits(2).reports(&[word]);
    }
    for (option, value, word) in [
        ("--columns", "id,sise", "did you mean `size`?"),
        ("--where", "sise > 1", "did you mean `size`?"),
        ("--where", "size >", "the SQL ends where an expression should come"),
        ("--where", "size + 1", "compare the value, as in `nloc > 1`"),
    ] {
        let shown = project.run(&["show", "w.yaml", "table", option, value]).exits(2);
        assert!(!shown.stderr.is_empty() && shown.stderr.contains(word), "{value}: {shown}");
        assert!(shown.stdout.is_empty(), "{value}: {shown}");
    }
}

#[test]
fn results_that_are_not_there_are_named_with_the_command() {
    let project = project();
    project.change("size < 90", "size < 80");
    for args in [
        &["show", "w.yaml", "valid"][..],
        &["show", "w.yaml", "cells[n=2]"],
        &["sql", "w.yaml", "SELECT * FROM valid"],
    ] {
        let shown = project.run(args).exits(1);
        assert!(shown.stdout.is_empty(), "{shown}");
        shown.reports(&["not computed yet", "galeras run w.yaml"]);
    }
    project.run(&["show", "w.yaml", "table"]).exits(0);
    let show = ["show", "w.yaml", "cells[n=2]", "--cache", "other cache"];
    let shown = project.run(&show).exits(1);
    let advised = shown.stderr.lines().find(|l| l.trim().starts_with("galeras run")).unwrap();
    let command = advised.trim().replacen("galeras", "\"$GALERAS\"", 1) + " --allow exec";
    project.sh(&command).exits(0);
    project.run(&show).exits(0);
}

#[test]
fn queries_read_steps_and_ports() {
    let project = project();
    let asked = |query: &str| project.json(&["sql", "w.yaml", query]);
    let joined = "valid.rejects r ON t.id = r.id WHERE t.size > 97 ORDER BY 1";
    let joined = asked(&format!("SELECT t.id FROM \"table\" t JOIN {joined}"));
    assert_eq!(joined, [json!({"id": "r98"}), json!({"id": "r99"})]);
    for (query, wanted) in [
        ("count(*) AS n, max(size) AS most FROM valid", json!({"n": 90, "most": 89})),
        ("min(size) AS least FROM valid.rejects", json!({"least": 90})),
        ("count(*) AS n FROM \"cells[n=3]\"", json!({"n": 3})),
        ("1 AS one", json!({"one": 1})),
    ] {
        assert_eq!(asked(&format!("SELECT {query}")), [wanted]);
    }
    let query = "SELECT id FROM valid ORDER BY id LIMIT 1";
    let shown = project.run(&["sql", "w.yaml", query]).exits(0);
    assert!(shown.stdout.contains("r00") && shown.stderr.is_empty(), "{shown}");
    // Wrong queries are refused.
    for (query, word) in [
        ("SELECT sise FROM valid", "did you mean `size`?"),
        ("SELECT size FROM vaild", "did you mean `valid`?"),
        ("SELECT size FROM valid.reject", "rejects"),
        ("SELEC size FROM valid", "did you mean `SELECT`?"),
        ("DROP TABLE valid", "begins with SELECT"),
        ("CREATE TABLE x AS SELECT 1", "begins with SELECT"),
        ("COPY valid TO 'x.csv'", "begins with SELECT"),
        ("SHOW TABLES", "begins with SELECT"),
        ("SELECT id FROM valid WHERE text = NULL", "write IS NULL or IS NOT NULL"),
        ("SELECT 1; SELECT 2", "without `;`"),
        ("SELECT TOP 3 id FROM valid", "write LIMIT"),
        ("SELECT * FROM", "the SQL ends where an identifier should come"),
        ("SELECT id FROM valid WHERE text = hello", "a text is written `text = 'hello'`"),
        ("SELECT * FROM '/etc/passwd'", "/etc/passwd"),
        ("", "the query is empty"),
    ] {
        let shown = project.run(&["sql", "w.yaml", query]).exits(2);
        assert!(shown.stderr.contains(word) && shown.stdout.is_empty(), "{query}: {shown}");
        assert!(shown.stderr.len() < 2_000 && !shown.stderr.contains("datafusion"), "{shown}");
    }
    assert!(!project.path("x.csv").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let project = project();
    for verb in [
        "show w.yaml table --format json",
        "show w.yaml table --rows 100",
        "sql w.yaml 'SELECT a.id FROM \"table\" a, \"table\" b, valid c' --format csv",
        "ops --format json",
        "schema",
        "completions bash",
        "run w.yaml --format json --force table",
    ] {
        let outcome =
            project.sh(&format!("\"$GALERAS\" {verb} | head -1 >/dev/null; echo done")).exits(0);
        assert_eq!(outcome.stdout, "done\n");
        assert!(outcome.stderr.is_empty(), "{verb}: {outcome}");
        let outcome = project.sh(&format!("\"$GALERAS\" {verb} >&-; echo $?"));
        assert!(!outcome.stderr.contains("panicked"), "{verb}: {outcome}");
    }
    // A full standard output is one.
    let outcome = project.sh("\"$GALERAS\" show w.yaml table --format json > /dev/full").exits(4);
    assert!(outcome.stderr.to_lowercase().contains("no space left"), "{outcome}");
}
