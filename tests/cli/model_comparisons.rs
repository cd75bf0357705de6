//! `workflows/compare.yaml`, several models under several prompts, and `workflows/evaluate.yaml`
//! alone, against a server on the loopback address; and checks of scores and effects for other studies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::evaluations::{answer, block, documented, study};
use crate::harness::text;
use crate::paper::table;
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest};

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

/// `small` gives back what it was shown, the others continue.
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
    documented(&study);
    study.set("against", "small");
    study.set("models", &models(&api, &["small", "medium"]));
    study.run(&[]).exits(0);
    let asked = api.take().len();
    // A third model is asked for its own answers, and no one else is.
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
        if line["status"] == "refused" {
            assert!(line["reason"].contains("differ"), "{line:?}");
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
    let mut tests = table(&study.project.read("compare/differences.csv"));
    tests.retain(|line| line["primary"] == "true");
    assert_eq!(tests.len(), 2 * 5);
    let estimated: Vec<_> = tests.iter().filter(|line| line["status"] == "ok").collect();
    assert!(estimated.len() >= 8, "{tests:?}");
    let values = |column: &str| -> Vec<f64> {
        estimated.iter().map(|line| line[column].parse().unwrap()).collect()
    };
    for (found, expected) in values("p_adjusted").into_iter().zip(holm(&values("p_value"))) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
    // The costs of each model.
    let costs = table(&study.project.read("compare/costs.csv"));
    for (name, input, output) in PRICES {
        let line = costs.iter().find(|line| line["model"] == name).unwrap();
        let answers = 3 * points;
        assert_eq!(line["answers"], answers.to_string());
        let each = f64::from(11 * input + 7 * output) / 1e6;
        same(&line["cost_usd"], each * answers as f64, name);
        same_rounded(&line["usd_per_1000_answers"], 1000.0 * each, name);
    }
    let words = ["leaderboard (", "costs (", "difference", "p_adjusted", "medium", "large"];
    shown.prints(&words);
    assert!(board.iter().all(|line| line["against"] == "small"), "{board:?}");
    study.run(&[]).exits(0).all_hit();
    assert_eq!(api.count(), 0);
}

#[test]
fn a_model_that_is_not_there_is_known_at_once_and_a_missing_answer_counts_for_none() {
    let (mut study, api) = study("compare.yaml", rivals);
    documented(&study);
    study.set("models", &models(&api, &["small", "medium"]));
    // The default is a model that these are not.
    for verb in ["check", "plan", "run"] {
        study.verb(verb).exits(2).reports(&[
            "no cell of `models` has model=gpt-3.5-turbo",
            "${{ params.against }}",
            "known here: `small`, `medium`",
        ]);
    }
    study.set("against", "smal");
    study.verb("check").exits(2).reports(&["did you mean `small`?"]);
    study.set("against", "medium");
    study.verb("check").exits(0);
    assert_eq!(api.count(), 0);
    let (mut study, api) = self::study("compare.yaml", rivals);
    documented(&study);
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
    study.set("min_answered", "0.9");
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
    documented(&study);
    study.set("models", &models(&api, &["small"]));
    study.run(&[]).exits(0);
    let table = study.csv("evaluate/table.csv");
    assert_eq!(table.len(), 2 * 6, "two prompts, six scores: {table:?}");
    // FromDocString shows the signature, and the prompt may tell the docstring.
    study.set("task", "from_docstring");
    study.run(&[]).exits(0);
    for row in study.rows("tasks/from_docstring") {
        let text = |column: &str| row[column].as_str().unwrap();
        assert!(text("shown").starts_with("def ") && text("shown").ends_with("):\n"), "{row}");
        assert_eq!(text("shown").lines().count(), 1, "{row}");
        assert!(text("reference").starts_with(text("shown")) && !text("docstring").is_empty());
    }
    assert_eq!(study.csv("evaluate/table.csv").len(), 2 * 6);
    // Prompts of one task do not fit another one, which is known before anybody is asked.
    study.set("task", "commits");
    let asked = api.count();
    study.verb("check").exits(2).reports(&["there is no column `random_cut`"]);
    let others = "{control: 'Why {{ code_before }} to {{ code }}?', other: '{{ code }}'}";
    study.set("treatments", others);
    study.verb("check").exits(0);
    study.set("task", "comits");
    study.verb("check").exits(2).reports(&["did you mean `commits`?"]);
    assert_eq!(api.count(), asked);
}

#[track_caller]
pub fn same(found: &str, expected: f64, what: &str) {
    let found: f64 = found.parse().unwrap_or_else(|_| panic!("{what}: {found:?}"));
    let near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    assert!(near, "{what}: {found} {expected}");
}

/// As `same`, of a number that is reported with four digits behind the point.
#[track_caller]
pub fn same_rounded(found: &str, expected: f64, what: &str) {
    let number: f64 = found.parse().unwrap_or_else(|_| panic!("{what}: {found:?}"));
    assert!((number - expected).abs() <= 0.5001e-4, "{what}: {found} {expected}");
}

pub fn average<'a>(rows: impl IntoIterator<Item = &'a Value>, score: &str) -> f64 {
    let value = |row: &Value| row[score].as_f64().unwrap_or_else(|| panic!("{score} of {row}"));
    let values: Vec<f64> = rows.into_iter().map(value).collect();
    assert!(!values.is_empty(), "no rows with {score}");
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn mean(rows: &[Value], treatment: &str, score: &str) -> f64 {
    average(rows.iter().filter(|row| row["treatment"] == treatment), score)
}

/// The primary effects are the differences of the means, within their intervals, or are refused for
/// a reason that the rows have.
#[track_caller]
pub fn effects_are_right(csv: &str, rows: &[Value], outcomes: usize) {
    let primary: Vec<_> = table(csv).into_iter().filter(|line| line["primary"] == "true").collect();
    assert_eq!(primary.len(), 2 * outcomes, "{csv}");
    for line in primary {
        let (outcome, treatment) = (&line["outcome"], &line["treatment"]);
        let what = format!("{treatment} on {outcome}");
        assert_eq!(line["estimator"], "paired", "{what}");
        if line["status"] == "refused" {
            let says = |word: &str| line["reason"].contains(word);
            let few = rows.len() / 3 < 10 && says("too few units");
            assert!(few || says("constant") || says("differ"), "{line:?}");
            continue;
        }
        let difference = mean(rows, treatment, outcome) - mean(rows, "control", outcome);
        same(&line["estimate"], difference, &what);
        let number = |column: &str| line[column].parse::<f64>().unwrap();
        let (low, high) = (number("ci_low"), number("ci_high"));
        assert!(low < number("estimate") && number("estimate") < high, "{what}: {low} to {high}");
        assert!((0.0..=1.0).contains(&number("p_adjusted")), "{what}");
    }
}

/// Every data point is there once under each of three treatments.
#[track_caller]
pub fn paired(rows: &[Value], points: usize) {
    let all: BTreeSet<&str> = rows.iter().map(|row| text(row, "treatment")).collect();
    assert!(all.len() == 3 && all.contains("control"), "{all:?}");
    let mut treatments: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows {
        treatments.entry(text(row, "snippet_id")).or_default().push(text(row, "treatment"));
    }
    assert_eq!(treatments.len(), points);
    for (point, mut found) in treatments {
        found.sort_unstable();
        assert!(found.iter().eq(&all), "{point}: {found:?}");
    }
}
