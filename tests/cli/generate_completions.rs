//! `generate` with `endpoint: completions`, where a text continues, and the log-probabilities of both
//! endpoints.

use serde_json::{Value, json};

use crate::generate_openai::{answers, served_of};
use crate::harness::{Project, has, lines, values};
use galeras_test_servers::chat_api::dialects::{code, content, goes_on, tokens};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, VERSION};

pub const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  answers:
    op: generate
    from: data
    with: { endpoint: completions, base_url: 'URL', model: tiny, prompt: code, MORE }
";

fn served(rows: usize, more: &str) -> (ChatApi, Project) {
    served_of(WORKFLOW, rows, more)
}

/// The numbers of a column of [`tokens`], as the program adds them up.
fn sum(text: &str) -> f64 {
    tokens(text).iter().fold(0.0, |sum, (_, logprob)| sum + logprob)
}

#[test]
fn a_text_goes_on_without_a_chat_around_it() {
    let (api, project) = served(3, "");
    assert!(project.run_ok(&[]).warnings().is_empty());
    let asked = api.asked();
    assert_eq!(asked.len(), 3);
    for asked in &asked {
        assert_eq!(asked.path, "POST /v1/completions");
        assert_eq!(asked.body, json!({"model": "tiny", "prompt": asked.last(), "stream": false}));
    }
    for row in project.rows("answers") {
        // All of it is what comes next.
        let next = goes_on(&json!({"prompt": row["code"]}));
        let columns = "raw_response prediction finish_reason reported_model prompt_tokens \
                       completion_tokens earlier_responses";
        has(&row, columns, json!([next, next, "stop", VERSION, 11, 7, []]));
        assert!(row.get("logprob_sum").is_none(), "{row}");
    }
    project.run_ok(&[]).all_hit();
    // Another way to read an answer asks nothing.
    project.rerun("prompt: code", "prompt: code, extract: code");
    for row in project.rows("answers") {
        assert_eq!(row["prediction"], goes_on(&json!({"prompt": row["code"]})).trim_end());
    }
    assert_eq!(api.count(), 3);
    project.verifies("cache");
}

#[test]
fn what_a_request_says_and_the_prompt_of_a_treatment_is_its_default() {
    let all = "suffix: after, temperature: 0.2, top_p: 0.9, max_tokens: 64, stop: [END], seed: 7, \
               samples: 2, logprobs: true, extra_body: { top_k: 40 }";
    let (api, project) = served(1, all);
    project.write("data.jsonl", "{\"id\":\"a\",\"code\":\"def f(\",\"after\":\"\"}\n");
    project.run_ok(&[]);
    let mut asked = api.take();
    asked.sort_by_key(|asked| asked.body["seed"].as_i64());
    for (asked, seed) in asked.iter().zip([7, 8]) {
        let wanted = json!({
            "model": "tiny", "prompt": "def f(", "suffix": "", "stream": false, "temperature": 0.2,
            "top_p": 0.9, "max_tokens": 64, "stop": ["END"], "seed": seed, "logprobs": 1, "top_k": 40,
        });
        assert_eq!(asked.body, wanted);
    }
    assert_eq!(asked.len(), 2);
    let (api, project) = served(2, "");
    let text = project.read("w.yaml");
    let text = text.replace(", prompt: code", "").replace("from: data", "from: prompts");
    let prompts = "  prompts: { op: prompt, from: data, with: { system: s, treatments: { a: '# {{ code }}' } } }\n";
    project.write("w.yaml", text + prompts);
    project.run_ok(&[]);
    let mut said: Vec<String> = api.asked().iter().map(|asked| asked.last()).collect();
    said.sort();
    assert_eq!(said, ["# def f0(a):", "# def f1(a):"]);
}

#[test]
fn the_middle_is_filled_in_and_chats_and_texts_do_not_share_answers() {
    let (api, project) = served(1, "suffix: after");
    let row = |id, code: Option<&str>, after: Option<&str>| json!({"id": id, "code": code, "after": after});
    let rows = [
        row("a", Some("x"), Some("y")),
        row("b", Some("x"), Some("z")),
        row("c", Some("x"), Some("y")),
        row("d", None, Some("y")),
        row("e", Some("x"), None),
        row("f", Some(""), Some("y")),
    ];
    project.write("data.jsonl", lines(&rows));
    let outcome = project.run_ok(&[]);
    // Equal texts with equal ends share an answer.
    assert_eq!((api.count(), outcome.step("answers")["rows"].as_u64()), (3, Some(4)));
    for row in project.rows("answers") {
        let body = json!({"prompt": row["code"], "suffix": row["after"]});
        assert_eq!(row["prediction"], goes_on(&body), "{row}");
    }
    let reasons = project.cells("answers.rejects", "rule reason");
    let wanted = ["prompt | the column `code` is null", "suffix | the column `after` is null"];
    assert_eq!(reasons, wanted);
    // A row that cannot be asked is no reason to run again.
    project.run_ok(&[]).all_hit();
    let (api, project) = served(2, "");
    project.run_ok(&[]);
    project.change("endpoint: completions, ", "");
    project.rerun("prompt: code", "messages: code");
    assert_eq!(api.count(), 4);
    for row in project.rows("answers") {
        let body = json!({"messages": [{"role": "user", "content": row["code"]}]});
        assert_eq!(values(&row, "prediction raw_response"), json!([code(&body), content(&body)]));
    }
}

#[test]
fn log_probabilities_are_columns_at_both_endpoints() {
    for chat in [false, true] {
        let (api, project) = served(2, "logprobs: true");
        if chat {
            project.change("endpoint: completions, ", "");
            project.change("prompt: code", "messages: code");
        }
        let fresh = project.run_ok(&[]);
        assert_eq!(api.asked()[0].body["logprobs"], if chat { json!(true) } else { json!(1) });
        for row in project.rows("answers") {
            let text = row["raw_response"].as_str().unwrap();
            let wanted = tokens(text);
            let of = |(token, logprob)| json!({"token": token, "logprob": logprob});
            let told: Vec<Value> = wanted.iter().cloned().map(of).collect();
            let (n, sum) = (wanted.len(), sum(text));
            let columns = "token_logprobs n_logprobs logprob_sum logprob_mean";
            has(&row, columns, json!([told, n, sum, sum / n as f64]));
        }
        // Answers that were kept are the same to the last bit.
        let kept =
            project.rerun("logprobs: true", "logprobs: true, price: { input: 1, output: 1 }");
        assert_eq!(api.count(), 2, "answers are kept with their log-probabilities");
        assert_eq!(kept.step("answers")["digest"], fresh.step("answers")["digest"]);
        // Those that were asked for without are not the same question.
        project.rerun("logprobs: true, ", "");
        assert_eq!(api.count(), 4);
        assert!(project.rows("answers")[0].get("logprob_sum").is_none());
    }
}

#[test]
fn log_probabilities_that_the_server_does_not_give_are_null_and_columns_that_are_there_stay() {
    let odd = [
        json!(null),
        json!({"content": null}),
        json!("none"),
        json!([1, 2]),
        json!({"tokens": ["a", "b"], "token_logprobs": [-1]}),
        json!({"content": [{"token": 5, "logprob": -1}]}),
    ];
    for logprobs in odd {
        let (api, project) = served(1, "logprobs: true");
        let choice = json!({"text": "x", "finish_reason": "stop", "logprobs": logprobs});
        api.script(move |_| Some(ChatFault::With(json!({ "choices": [choice] }))));
        let row = project.ran().only("answers");
        let columns = "prediction logprob_sum logprob_mean n_logprobs token_logprobs";
        has(&row, columns, json!(["x", null, null, null, null]));
        assert_eq!(api.count(), 1, "{logprobs}");
    }
    // A token without a number makes the sum unknown, and is shown.
    let (api, project) = served(1, "logprobs: true");
    let logprobs = json!({"tokens": ["a", "b"], "token_logprobs": [null, -0.5]});
    let choice = json!({"text": "ab", "finish_reason": "stop", "logprobs": logprobs});
    api.script(move |_| Some(ChatFault::With(json!({ "choices": [choice] }))));
    let row = project.ran().only("answers");
    let told = json!([{"token": "a", "logprob": null}, {"token": "b", "logprob": -0.5}]);
    let columns = "logprob_sum logprob_mean n_logprobs token_logprobs";
    has(&row, columns, json!([null, null, 1, told]));
    // A column of that name in the input is the input's; with log-probabilities it would be lost.
    let (_api, project) = served(1, "");
    project.write("data.jsonl", "{\"id\":\"a\",\"code\":\"x\",\"logprob_sum\":\"mine\"}\n");
    project.run_ok(&[]);
    assert_eq!(project.only("answers")["logprob_sum"], "mine");
    project.change("prompt: code", "prompt: code, logprobs: true");
    project.run(&["check", "w.yaml"]).exits(2).reports(&["already has the column `logprob_sum`"]);
}

#[test]
fn a_server_that_knows_no_suffix_says_so_for_all_rows_at_once() {
    let (api, project) = served(40, "suffix: code, concurrency: 1");
    let said = "suffix is not currently supported";
    api.script(move |_| Some(ChatFault::Error(400, "BadRequestError", said.into())));
    project.fails("answers", &[said, "leave it out"]);
    assert_eq!(api.count(), 1);
}

#[test]
fn money_has_its_limit_and_answers_are_kept() {
    let money = "max_tokens: 5, max_usd: 0.001, price: { input: 1, output: 1 }, concurrency: 1";
    let (api, project) = served(10, money);
    api.set_tokens(200, 50);
    project.fails("answers", &["limit of the cost"]);
    let paid = api.take().len();
    assert!((1..10).contains(&paid), "{paid}");
    project.rerun("max_usd: 0.001", "max_usd: 1");
    assert_eq!((api.count(), answers(&project).len()), (10 - paid, 10));
}
