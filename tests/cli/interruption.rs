//! Runs that are killed, interrupted, or not alone.

use std::time::Duration;

use crate::harness::{Project, Running, patience, wait_for};

/// Two slow steps side by side and one row operator with plenty to do.
const WORKFLOW: &str = "galeras: 1
steps:
  slow:
    op: exec
    with:
      sandbox: none
      command: sleep 0.15; printf '{\"id\":\"a\",\"x\":1}'
      output: { id: utf8!, x: int64! }
  data: { op: read, with: { path: data.jsonl } }
  features: { op: ast, from: data }
  testbed: { op: cut, from: features, with: { seed: 1 } }
  table: { op: describe, from: testbed, with: { columns: [nloc, n_words, cut_at] } }
";

fn project() -> Project {
    let project = Project::new(WORKFLOW);
    let mut rows = String::new();
    for i in 0..3_000 {
        let body: String = (0..i % 17).map(|j| format!("    b{j} = a * {i}\\n")).collect();
        rows.push_str(&format!(
            "{{\"id\":\"{i}\",\"code\":\"def f{i}(a, b):\\n    '''Doc of {i}.'''\\n{body}    return a + b\\n\"}}\n"
        ));
    }
    project.write("data.jsonl", rows);
    project
}

#[test]
fn killed_runs_are_continued_and_give_the_same() {
    let project = project();
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    let mut killed = 0;
    for i in 0..12 {
        let cache = format!("killed{}", i % 4);
        let running = project.start(&["--cache", &cache]);
        std::thread::sleep(Duration::from_millis(15 + 37 * i));
        running.signal("KILL");
        killed += usize::from(running.finish().code.is_none());
        if i >= 8 {
            assert_eq!(project.run_ok(&["--cache", &cache]).digests(), undisturbed.digests());
            project.verifies(&cache);
            project.run_ok(&["--cache", &cache]).all_hit();
        }
    }
    assert!(killed >= 3, "{killed} of 12 runs were killed before their end");
}

#[test]
fn interrupted_runs_say_so_and_are_continued() {
    let project = project();
    project.change("sleep 0.15;", "touch started; sleep 30;");
    let running = Running::start(project.command(&["run", "w.yaml"]));
    wait_for("the step", || project.path("started").exists());
    running.signal("INT");
    let outcome = running.finish().exits(130);
    assert!(outcome.stdout.is_empty() && outcome.stderr.contains("interrupted"), "{outcome}");
    project.verifies("cache");
    project.run(&["plan", "w.yaml"]).exits(0).prints(&["PREV_FAILED"]);
    project.change("touch started; sleep 30;", "sleep 0.1;");
    project.run_ok(&[]);
    // A lock dies with its process.
    let steps = "  slow: { op: exec, with: { sandbox: none, command: touch started; exec sleep 20, output: { id: utf8! } } }
";
    let project = Project::steps(steps);
    let running = Running::start(project.command(&["run", "w.yaml"]));
    wait_for("the step", || project.path("started").exists());
    running.signal("KILL");
    running.finish();
    project.change("touch started; exec sleep 20", "exit 0");
    let outcome = project.run_ok(&[]);
    assert!(outcome.took < patience(10), "{:?}", outcome.took);
    project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
}

#[test]
fn runs_share_a_store_and_compute_a_step_once() {
    let project = project();
    let alone = project.run_ok(&["--cache", "alone"]);
    for outcome in [(); 3].map(|()| project.start(&[])).map(Running::finish) {
        let outcome = outcome.exits(0);
        assert_eq!(outcome.finished()["status"], "ok");
        assert_eq!(outcome.digests(), alone.digests());
    }
    project.verifies("cache");
    project.run_ok(&[]).all_hit();
    let steps = "  slow:
    op: exec
    with:
      sandbox: none
      command: echo ran >> log; sleep 0.5; printf '{\"id\":\"a\"}'
      output: { id: utf8! }
";
    let project = Project::steps(steps);
    let [one, two] = [(); 2].map(|()| project.start(&[])).map(|run| run.finish().exits(0));
    assert_eq!(project.read("log"), "ran\n");
    assert_eq!(one.digests(), two.digests());
    let mut statuses = [one.statuses(), two.statuses()];
    statuses.sort();
    assert_eq!(statuses, ["slow=hit", "slow=ran"]);
}

#[test]
fn steps_wait_for_no_one_without_a_reason() {
    let mut text = String::from("galeras: 1\nsteps:\n");
    for step in ["a", "b"] {
        text.push_str(&format!(
            "  {step}:\n    op: exec\n    with:\n      sandbox: none\n      command: touch {step}; until test -e a && test -e b; do sleep 0.01; done\n      output: {{ id: utf8! }}\n"
        ));
    }
    let outcome = Project::new(&text).run_ok(&["--jobs", "2"]);
    assert!(outcome.took < patience(10), "{:?}", outcome.took);
    // Two steps with one recipe in one run are no other run.
    let steps = "  data: { op: read, with: { path: data.jsonl } }
  one: { op: sample, from: data, with: { n: 2, seed: 1 } }
  two: { op: sample, from: data, with: { n: 2, seed: 1 } }
";
    let rows = "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n";
    let project = Project::steps(steps).with("data.jsonl", rows);
    for i in 0..5 {
        let outcome = project.run_ok(&["--cache", &format!("cache{i}"), "--jobs", "2"]);
        assert!(outcome.events("warning").is_empty(), "{outcome}");
        assert_eq!(outcome.step("one")["digest"], outcome.step("two")["digest"]);
    }
}

#[test]
fn an_interruption_at_any_time_ends_soon_and_breaks_nothing() {
    let project = project();
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    let mut interrupted = 0;
    // The first finds the program listening and at work; later ones may find it done.
    for wait in [0, 20, 60, 140, 200, 260, 340, 440] {
        let running = project.start(&[]);
        match wait {
            0 => wait_for("a run at work", || project.path("cache/runs").exists()),
            _ => std::thread::sleep(Duration::from_millis(wait)),
        }
        let asked = std::time::Instant::now();
        running.signal("INT");
        let outcome = running.finish();
        assert!(asked.elapsed() < patience(5), "{:?}", asked.elapsed());
        assert!(!outcome.stderr.contains("panicked"), "{outcome}");
        match outcome.code {
            Some(0) => {}
            Some(130) => {
                interrupted += 1;
                assert_eq!(outcome.finished()["status"], "interrupted");
            }
            // Before the program listens, the signal itself ends it.
            None => {}
            other => panic!("{other:?}: {outcome}"),
        }
        project.verifies("cache");
    }
    assert!(interrupted > 0);
    let left = project.left_behind();
    assert!(left.is_empty(), "temporary files are removed: {left:?}");
    assert_eq!(project.run_ok(&[]).digests(), undisturbed.digests());
}
