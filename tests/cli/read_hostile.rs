//! `read`: files that were damaged, or made to do damage. None ends in a panic or a signal.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowWriter;

use crate::harness::{Outcome, Project, TIME_OUT, files_below, flat, hides, says};
use crate::read_files::project;

/// A Parquet file of these columns.
pub fn written(columns: &[(&str, ArrayRef)]) -> Vec<u8> {
    let field =
        |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let columns = columns.iter().map(|(_, column)| Arc::clone(column)).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A Parquet file of columns of texts and of numbers, by turns.
fn parquet(names: &[&str]) -> Vec<u8> {
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..500).map(|i| format!("row {i}"))));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..500));
    let column = |at: usize| Arc::clone(if at.is_multiple_of(2) { &texts } else { &numbers });
    let columns: Vec<_> = (0..).map(column).zip(names).map(|(c, name)| (*name, c)).collect();
    written(&columns)
}

/// A step may fail, the program may not.
#[track_caller]
fn ends_well(outcome: &Outcome) {
    assert!(matches!(outcome.code, Some(0..=4)), "{outcome}");
    for text in [&outcome.stderr, &outcome.stdout] {
        hides(text, &["panicked", "defect", "RUST_BACKTRACE"]);
    }
}

/// Refused, with these words in the one message.
#[track_caller]
fn refuses(project: &Project, words: &[&str]) {
    for verb in ["check", "run"] {
        let outcome = project.run(&[verb, "w.yaml"]).exits(2);
        ends_well(&outcome);
        says(&flat(&outcome.stderr), words);
    }
    assert!(project.stored_nothing());
}

#[test]
fn a_parquet_footer_longer_than_the_file_is_an_error_that_names_it() {
    let sound = parquet(&["id", "n"]);
    let at = sound.len() - 8;
    for length in [u32::MAX, sound.len() as u32, at as u32] {
        let mut bytes = sound.clone();
        bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        let project = project("d.parquet", bytes);
        refuses(&project, &["cannot read `d.parquet`: its footer should have", "damaged"]);
    }
    refuses(&project("d.parquet", &sound[..at]), &["`d.parquet`", "its end is missing"]);
    refuses(&project("d.parquet", b"PAR1"), &["`d.parquet`", "more than 4 bytes"]);
    // No flipped byte ends the program.
    let project = project("d.parquet", &sound);
    let (step, wanted) = (sound.len() / 20, [0x80, 0xff]);
    for (round, at) in (4..sound.len()).step_by(step).enumerate() {
        let mut bytes = sound.clone();
        bytes[at] ^= wanted[round % 2];
        project.write("d.parquet", bytes);
        ends_well(&project.run(&["run", "w.yaml", "--format", "json"]));
    }
    // Nor do files that made a library panic: they are errors that name them.
    let folder = crate::harness::package().join("../fuzz/corpus/read_parquet");
    for (name, code, said) in [
        ("page_beyond_its_column", 1, "d.parquet"),
        ("bits_beyond_a_word", 1, "a library gave up"),
        ("schema_of_no_type", 2, "its reader gave up"),
    ] {
        let project = self::project("d.parquet", std::fs::read(folder.join(name)).unwrap());
        let outcome = project.run(&["run", "w.yaml"]).exits(code);
        ends_well(&outcome);
        says(&flat(&outcome.stderr), &["cannot read `d.parquet`", said]);
        assert!(files_below(&project.path("cache/blobs")).is_empty(), "{name}");
    }
}

#[test]
fn a_damaged_stored_table_ends_no_verb() {
    let sound = project("d.parquet", parquet(&["id", "n"]));
    let with = "{ query: SELECT * FROM input WHERE n < 9 }";
    sound.append(&format!("  few: {{ op: sql, from: data, with: {with} }}\n"));
    sound.run_ok(&[]);
    let blobs = files_below(&sound.path("cache/blobs"));
    assert!(!blobs.is_empty());
    for blob in blobs {
        let mut bytes = std::fs::read(&blob).unwrap();
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&[0xff; 4]);
        std::fs::write(&blob, bytes).unwrap();
    }
    for args in [
        &["show", "w.yaml", "data"][..],
        &["show", "w.yaml", "few", "--format", "json"],
        &["sql", "w.yaml", "SELECT count(*) FROM data"],
        &["plan", "w.yaml"],
    ] {
        let outcome = sound.run(args);
        ends_well(&outcome);
        if outcome.code != Some(0) {
            let said = ["one stored file is damaged", "`few` is not computed yet"];
            assert!(said.iter().any(|text| outcome.stderr.contains(text)), "{outcome}");
        }
    }
    // Damaged results are computed again.
    sound.edit("w.yaml", "n < 9", "n < 8");
    let outcome = sound.run_ok(&[]);
    ends_well(&outcome);
    assert_eq!(outcome.step("few")["rows"], 8);
}

#[test]
fn two_columns_of_one_name_are_refused_in_every_format() {
    let once = ["two columns are called `n`", "give one of them another name"];
    refuses(&project("d.parquet", parquet(&["id", "n", "n"])), &once);
    refuses(&project("d.csv", "id,n,n\na,1,2\n"), &once);
    refuses(&project("d.csv", "id,\"n\",n\na,1,2\n"), &once);
    for (file, text, line) in [
        ("d.jsonl", "{\"id\":\"a\",\"n\":1}\n{\"id\":\"b\",\"n\":2,\"n\":3}\n", "line 2:"),
        ("d.json", "[{\"id\":\"a\",\n\"n\":1,\"n\":2}]", "line 2:"),
        ("d.json", "{\"id\":{\"0\":\"a\"},\n\"n\":{\"0\":1},\n\"n\":{\"0\":2}}", "line 3:"),
        ("d.jsonl", "{\"id\":\"a\",\"o\":{\"n\":1,\"\\u006e\":2}}\n", "line 1:"),
    ] {
        refuses(&project(file, text), &["an object has the key `n` twice", line]);
    }
    // The same key in two objects is nothing special.
    let sound =
        project("d.jsonl", "{\"id\":\"a\",\"o\":{\"id\":1},\"l\":[{\"id\":2},{\"id\":3}]}\n").ran();
    assert_eq!(sound.rows("data")[0]["o"]["id"], 1);
}

#[test]
fn more_columns_than_a_query_can_have_are_refused_at_once() {
    let header = |columns: usize| (0..columns).map(|at| format!(",c{at}")).collect::<String>();
    let started = Instant::now();
    refuses(&project("d.csv", format!("id{}\n", header(99_999))), &["it has 100000 columns"]);
    let names: Vec<String> = (0..10_001).map(|at| format!("c{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    refuses(&project("d.parquet", parquet(&names)), &["it has 10001 columns, and at most 10000"]);
    let keys = |row: usize| (0..5_000).map(|at| format!(",\"k{row}_{at}\":1")).collect::<String>();
    let rows: String = (0..200).map(|row| format!("{{\"id\":{row}{}}}\n", keys(row))).collect();
    let words = "line 2: its objects have more than 10000 different keys";
    refuses(&project("d.jsonl", rows), &[words]);
    assert!(started.elapsed() < TIME_OUT / 4, "{:?}", started.elapsed());
    // As many as are allowed are planned at once.
    project("d.csv", format!("id{}\n", header(9_999))).run(&["check", "w.yaml"]).exits(0);
}

#[test]
fn json_is_read_as_deep_as_it_can_be_stored() {
    let nested = |depth: usize| {
        format!("{{\"id\":\"a\",\"x\":{}1{}}}\n", "[".repeat(depth), "]".repeat(depth))
    };
    for depth in [33, 120, 100_000] {
        let file = project("d.jsonl", format!("{}{}", nested(3), nested(depth)));
        refuses(&file, &["line 2: values are nested more than 32 deep"]);
    }
    let objects = format!("[{{\"id\":\"a\",\"x\":{}1{}}}]", "{\"k\":".repeat(40), "}".repeat(40));
    refuses(&project("d.json", objects), &["line 1: values are nested more than 32 deep"]);
    let deep = project("d.jsonl", nested(32)).ran();
    let mut value = &deep.rows("data")[0]["x"];
    for _ in 0..32 {
        value = &value[0];
    }
    assert_eq!(*value, 1);
    deep.run_ok(&[]).all_hit();
}

#[test]
fn digits_that_would_be_lost_are_refused() {
    let words = ["the whole number 12345678901234567891 does not fit 64 bits", "in quotes"];
    let lines = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":12345678901234567891}\n";
    refuses(&project("d.jsonl", lines), &[&words[..], &["line 2"]].concat());
    refuses(&project("d.json", "[{\"id\":\"a\",\"x\":12345678901234567891}]"), &words);
    refuses(&project("d.json", "{\"x\":{\"0\":12345678901234567891}}"), &words);
    // Texts keep all of theirs, in CSV too.
    let kept = project("d.csv", "id,x\na,12345678901234567891\n").ran();
    assert_eq!(kept.rows("data")[0]["x"], "12345678901234567891");
    let mixed = project("d.jsonl", "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":\"t\"}\n");
    refuses(&mixed, &["cannot read `d.jsonl`: line 2: the column `x` is a text"]);
}

/// Arrow would write `ERROR: Cast error…` as the value of such a time into a file of JSON.
#[test]
fn a_time_that_no_calendar_has_is_refused() {
    let times: [ArrayRef; 3] = [
        Arc::new(TimestampMillisecondArray::from(vec![i64::MAX])),
        Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN])),
        Arc::new(Date32Array::from(vec![i32::MIN])),
    ];
    for time in times {
        let ids: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let project = project("d.parquet", written(&[("id", ids), ("t", time)]));
        project.append("outputs:\n  o: { from: data, path: o.jsonl }\n");
        let words = ["the column `t` has a ", "that no calendar has"];
        project.run(&["run", "w.yaml"]).exits(1).reports(&words);
        assert!(!project.path("o.jsonl").exists());
    }
    // A verb that computes it itself refuses it as well.
    let project = project("d.csv", "id\na\n").ran();
    let query = "SELECT from_unixtime(9223372036854775807) AS t FROM data";
    for format in ["table", "csv", "json"] {
        let outcome = project.run(&["sql", "w.yaml", query, "--format", format]).exits(1);
        hides(&outcome.stdout, &["ERROR"]);
        outcome.reports(&["the column `t` has a time"]);
    }
}
