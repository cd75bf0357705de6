//! `read`: which types columns have, declared or inferred, and that no value is altered in silence.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Decimal128Array, FixedSizeBinaryArray, LargeListArray, ListArray,
    StringArray,
};
use arrow::datatypes::Int64Type;
use serde_json::{Value, json};

use crate::harness::{Project, flat, says};
use crate::read_hostile::written;

fn project(file: &str, content: impl AsRef<[u8]>, more: &str) -> Project {
    Project::steps(&format!("  data: {{ op: read, with: {{ path: '{file}'{more} }} }}\n"))
        .with(file, content)
}

#[track_caller]
fn refuses(file: &str, content: impl AsRef<[u8]>, more: &str, words: &[&str]) {
    let outcome = project(file, content, more).run(&["check", "w.yaml"]).exits(2);
    says(&flat(&outcome.stderr), words);
}

#[test]
fn read_takes_values_as_the_types_that_are_declared() {
    let types = ", columns: { n: code }, types: { code: utf8, x: float64 }";
    let rows =
        [json!({"id": "a", "code": "7", "x": 1.0}), json!({"id": "b", "code": "8", "x": 2.0})];
    for (file, text) in [
        ("d.csv", "id,n,x\na,7,1\nb,8,2\n"),
        ("d.jsonl", "{\"id\":\"a\",\"n\":\"7\",\"x\":1}\n{\"id\":\"b\",\"n\":\"8\",\"x\":2}\n"),
        ("d.json", "[{\"id\":\"a\",\"n\":\"7\",\"x\":1},{\"id\":\"b\",\"n\":\"8\",\"x\":2}]"),
    ] {
        assert_eq!(project(file, text, types).ran().rows("data"), rows, "{file}");
    }
}

#[test]
fn read_keeps_values_of_any_kind_as_json_texts_and_columns_may_be_absent() {
    let types = ", types: { x: json, tests: 'list<utf8>?' }";
    let rows = [
        "{\"id\":\"a\",\"x\":[1, [\"y\", 2.50]]}",
        "{\"id\":\"b\",\"x\":123456789012345678901234567890}",
        "{\"id\":\"c\",\"x\":null}",
    ];
    for (file, text) in
        [("d.jsonl", rows.join("\n")), ("d.json", format!("[{}]", rows.join(",\n")))]
    {
        let found = project(file, text, types).ran().rows("data");
        let texts: Vec<_> = found.iter().map(|row| row["x"].as_str()).collect();
        let wanted = [Some("[1, [\"y\", 2.50]]"), Some("123456789012345678901234567890"), None];
        assert_eq!(texts, wanted, "{file}");
        assert!(found.iter().all(|row| row["tests"].is_null()), "{file}");
    }
    refuses("d.jsonl", rows[0], ", types: { x: 'json!?' }", &["leave out the `!`"]);
    refuses("d.jsonl", rows[2], ", types: { y: json }", &["no column `y`"]);
    refuses("d.jsonl", rows[0], "", &["the column `x.[]` is"]);
}

#[test]
fn read_decompresses_what_gzip_wrote() {
    let project = project("d.jsonl", "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n", "");
    let plain = project.run_ok(&[]).step("data")["digest"].clone();
    project.sh("gzip d.jsonl").exits(0);
    project.change("d.jsonl", "d.jsonl.gz");
    assert_eq!(project.run_ok(&[]).step("data")["digest"], plain);
    let words = ["cannot read `d.jsonl.gz`"];
    refuses("d.jsonl.gz", [0x1f_u8, 0x8b, 0, 0], "", &words);
}

#[test]
fn read_names_the_value_that_does_not_fit() {
    let csv = "id,day\na,2020-02-28\nb,2020-02-29\nc,2020-02-30\n";
    let words = "`d.csv`: line 4: the column `day` is `2020-02-30`";
    refuses("d.csv", csv, ", types: { day: date }", &[words]);
    let lines = "{\"id\":\"a\",\"n\":1}\n{\"id\":\"b\",\"n\":1.5}\n";
    let words = "line 2: the column `n` is `1.5`, not int64";
    refuses("d.jsonl", lines, ", types: { n: int64 }", &[words]);
    refuses("d.csv", csv, ", types: { dya: date }", &["no column `dya`", "did you mean `day`"]);
    refuses("d.csv", csv, ", types: { day: 'list<utf8>' }", &["no values of the type"]);
    // Types are inferred only where no value would change.
    let csv = "id,sha,zip,big\na,1234567,7,1\nb,12e4567,\"007\",1e400\n";
    let project = project("d.csv", csv, "").ran();
    let found = project.rows("data").remove(1);
    assert_eq!(found, json!({"id": "b", "sha": "12e4567", "zip": "007", "big": "1e400"}));
    let words = ["line 2: the column `x` has fractions", "9007199254740993"];
    refuses("d.csv", "id,x\na,9007199254740993\nb,1.5\n", "", &words);
    let lines = "{\"id\":\"a\",\"x\":1.5}\n{\"id\":\"b\",\"x\":9007199254740993}\n";
    refuses("d.jsonl", lines, "", &["line 2: the column `x` has fractions"]);
    let lines = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":18446744073709551616}\n";
    let words = ["line 2: the whole number 18446744073709551616 does not fit 64 bits", "in quotes"];
    refuses("d.jsonl", lines, "", &words);
}

#[test]
fn read_takes_delimiters_missing_values_and_packed_files() {
    let rows = [json!({"id": "a", "x": 1.5}), json!({"id": "b", "x": null})];
    for (text, more) in [
        ("id;x\na;1.5\nb;\n", ", delimiter: ';'"),
        ("id\tx\na\t1.5\nb\tN/A\n", ", delimiter: \"\\t\", null_values: [N/A, '-']"),
    ] {
        assert_eq!(project("d.csv", text, more).ran().rows("data"), rows, "{more}");
    }
    // In quotes it is a text.
    let quoted = project("d.csv", "id,s\na,\"NA\"\nb,NA\n", ", null_values: [NA]").ran();
    let texts: Vec<Value> = quoted.rows("data").iter().map(|row| row["s"].clone()).collect();
    assert_eq!(texts, [json!("NA"), Value::Null]);
    let words = "line 3: the column `x` is `N/A` among numbers";
    refuses("d.csv", "id,x\na,1.5\nb,N/A\n", "", &[words, "`null_values: [\"N/A\"]`"]);
    let words = "line 3: the column `x` is `NA`, not int64; if it stands for a missing value";
    refuses("d.csv", "id,x\na,1\nb,NA\n", ", types: { x: int64 }", &[words]);
    refuses("d.csv", "id,x\n", ", delimiter: ', '", &["`delimiter` is one ASCII character"]);
    // Files that are not what their names promise.
    for (text, words) in [
        ("id;x\na;1\n", "its header has no comma: add `delimiter: \";\"`"),
        ("id\tx\na\t1\n", "add `delimiter: \"\\t\"`"),
        ("<!DOCTYPE html>\n<html>\n", "it is a web page"),
        ("PK\u{3}\u{4}", "it is a zip archive"),
    ] {
        refuses("d.csv", text, "", &[words]);
    }
    refuses("d.csv", b"\xff\xfei\0d\0", "", &["it is UTF-16"]);
    refuses("d.jsonl", "[{\"id\":1}]\n", "", &["add `format: json`"]);
    refuses(
        "d.csv",
        "id;x\na;1\n",
        ", key: [id]",
        &["its header has no comma", "add `delimiter: \";\"`"],
    );
    refuses(
        "d.jsonl",
        "{\"id\":1}\n",
        ", delimiter: ';'",
        &["is for CSV, and this file is JSON lines"],
    );
    let csv = "id,x\na,1.5\nb,\n";
    let lines = "{\"id\":\"a\",\"x\":1.5}\n{\"id\":\"b\",\"x\":null}\n";
    for (file, text) in [("d.csv", csv), ("d.jsonl", lines)] {
        for (pack, suffix) in [("gzip", "gz"), ("zstd -q --rm", "zst")] {
            let project = project(&format!("{file}.{suffix}"), "", "").with(file, text);
            // Without the program `zstd` there is nothing to read.
            if project.sh(&format!("{pack} -f {file}")).code == Some(0) {
                assert_eq!(project.ran().rows("data"), rows, "{file}.{suffix}");
            }
        }
    }
}

#[test]
fn read_gives_empty_texts_and_nulls_back_as_they_were_written() {
    let project = project("d.jsonl", "{\"id\":\"a\",\"s\":\"\"}\n{\"id\":\"b\",\"s\":null}\n", "");
    project.append("outputs:\n  o: { from: data, path: o.csv }\n");
    let first = project.run_ok(&[]).step("data")["digest"].clone();
    assert_eq!(project.read("o.csv"), "id,s\na,\"\"\nb,\n");
    project.write("w.yaml", "galeras: 1\nsteps:\n  data: { op: read, with: { path: o.csv } }\n");
    assert_eq!(project.run_ok(&[]).step("data")["digest"], first);
    // Blank rows of a single column are rows.
    let project = self::project("a#b.csv", "x\n1\n\n3\n", ", position: { column: at }").ran();
    let mut rows: Vec<_> =
        project.rows("data").iter().map(|r| (r["at"].clone(), r["x"].clone())).collect();
    rows.sort_by_key(|(at, _)| at.as_i64());
    assert_eq!(rows, [(json!(0), json!(1)), (json!(1), json!(null)), (json!(2), json!(3))]);
}

#[test]
fn read_says_where_a_file_is_wrong() {
    refuses("d.jsonl", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":}\n", "", &["`d.jsonl`", "line 3"]);
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let money: ArrayRef = Arc::new(Decimal128Array::from(vec![1]));
    let words = ["`d.parquet`: its column `money`", "cannot be stored"];
    refuses("d.parquet", written(&[("id", ids), ("money", money)]), "", &words);
}

#[test]
fn rows_of_bytes_and_of_large_lists_have_their_own_ids() {
    let bytes: ArrayRef =
        Arc::new(BinaryArray::from_iter_values([&b"\xff"[..], b"\xfe", b"", b"a"]));
    let fixed = [[0_u8; 16], [0xff; 16], [0xfe; 16]];
    let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(fixed.into_iter()).unwrap());
    for (column, rows) in [(bytes, 4), (fixed, 3)] {
        let project = project("d.parquet", written(&[("x", column)]), "");
        assert_eq!(project.run_ok(&[]).step("data")["rows"], rows);
    }
    let values = || [Some(vec![Some(1), None]), None, Some(vec![])];
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(values()));
    let large: ArrayRef =
        Arc::new(LargeListArray::from_iter_primitive::<Int64Type, _, _>(values()));
    let digests = [list, large].map(|column| {
        let project = project("d.parquet", written(&[("x", column)]), "");
        project.run_ok(&[]).step("data")["digest"].clone()
    });
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn a_column_of_two_kinds_is_refused_before_anything_runs() {
    let words = "line 3: the column `a` is a text, and on line 1 it is a number";
    let rows = ["{\"a\":1}", "{\"a\":2}", "{\"a\":\"x\"}"];
    refuses("d.jsonl", rows.join("\n"), "", &[words]);
    refuses("d.json", format!("[{}]", rows.join(",\n")), "", &[words]);
    let lists = "{\"a\":[1]}\n{\"a\":1}\n";
    refuses(
        "d.jsonl",
        lists,
        "",
        &["line 2: the column `a` is a number, and on line 1 it is a list"],
    );
}
