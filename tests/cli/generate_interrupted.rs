//! Runs of `generate` that are killed, interrupted, or not alone: what was answered is kept.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::generate_openai::{answers, data, served, workflow};
use crate::harness::{Outcome, Project, Running, every, files_below, has, patience, wait_for};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest};

const ROWS: usize = 60;
const BEFORE: usize = 30;

/// Answers the first requests, and lets the others wait for ever.
fn answer_first(api: &ChatApi, count: usize) {
    api.take();
    api.script(move |asked| (asked.number >= count).then_some(ChatFault::Hang));
}

fn questions(asked: &[ChatRequest]) -> BTreeSet<String> {
    asked.iter().map(|asked| asked.text.clone()).collect()
}

/// The rows that the run counted as done, by its events in a file.
fn counted(project: &Project, events: &str) -> u64 {
    let text = fs::read_to_string(project.path(events)).unwrap_or_default();
    let events = text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
    let answers = events.filter(|e| e["event"] == "progress" && e["step"] == "answers");
    answers.filter_map(|e| e["done"].as_u64()).max().unwrap_or(0)
}

fn start(project: &Project, events: &str, more: &str) -> Running {
    let script = format!("exec \"$GALERAS\" run w.yaml --format json {more} > {events}");
    Running::start(project.shell(&script))
}

/// Starts a run, and waits until all first answers count.
#[track_caller]
fn started(api: &ChatApi, project: &Project, more: &str) -> Running {
    answer_first(api, BEFORE);
    let running = start(project, "events", more);
    wait_for("the answers", || counted(project, "events") >= BEFORE as u64);
    running
}

/// Starts a run, and ends it by a signal when all first answers count.
#[track_caller]
fn stopped(
    api: &ChatApi,
    project: &Project,
    signal: &str,
    more: &str,
) -> (Outcome, Vec<ChatRequest>) {
    let running = started(api, project, more);
    let at = Instant::now();
    running.signal(signal);
    let outcome = running.finish();
    assert!(at.elapsed() < patience(3), "{:?}", at.elapsed());
    api.heal();
    let asked = api.take();
    assert_eq!(counted(project, "events"), BEFORE as u64);
    (outcome, asked[..BEFORE].to_vec())
}

fn journals(project: &Project) -> Vec<PathBuf> {
    files_below(&project.path("cache/downloads/answers"))
}

/// Runs to the end, asks exactly what is missing, and gives what an undisturbed run gives.
#[track_caller]
fn goes_on(api: &ChatApi, project: &Project, answered: &[ChatRequest], missing: usize) -> Outcome {
    let outcome = project.run_ok(&[]);
    let asked = api.take();
    let again = questions(&asked).intersection(&questions(answered)).count();
    assert_eq!((asked.len(), again), (missing, missing + answered.len() - ROWS), "{outcome}");
    assert_eq!(outcome.digests(), project.run_ok(&["--cache", "undisturbed"]).digests());
    assert!(journals(project).is_empty());
    project.verifies("cache");
    api.take();
    project.run_ok(&[]).all_hit();
    assert_eq!(api.count(), 0);
    outcome
}

/// What happens to the journal between the kill and the next run, and how many answers that costs.
#[test]
fn after_a_kill_only_what_has_no_answer_is_asked() {
    let cut: fn(&Project) = |project| {
        let journal = journals(project).remove(0);
        let content = fs::read(&journal).unwrap();
        assert_eq!(content.iter().filter(|byte| **byte == b'\n').count(), BEFORE);
        fs::write(&journal, &content[..content.len() - 20]).unwrap();
    };
    let damage: fn(&Project) = |project| {
        let journal = journals(project).remove(0);
        let mut lines: Vec<Vec<u8>> =
            fs::read(&journal).unwrap().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let place = lines[3].len() / 2;
        lines[3][place] ^= 1;
        lines[7].clear();
        lines.insert(9, b"noise".to_vec());
        fs::write(&journal, lines.join(&b'\n')).unwrap();
    };
    let clean_up: fn(&Project) = |project| {
        project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
    };
    let cases = [
        ("nothing", ((|_| ()) as fn(&Project), 0)),
        ("a cut", (cut, 1)),
        ("damage", (damage, 2)),
        ("a clean-up", (clean_up, 0)),
    ];
    every(cases, |(then, lost)| {
        let (api, project) = served(ROWS, "concurrency: 4");
        let (outcome, answered) = stopped(&api, &project, "KILL", "");
        assert_eq!((outcome.code, journals(&project).len()), (None, 1));
        project.verifies("cache");
        then(&project);
        let step = goes_on(&api, &project, &answered, ROWS - BEFORE + lost).step("answers");
        has(&step, "reused_rows reason", json!([BEFORE - lost, "PREV_FAILED"]));
        // The answers of the last run outlive a clean-up as well.
        clean_up(&project);
        project.verifies("cache");
        project.write("data.jsonl", data(0..ROWS + 1));
        project.run_ok(&[]);
        assert_eq!(api.count(), 1);
    });
}

#[test]
fn an_interruption_ends_at_once_and_a_forced_run_that_was_killed_asks_only_for_the_rest() {
    let (api, project) = served(ROWS, "concurrency: 4");
    let (outcome, answered) = stopped(&api, &project, "INT", "");
    let outcome = outcome.exits(130);
    assert!(project.read("events").contains("\"status\":\"interrupted\""), "{outcome}");
    goes_on(&api, &project, &answered, ROWS - BEFORE);
    let (api, project) = served(ROWS, "concurrency: 4");
    let before = project.run_ok(&[]);
    stopped(&api, &project, "KILL", "--force answers");
    let outcome = project.run_ok(&[]);
    outcome.all_hit();
    assert_eq!((api.count(), outcome.digests()), (0, before.digests()));
    project.verifies("cache");
}

#[test]
fn several_kills_lose_nothing() {
    let (api, project) = served(ROWS, "concurrency: 4");
    let mut answered = Vec::new();
    for kills in 1..=4 {
        answer_first(&api, 10);
        let events = format!("events{kills}");
        let running = start(&project, &events, "");
        wait_for("the answers", || counted(&project, &events) >= 10);
        // The next questions are with the server by now: none comes late, as one of the next run.
        wait_for("the questions under way", || api.count() == 10 + 4);
        running.signal("KILL");
        running.finish();
        answered.extend_from_slice(&api.take()[..10]);
        assert_eq!(questions(&answered).len(), kills * 10, "nothing is asked twice");
    }
    api.heal();
    goes_on(&api, &project, &answered, ROWS - 40);
}

#[test]
fn a_conversation_that_was_killed_goes_on_at_its_turn() {
    let (api, project) = served(20, "concurrency: 4");
    project.change("'Complete this: {{ code }}'", "['{{ code }}', Then, Last]");
    answer_first(&api, BEFORE);
    let running = start(&project, "events", "");
    let kept = || {
        let lines = |file: &PathBuf| fs::read_to_string(file).unwrap().matches('\n').count();
        journals(&project).iter().map(lines).sum::<usize>()
    };
    wait_for("the answers", || kept() >= BEFORE);
    running.signal("KILL");
    running.finish();
    let answered = api.take()[..BEFORE].to_vec();
    api.heal();
    goes_on(&api, &project, &answered, ROWS - BEFORE);
}

#[test]
fn what_a_failed_run_was_answered_outlives_a_clean_up() {
    let (api, project) = served(ROWS, "concurrency: 1");
    let fatal = || ChatFault::Error(401, "invalid_api_key", "no".into());
    api.script(move |asked| (asked.number >= BEFORE).then(fatal));
    project.fails("answers", &["30 rows are kept"]);
    let answered = api.take()[..BEFORE].to_vec();
    assert!(journals(&project).is_empty());
    api.heal();
    project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
    goes_on(&api, &project, &answered, ROWS - BEFORE);
}

/// Runs two workflows at a time, whose steps need so many answers together.
#[track_caller]
fn both(api: &ChatApi, project: &Project, files: [&str; 2], asked: usize) -> [Outcome; 2] {
    api.set_latency(Duration::from_millis(20));
    let run = |file| Running::start(project.command(&["run", file, "--format", "json"]));
    let both = files.map(run).map(|running| running.finish().exits(0));
    assert_eq!((api.count(), questions(&api.asked()).len()), (asked, asked), "{}", both[0]);
    project.verifies("cache");
    both
}

#[test]
fn two_runs_workflows_or_steps_at_a_time_ask_nothing_twice() {
    let (api, project) = served(ROWS, "concurrency: 4");
    let [one, two] = both(&api, &project, ["w.yaml", "w.yaml"], ROWS);
    assert_eq!(one.digests(), two.digests());
    let (api, project) = served(40, "concurrency: 4");
    let other = workflow(&api, "concurrency: 8, extract: raw")
        .replace("galeras: 1\n", "galeras: 1\nname: other\n")
        .replace("data.jsonl", "more.jsonl");
    project.write("other.yaml", other);
    project.write("more.jsonl", data(20..60));
    both(&api, &project, ["w.yaml", "other.yaml"], 60);
    let (api, project) = served(20, "concurrency: 4");
    let text = project.read("w.yaml");
    let (_, step) = text.split_once("  answers:\n").unwrap();
    let step = step.replace("model: tiny", "model: tiny, extract: raw");
    project.write("w.yaml", format!("{text}  others:\n{step}"));
    project.run_ok(&["--jobs", "2"]);
    assert_eq!((api.count(), questions(&api.asked()).len()), (20, 20));
    assert_eq!((answers(&project).len(), project.rows("others").len()), (20, 20));
}

/// Starts a second run, and waits until it waits for the first one.
#[track_caller]
fn waiting(project: &Project) -> Running {
    let second = start(project, "events2", "");
    wait_for("the wait", || {
        fs::read_to_string(project.path("events2")).unwrap_or_default().contains("another run")
    });
    second
}

#[test]
fn a_run_that_waits_takes_over_from_one_that_is_killed_and_can_be_interrupted() {
    let (api, project) = served(ROWS, "concurrency: 4");
    let first = started(&api, &project, "");
    let second = waiting(&project);
    let answered = api.take()[..BEFORE].to_vec();
    api.heal();
    first.signal("KILL");
    first.finish();
    second.finish().exits(0);
    let asked = api.take();
    assert_eq!(asked.len(), ROWS - BEFORE);
    assert!(questions(&asked).is_disjoint(&questions(&answered)));
    project.run_ok(&[]).all_hit();
    let (api, project) = served(4, "");
    api.script(|_| Some(ChatFault::Hang));
    let first = start(&project, "events", "");
    wait_for("the first request", || api.count() > 0);
    let second = waiting(&project);
    let at = Instant::now();
    second.signal("INT");
    second.finish().exits(130);
    assert!(at.elapsed() < patience(2), "{:?}", at.elapsed());
    first.signal("TERM");
    first.finish().exits(130);
    assert!(at.elapsed() < patience(4), "{:?}", at.elapsed());
}
