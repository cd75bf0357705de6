//! `read`: files of every format, sound and broken.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use serde_json::json;

use crate::harness::{Project, every, hides};
use crate::read_hostile::written;

pub fn project(file: &str, content: impl AsRef<[u8]>) -> Project {
    Project::steps(&format!("  data: {{ op: read, with: {{ path: {file} }} }}\n"))
        .with(file, content)
}

#[test]
fn csv_lines_and_lists_give_the_same_table() {
    let csv = project("d.csv", "id,n,f,s\na,1,0.5,x y\nb,2,1.5,\"q \"\"z\"\"\"\n");
    let a = r#"{"id":"a","n":1,"f":0.5,"s":"x y"}"#;
    let b = r#"{"id":"b","n":2,"f":1.5,"s":"q \"z\""}"#;
    let jsonl = project("d.jsonl", format!("{a}\n{b}\n"));
    let list = project("d.json", format!("[{a},\n {b}]"));
    let digests = [&csv, &jsonl, &list].map(|p| p.run_ok(&[]).step("data")["digest"].clone());
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[1], digests[2]);
    assert_eq!(csv.rows("data")[1], json!({"id": "b", "n": 2, "f": 1.5, "s": "q \"z\""}));
}

#[test]
fn types_are_inferred_from_the_whole_file() {
    let numbers: String = (0..5_000).map(|i| format!("{i},{i}\n")).collect();
    let rows = project("d.csv", format!("id,x\n{numbers}last,half\n")).ran().rows("data");
    assert_eq!(rows.len(), 5_001);
    assert!(rows.iter().any(|r| r["x"] == "half") && rows.iter().all(|r| r["x"].is_string()));
    // Rows without an id get one.
    let project = project("d.jsonl", "{\"x\":1,\"y\":\"a\"}\n{\"x\":2,\"y\":\"a\"}\n").ran();
    let rows = project.rows("data");
    assert!(rows.iter().all(|r| r["id"].as_str().unwrap().len() == 32), "{rows:?}");
    // The order of rows and columns does not count, and neither do other rows.
    let row = |x: u8| format!("{{\"x\":{x},\"y\":\"a\"}}\n");
    project.write("d.jsonl", format!("{}{}{}", row(3), row(2), row(1)));
    project.run_ok(&[]);
    let after = project.rows("data");
    assert!(rows.iter().all(|r| after.contains(r)), "{rows:?} {after:?}");
    // Equal rows have equal ids.
    project.write("d.jsonl", row(3).repeat(2));
    project.fails("data", &["have the key"]);
    // Columns are renamed and make the key.
    let project = self::project("d.csv", "source,n\nx,1\ny,2\n");
    project.rerun("path: d.csv", "path: d.csv, columns: { source: code }, key: [code]");
    let before = project.rows("data");
    assert_eq!(before.iter().filter(|r| r["code"] == "x").count(), 1);
    project.write("d.csv", "source,n\nx,5\ny,2\n");
    project.run_ok(&[]);
    let ids = |rows: &[serde_json::Value]| rows.iter().map(|r| r["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&project.rows("data")));
    project.change("source: code", "sauce: code");
    project.run_json(&[]).exits(2).prints(&["did you mean `source`?"]);
}

#[test]
fn broken_files_are_told_with_their_name() {
    let cases = [
        ("d.csv", &b"id,x\na,1\nb\n"[..]),
        ("d.csv", b"id,x\n\xff\xfe,1\n"),
        ("d.csv", b""),
        ("d.csv", b"x,x\n1,1\n"),
        ("d.jsonl", b"{\"id\":\"a\""),
        ("d.jsonl", b"[1, 2]\n"),
        ("d.jsonl", b"{\"id\":\"a\"}\nhello\n"),
        ("d.json", b"{\"id\":"),
        ("d.json", b"17"),
        ("d.json", b"{\"id\":\"a\"}"),
        ("d.json", b"[{\"id\":\"a\"},{\"id\":\"b\"}"),
        ("d.json", b"[{\"id\":\"a\"}] [{\"id\":\"b\"}]"),
        ("d.json", b"[{\"id\":\"a\"}] trailing"),
        ("d.csv", b"id,x\na,\"open\nb,2\n"),
        ("d.parquet", b"no parquet at all"),
        ("d.parquet", b""),
    ];
    let name = |(file, content): (&str, &[u8])| format!("{file} {}", content.escape_ascii());
    every(cases.map(|case| (name(case), case)), |(file, content)| {
        let outcome = project(file, content).run(&["run", "w.yaml"]).exits(2).reports(&[file]);
        hides(&outcome.stderr, &["row_id", "panicked"]);
    });
}

#[test]
fn a_suffix_without_a_meaning_needs_a_format() {
    let project = project("d.txt", "id,x\na,1\n");
    let outcome = project.run_json(&[]).exits(2).prints(&["format"]);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    assert_eq!(project.rerun("path: d.txt", "path: d.txt, format: csv").step("data")["rows"], 1);
    // Windows line ends and byte order marks are not data; ids are not null.
    let plain = self::project("d.csv", "id,x\na,1\n");
    let windows = self::project("d.csv", "\u{feff}id,x\r\na,1\r\n");
    let (plain, windows) = (plain.run_ok(&[]), windows.run_ok(&[]));
    assert_eq!(plain.step("data")["digest"], windows.step("data")["digest"]);
    self::project("d.csv", "id,x\na,1\n,2\n").fails("data", &["id", "null"]);
}

#[test]
fn paths_are_relative_to_the_workflow_file() {
    let project = Project::empty()
        .with("sub/w.yaml", "galeras: 1\nsteps:\n  data: { op: read, with: { path: ../d.csv } }\n")
        .with("d.csv", "id\na\n");
    project.run(&["run", "sub/w.yaml"]).exits(0);
    // A path on the command line is relative to where it was typed.
    let read = "{ op: read, with: { path: '${{ params.file }}' } }";
    let params = "{ file: { type: path, default: d.csv } }";
    project
        .write("sub/p.yaml", format!("galeras: 1\nparams: {params}\nsteps: {{ data: {read} }}\n"));
    project.run(&["run", "sub/p.yaml", "--set", "file=d.csv"]).exits(0);
    project.run(&["run", "sub/p.yaml"]).exits(2);
    project.write("sub/d.csv", "id\nb\n");
    project.run(&["run", "sub/p.yaml"]).exits(0);
}

#[test]
fn a_path_is_the_name_of_one_file() {
    let table = |id: &str| {
        let ids: ArrayRef = Arc::new(StringArray::from(vec![id]));
        written(&[("id", ids)])
    };
    let content = |suffix: &str, id: &str| match suffix {
        "jsonl" => format!("{{\"id\":\"{id}\"}}\n").into_bytes(),
        "json" => format!("[{{\"id\":\"{id}\"}}]").into_bytes(),
        "csv" => format!("id\n{id}\n").into_bytes(),
        _ => table(id),
    };
    // Others that a pattern of this name would match as well, or instead.
    for (name, other) in [
        ("data[1]", "data1"),
        ("a*", "ab"),
        ("q?", "qq"),
        ("{x,y}", "x"),
        ("a%20b", "a b"),
        ("c b#c", "c b"),
        ("d=2023-10-08T20%3A54", "d=2023-10-08T20:54"),
        ("**", "all"),
    ] {
        for suffix in ["jsonl", "json", "csv", "parquet"] {
            let name = format!("{name}.{suffix}");
            let step = format!("  data: {{ op: read, with: {{ path: {} }} }}\n", json!(name));
            let project = Project::steps(&step)
                .with(&format!("{other}.{suffix}"), content(suffix, "other"))
                .with(&name, content(suffix, "this"))
                .ran();
            assert_eq!(project.rows("data"), [json!({"id": "this"})], "{name}");
        }
    }
}

#[test]
fn a_byte_order_mark_is_not_data() {
    for (file, text) in [
        ("d.jsonl", "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n"),
        ("d.json", "[{\"id\":\"a\",\"x\":1},\n{\"id\":\"b\",\"x\":2}]"),
        ("d.json", "{\"id\":{\"0\":\"a\"},\"x\":{\"0\":1}}"),
        ("d.csv", "id,x\na,1\nb,2\n"),
    ] {
        let digest = |text: &str| project(file, text).run_ok(&[]).step("data")["digest"].clone();
        assert_eq!(digest(text), digest(&format!("\u{feff}{text}")), "{text}");
    }
}
