//! The progress of a run: counts with their units, `step 3 of 12`, the time left, lines
//! in a pipe, and where to look afterwards.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Outcome, Project, Running, wait_for};

/// Three files of Python, two methods each, and what reads them.
const WORKFLOW: &str = "galeras: 1
name: counts
params: { least: { type: int, default: 0 } }
steps:
  methods: { op: methods, with: { dir: code } }
  features: { op: ast, from: methods }
  few:
    op: sql
    from: features
    with: { query: 'SELECT id, nloc FROM input WHERE nloc > ${{ params.least }}', key: [id] }
outputs:
  few: { from: few, path: out/few.csv, show: true, rows: { min: 0 } }
";

fn project() -> Project {
    let project = Project::new(WORKFLOW);
    for name in ["a", "b", "c"] {
        let method = |at: u8| format!("def {name}{at}(x):\n    y = x + {at}\n    return y\n\n\n");
        project.write(&format!("code/{name}.py"), format!("{}{}", method(1), method(2)));
    }
    project
}

/// `run w.yaml` with more arguments, as in a pipe of a shell that exports no `COLUMNS`.
fn piped(project: &Project, more: &[&str]) -> Command {
    let mut command = project.command(&[&["run", "w.yaml"], more].concat());
    command.env_remove("COLUMNS");
    command
}

#[track_caller]
fn run_piped(project: &Project, more: &[&str]) -> Outcome {
    Running::start(piped(project, more)).finish()
}

#[test]
fn files_are_counted_as_files_and_rows_as_rows() {
    let project = project();
    let outcome = project.run_ok(&[]);
    let of = |kind: &str, step: &str| {
        let event = outcome.events(kind).into_iter().rfind(|event| event["step"] == step);
        event.unwrap_or_else(|| panic!("no {kind} of {step}\n{outcome}"))
    };
    assert_eq!(of("step_started", "methods")["unit"], "files");
    let methods = outcome.step("methods");
    for (told, unit, column, count) in [
        (of("step_total", "methods"), "files", "total", 3),
        (of("progress", "methods"), "files", "done", 3),
        (of("progress", "features"), "rows", "done", 6),
        (methods.clone(), "files", "computed_rows", 3),
        (methods, "files", "rows", 6),
    ] {
        assert_eq!((&told["unit"], &told[column]), (&unit.into(), &count.into()), "{told}");
    }
    // One file is new: it has a method more.
    project.write("code/d.py", "def d(x):\n    y = x\n    return y\n");
    run_piped(&project, &[]).exits(0).reports(&[
        "1 file computed, 3 reused",
        "1 row computed, 6 reused",
        "(1 file and 8 rows computed, 3 files and 6 rows reused) in ",
    ]);
}

#[test]
fn every_step_that_starts_says_which_one_of_how_many_it_is() {
    let project = project();
    let started = |outcome: &Outcome| -> Vec<String> {
        let lines = outcome.stderr.lines().filter(|line| line.contains(" started "));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let outcome = run_piped(&project, &["--select", "features"]).exits(0);
    let found = started(&outcome);
    assert_eq!(found, ["methods started step 1 of 2 NEW", "features started step 2 of 2 NEW"]);
    // A stored step counts as done.
    let outcome = run_piped(&project, &["--jobs", "1"]).exits(0);
    assert_eq!(started(&outcome), ["few started step 3 of 3 NEW"]);
    let told = project.run_ok(&["--force", "features"]).events("run_progress");
    assert_eq!((&told[0]["begun"], &told[0]["steps"]), (&2.into(), &3.into()), "{told:?}");
    // If nothing is computed, no progress is reported.
    let outcome = project.run_ok(&[]);
    outcome.all_hit();
    assert!(outcome.events("run_progress").is_empty(), "{outcome}");
}

#[test]
fn no_line_is_wrapped_in_a_pipe() {
    let long = "x".repeat(120);
    let project = project();
    project.change("nloc > ${{", &format!("''{long}'' <> '''' AND nloc > ${{{{"));
    project.change("  few:\n    op", &format!("  few_{long}:\n    op"));
    project.change("from: few,", &format!("from: few_{long},"));
    run_piped(&project, &[]).exits(0);
    project.change("nloc >", "9 > nloc - ");
    project.change("op: ast", "op: ast, assert: [ { expr: 'nloc > 900', severity: warn } ]");
    let outcome = run_piped(&project, &[]).exits(0);
    let words: Vec<&str> =
        outcome.stderr.lines().map(|line| line.split_whitespace().next().unwrap_or("")).collect();
    let step = format!("few_{long}");
    let expected =
        ["results", "counts:", "methods", "warning:", "features", &step, &step, "up", "ok:", "to"];
    // The detail of a change has a separate line.
    let words: Vec<&str> = words.into_iter().filter(|word| !word.starts_with("with.")).collect();
    assert_eq!(words, expected, "{outcome}");
    // A narrow terminal gets what fits.
    let mut narrow = piped(&project, &["--force", "methods"]);
    narrow.env("COLUMNS", "30");
    let outcome = Running::start(narrow).finish().exits(0);
    let to_copy = |line: &&str| !line.starts_with("to see rows: ");
    for line in outcome.stderr.lines().filter(to_copy) {
        assert!(line.chars().count() <= 30, "{line}\n{outcome}");
    }
}

/// A step that ends when a file is there.
const WAITING: &str = "galeras: 1
steps:
  slow:
    op: exec
    with:
      sandbox: none
      command: touch started; until test -e go; do sleep 0.02; done; echo '{\"id\":\"a\"}'
      output: { id: utf8! }
  after: { op: sql, from: slow, with: { query: SELECT id FROM input, key: [id] } }
";

/// Runs until the slow step is reported, and on to the end. Returns the reported times left.
#[track_caller]
fn waited(project: &Project, more: &str, ready: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let _ = std::fs::remove_file(project.path("go"));
    let script = format!(
        "exec \"$GALERAS\" run w.yaml --allow exec,unsandboxed --format json {more} > events"
    );
    let running = Running::start(project.shell(&script));
    let told = || -> Vec<Value> {
        let text = std::fs::read_to_string(project.path("events")).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let told = events.filter(|event| event["event"] == "run_progress");
        told.map(|event| event["seconds_left"].clone()).collect()
    };
    wait_for("the progress of the run", || ready(&told()));
    project.write("go", "");
    running.finish().exits(0);
    told()
}

#[test]
fn the_time_left_is_told_from_earlier_runs_and_otherwise_not_at_all() {
    let project = Project::new(WAITING);
    // Of a first run nothing is known.
    let told = waited(&project, "", |told| told.len() > 2);
    assert!(told.iter().all(Value::is_null), "{told:?}");
    let known = |told: &[Value]| told.iter().any(Value::is_number);
    let told = waited(&project, "--force slow", known);
    let known: Vec<f64> = told.iter().filter_map(Value::as_f64).collect();
    assert!(known.iter().all(|seconds| (0.0..100.0).contains(seconds)), "{told:?}");
    // A new step, whose time is unknown: no time is reported for the whole.
    project.change("  after:", "  other: { op: sql, from: slow, with: { query: SELECT id FROM input, key: [id] } }\n  after:");
    project.change("echo '{\"id\":\"a\"}'", "echo '{\"id\":\"b\"}'");
    let told = waited(&project, "", |told| told.len() > 2);
    let (before, last) = told.split_at(told.len() - 2);
    assert!(before.iter().all(Value::is_null), "{before:?} {last:?}");
}

#[test]
fn the_last_words_come_last_and_say_where_to_look() {
    let project = project();
    let merged =
        |more: &str| project.sh(&format!("\"$GALERAS\" run w.yaml {more} 2>&1")).exits(0).stdout;
    for _ in 0..2 {
        let text = merged("--set least=1");
        let lines: Vec<&str> = text.lines().collect();
        let [.., table, ended, look] = lines.as_slice() else { panic!("{text}") };
        assert!(table.ends_with('3') && ended.starts_with("ok: 3 steps, "), "{text}");
        assert_eq!(*look, "to see rows: galeras show w.yaml few --set least=1");
    }
    // The output has no rows: the last step that has any is named.
    let look = "to see rows: galeras show w.yaml features --set least=900";
    assert_eq!(merged("--set least=900").lines().last(), Some(look));
    let command = "show w.yaml methods --cache 'other cache'";
    let text = merged("--select methods --cache 'other cache'");
    assert_eq!(text.lines().last().unwrap(), format!("to see rows: galeras {command}"));
    assert!(project.sh(&format!("\"$GALERAS\" {command}")).exits(0).stdout.contains("a.py"));
    // The command that shows rows works for odd names.
    let project = self::project();
    project.change("  few:\n    op: sql", "  few:\n    matrix: { least: [0, 900] }\n    op: sql");
    project.change("params.least }}', key", "matrix.least }}', key");
    project.change("from: few,", "from: \"few[*]\",");
    project.change("out/few.csv, show: true", "out/few.csv");
    std::fs::rename(project.path("w.yaml"), project.path("it's w.yaml")).unwrap();
    let outcome = project.run(&["run", "it's w.yaml"]).exits(0);
    let look = outcome.stderr.lines().last().unwrap();
    assert_eq!(look, r"to see rows: galeras show 'it'\''s w.yaml' 'few[least=0]'");
    let command = look.strip_prefix("to see rows: galeras ").unwrap();
    assert!(project.sh(&format!("\"$GALERAS\" {command}")).exits(0).stdout.contains("nloc"));
    // A failed run suggests it only if there are rows.
    let project = self::project();
    project.change("from: methods", "from: methods, assert: [ { expr: 'nloc > 900' } ]");
    let outcome = project.run(&["run", "w.yaml"]).exits(3);
    assert!(outcome.stderr.ends_with("\nto see rows: galeras show w.yaml features\n"), "{outcome}");
    project.run(&["show", "w.yaml", "features"]).exits(0);
    project.change("nloc > ${{", "1 / (nloc - nloc) > ${{");
    project.change("nloc > 900", "nloc > 0");
    let outcome = project.run(&["run", "w.yaml"]).exits(1);
    assert!(!outcome.stderr.contains("to see rows"), "{outcome}");
}
