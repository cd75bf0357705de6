//! The questions that `generate` does not ask again, and the changes that make it ask.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::generate_openai::{answers, data, project, served, workflow};
use crate::harness::{Outcome, Project, says, values};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest};

/// The last messages of the requests since the last call, sorted.
fn taken(api: &ChatApi) -> Vec<String> {
    let mut said: Vec<String> = api.take().iter().map(ChatRequest::last).collect();
    said.sort();
    said
}

#[track_caller]
fn asks_nothing(api: &ChatApi, project: &Project) -> Outcome {
    api.take();
    let outcome = project.run_ok(&[]);
    assert_eq!(taken(api), [""; 0], "{outcome}");
    outcome
}

fn said(project: &Project) -> Vec<(String, u64, String)> {
    let text = |row: &Value| row["raw_response"].as_str().unwrap().to_owned();
    answers(project).into_iter().map(|((code, sample), row)| (code, sample, text(&row))).collect()
}

fn unlike(api: &ChatApi) {
    let mut count = 0;
    api.script(move |_| {
        count += 1;
        Some(ChatFault::Message(json!({"content": format!("answer {count}")})))
    });
}

#[test]
fn new_rows_and_samples_are_asked_alone_and_what_is_made_of_the_answers_asks_nothing() {
    let (api, project) = served(5, "");
    project.run_ok(&[]);
    let before = said(&project);
    api.take();
    unlike(&api);
    project.write("data.jsonl", data(0..6));
    let outcome = project.run_ok(&[]);
    assert_eq!(taken(&api), ["Complete this: def f5(a):"]);
    assert_eq!(values(&outcome.step("answers"), "computed_rows reused_rows"), json!([1, 5]));
    assert_eq!(said(&project)[..5], before);
    project.write("data.jsonl", data(2..4));
    asks_nothing(&api, &project);
    project.write("data.jsonl", data(0..6));
    asks_nothing(&api, &project).all_hit();
    // More samples ask only for those.
    let (api, project) = served(2, "seed: 10, samples: 1");
    project.run_ok(&[]);
    let before = said(&project);
    api.take();
    project.rerun("samples: 1", "samples: 3");
    let seeds: BTreeSet<i64> = api.asked().iter().filter_map(|a| a.body["seed"].as_i64()).collect();
    assert_eq!((api.take().len(), seeds), (4, BTreeSet::from([11, 12])));
    let after = said(&project);
    assert_eq!(after.len(), 6);
    assert!(before.iter().all(|one| after.contains(one)));
    project.change("samples: 3", "samples: 2");
    asks_nothing(&api, &project);
    let (api, project) = served(3, "seed: 1");
    project.run_ok(&[]);
    unlike(&api);
    let rows = |outcome: Outcome| values(&outcome.step("answers"), "computed_rows reused_rows");
    project.change("seed: 1", "seed: 1, extract: raw");
    assert_eq!(rows(asks_nothing(&api, &project)), json!([0, 3]));
    project.change("seed: 1", "seed: 1, price: { input: 1, output: 2 }");
    asks_nothing(&api, &project);
    assert_eq!(project.only("answers.summary")["cost_usd"], 75e-6);
    project.change("output: 2", "output: 3");
    asks_nothing(&api, &project);
    // Another name of the treatment: other ids, the same question.
    let ids = || BTreeSet::from_iter(project.cells("answers", "id"));
    let before = ids();
    project.change("control:", "renamed:");
    assert_eq!(rows(asks_nothing(&api, &project)), json!([0, 3]));
    assert!(before.is_disjoint(&ids()));
    // A column that no one asks about.
    project.write("data.jsonl", data(0..3).replace('}', ",\"note\":\"new\"}"));
    assert_eq!(rows(asks_nothing(&api, &project)), json!([0, 3]));
    assert_eq!(project.cells("answers", "note"), ["new"; 3]);
    // The step and the prompts under other names.
    let text = project.read("w.yaml").replace("prompts", "asked").replace("answers:", "replies:");
    project.write("w.yaml", text);
    asks_nothing(&api, &project);
}

#[test]
fn how_it_is_asked_is_no_part_of_the_result() {
    let api = ChatApi::start();
    let base = "price: { input: 1, output: 1 }, max_tokens: 9";
    let project = project(&api, 3, base);
    let first = project.run_ok(&[]);
    asks_nothing(&api, &project).all_hit_as(&first);
    for more in [
        "concurrency: 3",
        "requests_per_minute: 100",
        "tokens_per_minute: 100000",
        "tries: 2",
        "timeout_seconds: 5",
        "max_usd: 0",
        "min_answered: 0.5",
        "api_key_env: NOT_SET_AT_ALL",
    ] {
        project.write("w.yaml", workflow(&api, &format!("{base}, {more}")));
        asks_nothing(&api, &project).all_hit_as(&first);
    }
    // The same server, written in another way.
    project.write("w.yaml", workflow(&api, base).replace("/v1'", "/v1/'"));
    asks_nothing(&api, &project).all_hit();
}

#[test]
fn what_the_answers_depend_on_is_asked_anew() {
    let api = ChatApi::start();
    let changed = project(&api, 2, "").ran();
    for (from, to) in [
        ("model: tiny", "model: tiny, temperature: 0.5"),
        ("temperature: 0.5", "temperature: 0.7"),
        ("temperature: 0.7", "temperature: 0.7, max_tokens: 5"),
        ("max_tokens: 5", "max_tokens: 5, seed: 1"),
        ("seed: 1", "seed: 2"),
        ("seed: 2", "seed: 2, stop: [END]"),
        ("stop: [END]", "stop: [END, FIN]"),
        ("stop: [END, FIN]", "top_p: 0.5"),
        ("top_p: 0.5", "top_p: 0.5, extra_body: { top_k: 1 }"),
        ("top_k: 1", "top_k: 2"),
        ("model: tiny", "model: tiny2"),
        ("control: '", "control: 'Please c"),
    ] {
        api.take();
        changed.edit("w.yaml", from, to);
        changed.run_ok(&[]);
        assert_eq!(api.take().len(), 2, "{from} -> {to}");
    }
    let other = ChatApi::start();
    project(&api, 2, "").ran().with("w.yaml", workflow(&other, "")).run_ok(&[]);
    assert_eq!(other.count(), 2);
}

#[test]
fn two_workflows_and_new_metrics_share_answers() {
    let (api, project) = served(4, "");
    project.run_ok(&[]);
    api.take();
    let other = workflow(&api, "concurrency: 1")
        .replace("galeras: 1\n", "galeras: 1\nname: other\n")
        .replace("data.jsonl", "more.jsonl")
        .replace("answers:", "replies:");
    project.write("other.yaml", other);
    project.write("more.jsonl", data(2..7));
    project.run(&["run", "other.yaml"]).exits(0);
    assert_eq!(taken(&api), [4, 5, 6].map(|i| format!("Complete this: def f{i}(a):")));
    project.write("data.jsonl", data(0..7));
    asks_nothing(&api, &project);
    let (api, project) = served(2, "");
    project.append(
        "  scored: { op: score, from: answers, with: { reference: code, metrics: [levenshtein] } }\n",
    );
    let outcome = project.run_ok(&[]);
    assert_eq!((outcome.step("scored")["rows"].as_u64(), api.take().len()), (Some(2), 2));
    project.change("[levenshtein]", "[levenshtein, exact_match]");
    assert_eq!(asks_nothing(&api, &project).status("answers"), "hit");
}

#[test]
fn force_asks_anew() {
    let api = ChatApi::start();
    unlike(&api);
    let project = project(&api, 2, "").ran();
    let before = said(&project);
    let outcome = project.run_ok(&["--force", "answers"]);
    assert_eq!(api.take().len(), 4);
    assert_eq!(outcome.step("answers")["reason"], "FORCED");
    let after = said(&project);
    assert!(before.iter().all(|one| !after.contains(one)), "{before:?} {after:?}");
    asks_nothing(&api, &project).all_hit();
    assert_eq!(said(&project), after);
    // From now on these are the answers.
    project.write("data.jsonl", data(0..3));
    project.run_ok(&[]);
    assert_eq!(said(&project)[..2], after);
    assert_eq!(taken(&api).len(), 1);
}

#[test]
fn what_failed_is_asked_by_the_next_run_and_only_that() {
    let (api, project) = served(4, "samples: 2, seed: 7, min_answered: 0.75");
    api.spoil("f2", ChatFault::Error(400, "bad", "no way".into()));
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.finished()["status"], "ok");
    let told = outcome.warnings();
    assert_eq!(told.len(), 1, "{outcome}");
    says(&told[0], &["2 of 8 answers are missing", "no way", "next run"]);
    assert_eq!((project.rows("answers").len(), api.take().len()), (6, 8));
    let wanted = [0, 1].map(|sample| format!("{sample} | answers | refused | def f2(a):"));
    assert_eq!(project.cells("answers.rejects", "sample step rule code"), wanted);
    for reason in project.cells("answers.rejects", "reason") {
        says(&reason, &["no way", "refuses"]);
    }
    // It still fails: it is asked, and nothing else is.
    project.run(&["plan", "w.yaml"]).exits(0).prints(&["PREV_FAILED"]);
    let again = project.run_ok(&[]);
    assert_eq!(again.step("answers")["reason"], "PREV_FAILED");
    assert_eq!(again.digests(), outcome.digests());
    assert_eq!(taken(&api), ["Complete this: def f2(a):"; 2]);
    api.heal();
    let healed = project.run_ok(&[]);
    assert_eq!(healed.step("answers")["reason"], "PREV_FAILED");
    assert_eq!(taken(&api), ["Complete this: def f2(a):"; 2]);
    assert!(project.rows("answers.rejects").is_empty() && answers(&project).len() == 8);
    asks_nothing(&api, &project).all_hit();
    assert_eq!(project.run_ok(&["--cache", "fresh"]).digests(), healed.digests());
}

/// The treatment `one` instead of the only one, and more.
fn treatments(project: &Project, more: &str) {
    let one = "        control: 'Complete this: {{ code }}'";
    project.change(one, &format!("        one: '{{{{ code }}}}'{more}"));
}

const TWO: &str = "\n        two: ['{{ code }}', Then]";

#[test]
fn conversations_share_their_beginning_and_go_on_where_they_failed() {
    let (api, project) = served(1, "");
    unlike(&api);
    treatments(&project, &format!("{TWO}\n        three: ['{{{{ code }}}}', Now]"));
    project.run_ok(&[]);
    assert_eq!(taken(&api), ["Now", "Then", "def f0(a):"]);
    let said = || project.cells("answers", "treatment raw_response earlier_responses");
    let before = said();
    project.change("model: tiny", "model: tiny, extract: raw");
    asks_nothing(&api, &project);
    assert_eq!(said(), before);
    // The summary's `answers` are “each turn and each only once”: what was paid.
    let (api, project) = served(1, "price: { input: 1, output: 1 }");
    treatments(&project, TWO);
    project.run_ok(&[]);
    assert_eq!(api.count(), 2);
    let summary = project.only("answers.summary");
    assert_eq!(values(&summary, "rows answers cost_usd"), json!([2, 2, 36e-6]));
    // A beginning that is refused is refused for all who share it.
    let (api, project) = served(2, "min_answered: 0.5");
    api.spoil("f1(", ChatFault::Error(400, "bad", "no way".into()));
    treatments(&project, TWO);
    project.run_ok(&[]);
    assert_eq!((project.rows("answers").len(), project.rows("answers.rejects").len()), (2, 2));
    api.take();
    api.heal();
    project.run_ok(&[]);
    assert_eq!(taken(&api), ["Then", "def f1(a):"]);
    assert_eq!(project.rows("answers").len(), 4);
    let (api, project) = served(2, "min_answered: 0.5");
    project.change("'Complete this: {{ code }}'", "['{{ code }}', Then, 'Last {{ code }}']");
    api.spoil("Last def f1", ChatFault::Error(400, "bad", "no way".into()));
    project.run_ok(&[]);
    assert_eq!((api.take().len(), project.rows("answers").len()), (6, 1));
    api.heal();
    project.run_ok(&[]);
    assert_eq!(taken(&api), ["Last def f1(a):"]);
    assert_eq!(project.rows("answers").len(), 2);
    project.rerun("'Last {{ code }}'", "'Last {{ code }}', More");
    assert_eq!(taken(&api), ["More"; 2]);
    project.change(", 'Last {{ code }}', More", "");
    asks_nothing(&api, &project);
}
