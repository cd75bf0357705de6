//! The workflows that evaluate summaries, commit messages, tests and fixes, and the one that
//! compares models: from a repository to effects, against a server on the loopback address.
//!
//! Does not live here: the testbeds (`galeras_workflow`, `fixes_and_unit_tests`), completion as in
//! the paper (`casestudy`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::comparisons::{average, effects_are_right, mean, paired, same, same_rounded};
use crate::paper::{Shipped, file, history, method, table, text};
use crate::repository::{Repository, at, day};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest, MODEL};

const METHODS: usize = 14;

/// What a fix puts in front of the last line of a method: one branch more.
const FIX: &str = "    if len([0]) > 1:\n        return None\n";

fn name(n: usize) -> String {
    format!("compute_part_{n}_of_it")
}

fn buggy(n: usize) -> String {
    method(&name(n), 5_000 + n as u64, None, n)
}

fn fixed(code: &str) -> String {
    let last = code.rfind("    return ").unwrap();
    format!("{}{FIX}{}", &code[..last], &code[last..])
}

/// A repository whose commits mend a method each.
fn fixes(study: &Shipped) {
    let repo = Repository::bare(study.project.path("a"));
    for done in 0..=METHODS {
        let code = |n: usize| if n < done { fixed(&buggy(n)) } else { buggy(n) };
        let methods: Vec<String> = (0..METHODS).map(code).collect();
        let message = match done {
            0 => "Add the first module of it".to_owned(),
            n => format!("Fix what part {n} gives for nothing"),
        };
        repo.commit(at(day(1 + done as i64)).message(&message).write("m.py", file(&methods)));
    }
}

/// A repository with methods and a test of each.
fn methods_and_tests(study: &Shipped) {
    let repo = Repository::bare(study.project.path("a"));
    let test = |n: usize| {
        let mut words = crate::paper::Numbers::new(8_000 + n as u64);
        let [a, b, c] = [words.word(), words.word(), words.word()];
        format!(
            "def test_{0}():\n    {a} = make_{b}([{n}, {c}])\n    {c} = {0}({a}, {b}={n})\n    \
             assert {c}[0] == {n}, {a}\n",
            name(n)
        )
    };
    let all = |of: &dyn Fn(usize) -> String| file(&(0..METHODS).map(of).collect::<Vec<_>>());
    let commit = at(day(2)).message("Add the library and its tests");
    repo.commit(commit.write("lib.py", all(&buggy)).write("tests/test_lib.py", all(&test)));
}

fn hash(text: &str) -> usize {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    (text.bytes().fold(0xcbf2_9ce4_8422_2325, mix) >> 20) as usize
}

/// The last block of code that was said.
fn block(said: &str) -> &str {
    let (_, rest) = said.rsplit_once("```python\n").unwrap();
    rest.split("```").next().unwrap()
}

/// A model with its own opinion: some answers are right, some are not, by what was asked.
fn answer(asked: &ChatRequest) -> String {
    let said = asked.said().join("\n");
    let (block, hash) = (block(&said), hash(&said));
    let fence = |code: &str| format!("Here it is:\n```python\n{code}\n```\n");
    if said.contains("has a bug") {
        let last = block.contains("    return ") && !block.contains(FIX);
        return fence(&if last && hash % 3 > 0 { fixed(block) } else { block.to_owned() });
    }
    if said.contains("unit test") {
        let name = said.split("def ").nth(1).unwrap().split('(').next().unwrap();
        return fence(&match hash % 3 {
            0 => format!("def test_it():\n    assert {name}({hash}, None)[0] == 1"),
            1 => format!("def test_it():\n    with raises(ValueError):\n        other({hash})"),
            _ => format!("def test_it():\n    {name}({hash}, None)"),
        });
    }
    if said.contains("alone") {
        let words: Vec<&str> =
            block.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let word = |n: usize| words[(hash + 5 * n) % words.len()];
        return (0..8 + hash % 5).map(word).collect::<Vec<_>>().join(" ");
    }
    let lines = hash % 4;
    let more: String = (0..lines).map(|n| format!("    value_{n} = {}\n", hash % 7)).collect();
    fence(&format!("{}\n{more}    return {}", block.trim_end(), hash % 5))
}

/// A study of the shipped workflow `file` against a server that gives these answers.
fn study(
    file: &'static str,
    answer: impl Fn(&ChatRequest) -> String + Send + 'static,
) -> (Shipped, ChatApi) {
    let api = ChatApi::start();
    api.script(move |asked| {
        Some(ChatFault::Message(json!({"role": "assistant", "content": answer(asked)})))
    });
    let mut study = Shipped::new(file, "./a");
    study.set("n", "20");
    (study, api)
}

/// From data to effects: what is written, and whether it says what the rows say.
#[track_caller]
fn evaluates(study: &mut Shipped, api: &ChatApi, folder: &str, outcomes: &[&str]) -> Vec<Value> {
    study.set("base_url", &api.url());
    study.set("model", MODEL);
    let outcome = study.run(&[]).exits(0);
    let testbed = study.rows("evaluation/testbed");
    assert!((10..=20).contains(&testbed.len()), "{}", testbed.len());
    let scores = study.rows(&format!("evaluation/scores[model={MODEL}]"));
    paired(&scores, testbed.len());
    let read = |name: &str| study.project.read(&format!("{folder}/{name}"));
    assert_eq!(read("unanswered.jsonl"), "");
    // The third treatment has two turns.
    assert_eq!(api.count(), 4 * testbed.len());
    assert_eq!(table(&read("spent.csv"))[0]["answers"], api.count().to_string());

    let baselines = study.rows("evaluation/baseline_scores");
    let of = |name: &str| -> Vec<&Value> {
        baselines.iter().filter(|row| row["baseline"] == name).collect()
    };
    let told = table(&read("table.csv"));
    assert_eq!(told.len(), 3 * outcomes.len());
    let names: BTreeSet<&str> = told.iter().map(|line| line["score"].as_str()).collect();
    assert_eq!(names, outcomes.iter().copied().collect());
    for line in &told {
        let (score, treatment) = (line["score"].as_str(), line["treatment"].as_str());
        let what = format!("{score} under {treatment}");
        same_rounded(&line["mean"], mean(&scores, treatment, score), &what);
        same_rounded(&line["echo"], average(of("echo"), score), &what);
        same_rounded(&line["reference"], average(of("reference"), score), &what);
        let number = |column: &str| line[column].parse::<f64>().unwrap();
        assert!(number("ci_low") <= number("mean") && number("mean") <= number("ci_high"));
        assert_eq!(line["n"], testbed.len().to_string());
        // The upper bound is one.
        assert!(score == "codebleu" || number("reference") == 1.0, "{what}: {line:?}");
    }
    let effects = read("effects.csv");
    effects_are_right(&effects, &scores, outcomes.len());
    let estimated = table(&effects).into_iter().filter(|line| line["status"] == "ok").count();
    assert!(estimated >= 2 * outcomes.len(), "{estimated} of {}: {effects}", 2 * outcomes.len());
    assert!(table(&read("refutations.csv")).len() >= estimated);

    // Nothing runs and nobody is asked again.
    let again = study.run(&[]).exits(0);
    again.all_hit();
    assert_eq!(again.digests(), outcome.digests());
    assert_eq!(api.count(), 4 * testbed.len());
    scores
}

#[test]
fn summaries_are_asked_for_without_the_docstring_and_scored_with_it() {
    let (mut study, api) = study("summarize.yaml", answer);
    history(&study.project, "a", 0);
    let outcomes = ["bleu", "chrf", "rouge_l", "similarity", "nearer"];
    let scores = evaluates(&mut study, &api, "summarize", &outcomes);
    for row in &scores {
        let docstring = text(row, "reference");
        assert!(docstring.split_whitespace().count() >= 10, "{row}");
        assert!(!text(row, "prompt").contains(docstring), "{row}");
        assert!(text(row, "prompt").contains(text(row, "code_no_docstring")), "{row}");
        // The answer is a text, as it came.
        assert_eq!(row["prediction"], row["raw_response"]);
    }
    // Only what leads to this testbed has run.
    let ran = study.run(&[]).exits(0).statuses();
    assert!(!ran.contains("/fixes/") && !ran.contains("/unit_tests/"), "{ran}");
    assert!(!ran.contains("random_cut") && !ran.contains("commit_gen"), "{ran}");
}

#[test]
fn commit_messages_are_asked_for_with_both_versions_of_a_method() {
    let (mut study, api) = study("commits.yaml", answer);
    history(&study.project, "a", 0);
    let outcomes = ["bleu", "chrf", "rouge_l", "similarity", "nearer"];
    let scores = evaluates(&mut study, &api, "commits", &outcomes);
    for row in &scores {
        let (prompt, message) = (text(row, "prompt"), text(row, "reference"));
        assert!(message.starts_with("Change "), "{row}");
        assert!(!prompt.contains(message), "{row}");
        for version in ["code_before", "code"] {
            assert!(prompt.contains(text(row, version)), "{version}: {row}");
        }
    }
}

#[test]
fn tests_are_scored_by_what_they_call_and_assert_too() {
    let (mut study, api) = study("testgen.yaml", answer);
    methods_and_tests(&study);
    let outcomes = [
        "bleu",
        "codebleu",
        "similarity",
        "chrf",
        "rouge_l",
        "parses",
        "nearer",
        "calls_it",
        "asserts",
    ];
    let scores = evaluates(&mut study, &api, "testgen", &outcomes);
    let mut seen = BTreeSet::new();
    for row in &scores {
        let prediction = text(row, "prediction");
        let (called, asserted) =
            (row["calls_it"].as_f64().unwrap(), row["asserts"].as_f64().unwrap());
        let call = format!("{}(", text(row, "callee"));
        assert_eq!(called == 1.0, prediction.contains(&call), "{row}");
        let asserts = prediction.contains("assert ") || prediction.contains("raises(");
        assert_eq!(asserted == 1.0, asserts, "{row}");
        seen.insert((called == 1.0, asserted == 1.0));
        assert!(!text(row, "prompt").contains(text(row, "reference")), "{row}");
    }
    assert_eq!(seen.len(), 3, "all kinds of answers: {seen:?}");
}

#[test]
fn fixes_are_measured_before_they_are_made_and_compared_with_the_bug() {
    let (mut study, api) = study("bugfix.yaml", answer);
    fixes(&study);
    let outcomes = ["bleu", "codebleu", "similarity", "chrf", "parses", "exact_match", "nearer"];
    let scores = evaluates(&mut study, &api, "bugfix", &outcomes);
    let mut mended = BTreeSet::new();
    for row in &scores {
        let (before, after) = (text(row, "buggy"), text(row, "reference"));
        assert_eq!(fixed(before), after);
        // for, if and or; the fix has one branch more.
        assert_eq!((&row["complexity"], &row["nloc"]), (&4.into(), &7.into()), "{row}");
        assert!(!text(row, "prompt").contains(FIX), "{row}");
        let right = row["exact_match"] == 1;
        assert_eq!(right, text(row, "prediction").trim() == after.trim(), "{row}");
        assert_eq!(row["nearer"].as_f64() == Some(1.0), right, "{row}");
        mended.insert(right);
    }
    assert_eq!(mended.len(), 2, "some are mended");
    // An echo is near, and no fix.
    let echo: Vec<Value> = study
        .rows("evaluation/baseline_scores")
        .into_iter()
        .filter(|row| row["baseline"] == "echo")
        .collect();
    for row in &echo {
        assert!(row["similarity"].as_f64().unwrap() > 0.7, "{row}");
        assert_eq!((row["exact_match"].as_f64(), row["nearer"].as_f64()), (Some(0.0), Some(0.0)));
    }
}

/// The prices of the models, of a million tokens read and written.
const PRICES: [(&str, u32, u32); 3] = [("small", 1, 2), ("medium", 2, 4), ("large", 4, 16)];

fn models(api: &ChatApi, names: &[&str]) -> String {
    let model = |(name, input, output): &(&str, u32, u32)| {
        format!(
            "{{name: {name}, base_url: \"{}\", api_key_env: \"\", \
             price: {{input: {input}, output: {output}}}}}",
            api.url()
        )
    };
    let of = PRICES.iter().filter(|(name, ..)| names.contains(name));
    format!("[{}]", of.map(model).collect::<Vec<_>>().join(", "))
}

/// `small` gives back what it was shown, the others go on.
fn rivals(asked: &ChatRequest) -> String {
    let said = asked.said().join("\n");
    let code = block(&said);
    match asked.body["model"].as_str().unwrap() {
        "small" => format!("```python\n{code}\n```"),
        "medium" => answer(asked),
        _ => format!("{}# and a word more\n```", answer(asked).trim_end().trim_end_matches("```")),
    }
}

/// The mean over the points of the difference of two models, whose answers are averaged first.
fn difference(rows: &[Value], model: &str, first: &str, score: &str) -> f64 {
    let mut points: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
    for row in rows {
        let at = [first, model].iter().position(|name| row["model"] == **name);
        if let Some(at) = at {
            let values = points.entry(text(row, "snippet_id")).or_default();
            values[at].push(row[score].as_f64().unwrap());
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let differences: Vec<f64> = points.values().map(|[a, b]| mean(b) - mean(a)).collect();
    mean(&differences)
}

/// Holm's adjustment (1979) of p-values.
fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let (mut adjusted, mut most) = (vec![0.0; values.len()], 0.0_f64);
    for (place, at) in order.into_iter().enumerate() {
        most = most.max(values[at] * (values.len() - place) as f64).min(1.0);
        adjusted[at] = most;
    }
    adjusted
}

#[test]
fn models_are_compared_within_data_points_between_echo_and_reference() {
    let (mut study, api) = study("compare.yaml", rivals);
    history(&study.project, "a", 0);
    study.set("against", "small");
    study.set("models", &models(&api, &["small", "medium"]));
    study.run(&[]).exits(0);
    let asked = api.take().len();
    // A third model is asked for its own answers, and nobody else is.
    study.set("models", &models(&api, &["small", "medium", "large"]));
    let shown = study.run_human().exits(0);
    let asked_later = api.take();
    assert_eq!(asked_later.len() * 2, asked);
    assert!(asked_later.iter().all(|asked| asked.body["model"] == "large"));

    let cells = ["small", "medium", "large"].map(|name| format!("evaluation/scores[model={name}]"));
    let of: Vec<Vec<Value>> = cells.iter().map(|step| study.rows(step)).collect();
    let rows: Vec<Value> = of.concat();
    let points = of[0].len() / 3;
    assert!(points >= 10, "{points}");
    of.iter().for_each(|rows| paired(rows, points));

    let board = table(&study.project.read("compare/leaderboard.csv"));
    assert_eq!(board.len(), 3 * 5);
    for line in &board {
        let (model, score) = (line["model"].as_str(), line["score"].as_str());
        let what = format!("{score} of {model}");
        let rows_of = rows.iter().filter(|row| row["model"] == model);
        same_rounded(&line["mean"], average(rows_of, score), &what);
        let number = |column: &str| line[column].parse::<f64>().unwrap();
        assert!(number("ci_low") <= number("mean") && number("mean") <= number("ci_high"));
        if model == "small" {
            // Nothing to compare with, and nothing better than an echo.
            assert_eq!((&*line["difference"], &*line["p_adjusted"]), ("", ""), "{what}");
            assert_eq!(line["mean"], line["echo"], "{what}");
            continue;
        }
        same_rounded(&line["difference"], difference(&rows, model, "small", score), &what);
        assert!(number("low") <= number("difference"), "{line:?}");
        assert!(number("difference") <= number("high"), "{line:?}");
    }
    for score in ["bleu", "chrf", "similarity"] {
        let line = board.iter().find(|line| line["score"] == score).unwrap();
        assert_eq!((&*line["echo"], &*line["reference"]), ("0.0", "1.0"), "{line:?}");
    }
    // All models and all scores are one family of tests.
    let tests: Vec<_> = table(&study.project.read("compare/differences.csv"))
        .into_iter()
        .filter(|line| line["primary"] == "true")
        .collect();
    assert_eq!(tests.len(), 2 * 5);
    let estimated: Vec<_> = tests.iter().filter(|line| line["status"] == "ok").collect();
    assert!(estimated.len() >= 8, "{tests:?}");
    let values = |column: &str| -> Vec<f64> {
        estimated.iter().map(|line| line[column].parse().unwrap()).collect()
    };
    for (found, expected) in values("p_adjusted").into_iter().zip(holm(&values("p_value"))) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
    // What each has cost.
    let costs = table(&study.project.read("compare/costs.csv"));
    for (name, input, output) in PRICES {
        let line = costs.iter().find(|line| line["model"] == name).unwrap();
        let answers = 3 * points;
        assert_eq!(line["answers"], answers.to_string());
        let each = f64::from(11 * input + 7 * output) / 1e6;
        same(&line["cost_usd"], each * answers as f64, name);
        same_rounded(&line["usd_per_1000_answers"], 1000.0 * each, name);
    }
    for word in ["leaderboard (", "costs (", "difference", "p_adjusted", "medium", "large"] {
        assert!(shown.stdout.contains(word), "{word}: {shown}");
    }
    study.run(&[]).exits(0).all_hit();
    assert_eq!(api.count(), 0);

    // Nobody is compared with a model that was never asked.
    study.set("against", "huge");
    let refused = study.run(&[]).exits(3);
    assert!(refused.stdout.contains("n_control"), "{refused}");
    assert_eq!(api.count(), 0);
}

#[test]
fn a_data_point_that_one_model_did_not_answer_is_compared_for_none() {
    let (mut study, api) = study("compare.yaml", rivals);
    history(&study.project, "a", 0);
    study.set("against", "small");
    study.set("models", &models(&api, &["small", "medium"]));
    let mut refused: Option<String> = None;
    api.script(move |asked| {
        let said = asked.last();
        if asked.body["model"] == "medium" && said.starts_with("Complete this Python method:") {
            let this = refused.get_or_insert_with(|| said.clone());
            if *this == said {
                return Some(ChatFault::Error(400, "content_filter", "no".into()));
            }
        }
        Some(ChatFault::Message(json!({"role": "assistant", "content": rivals(asked)})))
    });
    study.run(&[]).exits(0);
    let points = study.rows("evaluation/testbed").len();
    let unanswered = study.project.read("compare/unanswered.jsonl");
    let unanswered: Vec<Value> =
        unanswered.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(unanswered.len(), 1, "{unanswered:?}");
    assert_eq!(unanswered[0]["model"], "medium");
    for model in ["small", "medium"] {
        let scores = study.rows(&format!("evaluation/scores[model={model}]"));
        paired(&scores, points - 1);
        assert!(scores.iter().all(|row| row["snippet_id"] != unanswered[0]["snippet_id"]));
    }
}

#[test]
fn every_task_can_be_evaluated_by_itself_and_is_checked() {
    let (mut study, api) = study("evaluate.yaml", answer);
    history(&study.project, "a", 0);
    study.set("models", &models(&api, &["small"]));
    study.run(&[]).exits(0);
    let table = study.csv("evaluate/table.csv");
    assert_eq!(table.len(), 2 * 6, "two prompts, six scores: {table:?}");
    // Prompts of one task do not fit another one, which is known before anybody is asked.
    study.set("task", "commits");
    let asked = api.count();
    let wrong = study.verb("check").exits(2);
    assert!(wrong.stderr.contains("there is no column `random_cut`"), "{wrong}");
    study.set(
        "treatments",
        "{control: 'Why {{ code_before }} to {{ code }}?', other: '{{ code }}'}",
    );
    study.verb("check").exits(0);
    study.set("task", "comits");
    let wrong = study.verb("check").exits(2);
    assert!(wrong.stderr.contains("did you mean `commits`?"), "{wrong}");
    assert_eq!(api.count(), asked);
}
