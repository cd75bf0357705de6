//! `galeras.lock` and the versions of models: answers of another version are not used.

use serde_json::{Value, json};

use crate::generate_anthropic::WORKFLOW as ANTHROPIC;
use crate::generate_completions::WORKFLOW as COMPLETIONS;
use crate::generate_openai::{answers, data, served, served_of, workflow};
use crate::harness::{Outcome, Project, fields, marked};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest, MODEL, VERSION};

#[track_caller]
pub fn lock(project: &Project) -> Outcome {
    project.run(&["lock", "w.yaml"]).exits(0)
}

pub fn locked(project: &Project) -> Value {
    serde_json::from_str(&project.read("galeras.lock")).unwrap()
}

fn reported(project: &Project) -> Vec<String> {
    let rows = answers(project);
    rows.values().map(|row| row["reported_model"].as_str().unwrap().to_owned()).collect()
}

/// A run that ends since the model has another version than the pinned one.
#[track_caller]
fn drifts(project: &Project, now: &str) -> Outcome {
    project.fails("answers", &[VERSION, now, MODEL, "galeras lock"])
}

#[test]
fn locking_asks_one_small_question_and_pins_the_version() {
    let (api, project) = served(20, "max_tokens: 500, temperature: 0.5, samples: 3");
    lock(&project).complains(&["1 model pinned"]);
    let asked = api.take();
    assert_eq!(asked.len(), 1);
    assert_eq!(fields(&asked[0].body, "max_tokens model"), json!([1, MODEL]));
    assert!(asked[0].text.len() < 300, "{}", asked[0].text);
    let wanted = json!([{
        "operator": "generate", "of": {"base_url": api.url(), "model": MODEL},
        "version": VERSION, "workflows": ["w.yaml"],
    }]);
    assert_eq!(locked(&project)["versions"], wanted);
    assert!(project.stored_nothing(), "nothing was computed");
    lock(&project).complains(&["up to date"]);
    let (api, project) = served(1, "extra_body: { max_completion_tokens: 50 }");
    lock(&project);
    let body = api.take().remove(0).body;
    assert_eq!(fields(&body, "max_tokens max_completion_tokens"), json!([null, 50]));
}

/// The question goes to the endpoint of the step, in its protocol.
#[test]
fn every_protocol_is_asked_in_its_words() {
    let hello = json!([{"role": "user", "content": "Hi"}]);
    let body = |said: &str, what: &Value| json!({"model": "tiny", said: what, "max_tokens": 1, "stream": false});
    for (workflow, more, path, asked, provider) in [
        (
            COMPLETIONS,
            "max_tokens: 64, logprobs: true",
            "completions",
            body("prompt", &json!("Hi")),
            None,
        ),
        (
            ANTHROPIC,
            "extra_body: { thinking: { type: enabled, budget_tokens: 32 } }",
            "messages",
            body("messages", &hello),
            Some("anthropic"),
        ),
    ] {
        let (api, project) = served_of(workflow, 2, more);
        lock(&project);
        let found: Vec<_> = api.take().into_iter().map(|asked| (asked.path, asked.body)).collect();
        assert_eq!(found, [(format!("POST /v1/{path}"), asked)]);
        let base = api.url();
        let of = match provider {
            Some(provider) => {
                json!({"provider": provider, "base_url": base.trim_end_matches("/v1"), "model": "tiny"})
            }
            None => json!({"base_url": base, "model": "tiny"}),
        };
        assert_eq!(fields(&locked(&project)["versions"][0], "of version"), json!([of, VERSION]));
        let before = project.run_ok(&["--frozen"]);
        assert_eq!(project.run_ok(&["--frozen"]).digests(), before.digests());
        api.set_version(Some("tiny-2"));
        project.write("data.jsonl", data(0..3));
        let outcome = project.run_json(&["--frozen"]).exits(1);
        assert!(outcome.detail("answers").contains("tiny-2"), "{outcome}");
    }
}

#[test]
fn a_frozen_run_needs_a_pin() {
    let api = ChatApi::start();
    let text = workflow(&api, "").replace("  answers:", "  «answers:");
    let (text, place) = marked(&text);
    let project = Project::new(&text).with("data.jsonl", data(0..3));
    project.refuses(&["--frozen"], &format!("not-locked w.yaml:{place}"), &[]);
    let frozen = ["run", "w.yaml", "--frozen"];
    project.run(&frozen).exits(2).complains(&["galeras lock w.yaml"]);
    assert!(project.stored_nothing());
    assert_eq!(api.count(), 0);
    lock(&project);
    api.take();
    let outcome = project.run_ok(&["--frozen"]);
    assert_eq!((api.take().len(), reported(&project)), (3, vec![VERSION.to_owned(); 3]));
    project.run_ok(&["--frozen"]).all_hit();
    assert_eq!(project.run_ok(&["--frozen", "--cache", "other"]).digests(), outcome.digests());
    // Another model is not pinned.
    project.change("model: tiny", "model: tiny2");
    project.run_json(&["--frozen"]).exits(2);
}

#[test]
fn answers_from_before_the_lock_are_used_if_they_are_of_its_version() {
    let (api, project) = served(4, "");
    let before = project.run_ok(&[]);
    lock(&project);
    api.take();
    assert_eq!((api.count(), project.run_ok(&["--frozen"]).digests()), (0, before.digests()));
    // Without the lock file again.
    std::fs::remove_file(project.path("galeras.lock")).unwrap();
    project.run_ok(&[]);
    assert_eq!(api.count(), 0);
}

#[test]
fn another_version_ends_the_run_and_its_answer_is_kept() {
    let (api, project) = served(4, "concurrency: 1");
    lock(&project);
    project.run_ok(&[]);
    api.take();
    api.set_version(Some("tiny-2026-02-02"));
    // Prompts with answers of the pinned version are not asked.
    project.run_ok(&["--frozen"]).all_hit();
    project.write("data.jsonl", data(0..8));
    drifts(&project, "tiny-2026-02-02");
    // The first answer tells; while it is kept, another request may go out.
    let first = api.take().len();
    drifts(&project, "tiny-2026-02-02");
    let second = api.take().len();
    assert!((1..=2).contains(&first) && (1..=2).contains(&second), "{first} {second}");
    // The old server comes back: what was answered by it is used.
    api.set_version(Some(VERSION));
    project.run_ok(&["--frozen"]);
    assert_eq!((api.take().len(), reported(&project)), (4, vec![VERSION.to_owned(); 8]));
}

#[test]
fn after_locking_anew_it_goes_on() {
    let (api, project) = served(4, "concurrency: 1");
    lock(&project);
    let before = project.run_ok(&[]);
    api.set_version(Some("tiny-2026-02-02"));
    project.write("data.jsonl", data(0..8));
    api.take();
    drifts(&project, "tiny-2026-02-02");
    let kept: Vec<String> = api.take().iter().map(ChatRequest::last).collect();
    lock(&project);
    api.take();
    let outcome = project.run_ok(&["--frozen"]);
    let asked: Vec<String> = api.take().iter().map(ChatRequest::last).collect();
    assert!((1..=2).contains(&kept.len()), "{kept:?}");
    assert_eq!(asked.len(), 8 - kept.len(), "what told of the new version is used: {outcome}");
    assert!(kept.iter().all(|kept| !asked.contains(kept)));
    assert_eq!(reported(&project), vec!["tiny-2026-02-02".to_owned(); 8]);
    // Back to the first version: its answers are still there.
    api.set_version(Some(VERSION));
    lock(&project);
    project.write("data.jsonl", data(0..4));
    api.take();
    assert_eq!((api.count(), project.run_ok(&["--frozen"]).digests()), (0, before.digests()));
}

#[test]
fn without_a_lock_a_new_version_is_seen_and_not_refused() {
    let (api, project) = served(2, "");
    project.run_ok(&[]);
    api.set_version(Some("tiny-2026-02-02"));
    project.write("data.jsonl", data(0..3));
    project.run_ok(&[]);
    assert_eq!(reported(&project), [VERSION, VERSION, "tiny-2026-02-02"]);
    assert_eq!(project.rows("answers.summary").len(), 2);
}

#[test]
fn a_server_without_a_name_or_with_an_error_cannot_be_pinned() {
    let (api, project) = served(2, "");
    api.set_version(None);
    project.run(&["lock", "w.yaml"]).exits(1).complains(&["does not say which model"]);
    assert!(!project.path("galeras.lock").exists());
    // One that had a name and has none now.
    api.set_version(Some(VERSION));
    lock(&project);
    api.set_version(None);
    let outcome = project.run_json(&[]).exits(1);
    let detail = outcome.step("answers")["detail"].to_string();
    assert!(detail.contains(VERSION) && !detail.contains("``"), "{detail}");
    // A lock that fails leaves the file as it was.
    let (api, project) = served(2, "tries: 2");
    lock(&project);
    let before = project.read("galeras.lock");
    api.set_version(Some("tiny-2026-02-02"));
    api.script(|_| Some(ChatFault::Error(500, "internal", "oops".into())));
    project.run(&["lock", "w.yaml"]).exits(1).complains(&["answers", "oops"]);
    assert_eq!(project.read("galeras.lock"), before);
}

#[test]
fn steps_with_the_same_model_are_asked_about_once() {
    let (api, project) = served(2, "");
    let text = project.read("w.yaml");
    let (_, step) = text.split_once("  answers:\n").unwrap();
    let more = step.replace("model: tiny", "model: tiny, temperature: 1");
    let other = step.replace("model: tiny", "model: huge");
    project.write("w.yaml", format!("{text}  more:\n{more}  other:\n{other}"));
    lock(&project).complains(&["2 models pinned"]);
    let mut asked: Vec<String> = api.take().iter().map(|a| a.body["model"].to_string()).collect();
    asked.sort();
    assert_eq!(asked, ["\"huge\"", "\"tiny\""]);
    // Two workflows of a folder share the file.
    project.write("other.yaml", workflow(&api, "samples: 2").replace(": 1\n", ": 1\nname: o\n"));
    project.run(&["lock", "other.yaml"]).exits(0);
    let versions = locked(&project)["versions"].clone();
    let tiny = versions.as_array().unwrap().iter().find(|v| v["of"]["model"] == MODEL).unwrap();
    assert_eq!(tiny["workflows"], json!(["other.yaml", "w.yaml"]));
    project.run(&["run", "other.yaml", "--frozen"]).exits(0);
    project.run_ok(&["--frozen"]);
}
