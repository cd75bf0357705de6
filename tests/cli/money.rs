//! Limits on what steps and workflows spend, and what is reported of it before and afterwards; and
//! limits against a server that bills, while runs are killed at random.

use std::fs;

use serde_json::{Value, json};

use crate::generate_openai::data;
use crate::harness::{Project, Running, files_below, flat, says, values, wait_for};
use galeras_test_servers::chat_api::{Bill, ChatApi, ChatFault};

/// An answer of ten tokens, the most, costs ten dollars; prompts cost nothing.
const TEN: &str = "price: { input: 0, output: 1000000 }, max_tokens: 10";
const ROWS: usize = 20;

const HEAD: &str = "galeras: 1
BUDGET
steps:
  data: { op: read, with: { path: data.jsonl } }
  prompts: { op: prompt, from: data, with: { treatments: { control: 'Complete this: {{ code }}' } } }
";

fn step(api: &ChatApi, name: &str, more: &str) -> String {
    let url = api.url();
    format!(
        "  {name}:\n    op: generate\n    from: prompts\n    with: {{ base_url: '{url}', {more} }}\n"
    )
}

fn cells(api: &ChatApi, more: &str) -> String {
    let step = step(api, "answers", &format!("model: '${{{{ matrix.name }}}}', {more}"));
    format!("{step}    matrix: {{ name: [a, b, c] }}\n")
}

fn project(budget: &str, steps: &str) -> Project {
    let head = HEAD.replace("BUDGET", budget);
    Project::new(&format!("{head}{steps}")).with("data.jsonl", data(0..ROWS))
}

fn ten_dollars() -> ChatApi {
    let api = ChatApi::start();
    api.set_tokens(5, 10);
    api
}

#[test]
fn the_limit_of_a_step_is_for_all_of_its_cells_and_closed_when_all_is_answered() {
    for concurrency in [1, 16] {
        let api = ten_dollars();
        let more = format!("{TEN}, concurrency: {concurrency}, max_usd: 35");
        let project = project("", &cells(&api, &more));
        let outcome = project.run_json(&["--keep-going", "--jobs", "3"]).exits(1);
        assert_eq!(api.count(), 3, "{outcome}");
        outcome.prints(&["$30.00 of the $35.00 that `max_usd` of the step `answers` allows"]);
        // So it stays, whatever is run.
        project.run_json(&["--select", "answers[name=b]"]).exits(1);
        assert_eq!(api.count(), 3);
        project.rerun("max_usd: 35", "max_usd: 600");
        assert_eq!(api.count(), 3 * ROWS);
    }
    let api = ten_dollars();
    let project = project("", &cells(&api, &format!("{TEN}, max_usd: 600"))).ran();
    assert_eq!(api.count(), 3 * ROWS);
    project.run_ok(&[]).all_hit();
    // A new row is a new account: thirty dollars fit into it again.
    project.write("data.jsonl", data(0..ROWS + 1));
    project.rerun("max_usd: 600", "max_usd: 30");
    assert_eq!(api.count(), 3 * (ROWS + 1));
    project.run_json(&["--force", "answers", "--keep-going"]).exits(1);
    assert_eq!(api.count(), 3 * (ROWS + 1) + 3);
    // An answer that is missing keeps the account open.
    let api = ten_dollars();
    api.spoil("f3(", ChatFault::CutBody);
    let more = format!("model: a, {TEN}, tries: 1, min_answered: 0, max_usd: {}", 10 * ROWS + 5);
    let project = self::project("", &step(&api, "answers", &more)).ran();
    assert_eq!(api.take().len(), ROWS);
    api.heal();
    let outcome = project.run_json(&[]).exits(1);
    says(&outcome.stdout, &["$200.00 of the $205.00", "by other runs that did not finish"]);
    assert_eq!(api.count(), 0);
}

#[test]
fn a_budget_is_for_all_steps_and_may_come_from_a_param() {
    let api = ten_dollars();
    let steps = step(&api, "one", &format!("model: a, {TEN}"))
        + &step(&api, "two", &format!("model: b, {TEN}"));
    let project = project("budget: { max_usd: 250 }", &steps);
    let all = "$250.00 of the $250.00 that `max_usd` of the `budget` of the workflow allows";
    project.run_json(&["--keep-going"]).exits(1).prints(&[all]);
    assert_eq!(api.count(), 25);
    project.change("max_usd: 250", "max_requests: 30");
    let words = ["30 of the 30 that `max_requests` of the `budget`", "25 of it by other runs"];
    project.run_json(&["--keep-going"]).exits(1).prints(&words);
    assert_eq!(api.count(), 30);
    project.rerun("max_requests: 30", "max_requests: 40, max_usd: 400");
    assert_eq!(api.count(), 2 * ROWS);
    let api = ten_dollars();
    let project = self::project(
        "params: { most: { type: float, default: 20 } }\nbudget: { max_usd: '${{ params.most }}' }",
        &step(&api, "answers", &format!("model: a, {TEN}")),
    );
    project.run(&["run", "w.yaml"]).exits(1);
    assert_eq!(api.count(), 2);
    project.run(&["run", "w.yaml", "--set", "most=50"]).exits(1);
    assert_eq!(api.count(), 5);
    let outcome = project.run(&["check", "w.yaml", "--set", "most=-1"]).exits(2);
    assert!(flat(&outcome.stderr).contains("`max_usd` of `budget` must be"), "{outcome}");
}

#[test]
fn an_embedded_budget_bounds_its_own_steps_and_the_outer_one_all() {
    let api = ten_dollars();
    let project =
        project("budget: { max_usd: 30 }", &step(&api, "inner", &format!("model: a, {TEN}")));
    let text =
        project.read("w.yaml") + "outputs: { inner: { from: inner, path: inner.parquet } }\n";
    project.write("inner.yaml", text);
    let outer = |budget: &str| {
        let steps = step(&api, "outer", &format!("model: b, {TEN}"));
        let uses = "  sub: { uses: ./inner.yaml }\n";
        project.write("w.yaml", format!("{}{uses}{steps}", HEAD.replace("BUDGET", budget)));
    };
    outer("budget: { max_usd: 1000 }");
    let outcome = project.run_json(&["--keep-going"]).exits(1);
    assert_eq!(api.take().len(), ROWS + 3);
    says(&outcome.stdout, &["$30.00 of the $30.00 that `max_usd` of the `budget` of `sub` allows"]);
    // The outer budget has less left than the inner one allows.
    project.edit("inner.yaml", "max_usd: 30", "max_usd: 1000");
    project.change("max_usd: 1000", "max_usd: 250");
    let all = "$250.00 of the $250.00 that `max_usd` of the `budget` of the workflow";
    project.run_json(&["--keep-going"]).exits(1).prints(&[all]);
    assert_eq!(api.take().len(), 2);
}

#[test]
fn a_budget_that_is_none_or_without_prices_is_refused() {
    let api = ChatApi::start();
    let steps = step(&api, "answers", &format!("model: a, {TEN}"));
    for (budget, code, word) in [
        ("budget: 5", "wrong-type", "must be a mapping such as `{ max_usd: 5"),
        ("budget: {}", "wrong-value", "`budget` limits nothing"),
        ("budget: { max_usd: -1 }", "wrong-type", "US dollars, 0 or more"),
        ("budget: { max_usd: five }", "wrong-type", "US dollars, 0 or more"),
        ("budget: { max_usd: .inf }", "wrong-type", "US dollars, 0 or more"),
        ("budget: { max_requests: 1.5 }", "wrong-type", "a whole number"),
        ("budget: { max_usdd: 5 }", "unknown-key", "`max_usd`"),
        ("budget: { max_usd: '${{ params.no }}' }", "unknown-param", "no"),
        ("budget: { max_usd: 1e-30 }", "wrong-value", "18 decimals"),
    ] {
        let outcome = project(budget, &steps).run(&["check", "w.yaml"]).exits(2);
        says(&flat(&outcome.reports(&[code]).stderr), &[word]);
    }
    let more = format!("{TEN}, max_usd: '${{{{ matrix.most }}}}'");
    let differing = cells(&api, &more).replace("[a, b, c]", "[a], most: [1, 2]");
    let outcome = project("", &differing).run(&["check", "w.yaml"]).exits(2);
    let text = "the cells of step `answers` have different `max_usd`: $1.00 and $2.00";
    assert!(flat(&outcome.stderr).contains(text), "{outcome}");
    // A budget of money needs prices.
    let api = ChatApi::start();
    let free = step(&api, "free", "model: a, price: { input: 0, output: 0 }");
    let steps = step(&api, "one", "model: a, max_tokens: 5")
        + &step(&api, "two", "model: a, price: { input: 1, output: 1 }")
        + &free;
    let broken = project("budget: { max_usd: 3 }", &steps);
    let said = flat(&broken.run(&["check", "w.yaml"]).exits(2).stderr);
    let wanted = "step `one` needs `price`: `budget` limits the cost, so what a request may cost \
                  must be known before it is sent";
    assert!(said.contains(wanted), "{said}");
    says(&said, &["step `two` needs `max_tokens`", "add `price: { input: …, output: … }`"]);
    assert!(!said.contains("step `free`"), "{said}");
    // Requests can be counted without.
    project("budget: { max_requests: 100 }", &steps).run_ok(&[]);
    project("budget: { max_usd: 0 }", &free).run_ok(&[]);
}

#[track_caller]
fn planned(project: &Project, step: &str) -> Value {
    let plan = project.answer(&["plan", "w.yaml"]);
    let steps = plan["steps"].as_array().unwrap();
    steps.iter().find(|entry| entry["step"] == step).unwrap()["requests"].clone()
}

#[test]
fn what_plan_says_holds() {
    let api = ChatApi::start();
    // A token for each two bytes: more than any tokenizer of today.
    api.set_meter(|asked| (asked.text.len() as u64 / 2, asked.number as u64 % 51));
    let more = "price: { input: 2.5, output: 10 }, max_tokens: 50, samples: 2, model: tiny, \
                concurrency: 8";
    let project = project("", &step(&api, "answers", more));
    let unknown = planned(&project, "answers");
    assert_eq!(values(&unknown, "model requests usd"), json!(["tiny", null, null]));
    let text = project.run(&["plan", "w.yaml"]).exits(0).stdout;
    says(&text, &["requests to tiny at http", "how many is known when `prompts` has run"]);
    project.run_ok(&["--select", "prompts"]);
    let said = planned(&project, "answers");
    let requests = 2 * ROWS as u64;
    let wanted = json!([requests, 0, 50 * requests]);
    assert_eq!(values(&said, "requests answered completion_tokens"), wanted);
    project.run_ok(&[]);
    let bill = api.bill();
    assert_eq!(bill.requests, requests);
    assert!(bill.prompt_tokens <= said["prompt_tokens"].as_u64().unwrap());
    let cost = (bill.prompt_tokens as f64 * 2.5 + bill.completion_tokens as f64 * 10.0) / 1e6;
    let most = said["usd"].as_f64().unwrap();
    assert!(cost <= most && most < 20.0 * cost, "{cost} of {most}");
    assert_eq!(planned(&project, "answers"), json!(null), "nothing is left to ask");
    // One row more.
    project.write("data.jsonl", data(0..ROWS + 1));
    project.run_ok(&["--select", "prompts"]);
    assert_eq!(values(&planned(&project, "answers"), "requests answered"), json!([2, requests]));
    assert_eq!(api.bill(), bill, "a plan asks nobody");
    // Each turn is a request, which reads the answers before it.
    let api = ChatApi::start();
    api.set_meter(|asked| (asked.text.len() as u64 / 4, 50));
    let more = "price: { input: 2.5, output: 10 }, max_tokens: 50, model: tiny";
    let project = self::project("", &step(&api, "answers", more));
    project.change("'Complete this: {{ code }}'", "['{{ code }}', Then, Last]");
    project.run_ok(&["--select", "prompts"]);
    let said = planned(&project, "answers");
    assert_eq!(said["requests"], json!(3 * ROWS));
    project.run_ok(&[]);
    let bill = api.bill();
    assert_eq!(bill.requests, 3 * ROWS as u64);
    assert!(bill.prompt_tokens <= said["prompt_tokens"].as_u64().unwrap(), "{said} {bill:?}");
    assert!(bill.completion_tokens <= said["completion_tokens"].as_u64().unwrap());
}

#[test]
fn a_run_says_once_whom_it_asks_before_it_does() {
    let api = ten_dollars();
    api.script(|_| Some(ChatFault::Hang));
    // However few requests are under way at the interrupt: the limit of the
    // step has no room for a single one that is lost.
    let project =
        project("budget: { max_usd: 700 }", &cells(&api, &format!("{TEN}, max_usd: 605")));
    // With one thread for steps as well, all cells are in the paragraph.
    let script = "exec \"$GALERAS\" run w.yaml --jobs 1 2> said";
    let running = Running::start(project.shell(script));
    wait_for("a request", || api.count() > 0);
    let said = project.read("said");
    running.signal("INT");
    running.finish().exits(130);
    assert_eq!(said.matches("asks models:").count(), 1, "{said}");
    let said = flat(&said);
    let at = api.url().replace("/v1", "");
    let asks = format!("20 requests to a at {at}, at most $200.00; 20 requests to b at {at}");
    says(&said, &[&asks, "in all 60 requests, at most $600.00"]);
    says(&said, &["`max_usd` of the step `answers` allows $605.00"]);
    says(&said, &["`max_usd` of the `budget` of the workflow allows $700.00"]);
    api.heal();
    let outcome = project.run_json(&[]).exits(1);
    let asked = outcome.events("requests");
    assert_eq!((asked.len(), asked[0]["steps"].as_array().unwrap().len()), (1, 3), "{outcome}");
    let lines = outcome.json_lines();
    let first = |event: &str| lines.iter().position(|line| line["event"] == event).unwrap();
    assert!(first("requests") < first("progress"), "{outcome}");
    assert!(asked[0]["limits"][0]["spent_usd"].as_f64().unwrap() >= 10.0, "{outcome}");
}

#[test]
fn a_run_says_what_it_spent_and_does_not_announce_a_free_server() {
    let api = ten_dollars();
    let project = project("", &cells(&api, &format!("{TEN}, max_usd: 600")));
    let human = Project::new(&project.read("w.yaml")).with("data.jsonl", data(0..ROWS));
    let spent = project.run_ok(&[]).events("spent").remove(0);
    assert_eq!(spent["steps"].as_array().unwrap().len(), 3);
    let first = json!({"step": "answers[name=a]", "requests": 20, "unknown": 0,
        "prompt_tokens": 100, "completion_tokens": 200, "usd": 200.0});
    assert_eq!(spent["steps"][0], first);
    let said = human.run(&["run", "w.yaml"]).exits(0).stderr;
    let text = "spent: 60 requests, 300 tokens read, 600 written, $600.00";
    says(&said, &[text, "answers[name=c]"]);
    // Nothing was asked, nothing is reported.
    assert!(project.run_ok(&[]).events("spent").is_empty());
    // A server of one's own without a price costs nothing, and is not announced.
    let api = ChatApi::start();
    let project = self::project("", &step(&api, "answers", "model: a"));
    let outcome = project.run_ok(&[]);
    assert!(outcome.events("requests").is_empty(), "{outcome}");
    assert_eq!(outcome.events("spent")[0]["steps"][0]["usd"], json!(null));
}

/// A step that reads paid answers is announced when its prompts are there.
#[test]
fn a_judge_of_answers_is_announced_and_runs_side_by_side_share_the_account() {
    let api = ten_dollars();
    let judge = step(&api, "judged", &format!("model: j, {TEN}")).replace("prompts", "questions");
    let steps = step(&api, "answers", &format!("model: a, {TEN}"))
        + "  picked:
    op: sql
    from: answers
    with: { query: 'SELECT id, prediction AS answer FROM input', key: [id] }
  questions:
    op: prompt
    from: picked
    with: { treatments: { judge: 'Is this right? {{ answer }}' } }
" + &judge;
    let outcome = project("budget: { max_usd: 1000 }", &steps).run_ok(&[]);
    let asked = outcome.events("requests");
    let names: Vec<&Value> = asked.iter().map(|event| &event["steps"][0]["step"]).collect();
    assert_eq!(names, [&json!("answers"), &json!("judged")], "{outcome}");
    assert_eq!(api.count(), 2 * ROWS);
    let api = ten_dollars();
    api.set_latency(std::time::Duration::from_millis(20));
    let project = project(
        "params: { model: { type: string, default: a } }\nbudget: { max_usd: 250 }",
        &step(&api, "answers", &format!("model: '${{{{ params.model }}}}', {TEN}, concurrency: 4")),
    );
    let run = |model: &str| {
        let set = format!("model={model}");
        Running::start(project.command(&["run", "w.yaml", "--format", "json", "--set", &set]))
    };
    let both = [run("a"), run("b")].map(Running::finish);
    assert!(api.count() <= 25, "{}: {}{}", api.count(), both[0], both[1]);
    assert!(both.iter().any(|outcome| outcome.code == Some(1)), "{}{}", both[0], both[1]);
}

#[test]
fn a_damaged_ledger_ends_all_spending_and_says_what_to_do() {
    let api = ten_dollars();
    let project = project("", &step(&api, "answers", &format!("model: a, {TEN}, max_usd: 35")));
    project.run_json(&[]).exits(1);
    let asked = api.count();
    let ledger = files_below(&project.path("cache/downloads/spending")).remove(0);
    let content = fs::read(&ledger).unwrap();
    let mut damaged = content.clone();
    // The last byte of each line's number is in its middle; every line is hit.
    for (at, byte) in content.iter().enumerate().filter(|(_, byte)| **byte == b'{') {
        damaged[at] = byte ^ 1;
    }
    fs::write(&ledger, damaged).unwrap();
    project.change("max_usd: 35", "max_usd: 300");
    let outcome = project.run_json(&[]).exits(1);
    says(&outcome.stdout, &["what was spent is not known", "delete it to begin new accounts"]);
    assert_eq!(api.count(), asked);
    project.run(&["plan", "w.yaml"]).exits(4);
    fs::remove_file(&ledger).unwrap();
    project.run_ok(&[]);
}

const KILLS: u64 = 10;
/// Prompts, of which each cell asks each.
const PROMPTS: usize = 1_200;
/// An answer has at most so many tokens, of a thousandth of a dollar each.
const LONGEST: u64 = 50;
const PRICE: &str = "price: { input: 0.1, output: 1000 }, max_tokens: 50";

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// A server that bills each request as it comes: a token for each three bytes, and an answer whose
/// length depends on what is asked.
fn billing() -> ChatApi {
    let api = ChatApi::start();
    api.set_latency(std::time::Duration::from_millis(100));
    api.set_meter(|asked| {
        let sum =
            asked.text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        (asked.text.len() as u64 / 3, sum % (LONGEST + 1))
    });
    api
}

fn dollars(bill: Bill) -> f64 {
    (bill.prompt_tokens as f64 * 0.1 + bill.completion_tokens as f64 * 1000.0) / 1e6
}

fn billed(api: &ChatApi, budget: &str, limit: &str) -> Project {
    let workflow = format!(
        "galeras: 1
{budget}
steps:
  data: {{ op: read, with: {{ path: data.jsonl }} }}
  prompts: {{ op: prompt, from: data, with: {{ treatments: {{ control: 'Complete this: {{{{ code }}}}' }} }} }}
  answers:
    op: generate
    from: prompts
    matrix: {{ name: [a, b, c] }}
    with:
      {{ base_url: '{}', model: '${{{{ matrix.name }}}}', concurrency: 64, {PRICE}{limit} }}
",
        api.url()
    );
    Project::new(&workflow).with("data.jsonl", data(0..PROMPTS))
}

const RUN: [&str; 6] = ["run", "w.yaml", "--jobs", "3", "--format", "json"];

/// Kills a run after so many more requests, unless it ends before.
#[track_caller]
fn kill(api: &ChatApi, project: &Project, more: u64) {
    let after = api.bill().requests + more;
    let running = Running::start(project.command(&RUN));
    let stat = format!("/proc/{}/stat", running.id());
    // A run that may not spend any more ends without a signal.
    let ended = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    wait_for("some requests", || api.bill().requests >= after || ended());
    if !ended() {
        running.signal("KILL");
    }
    running.finish();
}

/// Kills ten runs after random numbers of requests, then runs until nothing more is sent. What the
/// server has billed in the end, in dollars.
#[track_caller]
fn killed(api: &ChatApi, project: &Project, limit: f64, seed: u64) -> f64 {
    let mut random = Random(seed);
    for number in 0..KILLS {
        kill(api, project, 20 + random.next(300));
        let spent = dollars(api.bill());
        assert!(spent <= limit, "seed {seed}, kill {number}: {spent} of {limit}");
    }
    let outcome = project.run(&RUN);
    let bill = api.bill();
    if outcome.code == Some(1) {
        let failed = outcome.json_lines();
        let over = |line: &Value| line.to_string().contains("limit of the cost is reached");
        assert!(failed.iter().any(over), "{outcome}");
        // And nothing afterwards.
        project.run(&RUN).exits(1);
        assert_eq!(api.bill(), bill);
    } else {
        outcome.exits(0);
    }
    dollars(bill)
}

#[test]
fn ten_kills_of_three_cells_never_pass_the_limit_of_the_step() {
    let api = billing();
    let project = billed(&api, "", ", max_usd: 70");
    let spent = killed(&api, &project, 70.0, 1);
    assert!((10.0..=70.0).contains(&spent), "{spent}: not all of it is lost to kills");
    assert!(api.most_under_way() >= 64, "{}", api.most_under_way());
    project.verifies("cache");
}

#[test]
fn ten_kills_never_pass_the_budget_of_the_workflow() {
    for seed in [2, 3] {
        let api = billing();
        let project =
            billed(&api, "budget: { max_usd: 60, max_requests: 5000 }", ", max_usd: 1000");
        let spent = killed(&api, &project, 60.0, seed);
        assert!((8.0..=60.0).contains(&spent), "{seed}: {spent}");
    }
}

#[test]
fn kills_never_pass_the_limit_of_requests() {
    let api = billing();
    let project = billed(&api, "budget: { max_requests: 900 }", "");
    let mut random = Random(4);
    for _ in 0..KILLS {
        kill(&api, &project, 5 + random.next(100));
    }
    let outcome = project.run_json(&["--jobs", "3"]).exits(1);
    let text = "that `max_requests` of the `budget` of the workflow allows";
    assert!(outcome.stdout.contains(text), "{outcome}");
    assert!(api.bill().requests <= 900, "{:?}", api.bill());
}

/// With enough money, kills cost nothing but what was under way: in the end all is answered.
#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let api = billing();
    let project = billed(&api, "", ", max_usd: 400");
    assert!(killed(&api, &project, 400.0, 5) < 400.0);
    project.run_ok(&[]).all_hit();
    // The account is closed: what comes next begins again.
    let ledgers = files_below(&project.path("cache/downloads/spending"));
    assert!(ledgers.iter().all(|file| fs::metadata(file).unwrap().len() == 0), "{ledgers:?}");
}
