//! The key of `generate`'s server: it is nowhere but in the header of requests, and a run that
//! lacks it says so before anything else.

use std::process::Command;

use serde_json::json;

use crate::generate_openai::{data, served, workflow};
use crate::harness::{Outcome, Project, Running, files_below, marked, wait_for};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest};

const NAME: &str = "SECRET_OF_MINE";
const KEY: &str = "sk-proj-0aVerySecretKey_7f3d9b21c5";
const WITH_KEY: &str = "api_key_env: SECRET_OF_MINE";
const RUN: [&str; 4] = ["run", "w.yaml", "--format", "json"];

fn command(project: &Project, args: &[&str]) -> Command {
    let mut command = project.command(args);
    // Spaces around it are not the key's.
    command.env(NAME, format!(" {KEY}\n"));
    command
}

#[track_caller]
fn run(project: &Project, args: &[&str]) -> Outcome {
    Running::start(command(project, args)).finish()
}

/// True if the text has the key, or a telling piece of it.
fn tells(bytes: &[u8]) -> bool {
    let has = |piece: &[u8]| bytes.windows(piece.len()).any(|window| window == piece);
    KEY.as_bytes().windows(16).any(has)
}

/// Nothing that the program wrote has the key in it: every file as it is, all tables in words.
#[track_caller]
fn hidden(project: &Project, outcomes: &[&Outcome]) {
    for outcome in outcomes {
        assert!(!tells(format!("{}{}", outcome.stdout, outcome.stderr).as_bytes()), "{outcome}");
    }
    for file in files_below(&project.root()).into_iter().chain(project.left_behind()) {
        if file.is_file() {
            assert!(!tells(&std::fs::read(&file).unwrap()), "{}", file.display());
        }
    }
    for port in ["prompts", "answers", "answers.rejects", "answers.summary"] {
        let shown = project.run(&["show", "w.yaml", port, "--format", "json"]);
        assert!(!tells(shown.stdout.as_bytes()), "{port}: {shown}");
    }
    for args in [&["explain", "w.yaml", "answers", "--format", "json"][..], &["cache", "ls"]] {
        let shown = project.run(args);
        assert!(!tells(shown.stdout.as_bytes()) && !tells(shown.stderr.as_bytes()), "{shown}");
    }
}

const OUTPUTS: &str = "outputs:
  answers: { from: answers, path: out/answers.parquet }
  lines: { from: answers, path: out/answers.jsonl }
  failed: { from: answers.rejects, path: out/rejects.jsonl }
  cost: { from: answers.summary, path: out/summary.csv, show: true }
";

#[test]
fn the_key_is_in_no_file_and_no_message() {
    let (api, project) = served(8, &format!("{WITH_KEY}, tries: 2, min_answered: 0"));
    api.script(|asked| {
        let key = asked.header("authorization").unwrap().to_owned();
        let text = format!("you sent {key}, {key:?}");
        let last = asked.last();
        // In an answer, an error of one request, and wherever else a server may put it.
        Some(match () {
            () if last.contains("f0(") => ChatFault::Message(json!({"content": text})),
            () if last.contains("f1(") => ChatFault::Error(400, "bad", text),
            () if last.contains("f2(") => ChatFault::With(json!({"model": text})),
            () if last.contains("f3(") => {
                ChatFault::Message(json!({"content": null, "refusal": text}))
            }
            () if last.contains("f4(") => {
                let choice = json!({"message": {"content": "x"}, "finish_reason": text});
                ChatFault::With(json!({ "choices": [choice] }))
            }
            () if last.contains("f5(") => {
                ChatFault::Raw(500, vec![], format!("<title>{text}</title>"))
            }
            () if last.contains("f6(") => ChatFault::Raw(200, vec![], json!(text).to_string()),
            () => return None,
        })
    });
    project.append(OUTPUTS);
    let human = run(&project, &["run", "w.yaml"]).exits(0);
    let again = run(&project, &RUN).exits(0);
    assert!(
        api.asked().iter().all(|a| a.header("authorization") == Some(&format!("Bearer {KEY}")))
    );
    let rows = project.rows("answers");
    assert_eq!((rows.len(), project.rows("answers.rejects").len()), (5, 3));
    assert!(rows.iter().any(|row| row["raw_response"].to_string().contains("you sent Bearer ***")));
    hidden(&project, &[&human, &again]);
    // Nor does the name of the variable get into results.
    for file in files_below(&project.path("cache/actions")) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains(NAME), "{text}");
    }
}

#[test]
fn the_key_is_not_in_the_lock_file_nor_in_what_a_killed_run_leaves() {
    let (api, project) = served(8, WITH_KEY);
    let locked = run(&project, &["lock", "w.yaml"]).exits(0);
    api.take();
    api.script(|asked| {
        let key = asked.header("authorization").unwrap().to_owned();
        Some(match asked.number {
            0..4 => ChatFault::Message(json!({"content": key})),
            _ => ChatFault::Hang,
        })
    });
    let running = Running::start(command(&project, &RUN));
    let journal = || files_below(&project.path("cache/downloads/answers"));
    wait_for("answers", || journal().iter().any(|file| std::fs::metadata(file).unwrap().len() > 0));
    running.signal("KILL");
    let killed = running.finish();
    assert!(project.path("galeras.lock").exists() && !journal().is_empty());
    hidden(&project, &[&locked, &killed]);
}

/// The workflow with a mark where the key is named, and its place.
fn without_key(api: &ChatApi) -> (Project, String) {
    let (text, place) = marked(&workflow(api, "api_key_env: «SECRET_OF_MINE"));
    (Project::new(&text).with("data.jsonl", data(0..2)), place)
}

#[test]
fn a_missing_key_or_one_that_cannot_be_sent_is_found_before_anything_runs() {
    let api = ChatApi::start();
    let (project, place) = without_key(&api);
    let wanted = [format!("missing-secret w.yaml:{place}")];
    for value in [None, Some(""), Some(" \n")] {
        let variables = value.map(|value| (NAME, value));
        let start = |args: &[&str]| project.run_with(args, variables.as_slice()).exits(2);
        let outcome = start(&RUN);
        assert_eq!(outcome.diagnostics(), wanted, "{outcome}");
        assert_eq!(outcome.finished()["status"], "invalid");
        let place = format!("w.yaml:{place}");
        let words = [place.as_str(), NAME, "·", "not set"];
        start(&["run", "w.yaml"]).reports(&words);
        let planned = start(&["plan", "w.yaml", "--format", "json"]);
        assert_eq!(planned.diagnostics(), wanted, "{planned}");
        start(&["plan", "w.yaml"]).reports(&[NAME]).prints(&["answers"]);
        start(&["lock", "w.yaml"]).reports(&[NAME]);
    }
    assert!(project.stored_nothing(), "not even the first step was run");
    assert_eq!(api.count(), 0);
    // The workflow itself is right.
    project.run(&["check", "w.yaml"]).exits(0);
    let api = ChatApi::start();
    let text = workflow(&api, "").replace(&format!("base_url: '{}', ", api.url()), "");
    let project = Project::new(&text).with("data.jsonl", data(0..1));
    let found = project.refused_once("missing-secret", "OPENAI_API_KEY");
    assert!(found["message"].to_string().contains("OPENAI_API_KEY"), "{found}");
    project.run(&["check", "w.yaml"]).exits(0);
    let api = ChatApi::start();
    let (project, _) = without_key(&api);
    for bad in ["two words of mine", "schlüssel-mit-umlaut"] {
        let outcome = project.run_with(&RUN, &[(NAME, bad)]).exits(2);
        assert!(outcome.stdout.contains(NAME) && !outcome.stdout.contains(bad), "{outcome}");
    }
    assert_eq!(api.count(), 0);
}

#[test]
fn only_steps_that_run_need_their_key() {
    let api = ChatApi::start();
    let (project, _) = without_key(&api);
    project.run_ok(&["--select", "prompts"]);
    let first = run(&project, &RUN).exits(0);
    project.run_ok(&[]).all_hit_as(&first);
    project.run(&["plan", "w.yaml"]).exits(0);
    project.run(&["show", "w.yaml", "answers"]).exits(0);
    project.write("data.jsonl", data(0..3));
    project.run_json(&[]).exits(2);
    run(&project, &["run", "w.yaml"]).exits(0);
    project.run_json(&["--force", "answers"]).exits(2);
    assert_eq!(api.asked().iter().map(ChatRequest::last).count(), 3);
}
