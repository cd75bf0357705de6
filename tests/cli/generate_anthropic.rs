//! `generate` with `provider: anthropic`: what it asks, what becomes of the answers, what servers
//! may do; keys, versions and kept answers as with any other server.

use serde_json::json;

use crate::generate_faults::{rejects, survives};
use crate::generate_openai::{answers, data, served_of};
use crate::harness::{Outcome, Project, files_below, has, hides, says, values};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, VERSION, code, content};

pub const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  prompts: { op: prompt, from: data, with: { treatments: { control: 'Complete this: {{ code }}' } } }
  answers:
    op: generate
    from: prompts
    with: { provider: anthropic, base_url: 'URL', model: tiny, max_tokens: 64, MORE }
";

fn with_key(project: &Project, args: &[&str]) -> Outcome {
    project.run_with(args, &[("MY_KEY", KEY), ("ANTHROPIC_API_KEY", KEY)])
}

const KEY: &str = "sk-ant-api03-0aVerySecretKey_7f3d9b21c5";

fn served(rows: usize, more: &str) -> (ChatApi, Project) {
    served_of(WORKFLOW, rows, more)
}

/// An error as Anthropic words it.
fn error(status: u16, headers: &[(&str, &str)], kind: &str, message: &str) -> ChatFault {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    ChatFault::Raw(status, headers.collect(), body.to_string())
}

#[test]
fn messages_instructions_and_settings_are_asked_as_their_api_wants_it() {
    let (api, project) = served(2, "api_key_env: MY_KEY");
    with_key(&project, &["run", "w.yaml"]).exits(0);
    let asked = api.asked();
    assert_eq!(asked.len(), 2);
    for asked in &asked {
        assert_eq!(asked.path, "POST /v1/messages");
        assert_eq!(asked.header("x-api-key"), Some(KEY));
        assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(asked.header("authorization"), None);
        let messages = json!([{"role": "user", "content": asked.last()}]);
        let wanted =
            json!({"model": "tiny", "messages": messages, "max_tokens": 64, "stream": false});
        assert_eq!(asked.body, wanted);
    }
    for row in project.rows("answers") {
        let body = json!({"messages": row["messages"]});
        assert_eq!(values(&row, "prediction raw_response"), json!([code(&body), content(&body)]));
        let columns = "finish_reason reported_model prompt_tokens completion_tokens";
        has(&row, columns, json!(["end_turn", VERSION, 11, 7]));
    }
    for file in files_below(&project.root()) {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(16).any(|window| KEY.as_bytes().windows(16).any(|k| k == window));
        assert!(!found, "{}", file.display());
    }
    project.verifies("cache");
    let all = "temperature: 0.2, top_p: 0.9, stop: [END], extra_body: { top_k: 40 }, samples: 2";
    let (api, project) = served(1, all);
    project.change("{ treatments:", "{ system: Be brief., treatments:");
    let one = "'Complete this: {{ code }}'";
    project.rerun(one, "['First: {{ code }}', 'Then']");
    let asked = api.asked();
    assert_eq!(asked.len(), 4, "two samples of two turns");
    for asked in &asked {
        let wanted = json!({
            "model": "tiny", "system": "Be brief.", "messages": asked.body["messages"],
            "max_tokens": 64, "temperature": 0.2, "top_p": 0.9, "stop_sequences": ["END"],
            "top_k": 40, "stream": false,
        });
        assert_eq!(asked.body, wanted);
        let messages = asked.body["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|said| said["role"].as_str().unwrap()).collect();
        assert!(roles == ["user"] || roles == ["user", "assistant", "user"], "{roles:?}");
    }
    for row in project.rows("answers") {
        assert_eq!(row["earlier_responses"].as_array().unwrap().len(), 1);
        has(&row, "prompt_tokens completion_tokens", json!([22, 14]));
    }
}

#[test]
fn answers_in_blocks_are_read() {
    let think = json!({"type": "thinking", "thinking": "```python\nno\n```", "signature": "x"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let fenced = [think, text("```python\nx = 1\n"), text("```")];
    let refusal = [text("I cannot")];
    let stopped = "stop_sequence";
    for (fields, raw, prediction, reason) in [
        (json!({ "content": fenced }), "```python\nx = 1\n```", "x = 1", "end_turn"),
        (json!({"content": [], "stop_reason": "max_tokens"}), "", "", "max_tokens"),
        (json!({"content": refusal, "stop_reason": "refusal"}), "I cannot", "", "refusal"),
        (json!({"content": "x = 2", "stop_reason": stopped}), "x = 2", "x = 2", stopped),
    ] {
        let (api, project) = served(1, "");
        api.script(move |_| Some(ChatFault::With(fields.clone())));
        let row = project.ran().only("answers");
        has(&row, "raw_response prediction finish_reason", json!([raw, prediction, reason]));
        assert_eq!(api.count(), 1);
    }
    // Tokens that came from a cache were read as well.
    let (api, project) = served(1, "price: { input: 1, output: 2 }");
    let usage = json!({"input_tokens": 1, "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 300, "output_tokens": 4});
    api.script(move |_| Some(ChatFault::With(json!({ "usage": usage }))));
    let summary = project.ran().only("answers.summary");
    has(&summary, "prompt_tokens completion_tokens cost_usd", json!([321, 4, 0.000_329]));
}

#[test]
fn what_fails_in_passing_is_asked_again_and_one_prompt_that_fails_is_set_aside() {
    let half = json!({"type": "message", "content": [{"type": "text"}]}).to_string();
    for fault in [
        error(529, &[], "overloaded_error", "Overloaded"),
        error(429, &[("retry-after", "0")], "rate_limit_error", "Slow down"),
        error(200, &[], "overloaded_error", "Overloaded"),
        ChatFault::NoChoices,
        ChatFault::Raw(200, vec![], half.replace("}]", ",\"text\":3}]")),
        ChatFault::Raw(200, vec![], json!({"content": 7}).to_string()),
        ChatFault::Raw(200, vec![], "[".repeat(50_000)),
    ] {
        survives(WORKFLOW, fault);
    }
    let long = error(400, &[], "invalid_request_error", "prompt is too long: 9 > 8");
    for (fault, tries, rule, word) in [
        (long, 1, "refused", "context"),
        (error(413, &[], "request_too_large", "Too large"), 1, "refused", "too long"),
        (error(529, &[], "overloaded_error", "Overloaded"), 2, "server_error", "HTTP 529"),
        (ChatFault::Huge(40 << 20, true), 1, "too_large", "longer than"),
        (ChatFault::Huge(40 << 20, false), 1, "too_large", "longer than"),
        (ChatFault::NoChoices, 2, "no_choices", "no choice"),
    ] {
        rejects(WORKFLOW, fault, tries, rule, &[word]);
    }
}

/// The step ends with these words, after one request.
#[track_caller]
fn ends(fault: ChatFault, words: &[&str]) {
    let (api, project) = served(20, "concurrency: 1, api_key_env: MY_KEY");
    api.script(move |_| Some(fault.clone()));
    let outcome = with_key(&project, &["run", "w.yaml", "--format", "json"]).exits(1);
    says(&outcome.detail("answers"), words);
    assert_eq!(api.count(), 1, "{outcome}");
    hides(&format!("{}{}", outcome.stdout, outcome.stderr), &[&KEY[12..28]]);
}

#[test]
fn what_ends_it_all_ends_it_all() {
    let bad = "invalid_request_error";
    ends(ChatFault::EchoKey, &["does not take the key in $MY_KEY"]);
    ends(error(401, &[], "authentication_error", "invalid x-api-key"), &["$MY_KEY"]);
    ends(error(403, &[], "permission_error", "Your key may not"), &["HTTP 403"]);
    ends(error(404, &[], "not_found_error", "model: tiny"), &["no model `tiny`"]);
    ends(error(400, &[], bad, "Your credit balance is too low to access it"), &["no money left"]);
    let long = "max_tokens: 64 > 32, which is the maximum allowed number of output tokens for tiny";
    let words = ["`max_tokens` is more than the model allows", "64 > 32"];
    ends(error(400, &[], bad, long), &words);
    let both = "`temperature` and `top_p` cannot both be specified for this model";
    ends(error(400, &[], bad, both), &["leave it out"]);
    ends(error(529, &[("retry-after", "7200")], "overloaded_error", "Overloaded"), &["2 h 0 min"]);
    ends(ChatFault::Raw(404, vec![], "Not Found".into()), &["/v1/messages"]);
}

#[test]
fn nothing_is_asked_twice() {
    let (api, project) = served(6, "concurrency: 2");
    api.script(|asked| (asked.number >= 3).then(|| error(401, &[], "authentication_error", "no")));
    project.run_json(&[]).exits(1);
    let before = api.take();
    let paid = before.iter().filter(|asked| asked.number < 3).count();
    api.heal();
    project.run_ok(&[]);
    assert_eq!((api.take().len(), answers(&project).len()), (6 - paid, 6));
    // More samples, other treatments: only what is new. The address with its `/v1` is the same one.
    project.change("concurrency: 2", "concurrency: 3, samples: 2");
    project.rerun("/v1'", "'");
    assert_eq!((api.take().len(), answers(&project).len()), (6, 12));
    // The same words to a server of chats are another question.
    project.change("provider: anthropic, ", "");
    let base = api.url().trim_end_matches("/v1").to_owned();
    project.rerun(&format!("'{base}'"), &format!("'{}'", api.url()));
    assert_eq!(api.take().len(), 12);
}

/// Anthropic's own server needs its key, and no consent.
#[test]
fn the_key_of_the_own_server_is_known_by_its_name() {
    let project = Project::new(&WORKFLOW.replace("base_url: 'URL', ", "").replace(", MORE", ""));
    project.write("data.jsonl", data(0..1));
    let found = project.refused_once("missing-secret", "ANTHROPIC_API_KEY");
    says(&found["message"].to_string(), &["ANTHROPIC_API_KEY"]);
    // For another server it is asked for.
    let other =
        "model: tiny, base_url: 'https://models.example.org', api_key_env: ANTHROPIC_API_KEY";
    project.change("model: tiny", other);
    let outcome = with_key(&project, &["run", "w.yaml", "--format", "json"]).exits(2);
    assert_eq!(outcome.events("diagnostic")[0]["code"], "not-allowed", "{outcome}");
    outcome.prints(&["env:ANTHROPIC_API_KEY=models.example.org"]);
}
