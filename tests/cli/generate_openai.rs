//! `generate` with a server: its requests, and the use of the answers. The other tests of `generate`
//! begin with this workflow.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Project, values};
use galeras_test_servers::chat_api::{
    ChatApi, ChatFault, ChatRequest, MODEL, TOKENS, VERSION, code, content,
};

pub const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  prompts:
    op: prompt
    from: data
    with:
      treatments:
        control: 'Complete this: {{ code }}'
  answers:
    op: generate
    from: prompts
    with: { base_url: 'URL', model: tiny, MORE }
";

/// A workflow with its server, and with more arguments of its step `answers`.
pub fn filled(workflow: &str, api: &ChatApi, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    workflow.replace("URL", &api.url()).replace(", MORE", &more)
}

pub fn workflow(api: &ChatApi, more: &str) -> String {
    filled(WORKFLOW, api, more)
}

pub fn data(rows: std::ops::Range<usize>) -> String {
    rows.map(|i| format!("{{\"id\":\"r{i:04}\",\"code\":\"def f{i}(a):\"}}\n")).collect()
}

pub fn project(api: &ChatApi, rows: usize, more: &str) -> Project {
    Project::new(&workflow(api, more)).with("data.jsonl", data(0..rows))
}

pub fn served(rows: usize, more: &str) -> (ChatApi, Project) {
    served_of(WORKFLOW, rows, more)
}

pub fn served_of(workflow: &str, rows: usize, more: &str) -> (ChatApi, Project) {
    let api = ChatApi::start();
    let project = Project::new(&filled(workflow, &api, more)).with("data.jsonl", data(0..rows));
    (api, project)
}

#[track_caller]
pub fn answers(project: &Project) -> BTreeMap<(String, u64), Value> {
    let key =
        |row: &Value| (row["code"].as_str().unwrap().to_owned(), row["sample"].as_u64().unwrap());
    let rows = project.rows("answers");
    let all: BTreeMap<_, _> = rows.iter().map(|row| (key(row), row.clone())).collect();
    assert_eq!(all.len(), rows.len(), "every row and sample is there once");
    all
}

fn seeds(asked: &[ChatRequest]) -> Vec<i64> {
    let mut seeds: Vec<i64> = asked.iter().map(|a| a.body["seed"].as_i64().unwrap()).collect();
    seeds.sort_unstable();
    seeds
}

#[test]
fn every_prompt_gets_a_row_with_its_answer() {
    let (api, project) = served(3, "");
    let outcome = project.run_ok(&[]);
    assert!(outcome.warnings().is_empty(), "{outcome}");
    let asked: HashMap<String, ChatRequest> =
        api.asked().into_iter().map(|a| (a.last(), a)).collect();
    assert_eq!((asked.len(), api.count()), (3, 3));
    let prompts: HashMap<String, Value> = (project.rows("prompts").into_iter())
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row))
        .collect();
    let rows = project.rows("answers");
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let text = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("{name}: {row}"));
        let prompt = &prompts[text("prompt_id")];
        assert_ne!(text("id"), text("prompt_id"));
        for (name, value) in prompt.as_object().unwrap().iter().filter(|(name, _)| *name != "id") {
            assert_eq!(row[name], *value, "{name} goes through");
        }
        let body = &asked[text("prompt")].body;
        let columns = "prediction raw_response finish_reason model reported_model sample \
                       prompt_tokens completion_tokens earlier_responses";
        let wanted = json!([code(body), content(body), "stop", MODEL, VERSION, 0, 11, 7, []]);
        assert_eq!(values(row, columns), wanted);
    }
    let ids: BTreeSet<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    assert!(project.rows("answers.rejects").is_empty());
    assert_eq!(values(&outcome.step("answers"), "computed_rows reused_rows"), json!([3, 0]));
    project.verifies("cache");
}

#[test]
fn a_request_says_what_was_told_and_samples_have_seeds_keys_ids_and_answers_of_their_own() {
    let api = ChatApi::start();
    project(&api, 1, "").run_ok(&[]);
    let asked = api.take().remove(0);
    let message = json!({"role": "user", "content": "Complete this: def f0(a):"});
    assert_eq!(asked.body, json!({"model": "tiny", "messages": [message], "stream": false}));
    assert_eq!(asked.path, "POST /v1/chat/completions");
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("authorization"), None);
    assert!(asked.header("user-agent").unwrap().starts_with("galeras/"));
    let all = "temperature: 0.2, top_p: 0.9, max_tokens: 64, stop: ['\\n\\n', END], seed: 7, \
               extra_body: { top_k: 40, chat_template_kwargs: { enable_thinking: false } }";
    project(&api, 1, all).run_ok(&[]);
    let asked = api.take().remove(0);
    let wanted = json!({
        "model": "tiny", "messages": [message], "stream": false, "temperature": 0.2, "top_p": 0.9,
        "max_tokens": 64, "stop": ["\\n\\n", "END"], "seed": 7, "top_k": 40,
        "chat_template_kwargs": {"enable_thinking": false},
    });
    assert_eq!(asked.body, wanted);
    // A temperature of 0 is sent as well.
    project(&api, 1, "temperature: 0").run_ok(&[]);
    assert_eq!(api.take()[0].body["temperature"].as_f64(), Some(0.0));
    let (api, project) = served(2, "samples: 5, seed: 40");
    project.run_ok(&[]);
    assert_eq!(seeds(&api.asked()), [40, 40, 41, 41, 42, 42, 43, 43, 44, 44]);
    let rows = answers(&project);
    let keys: Vec<_> = rows.keys().cloned().collect();
    let wanted =
        ["def f0(a):", "def f1(a):"].map(|code| (0..5).map(move |s| (code.to_string(), s)));
    assert_eq!(keys, wanted.into_iter().flatten().collect::<Vec<_>>());
    let of = |name: &str| -> BTreeSet<&str> {
        rows.values().map(|row| row[name].as_str().unwrap()).collect()
    };
    assert_eq!((of("id").len(), of("prompt_id").len(), of("prediction").len()), (10, 2, 10));
    for ((_, sample), row) in &rows {
        let body = json!({"messages": row["messages"], "seed": 40 + sample});
        assert_eq!(row["prediction"], code(&body));
    }
    assert_eq!(values(&project.only("answers.summary"), "rows answers"), json!([10, 10]));
    // Without a seed the request of every sample is the same, and still each has its answer.
    let api = ChatApi::start();
    let numbered = |asked: &ChatRequest| json!({"content": format!("number {}", asked.number)});
    api.script(move |asked| Some(ChatFault::Message(numbered(asked))));
    let project = self::project(&api, 1, "samples: 4").ran();
    let texts: BTreeSet<String> = api.asked().into_iter().map(|a| a.text).collect();
    assert_eq!((api.count(), texts.len()), (4, 1));
    let said: BTreeSet<String> = project.cells("answers", "raw_response").into_iter().collect();
    assert_eq!(said.len(), 4);
}

#[test]
fn a_conversation_goes_on_with_the_answers_and_examples_are_shown_and_not_asked() {
    let (api, project) = served(2, "samples: 2, seed: 5, price: { input: 1, output: 1 }");
    project.rerun("'Complete this: {{ code }}'", "['First: {{ code }}', 'Then', 'Last']");
    assert_eq!(api.count(), 2 * 2 * 3);
    let asked = api.asked();
    for row in project.rows("answers") {
        let seed = 5 + row["sample"].as_i64().unwrap();
        let mut messages = Vec::new();
        let mut said = Vec::new();
        for text in [&format!("First: {}", row["code"].as_str().unwrap()), "Then", "Last"] {
            messages.push(json!({"role": "user", "content": text}));
            let body = json!({"messages": messages, "seed": seed});
            let found = asked.iter().filter(|a| {
                a.body["messages"] == body["messages"] && a.body["seed"] == body["seed"]
            });
            assert_eq!(found.count(), 1, "{body}");
            said.push(content(&body));
            messages.push(json!({"role": "assistant", "content": content(&body)}));
        }
        let columns = "raw_response earlier_responses prompt_tokens completion_tokens";
        assert_eq!(values(&row, columns), json!([said[2], said[..2], 33, 21]));
    }
    assert_eq!(values(&project.only("answers.summary"), "rows answers"), json!([4, 12]));
    let (api, project) = served(1, "");
    project.change(
        "      treatments:
        control: 'Complete this: {{ code }}'",
        "      system: You write {{ code | length }} letters.
      treatments:
        control: '{{ code }}'
        shown:
          - 'def g(a):'
          - { role: assistant, content: return a }
          - '{{ code }}'
        own:
          - { role: system, content: Be brief. }
          - '{{ code }}'",
    );
    project.run_ok(&[]);
    let mut asked: Vec<Value> = api.asked().iter().map(|a| a.body["messages"].clone()).collect();
    asked.sort_by_key(ToString::to_string);
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let (told, last) = (said("system", "You write 10 letters."), said("user", "def f0(a):"));
    let mut wanted = [
        json!([told, last]),
        json!([told, said("user", "def g(a):"), said("assistant", "return a"), last]),
        json!([said("system", "Be brief."), last]),
    ];
    wanted.sort_by_key(ToString::to_string);
    assert_eq!(asked, wanted);
    assert!(project.rows("answers").iter().all(|row| row["earlier_responses"] == json!([])));
}

#[test]
fn prompts_that_say_the_same_share_an_answer_and_the_summary_says_what_each_model_cost() {
    let (api, project) = served(0, "samples: 2, seed: 1, price: { input: 1, output: 1 }");
    let row = |id: &str, code: &str| format!("{{\"id\":\"{id}\",\"code\":\"{code}\"}}\n");
    let rows = [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")];
    project.write("data.jsonl", rows.map(|(id, code)| row(id, code)).concat());
    let outcome = project.run_ok(&[]);
    assert_eq!(seeds(&api.asked()), [1, 1, 2, 2]);
    let mut said = project.cells("answers", "code sample prediction");
    assert_eq!(said.len(), 8);
    said.dedup();
    let keys: Vec<&str> = said.iter().map(|line| &line[..5]).collect();
    assert_eq!(keys, ["x | 0", "x | 1", "y | 0", "y | 1"], "{said:?}");
    // Paid once.
    let summary = project.only("answers.summary");
    assert_eq!(values(&summary, "rows answers prompt_tokens"), json!([8, 4, 44]));
    assert_eq!(outcome.events("progress").last().unwrap()["done"], 8);
    // A template without columns is one question.
    let (api, project) = served(3, "");
    project.rerun("'Complete this: {{ code }}'", "Write a method.");
    let asked = api.asked();
    assert_eq!((asked.len(), asked[0].last().as_str()), (1, "Write a method."));
    assert_eq!(answers(&project).len(), 3);
    let (_api, project) = served(3, "samples: 2, seed: 1, price: { input: 0.15, output: 0.6 }");
    project.run_ok(&[]);
    let (prompt, answer) = TOKENS;
    let summary = project.only("answers.summary");
    let cost = (6.0 * prompt as f64 * 0.15 + 6.0 * answer as f64 * 0.6) / 1e6;
    assert!((summary["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-15, "{summary}");
    let wanted = json!({
        "model": MODEL, "reported_model": VERSION, "rows": 6, "answers": 6,
        "prompt_tokens": 66, "completion_tokens": 42, "cost_usd": summary["cost_usd"],
    });
    assert_eq!(summary, wanted);
    project.rerun(", price: { input: 0.15, output: 0.6 }", "");
    assert_eq!(project.only("answers.summary")["cost_usd"], Value::Null);
    // Models of other names are summed up apart.
    let api = ChatApi::start();
    api.script(|asked| match asked.last().as_str() {
        "Complete this: def f0(a):" => Some(ChatFault::With(json!({"model": "other"}))),
        "Complete this: def f1(a):" => Some(ChatFault::With(json!({"model": null}))),
        _ => None,
    });
    let project = self::project(&api, 4, "").ran();
    let reported = project.cells("answers", "code reported_model");
    assert_eq!(reported[..2], ["def f0(a): | other", "def f1(a): | null"]);
    assert_eq!(reported[2..], [2, 3].map(|i| format!("def f{i}(a): | {VERSION}")));
    let counts = project.cells("answers.summary", "reported_model rows");
    assert_eq!(counts, ["other | 1".to_owned(), "tiny | 1".to_owned(), format!("{VERSION} | 2")]);
}

#[test]
fn answers_in_every_dialect_are_read() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    for (message, raw, reason) in [
        (json!({"content": null}), "", "stop"),
        (json!({"content": null, "refusal": "I cannot."}), "I cannot.", "refusal"),
        (json!({"content": "", "tool_calls": []}), "", "stop"),
        (json!({"content": parts}), "ab", "stop"),
        (json!({"content": "a", "reasoning_content": "hm"}), "a", "stop"),
    ] {
        let api = ChatApi::start();
        let fault = ChatFault::Message(message.clone());
        api.script(move |_| Some(fault.clone()));
        let project = project(&api, 1, "").ran();
        let prediction = if reason == "refusal" { "" } else { raw };
        let columns = "raw_response prediction finish_reason reasoning";
        let found = values(&project.only("answers"), columns);
        let wanted = json!([raw, prediction, reason, message["reasoning_content"]]);
        assert_eq!(found, wanted, "{message}");
        assert_eq!(api.count(), 1, "{message}");
    }
    let api = ChatApi::start();
    api.script(|_| Some(ChatFault::With(json!({"usage": null}))));
    let project = project(&api, 2, "price: { input: 1, output: 1 }").ran();
    assert_eq!(project.cells("answers", "prompt_tokens completion_tokens"), ["null | null"; 2]);
    // The prediction is the code or all of the answer.
    let api = ChatApi::start();
    let said = "<think>```python\nno\n```</think>\nFirst:\n```sh\nls\n```\n```py\nx = 1\n\n```\nor\n```\ny\n```\n";
    api.script(move |_| Some(ChatFault::Message(json!({"content": said, "role": "assistant"}))));
    let project = self::project(&api, 1, "");
    let thoughts = json!("```python\nno\n```");
    for (extract, prediction, reasoning) in
        [("code", "x = 1", thoughts), ("raw", said, Value::Null)]
    {
        project.write("w.yaml", workflow(&api, &format!("extract: {extract}")));
        project.run_ok(&[]);
        let found = values(&project.only("answers"), "prediction raw_response reasoning");
        assert_eq!(found, json!([prediction, said, reasoning]));
    }
    assert_eq!(api.count(), 1, "a change of the extraction is no question");
}

#[test]
fn as_many_requests_as_allowed_go_side_by_side_over_connections_that_are_kept() {
    let mut digests = Vec::new();
    // Requests take so long that a busy machine gets to the others meanwhile.
    for (concurrency, latency) in [(1, 20), (5, 250)] {
        let (api, project) = served(40, &format!("concurrency: {concurrency}"));
        api.set_latency(Duration::from_millis(latency));
        digests.push(project.run_ok(&[]).digests());
        assert_eq!((api.count(), api.most_under_way()), (40, concurrency));
        let connections: BTreeSet<usize> = api.asked().iter().map(|a| a.connection).collect();
        assert!(connections.len() <= concurrency + 1, "{connections:?}");
    }
    assert_eq!(digests[0], digests[1], "neither order nor address is in the result");
}

#[test]
fn without_prompts_nothing_is_asked() {
    let (api, project) = served(1, "");
    project.change("    from: prompts\n", "    from: none\n");
    let none =
        "  none: { op: sql, from: prompts, with: { query: 'SELECT * FROM input WHERE false' } }\n";
    project.append(none);
    project.run_ok(&[]);
    assert!(project.rows("answers").is_empty() && project.rows("answers.summary").is_empty());
    assert_eq!(api.count(), 0);
}
