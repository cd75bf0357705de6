//! `exec`: programs that fail, hang, or print something else than they promised.

use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use serde_json::json;

use crate::exec_faults::is_gone;
use crate::harness::{Project, Running, every, files_below, marked, patience, says, wait_for};
use crate::trust::flags;

fn workflow(command: &str) -> String {
    format!(
        "galeras: 1
steps:
  good:
    op: exec
    with: {{ command: 'printf \"{{\\\"id\\\":\\\"a\\\",\\\"x\\\":1}}\"', output: {{ id: utf8!, x: int64 }} }}
  table:
    op: exec
    with:
      command: |
        {command}
      output: {{ id: utf8!, x: int64! }}
  after: {{ op: sample, from: table, with: {{ n: 5, seed: 1 }} }}
"
    )
}

/// The step `table` fails with these words, and the steps that depend on it are skipped.
#[track_caller]
fn fails(command: &str, words: &[&str]) {
    let project = Project::new(&workflow(command));
    let outcome = project.run_json(&["--keep-going"]).exits(1);
    assert_eq!(outcome.statuses(), "good=ran table=failed after=skipped");
    assert_eq!(outcome.finished()["status"], "failed");
    says(&outcome.detail("table"), words);
    let shown = project.run(&["run", "w.yaml"]).exits(1).reports(words);
    assert!(shown.stdout.is_empty(), "{shown}");
    project.verifies("cache");
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    // It is tried again, and nothing of it is taken for a result.
    let again = project.run_json(&["--keep-going"]).exits(1);
    assert_eq!(again.statuses(), "good=hit table=failed after=skipped");
    project.run(&["show", "w.yaml", "table"]).exits(1);
}

/// Commands that fail, and words of the message.
#[rustfmt::skip]
const FAILURES: &[(&str, &[&str])] = &[
    ("echo first >&2; echo the disk is on fire >&2; exit 1", &["exit status: 1", "the disk is on fire"]),
    ("no-such-program --now", &["127", "no-such-program"]),
    ("kill -9 $$", &["signal: 9"]),
    ("printf '{\"id\":\"a\"}\\n'", &["x", "`output`"]),
    ("printf '{\"id\":\"a\",\"x\":1,\"y\":2}\\n'", &["y", "`output`"]),
    (r#"printf '{"id":"a","x":"one"}\n'"#, &["x", "`output`"]),
    (r#"printf '{"id":7,"x":1}\n'"#, &["id", "`output`"]),
    (r#"printf '{"id":"a","x":1.5}\n'"#, &["x", "`output`"]),
    (r#"printf '{"id":"a","x":9007199254740993.0}\n'"#, &["x", "`output`"]),
    (r#"printf '{"id":"a","x":1e300}\n'"#, &["x", "`output`"]),
    (r#"printf '{"id":"a","x":"1"}\n'"#, &["x", "`output`"]),
    ("printf '{\"id\":\"a\",\"x\":null}\\n'", &["x", "null", "`output`"]),
    ("echo hello", &["`output`"]),
    (r#"printf '{"id":"a","x":1}\n{"id":"b","x":2}\n{"id":"a","x":3}\n'"#, &["id", "x: 1", "x: 3"]),
    (r#"printf '{"id":"a","x":1}\n{"id":"b","x":2,"\\u0078":3}\n'"#, &["line 2", "`x` twice", "`output`"]),
];

#[test]
fn a_command_that_fails_or_prints_another_table_fails_its_step() {
    every(FAILURES.iter().map(|case| (case.0, case)), |(a, b)| fails(a, b));
}

#[test]
fn a_command_that_floods_standard_error_is_quoted_in_part() {
    let command = "yes 'it went wrong' | head -c 5000000 >&2; echo the end >&2; exit 3";
    let project = Project::new(&workflow(command));
    let shown = project.run(&["run", "w.yaml"]).exits(1).reports(&["the end"]);
    assert!(shown.stderr.len() < 10_000, "{}", shown.stderr.len());
}

#[test]
fn no_rows_are_an_empty_table() {
    let project = Project::new(&workflow("true"));
    assert_eq!(project.run_ok(&[]).step("table")["rows"], 0);
    assert_eq!(project.rows("after").len(), 0);
    // Columns are found by their names.
    let project = Project::new(&workflow("printf '{\"x\":1,\"id\":\"a\"}\\n'")).ran();
    assert_eq!(project.rows("table"), [json!({"id": "a", "x": 1})]);
}

#[test]
fn a_command_that_hangs_ends_with_an_interruption_or_a_termination() {
    let unsandboxed = |command: &str| workflow(&format!("{command}\n      sandbox: none"));
    let project = Project::new(&unsandboxed("sleep 600 & echo $! > child; sleep 600"));
    let running = Running::start(project.command(&["run", "w.yaml", "--format", "json"]));
    wait_for("the command", || {
        std::fs::read_to_string(project.path("child")).is_ok_and(|t| t.ends_with('\n'))
    });
    let interrupted = Instant::now();
    running.signal("INT");
    let outcome = running.finish().exits(130);
    assert!(interrupted.elapsed() < patience(5), "{:?}", interrupted.elapsed());
    assert_eq!(outcome.finished()["status"], "interrupted");
    // The child of the command has ended as well.
    let child = project.read("child");
    wait_for("the end of the child", || is_gone(&child));
    project.verifies("cache");
    assert!(files_below(&project.path("cache/tmp")).is_empty());
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    project.change("sleep 600 & echo $! > child; sleep 600", "printf '{\"id\":\"a\",\"x\":1}'");
    assert!(project.run_ok(&[]).statuses().ends_with("table=ran after=ran"));
    let project = Project::new(&unsandboxed("touch started; exec sleep 600"));
    let running = Running::start(project.command(&["run", "w.yaml"]));
    wait_for("the command", || project.path("started").exists());
    running.signal("TERM");
    let outcome = running.finish().exits(130);
    assert!(outcome.stdout.is_empty() && outcome.stderr.contains("interrupted"), "{outcome}");
}

#[test]
fn a_changed_file_is_a_reason_to_run() {
    let files = "cat data.jsonl\n      files: [data.jsonl]";
    let project =
        Project::new(&workflow(files)).with("data.jsonl", "{\"id\":\"a\",\"x\":1}\n").ran();
    project.run_ok(&[]).all_hit();
    project.edit("data.jsonl", "1", "2");
    let outcome = project.run_ok(&[]).went("good=hit table=ran after=ran");
    assert_eq!(outcome.step("table")["reason"], "FILE_CHANGED");
    assert!(outcome.detail("table").contains("data.jsonl"));
}

#[test]
fn a_python_program_reads_and_writes_json_lines() {
    let steps = "  table:
    op: exec
    with: { command: 'cat data.jsonl', files: [data.jsonl], output: { id: utf8!, x: int64! } }
  doubled:
    op: exec
    from: table
    with:
      command: python3 double.py
      files: [double.py]
      output: { id: utf8!, x: int64!, label: utf8 }
";
    let project = Project::steps(steps);
    project.write("data.jsonl", "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n");
    let program = "import json, os, sys
with open(os.environ['GALERAS_INPUT_INPUT']) as f:
    assert f.read() == sys.stdin.read()
    f.seek(0)
    for line in f:
        row = json.loads(line)
        label = None if row['id'] == 'a' else 'é'
        print(json.dumps({'id': row['id'], 'x': 2 * row['x'], 'label': label}))
";
    let doubled = project.with("double.py", program).ran().rows("doubled");
    let first = json!({"id": "a", "x": 2, "label": null});
    assert_eq!(doubled, [first, json!({"id": "b", "x": 4, "label": "é"})]);
}

pub fn batch(ids: &[&str], xs: &[i64]) -> RecordBatch {
    let id = Field::new("id", DataType::Utf8, false);
    let schema = Schema::new(vec![id, Field::new("x", DataType::Int64, false)]);
    let ids = Arc::new(StringArray::from(ids.to_vec()));
    let xs = Arc::new(Int64Array::from(xs.to_vec()));
    RecordBatch::try_new(Arc::new(schema), vec![ids, xs]).unwrap()
}

pub fn write(format: &str, file: &File, batches: &[RecordBatch]) {
    let schema = batches[0].schema();
    if format == "parquet" {
        let mut writer = ArrowWriter::try_new(file, schema, None).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.close().unwrap();
    } else {
        let mut writer = StreamWriter::try_new(file, &schema).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
}

#[test]
fn tables_pass_from_a_file_and_through_cat_as_parquet_and_as_an_arrow_stream() {
    every(["parquet", "arrow"].map(|format| (format, format)), |format| {
        let project = Project::steps(&format!(
            "  table: {{ op: exec, with: {{ command: cat data, files: [data], format: {format}, output: {{ id: utf8!, x: int64! }} }} }}
  same: {{ op: exec, from: table, with: {{ command: cat, format: {format}, output: {{ id: utf8!, x: int64! }} }} }}
  other: {{ op: exec, from: table, with: {{ command: cat, format: {format}, output: {{ id: utf8!, x: float64 }} }} }}
"
        ));
        write(format, &File::create(project.path("data")).unwrap(), &[batch(&["b", "a"], &[2, 1])]);
        let outcome = project.run_json(&["--keep-going"]).exits(1);
        assert_eq!(outcome.statuses(), "table=ran same=ran other=failed");
        assert_eq!(outcome.step("table")["digest"], outcome.step("same")["digest"]);
        says(&outcome.detail("other"), &["`x` has type int64 instead of float64"]);
        assert_eq!(project.rows("same")[0], json!({"id": "a", "x": 1}));
        project.write("data", b"no table at all");
        project.fails("table", &["`output`"]);
    });
}

/// A step whose command gives a row if this one succeeds.
fn conditional(with: &str, command: &str) -> Project {
    let project = Project::steps(&format!(
        "  table:
    op: exec
    with:
      command: |
        ({command}) >&2 && printf '{{\"id\":\"a\"}}'
      output: {{ id: utf8! }}
      {with}
"
    ));
    for (name, text) in
        [("data", "some\n"), ("out/old", ""), ("main.py", "import helper"), ("helper.py", "")]
    {
        project.write(name, text);
    }
    // Commands of root are another user.
    let anyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(project.path("out"), anyone).unwrap();
    project
}

/// Arguments, a command, and whether it succeeds.
#[rustfmt::skip]
const SEEN: &[(&str, &str, bool)] = &[
    ("", "cat data", true),
    ("", "cat d*", false),
    ("files: [data]", "cat data", true),
    ("files: [data]", "cat w*", false),
    ("files: [main.py, helper.py]", "python3 main.py", true),
    ("files: [main.py]", "python3 main.py", false),
    ("files: [data]", "echo x > data", false),
    ("sandbox: { read: [data] }", "cat data", true),
    ("sandbox: { read: [.] }", "cat data out/old w.yaml && ! ls cache", true),
    ("sandbox: { read: [.] }", "echo x > out/old", false),
    ("sandbox: { write: [out] }", "echo x > out/new && cat out/new", true),
    ("", "test $HOME = /sandbox && test $TZ = UTC && echo x > $TMPDIR/x", true),
    ("", "python3 -c 'import socket; socket.socket()'", false),
    ("sandbox: none", "cat data && test \"$HOME\" != /sandbox", true),
    ("sandbox: { command: [env, SEEN=yes] }", "cat data && test $SEEN = yes", true),
];

#[test]
fn a_command_sees_its_files_and_what_it_was_given() {
    every(SEEN.iter().map(|case| (format!("{} {}", case.0, case.1), case)), |case| {
        let (with, command, succeeds) = *case;
        let project = conditional(with, command);
        let allow = ["--allow", "exec,unsandboxed,write:out"];
        project.run_json(&allow).exits(i32::from(!succeeds));
        let again = [&allow[..], &["--force", "table"]].concat();
        project.run_json(&again).exits(i32::from(!succeeds));
    });
    // The message says why.
    let project = conditional("", "cat d*");
    project.run(&["run", "w.yaml"]).exits(1).reports(&["cat: ", "sandbox", "`files`"]);
}

#[test]
fn what_a_sandbox_leaves_out_needs_consent_of_its_own() {
    let with = "sandbox: { network: true, read: [../outside] }";
    let project = conditional(with, "python3 -c 'import socket; socket.socket()'");
    project.write("../outside/file", "");
    let args = ["run", "w.yaml", "--format", "json"];
    let asked = Running::start(project.command_as_typed(&args)).finish().exits(2);
    let outside = project.path("../outside").canonicalize().unwrap();
    let read = format!("read:{}", outside.display());
    assert_eq!(flags(&asked), ["exec", "network", &read]);
    project.run_json(&["--allow", &format!("exec,network,{read}")]).exits(0);
    std::os::unix::fs::symlink(outside.join("file"), project.path("linked")).unwrap();
    let linked = conditional("files: [linked]", "cat linked").read("w.yaml");
    let asked = project.with("w.yaml", linked).run_program().exits(2);
    assert_eq!(flags(&asked), [format!("read:{}", outside.join("file").display())]);
    // Hidden files in a folder of the workflow may start other programs.
    let project = conditional("sandbox: { write: [out] }", "true");
    let asked = Running::start(project.command_as_typed(&args)).finish().exits(2);
    let write = format!("write:{}", project.path("out").canonicalize().unwrap().display());
    assert_eq!(flags(&asked), ["exec", &write]);
    // The rights are a part of the question.
    let project = conditional(with, "python3 -c 'import socket; socket.socket()'");
    project.write("../outside/file", "");
    let read = format!("read:{}", project.path("../outside").canonicalize().unwrap().display());
    project.change("network: true, ", "");
    let asked = project.run_json(&["--allow", &format!("exec,{read}")]).exits(1);
    assert_eq!(asked.statuses(), "table=failed");
    for (sandbox, code) in [
        ("sandbox: { read: [«nowhere] }", "missing-file"),
        ("sandbox: { write: [«data] }", "missing-file"),
        ("sandbox: { command: «[] }", "empty-list"),
        ("sandbox: { command: «[env], network: true }", "conflicting-arguments"),
        ("sandbox: «off", "wrong-value"),
    ] {
        let (text, place) = marked(&conditional(sandbox, "true").read("w.yaml"));
        let project = Project::new(&text).with("data", "");
        project.refused_at(&place, code, &[]);
    }
}
