//! Limits of money against a server that bills, while runs are killed at random.

use std::fs;

use serde_json::Value;

use crate::generate_openai::data;
use crate::harness::{Project, Running, wait_for};
use galeras_test_servers::chat_api::{Bill, ChatApi};

const KILLS: u64 = 10;
/// Prompts, of which each cell asks each.
const ROWS: usize = 1_200;
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

fn project(api: &ChatApi, budget: &str, limit: &str) -> Project {
    let workflow = format!(
        "galeras: 1
{budget}
steps:
  data: {{ op: read, with: {{ path: data.jsonl }} }}
  prompts:
    op: prompt
    from: data
    with: {{ treatments: {{ control: 'Complete this: {{{{ code }}}}' }} }}
  answers:
    op: generate
    from: prompts
    matrix: {{ name: [a, b, c] }}
    with:
      {{ base_url: '{}', model: '${{{{ matrix.name }}}}', concurrency: 64, {PRICE}{limit} }}
",
        api.url()
    );
    Project::new(&workflow).with("data.jsonl", data(0..ROWS))
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
    let project = project(&api, "", ", max_usd: 70");
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
            project(&api, "budget: { max_usd: 60, max_requests: 5000 }", ", max_usd: 1000");
        let spent = killed(&api, &project, 60.0, seed);
        assert!((8.0..=60.0).contains(&spent), "{seed}: {spent}");
    }
}

#[test]
fn kills_never_pass_the_limit_of_requests() {
    let api = billing();
    let project = project(&api, "budget: { max_requests: 900 }", "");
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
    let project = project(&api, "", ", max_usd: 400");
    assert!(killed(&api, &project, 400.0, 5) < 400.0);
    let united = project.run_ok(&[]);
    united.all_hit();
    // The account is closed: what comes next begins again.
    let ledgers = crate::harness::files_below(&project.path("cache/downloads/spending"));
    assert!(ledgers.iter().all(|file| fs::metadata(file).unwrap().len() == 0), "{ledgers:?}");
}
