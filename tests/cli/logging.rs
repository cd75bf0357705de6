//! `GALERAS_LOG`: what a run decides, on standard error, and no secret in it.

use galeras_test_servers::chat_api::{ChatApi, ChatFault};

use crate::generate_openai;
use crate::harness::{Outcome, Project, says};

const WORKFLOW: &str = "galeras: 1
steps:
  rows: { op: read, with: { path: data.jsonl } }
  few: { op: sample, from: rows, with: { n: 2, seed: 1 } }
outputs:
  few: { from: few, path: out/few.csv, show: true }
";

fn project() -> Project {
    let project = Project::new(WORKFLOW);
    let rows: String = (0..5).map(|i| format!("{{\"id\":\"r{i}\",\"x\":{i}}}\n")).collect();
    project.write("data.jsonl", rows);
    project
}

#[track_caller]
fn run(project: &Project, more: &[&str], variables: &[(&str, &str)]) -> Outcome {
    project.run_with(&[&["run", "w.yaml"], more].concat(), variables)
}

const DEBUG: (&str, &str) = ("GALERAS_LOG", "galeras=debug");

#[test]
fn a_run_logs_keys_and_reasons_and_without_the_variable_nothing() {
    let project = project();
    let json = ["--format", "json"];
    let first = run(&project, &json, &[DEBUG]).exits(0);
    assert_eq!(first.statuses(), "rows=ran few=ran");
    for step in ["rows", "few"] {
        let key = first.step(step)["key"].as_str().unwrap().to_owned();
        assert!(first.stderr.contains(&key), "{step}: {first}");
        let span = format!("name=\"{step}\"");
        let runs = |line: &str| line.contains(&span) && line.contains("reason=\"NEW\"");
        assert!(first.stderr.lines().any(runs), "{step}: {first}");
    }
    let again = run(&project, &json, &[DEBUG]).exits(0);
    again.all_hit();
    assert_eq!(again.stderr.lines().filter(|line| line.ends_with(": hit")).count(), 2, "{again}");
    assert!(!again.stderr.contains("NEW"), "{again}");
    let project = self::project();
    assert_eq!(run(&project, &["--format", "json"], &[]).exits(0).stderr, "");
    assert_eq!(run(&project, &["--format", "json"], &[("GALERAS_LOG", "")]).exits(0).stderr, "");
    let human = run(&project, &[], &[]).exits(0);
    assert!(!human.stderr.contains("DEBUG") && !human.stderr.contains("action key"), "{human}");
    let (logged, quiet) = (self::project(), self::project());
    let logged = run(&logged, &[], &[DEBUG]).exits(0);
    let quiet = run(&quiet, &[], &[]).exits(0);
    assert!(!quiet.stdout.is_empty(), "{quiet}");
    assert_eq!(logged.stdout, quiet.stdout);
    assert!(logged.stderr.contains("action key"), "{logged}");
    // A filter that is not one is refused.
    let refused = run(&self::project(), &[], &[("GALERAS_LOG", "galeras=loud")]).exits(2);
    says(&refused.stderr, &["$GALERAS_LOG", "galeras=debug"]);
}

#[test]
fn no_secret_is_logged_at_any_level() {
    const NAME: &str = "SECRET_OF_MINE";
    const KEY: &str = "sk-proj-0aVerySecretKey_7f3d9b21c5";
    let api = ChatApi::start();
    let project = generate_openai::project(&api, 3, "api_key_env: SECRET_OF_MINE");
    let mut outcomes = Vec::new();
    api.script(|_| Some(ChatFault::EchoKey));
    outcomes.push(run(&project, &[], &[(NAME, KEY), ("GALERAS_LOG", "trace")]).exits(1));
    api.script(|_| None);
    outcomes.push(run(&project, &[], &[(NAME, KEY), ("GALERAS_LOG", "trace")]).exits(0));
    for outcome in outcomes {
        assert!(outcome.stderr.contains("action key"), "{outcome}");
        let leaked = KEY.as_bytes().windows(16).any(|piece| {
            let written = [outcome.stdout.as_bytes(), outcome.stderr.as_bytes()].concat();
            written.windows(piece.len()).any(|window| window == piece)
        });
        assert!(!leaked, "{outcome}");
    }
}
