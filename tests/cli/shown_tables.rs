//! `show` for people: the order of columns, short ids, statistics; and rows for programs.

use std::fs::File;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::harness::{Project, lines, says};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: cat data.jsonl
      files: [data.jsonl]
      output: { text: utf8, n: int64!, id: utf8!, tags: list<utf8>, about: 'struct<a: int64, b: utf8>' }
  cut:
    op: sql
    from: table
    with: { query: 'SELECT text, n, id, n * 2 AS twice, n + 0.5 AS half FROM input', key: [id] }
  described: { op: describe, from: arms, with: { columns: [size] } }
  arms:
    op: sql
    from: table
    with: { query: 'SELECT id, text, n AS size, ''a'' AS treatment FROM input', key: [id] }
  kept: { op: validate, from: arms, with: { rules: [ { name: r, check: size > 0 } ] } }
  cells:
    op: sample
    from: table
    matrix: { size: [1, 2] }
    with: { n: '${{ matrix.size }}', seed: 1 }
outputs:
  nested: { from: table, path: nested.csv }
";

fn id(n: u64) -> String {
    // Those of 1 and 2 begin alike for 15 digits.
    match n {
        1 => "abcdef0123456780000000000000000f".to_string(),
        2 => "abcdef0123456790000000000000000f".to_string(),
        n => format!("{:032x}", u128::from(n) << 100),
    }
}

fn project() -> Project {
    let row = |n: u64| {
        json!({
            "text": "é".repeat(n as usize), "n": n, "id": id(n),
            "tags": if n == 3 { Value::Null } else { json!(["a\"b", null, "c,d\n"]) },
            "about": {"a": n, "b": null},
        })
    };
    Project::new(WORKFLOW).with("data.jsonl", lines(&(1..=40).map(row).collect::<Vec<_>>())).ran()
}

/// The words of the header of `show w.yaml` with these words.
#[track_caller]
fn shown_header(project: &Project, words: &str) -> Vec<String> {
    let shown = project.cli(&format!("show w.yaml {words}")).exits(0);
    shown.stdout.lines().next().unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn people_see_keys_first_short_ids_and_what_is_left_out() {
    let project = project();
    assert_eq!(shown_header(&project, "cut"), ["id", "twice", "half", "text", "n"]);
    assert_eq!(shown_header(&project, "cells[*]")[..3], ["size", "id", "text"]);
    // What matters most comes first, as 80 columns have no room for everything.
    let statistics = ["column", "mean", "ci_low", "ci_high", "n"];
    assert_eq!(shown_header(&project, "described")[..5], statistics);
    assert_eq!(shown_header(&project, "kept"), ["id", "treatment", "text", "size"]);
    assert_eq!(shown_header(&project, "cells[size=1].rejects")[..2], ["id", "step"]);
    // An explicit choice of columns keeps its order, and programs get the table's own order.
    assert_eq!(shown_header(&project, "cut --columns n,id"), ["n", "id"]);
    let csv = project.run(&["show", "w.yaml", "cut", "--format", "csv"]).exits(0);
    assert!(csv.stdout.starts_with("text,n,id,twice,half\n"), "{csv}");
    // Ids are short for people and whole for programs.
    let ids = |condition: &str| -> Vec<String> {
        let args = ["show", "w.yaml", "cut", "--columns", "id", "--where", condition];
        project.run(&args).exits(0).stdout.lines().skip(2).map(str::to_owned).collect()
    };
    let some = ids("n > 2");
    assert!(some.iter().take(10).all(|id| id.len() == 10), "{some:?}");
    // As many digits as tell them apart.
    assert_eq!(ids("n <= 2"), ["abcdef012345678", "abcdef012345679"]);
    project.run(&["trace", "w.yaml", "abcdef012345678"]).exits(0).prints(&[&id(1)]);
    for format in ["json", "csv"] {
        let shown = project.run(&["show", "w.yaml", "cut", "--format", format]).exits(0);
        assert!((1..=40).all(|n| shown.stdout.contains(&id(n))), "{format}");
    }
    // Results of SQL are shown as they are.
    let shown = project.run(&["sql", "w.yaml", "SELECT id FROM cut"]).exits(0);
    assert!(shown.stdout.contains(&id(7)), "{shown}");
    // Omitted rows are reported with an option that exists.
    project
        .run(&["show", "w.yaml", "table"])
        .exits(0)
        .prints(&["… 30 more of 40 rows (use --rows)"]);
    let shown = project.run(&["show", "w.yaml", "table", "--rows", "100"]).exits(0);
    assert!(!shown.stdout.contains("more rows"), "{shown}");
    // One row, by the beginning of its id, in full.
    let shown = project.run(&["show", "w.yaml", "table", "--row", &id(3)[..7]]).exits(0);
    says(&shown.stdout, &[&format!("id     {}\n", id(3)), "\ntext   ééé\n", "\nn      3\n"]);
    assert_eq!(shown.stdout.lines().count(), 5, "{shown}");
    project
        .run(&["show", "w.yaml", "table", "--row", "f"])
        .exits(1)
        .reports(&["no row with the id f"]);
    let wide: Vec<String> = (1..=14).map(|n| format!("text t{n}")).collect();
    let wide = format!("SELECT {} FROM cut", wide.join(", "));
    let shown = project.run(&["sql", "w.yaml", &wide]).exits(0);
    assert!(shown.stdout.contains("more column") && !shown.stdout.contains("--columns"), "{shown}");
}

#[test]
fn statistics_describe_every_column() {
    let project = project();
    let columns = project.json(&["show", "w.yaml", "table", "--stats"]);
    let column = |name: &str| columns.iter().find(|c| c["column"] == name).unwrap();
    let n = json!({
        "column": "n", "type": "int64", "rows": 40, "nulls": 0, "distinct": 40, "of": "values",
        "min": 1, "q1": 10.75, "median": 20.5, "q3": 30.25, "max": 40, "mean": 20.5,
    });
    for (name, value) in n.as_object().unwrap() {
        assert_eq!(column("n")[name], *value, "{name}");
    }
    let text = column("text");
    assert_eq!((&text["of"], &text["max"]), (&json!("lengths"), &json!(40)), "characters");
    let tags = column("tags");
    assert_eq!((&tags["nulls"], &tags["mean"]), (&json!(1), &json!(3.0)));
    let about = ["of", "min", "distinct"].map(|name| column("about")[name].clone());
    assert_eq!(about, [json!(""), Value::Null, json!(40)]);
    assert_eq!(shown_header(&project, "table --stats")[..3], ["column", "type", "nulls"]);
    let csv = project.run(&["show", "w.yaml", "table", "--stats", "--format", "csv"]).exits(0);
    assert!(csv.stdout.contains("\nn,int64,40,0,40,values,1,10.75,20.5,30.25,40,20.5\n"), "{csv}");
    project.run(&["show", "w.yaml", "table", "--stats", "--format", "parquet"]).exits(2);
    // Of the rows and columns that are asked for.
    let stats = |condition: &str| {
        let columns = ["--columns", "n", "--where", condition];
        project.json(&[&["show", "w.yaml", "table", "--stats"], &columns[..]].concat())
    };
    let some = stats("n > 30");
    assert_eq!((some.len(), &some[0]["rows"], &some[0]["min"]), (1, &json!(10), &json!(31)));
    let none = stats("n > 99");
    assert_eq!((&none[0]["rows"], &none[0]["mean"]), (&json!(0), &Value::Null));
    let united = project.json(&["show", "w.yaml", "cells[*]", "--stats"]);
    let last = united.last().unwrap();
    assert_eq!((&united[0]["rows"], &last["distinct"]), (&json!(3), &json!(2)));
    assert_eq!(last["column"], "size");
    project.cli("show w.yaml table --stats -o s.json --format json").exits(0);
    assert_eq!(project.read("s.json").lines().count(), 5);
}

#[test]
fn parquet_and_arrow_go_to_a_pipe_and_csv_holds_lists_and_structs() {
    let project = project();
    let run = |script: &str| project.sh(script).exits(0);
    run("\"$GALERAS\" show w.yaml cut --format parquet > t.parquet");
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(project.path("t.parquet")).unwrap());
    assert_eq!(reader.unwrap().metadata().file_metadata().num_rows(), 40);
    let query = "SELECT id, n FROM cut WHERE n > 38";
    run(&format!("\"$GALERAS\" sql w.yaml '{query}' --format arrow | cat > t.arrow"));
    let file = File::open(project.path("t.arrow")).unwrap();
    let reader = arrow::ipc::reader::StreamReader::try_new(file, None).unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
    assert_eq!(batches[0].schema().field(1).name(), "n");
    project.run(&["show", "w.yaml", "cut", "--format", "arrow", "-o", "u.arrow"]).exits(0);
    assert!(project.path("u.arrow").is_file());
    // No rows are a file too.
    run("\"$GALERAS\" show w.yaml cut --where 'n < 0' --format arrow > none.arrow");
    let none = File::open(project.path("none.arrow")).unwrap();
    assert_eq!(arrow::ipc::reader::StreamReader::try_new(none, None).unwrap().count(), 0);
    // A terminal gets no binary data.
    for format in ["parquet", "arrow"] {
        let verb = format!("show w.yaml cut --format {format}");
        let script = format!("script -qec '\"$GALERAS\" {verb}' /dev/null < /dev/null");
        project.sh(&script).exits(2).prints(&["not for a terminal; add -o PATH"]);
    }
    // CSV holds lists and structs as JSON.
    let csv = project.cli("show w.yaml table --columns n,tags,about --format csv").exits(0).stdout;
    let cell = "\"[\"\"a\\\"\"b\"\",null,\"\"c,d\\n\"\"]\"";
    let about = |a: u8| format!("\"{{\"\"a\"\":{a},\"\"b\"\":null}}\"\n");
    says(&csv, &[&format!("\n1,{cell},{}", about(1)), &format!("\n3,,{}", about(3))]);
    // Output files are written by the same code.
    says(&project.read("nested.csv"), &[cell, about(40).trim_end()]);
}
