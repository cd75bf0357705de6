//! `read`: JSON as pandas writes it by columns, the positions of rows, and a path in the place
//! of a URL.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galeras_test_servers::listen;
use serde_json::{Value, json};

use crate::harness::{Project, every, refused_with};

fn workflow(with: &str) -> String {
    format!("galeras: 1\nsteps:\n  data:\n    op: read\n    with: {{ {with} }}\n")
}

#[track_caller]
fn rows(file: &str, content: &str, with: &str) -> Vec<Value> {
    let project = Project::new(&workflow(&format!("path: {file}{with}"))).with(file, content).ran();
    project.rows("data")
}

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells = row.as_object().unwrap().iter().filter(|(name, _)| *name != "id");
            format!("{:?}", cells.collect::<std::collections::BTreeMap<_, _>>())
        })
        .collect();
    rows.sort();
    rows
}

/// The output of `DataFrame.to_json` for two arms of three answers.
const PANDAS: &str = r#"{"y":{"0":5,"1":7,"2":9,"3":6,"4":8,"5":10},
"arm":{"0":"c","1":"c","2":"c","3":"t","4":"t","5":"t"},
"score":{"0":0.5,"1":null,"2":1.0,"3":2.5,"4":1e-3,"5":-4.0},
"flag":{"0":true,"1":false,"2":true,"3":true,"4":false,"5":null}}"#;

#[test]
fn columns_become_rows() {
    let found = rows("d.json", PANDAS, "");
    let wanted = [
        json!({"index": 0, "y": 5, "arm": "c", "score": 0.5, "flag": true}),
        json!({"index": 1, "y": 7, "arm": "c", "score": null, "flag": false}),
        json!({"index": 2, "y": 9, "arm": "c", "score": 1.0, "flag": true}),
        json!({"index": 3, "y": 6, "arm": "t", "score": 2.5, "flag": true}),
        json!({"index": 4, "y": 8, "arm": "t", "score": 0.001, "flag": false}),
        json!({"index": 5, "y": 10, "arm": "t", "score": -4.0, "flag": null}),
    ];
    assert_eq!(sorted(&found), sorted(&wanted));
    let names: Vec<&String> = found[0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "index", "y", "arm", "score", "flag"]);
    // The same as a list or as lines.
    let lines: String = wanted.iter().map(|row| format!("{row}\n")).collect();
    assert_eq!(sorted(&rows("d.jsonl", &lines, ", key: [index]")), sorted(&found));
    // Labels may be words, and columns objects of lists.
    let text = r#" {"b": {"x1": [1, 2], "x2": []}, "é\"": {"x1": "ü", "x2": null}}"#;
    let found = rows("d.json", text, "");
    let wanted = [
        json!({"index": "x1", "b": [1, 2], "é\"": "ü"}),
        json!({"index": "x2", "b": [], "é\"": null}),
    ];
    assert_eq!(sorted(&found), sorted(&wanted));
    // A column `index` of the file is kept, and the labels are not.
    let found = rows("d.json", r#"{"index": {"0": "a", "1": "b"}}"#, "");
    assert_eq!(sorted(&found), sorted(&[json!({"index": "a"}), json!({"index": "b"})]));
    // Columns are renamed, and the format may be given.
    let with = ", format: json, columns: { y: outcome, index: at }, key: [at]";
    let found = rows("d.txt", PANDAS, with);
    assert_eq!(found.len(), 6);
    assert!(found.iter().all(|row| row["outcome"].is_i64() && row["at"].is_i64()), "{found:?}");
}

#[test]
fn positions_count_within_groups_or_in_the_whole_file() {
    let found = rows("d.json", PANDAS, ", position: { column: unit, within: [arm] }");
    for row in &found {
        assert_eq!(row["unit"].as_i64(), Some(row["index"].as_i64().unwrap() % 3), "{row}");
    }
    let names: Vec<&String> = found[0].as_object().unwrap().keys().collect();
    assert_eq!(names.last().unwrap().as_str(), "unit", "after those of the file");
    let found = rows("d.json", PANDAS, ", position: { column: unit }");
    assert!(found.iter().all(|row| row["unit"] == row["index"]), "{found:?}");
    // By the new name of a column; several columns; a group without a value.
    let csv = "a,b,n\nx,1,0\n,1,1\nx,2,2\nx,1,3\n,1,4\nx,2,5\n";
    let with = ", columns: { a: arm }, position: { column: at, within: [arm, b] }, key: [n]";
    for row in &rows("d.csv", csv, with) {
        assert_eq!(row["at"], i64::from(row["n"].as_i64().unwrap() > 2), "{row}");
    }
    // They tell rows of the same values apart.
    let csv = "arm,y\nc,1\nc,1\nt,1\nt,1\n";
    assert_eq!(rows("d.csv", csv, ", position: { column: row }, key: [row]").len(), 4);
    // Also where no key is named: the position is one of all columns.
    assert_eq!(rows("d.csv", csv, ", position: { column: row, within: [arm] }").len(), 4);
    Project::new(&workflow("path: d.csv")).with("d.csv", csv).run_json(&[]).exits(1);
}

/// Reads a file of 200,000 rows, which is large enough to be read in parts, and fails unless the
/// positions of rows are their numbers `n`.
#[track_caller]
fn positions_are_numbers(file: &str, content: &[u8]) {
    let with = format!("path: {file}, position: {{ column: row }}, key: [n]");
    let project = Project::new(&workflow(&with)).with(file, content);
    project.append(
        "  wrong:
    op: sql
    from: data
    with: { query: 'SELECT id, n, row FROM input WHERE n <> row' }
  all:
    op: sql
    from: data
    with: { query: 'SELECT count(*) AS n, max(row) AS last FROM input', key: [n] }
",
    );
    for jobs in ["1", "2", "4"] {
        let cache = format!("cache{jobs}");
        project.run_ok(&["--jobs", jobs, "--cache", &cache]);
        let show = |step: &str| project.json(&["show", "w.yaml", step, "--cache", &cache]);
        let wrong = show("wrong");
        assert!(wrong.is_empty(), "{file}, {jobs} jobs: {} such as {}", wrong.len(), wrong[0]);
        assert_eq!(show("all")[0], json!({"n": 200_000, "last": 199_999}));
    }
}

#[test]
fn positions_of_a_large_file_are_those_in_the_file() {
    let pad = "x".repeat(60);
    let (mut csv, mut lines) = (String::from("n,pad\n"), String::new());
    for n in 0..200_000 {
        csv += &format!("{n},{pad}\n");
        lines += &format!("{{\"n\":{n},\"pad\":\"{pad}\"}}\n");
    }
    positions_are_numbers("d.csv", csv.as_bytes());
    positions_are_numbers("d.jsonl", lines.as_bytes());
}

#[test]
fn a_file_that_has_the_column_keeps_it() {
    let csv = "arm,unit,y\nc,7,1\nc,9,2\nt,9,3\nt,7,4\n";
    let with = ", position: { column: unit, within: [arm] }, key: [arm, unit]";
    let sum = |with: &str| -> i64 {
        rows("d.csv", csv, with).iter().map(|row| row["unit"].as_i64().unwrap()).sum()
    };
    assert_eq!(sum(with), 32);
    // Also one that has got the name.
    let with = ", columns: { y: unit, unit: other }, position: { column: unit }, key: [other, arm]";
    assert_eq!(sum(with), 10);
    // Another position is another table.
    let project =
        Project::new(&workflow("path: d.csv, key: [y]")).with("d.csv", "arm,y\nc,1\nt,2\n").ran();
    project.change("key: [y]", "key: [y], position: { column: at }");
    assert_eq!(project.run_ok(&[]).status("data"), "ran");
    assert_eq!(project.run_ok(&[]).status("data"), "hit");
    assert_eq!(project.rerun("column: at", "column: at, within: [arm]").status("data"), "ran");
    assert!(project.rows("data").iter().all(|row| row["at"] == 0));
}

#[track_caller]
fn wrong(file: &str, content: &str, with: &str, code: &str, words: &[&str]) {
    refused_with(&[(file, content)], &workflow(with), code, words);
}

#[test]
fn files_that_are_no_table() {
    for (text, words) in [
        ("{}", "the object has no columns"),
        (r#"{"a": 1}"#, "`a` holds no values by row"),
        (r#"{"a": [1, 2]}"#, "`a` holds no values by row"),
        (r#"{"a": {}}"#, "the column `a` is empty"),
        (r#"{"a": {"0": 1}, "b": {"0": 1, "1": 2}}"#, "have different rows"),
        (r#"{"a": {"0": 1}, "b": {"1": 1}}"#, "the column `b` has no row `0`"),
        (r#"{"a": {"0": 1}"#, "cannot read `d.json`"),
        (r#"{"a": {"0": 1}} {"a": {"0": 1}}"#, "cannot read `d.json`"),
    ] {
        wrong("d.json", text, "path: «d.json", "unreadable-file", &[words]);
    }
}

#[test]
fn mistakes_in_positions() {
    let cases: [(&str, &str, &[&str]); 5] = [
        ("position: { column: at, within: [«armm] }", "unknown-column", &["did you mean `arm`?"]),
        ("position: { «colum: at }", "unknown-argument", &["did you mean `column`?"]),
        ("position: «at", "wrong-type", &[]),
        ("position: { column: at, within: «arm }", "wrong-type", &[]),
        // The old name is none any more.
        (
            "columns: { arm: a }, position: { column: at, within: [«arm] }",
            "unknown-column",
            &["`arm`"],
        ),
    ];
    every(cases.map(|case| (case.0, case)), |(with, code, words)| {
        wrong("d.csv", "arm,y\nc,1\nt,2\n", &format!("path: d.csv, {with}"), code, words);
    });
}

/// A server that answers every request with this, and counts them.
fn server(content: &'static str) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let address = listen(move |_, mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        count.fetch_add(1, Ordering::SeqCst);
        let length = content.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(format!("{head}{content}").as_bytes());
    });
    (format!("{address}/d.json"), asked)
}

const SHA256: &str = "46abc9a1871730a283ddd65bedaca06dccc77931cd32aaa94ba55c35ffb5bf36";

/// A workflow in which a parameter names a copy of a file that has an address.
fn copied(url: &str) -> String {
    workflow(&format!(
        "path: '${{{{ params.data }}}}', url: '{url}', sha256: {SHA256},
      position: {{ column: unit, within: [arm] }}, key: [arm, unit]"
    ))
    .replace("galeras: 1\n", "galeras: 1\nparams:\n  data: { type: path, default: '' }\n")
}

#[test]
fn a_path_is_read_in_the_place_of_a_url() {
    let (url, asked) = server(PANDAS);
    let project = Project::new(&copied(&url));
    // The copy need not be the same file, nor of the same format.
    project.write("copy.csv", "arm,unit,y\nc,0,1\nt,0,2\n");
    let outcome = project.run_ok(&["--set", "data=copy.csv"]);
    assert_eq!((&outcome.step("data")["rows"], asked.load(Ordering::SeqCst)), (&json!(2), 0));
    // Without a path the address counts, and it is fetched once.
    let fetched = project.run_ok(&[]);
    assert_eq!((&fetched.step("data")["rows"], asked.load(Ordering::SeqCst)), (&json!(6), 1));
    let rows = project.rows("data");
    assert!(rows.iter().all(|row| row["unit"] == row["index"].as_i64().unwrap() % 3), "{rows:?}");
    project.run_ok(&[]).all_hit();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // A copy with the same content gives the same table.
    project.write("copy.json", PANDAS);
    let copy = project.run_ok(&["--set", "data=copy.json"]);
    assert_eq!(copy.step("data")["digest"], fetched.step("data")["digest"]);
    assert_eq!(copy.status("data"), "hit", "{copy}");
    // A copy that is not there is reported, the address does not take its place.
    let outcome = project.run_json(&["--set", "data=missing.json"]).exits(2);
    assert!(outcome.stdout.contains("missing.json` does not exist"), "{outcome}");
}

#[test]
fn a_copy_is_named_from_the_current_folder() {
    let (url, asked) = server(PANDAS);
    let project = Project::empty().with("flows/w.yaml", copied(&url));
    project.write("flows/beside.json", PANDAS);
    project.write("here.json", PANDAS);
    for file in ["flows/beside.json", "here.json"] {
        project.run(&["run", "flows/w.yaml", "--set", &format!("data={file}")]).exits(0);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // A URL that gives another file is refused.
    let (url, _) = server("{\"y\": {\"0\": 1}}");
    let project = Project::new(&copied(&url));
    let outcome = project.run_json(&[]).exits(2);
    assert!(outcome.diagnostics()[0].starts_with("wrong-content "), "{outcome}");
    // Neither a path nor a URL, and an empty path alone.
    for with in ["position: { column: at }", "path: ''"] {
        let project = Project::new(&workflow(with));
        project.run_json(&[]).exits(2).prints(&["`read` needs `path` or `url`"]);
    }
}
