//! A rerun computes what an edit really changed, and nothing else.

use serde_json::Value;

use crate::harness::{Outcome, Project, says};

const WORKFLOW: &str = "galeras: 1
name: incremental
params:
  seed: { type: int, default: 42 }
steps:
  methods:
    op: methods
    with: { dir: src }
  features:
    op: ast
    from: methods
  valid:
    op: validate
    from: features
    with:
      rules:
        - { name: parses, check: n_ast_errors = 0 }
        - { name: long, check: nloc > 1 }
  testbed:
    op: cut
    from: valid
    with: { seed: '${{ params.seed }}', min: 0.4, max: 0.65 }
  table:
    op: describe
    from: testbed
    with: { columns: [nloc, token_counts] }
  lengths:
    op: sql
    from: testbed
    with: { query: 'SELECT id, cut_at FROM input' }
";

const FILES: [(&str, &str); 3] = [
    ("src/a.py", "def add(a, b):\n    c = a + b\n    return c\n\n\ndef short(): pass\n"),
    (
        "src/b.py",
        "class B:\n    def name(self):\n        if self.x:\n            return 'b'\n        return None\n",
    ),
    (
        "src/c/d.py",
        "def long(x):\n    total = 0\n    for i in range(x):\n        total += i\n    return total\n",
    ),
];

fn project() -> Project {
    FILES.iter().fold(Project::new(WORKFLOW), |project, (name, text)| project.with(name, text))
}

fn computed() -> (Project, Outcome) {
    let project = project();
    let outcome = project.run_ok(&[]);
    assert!(!outcome.stdout.contains("\"hit\""), "{outcome}");
    (project, outcome)
}

#[test]
fn a_second_run_computes_nothing_jobs_change_nothing_and_events_come_in_order() {
    let (project, before) = computed();
    let after = project.run_ok(&[]).all_hit_as(&before);
    assert!(after.events("step_started").is_empty(), "{after}");
    for step in after.finished()["steps"].as_array().unwrap() {
        assert_eq!(step["computed_rows"], 0);
        assert!(step["reason"].is_null() && step["digest"].is_string());
    }
    let project = self::project();
    let one = project.run_ok(&["--jobs", "1", "--cache", "one"]);
    assert_eq!(one.digests(), project.run_ok(&["--jobs", "2", "--cache", "two"]).digests());
    assert_eq!(one.digests().len(), 6 + 5);
    let outcome = self::project().run_ok(&[]);
    let events = outcome.json_lines();
    assert_eq!(events[0]["event"], "started");
    let order: Vec<&str> =
        events[0]["steps"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(order, ["methods", "features", "valid", "testbed", "table", "lengths"]);
    for step in order {
        let at = |kind: &str| events.iter().position(|e| e["event"] == kind && e["step"] == step);
        assert!(at("step_started").unwrap() < at("step_finished").unwrap(), "{step}");
    }
    assert!(outcome.stderr.is_empty(), "{outcome}");
}

#[test]
fn the_same_in_other_words_changes_nothing() {
    let (project, before) = computed();
    let sorted = |o: &Outcome| {
        let mut digests = o.digests();
        digests.sort();
        digests
    };
    let same = |text: &str| {
        project.write("w.yaml", text);
        let after = project.run_ok(&[]);
        after.all_hit();
        assert_eq!(sorted(&after), sorted(&before), "{text}");
    };
    // Comments and blank lines.
    same(&WORKFLOW.lines().map(|l| format!("# about\n\n{l} # about\n")).collect::<String>());
    // The order of keys and steps.
    let mut blocks: Vec<String> = Vec::new();
    for line in WORKFLOW.split_once("steps:\n").unwrap().1.lines() {
        if line.starts_with("  ") && !line.starts_with("   ") {
            blocks.push(String::new());
        }
        blocks.last_mut().unwrap().push_str(&format!("{line}\n"));
    }
    assert_eq!(blocks.len(), 6);
    blocks.reverse();
    let params = "params:\n  seed: { default: 42, type: int }\nname: incremental\ngaleras: 1\n";
    project.write("w.yaml", format!("steps:\n{}{params}", blocks.concat()));
    let (seed, rest) = ("seed: '${{ params.seed }}', min: 0.4", "max: 0.65");
    project.change(&format!("{seed}, {rest}"), &format!("{rest}, {seed}"));
    project.change("name: long, check: nloc > 1", "check: nloc > 1, name: long");
    project.change("    op: ast\n    from: methods", "    from: methods\n    op: ast");
    same(&project.read("w.yaml"));
    // Values that are written in another way.
    let values = WORKFLOW.replace("min: 0.4, max: 0.65", "min: 4.0e-1, max: 0.650, at: space");
    same(&values.replace("'${{ params.seed }}'", "42"));
    // Descriptions and assertions.
    let more =
        "description: Measures.\n    assert: [ { rows: { min: 1 } } ]\n    schema: { id: utf8! }";
    same(&WORKFLOW.replace("op: ast\n", &format!("op: ast\n    {more}\n")));
    // The times of files.
    for (name, text) in FILES {
        std::fs::remove_file(project.path(name)).unwrap();
        project.write(name, text);
    }
    same(WORKFLOW);
    // The name of the workflow and of its file.
    project.write("other.yaml", WORKFLOW.replace("name: incremental\n", ""));
    project.run(&["run", "other.yaml", "--format", "json"]).exits(0).all_hit();
    // Another place of the project.
    for (name, text) in FILES {
        project.write(&format!("moved/{name}"), text);
    }
    project.write("moved/w.yaml", WORKFLOW);
    project.run(&["run", "moved/w.yaml", "--format", "json"]).exits(0).all_hit_as(&before);
    // The number of jobs and the working directory.
    for jobs in ["1", "2", "7"] {
        project.run_ok(&["--jobs", jobs]).all_hit_as(&before);
    }
    let mut command =
        project.command(&["run", "../../w.yaml", "--cache", "../../cache", "--format", "json"]);
    command.current_dir(project.path("src/c"));
    crate::harness::Running::start(command).finish().exits(0).all_hit();
}

#[test]
fn the_name_of_a_step_changes_nothing() {
    let (project, _) = computed();
    let renamed = |old: &str, new: &str| {
        let text = project.read("w.yaml");
        let text = text.replace(&format!("  {old}:\n"), &format!("  {new}:\n"));
        project.write("w.yaml", text.replace(&format!("from: {old}\n"), &format!("from: {new}\n")));
        let outcome = project.run_ok(&[]);
        outcome.all_hit();
        assert_eq!(outcome.status(new), "hit");
    };
    renamed("methods", "functions");
    renamed("valid", "checked");
    renamed("lengths", "positions");
    // The reject says the step's present name.
    assert_eq!(project.rows("checked.rejects")[0]["step"], "checked");
    let project = self::project();
    let more = "  rejected:\n    op: sql\n    from: valid.rejects\n    with: { query: 'SELECT id, rule, reason FROM input' }\n";
    project.write("w.yaml", format!("{WORKFLOW}{more}"));
    project.run_ok(&[]);
    let text = project.read("w.yaml").replace("  valid:", "  checked:");
    project.write("w.yaml", text.replace("from: valid", "from: checked"));
    project.run_ok(&[]).all_hit();
}

#[test]
fn an_argument_a_param_and_another_operator_run_what_depends_on_them() {
    let (project, _) = computed();
    project.change("max: 0.65", "max: 0.6");
    let line = "w.yaml:22:56";
    let explained = project.run(&["explain", "w.yaml", "testbed"]).exits(0);
    says(&explained.stdout, &["ARG_CHANGED", "max", "0.65", "0.6", line]);
    let told = project.answer(&["explain", "w.yaml", "testbed"]);
    assert_eq!(told["reason"], "ARG_CHANGED");
    assert!(told["detail"].as_str().unwrap().contains("max: 0.65 → 0.6"), "{told}");
    project.run(&["plan", "w.yaml"]).exits(0).prints(&["ARG_CHANGED", line]);
    let outcome = project.run_ok(&[]);
    // `describe` reads no column that the cut changes.
    let found = outcome.statuses();
    assert_eq!(found, "methods=hit features=hit valid=hit testbed=ran table=hit lengths=ran");
    assert_eq!(outcome.step("testbed")["reason"], "ARG_CHANGED");
    assert_eq!(outcome.step("lengths")["reason"], "INPUT_CHANGED");
    // Back to the old value: everything is still stored.
    project.rerun("max: 0.6", "max: 0.65").all_hit();
    let (project, _) = computed();
    let found = project.run_ok(&["--set", "seed=43"]).statuses();
    assert_eq!(found, "methods=hit features=hit valid=hit testbed=ran table=hit lengths=ran");
    project.cli("explain w.yaml testbed --set seed=44").exits(0).prints(&["seed: 43 → 44"]);
    let (project, _) = computed();
    let (old, new) = (
        "op: sample, from: methods, with: { n: 1, seed: 1 }",
        "op: describe, from: methods, with: { columns: [start_line] }",
    );
    project.write("w.yaml", format!("{WORKFLOW}  more: {{ {old} }}\n"));
    assert_eq!(project.run_ok(&[]).step("more")["reason"], "NEW");
    assert_eq!(project.rerun(old, new).step("more")["reason"], "OP_CHANGED");
}

#[test]
fn a_changed_file_runs_what_reads_it_and_an_equal_result_stops_the_wave() {
    let (project, before) = computed();
    // The rule says the same in other words.
    let after = project.rerun("check: nloc > 1", "check: nloc >= 2");
    assert_eq!(after.step("valid")["digest"], before.step("valid")["digest"]);
    let found = after.statuses();
    assert_eq!(found, "methods=hit features=hit valid=ran testbed=hit table=hit lengths=hit");
    let (project, _) = computed();
    // One feature fewer: the columns of `valid` and `testbed` are others, `table` reads two
    // that stay.
    project.change(
        "op: ast\n",
        "op: ast\n    with: { features: [n_ast_errors, nloc, token_counts] }\n",
    );
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.status("features"), "ran");
    assert_eq!(outcome.status("table"), "hit", "{outcome}");
    assert_eq!(outcome.status("lengths"), "hit", "{outcome}");
    let (project, before) = computed();
    project.edit("src/b.py", "'b'", "'bb'");
    let after = project.run_ok(&[]);
    assert_eq!(after.step("methods")["reason"], "FILE_CHANGED");
    assert_eq!(after.status("features"), "ran");
    assert_ne!(after.step("testbed")["digest"], before.step("testbed")["digest"]);
    // A comment between methods changes the place of one only.
    project.write("src/a.py", format!("# about\n{}", FILES[0].1));
    let after = project.run_ok(&[]);
    assert_eq!(after.step("methods")["computed_rows"], 1);
    assert_eq!(after.step("methods")["reused_rows"], 2);
    assert_eq!(after.step("features")["computed_rows"], 0, "{after}");
    // A file that is no Python changes nothing.
    project.write("src/notes.txt", "hello");
    project.run_ok(&[]).all_hit();
}

#[test]
fn force_select_and_keep_going_run_what_they_say() {
    let (project, before) = computed();
    let after = project.run_ok(&["--force", "features"]);
    let found = after.statuses();
    assert_eq!(found, "methods=hit features=ran valid=hit testbed=hit table=hit lengths=hit");
    assert_eq!(after.step("features")["reason"], "FORCED");
    assert_eq!(after.step("features")["reused_rows"], 0, "{after}");
    assert_eq!(after.digests(), before.digests());
    let project = self::project();
    let outcome = project.run_ok(&["--select", "valid"]);
    assert_eq!(outcome.statuses(), "methods=ran features=ran valid=ran");
    let outcome = project.run_ok(&["--select", "table", "--select", "methods"]);
    assert_eq!(outcome.statuses(), "methods=hit features=hit valid=hit testbed=ran table=ran");
    project.run(&["show", "w.yaml", "lengths"]).exits(1).reports(&["not computed yet"]);
    let project = self::project();
    let fail = "  broken:\n    op: exec\n    with: { command: exit 1, output: { id: utf8! } }\n  behind:\n    op: sample\n    from: broken\n    with: { n: 1, seed: 1 }\n";
    project.write("w.yaml", WORKFLOW.replace("steps:\n", &format!("steps:\n{fail}")));
    let outcome = project.run_json(&["--keep-going"]).exits(1);
    let rest = "methods=ran features=ran valid=ran testbed=ran table=ran lengths=ran";
    assert_eq!(outcome.statuses(), format!("broken=failed behind=skipped {rest}"));
    // Without it nothing new is started; what was at work already may have been finished.
    let outcome = project.run_json(&["--jobs", "1", "--cache", "other"]).exits(1);
    assert_eq!(outcome.status("behind"), "skipped");
    // The failed step is tried again for this reason.
    let outcome = project.run_json(&["--keep-going"]).exits(1);
    assert_eq!(outcome.step("broken")["reason"], "PREV_FAILED");
}
