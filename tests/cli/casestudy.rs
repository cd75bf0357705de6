//! The case study of the paper from end to end, against a server on the loopback address.
//!
//! The end of the case study: Table III for its model; and its answers in the published shape.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, has, text, values};
use crate::model_comparisons::{average, effects_are_right, mean, paired, same};
use crate::paper::{history, table};
use crate::published_shape::{differences, of_rows, published};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, MODEL};

pub const CASESTUDY: &str = include_str!("../../workflows/casestudy.yaml");
const GALERAS: &str = include_str!("../../workflows/galeras.yaml");
const COLLECT: &str = include_str!("../../workflows/collect.yaml");
const RATINGS: &str = include_str!("../../workflows/ratings/README.md");

pub const TREATMENTS: [&str; 3] = ["T1", "T2", "control"];
const SCORES: [&str; 8] =
    ["bleu", "chrf", "codebleu", "exact_match", "levenshtein", "parses", "rouge_l", "similarity"];

#[rustfmt::skip]
const WHOLE: [&str; 8] = [
    "whole_bleu", "whole_chrf", "whole_codebleu", "whole_exact_match", "whole_levenshtein",
    "whole_parses", "whole_rouge_l", "whole_similarity",
];

/// The table of scores of the case study: by treatment, of what was written and of the whole, and
/// those of an echo and of the right answer next to them.
#[track_caller]
fn arms_are_right(study: &Study, rows: &[Value]) {
    let told = table(&study.project.read("casestudy/table_scores.csv"));
    let names: BTreeSet<&str> = told.iter().map(|line| line["score"].as_str()).collect();
    assert_eq!(names, SCORES.into_iter().chain(WHOLE).collect());
    let baselines = study.rows("baseline_scores");
    let points: BTreeSet<&str> = rows.iter().map(|row| text(row, "snippet_id")).collect();
    for line in &told {
        let score = line["score"].as_str();
        for treatment in TREATMENTS {
            let what = format!("{score} under {treatment}");
            same(&line[treatment], mean(rows, treatment, score), &what);
        }
        for baseline in ["echo", "reference"] {
            let mut of: Vec<&Value> = baselines.iter().collect();
            of.retain(|r| r["baseline"] == baseline && points.contains(text(r, "snippet_id")));
            assert_eq!(of.len(), points.len(), "{score} of {baseline}");
            same(&line[baseline], average(of, score), &format!("{score} of {baseline}"));
        }
        // An echo has written nothing, however much of the whole it has; the right answer is right.
        if ["bleu", "chrf", "similarity", "exact_match", "rouge_l"].contains(&score) {
            assert_eq!((&*line["echo"], &*line["reference"]), ("0.0", "1.0"), "{score}");
        }
    }
}

/// The case study on a repository and a server.
pub struct Study {
    pub project: Project,
    pub api: ChatApi,
    pub more: Vec<String>,
}

impl Study {
    /// The workflow alone, with the files that it embeds.
    pub fn files() -> Project {
        let project = Project::empty().with("casestudy.yaml", CASESTUDY);
        project
            .with("galeras.yaml", GALERAS)
            .with("collect.yaml", COLLECT)
            .with("ratings/README.md", RATINGS)
    }

    pub fn new() -> Self {
        let project = Self::files();
        history(&project, "a", 0);
        Self { project, api: ChatApi::start(), more: Vec::new() }
    }

    pub fn call(&self, verb: &[&str], more: &[&str]) -> Outcome {
        let set = self.settings();
        let set: Vec<&str> = set.iter().flat_map(|value| ["--set", value]).collect();
        self.project.run(&[verb, &set, more].concat())
    }

    fn settings(&self) -> Vec<String> {
        let (model, url) = (format!("model={MODEL}"), format!("base_url={}", self.api.url()));
        let own = ["repos=./a".to_owned(), "n=12".to_owned(), model, url];
        own.into_iter().chain(self.more.iter().cloned()).collect()
    }

    /// Runs the study.
    #[track_caller]
    fn tried(&self) -> Outcome {
        self.project.run_file("casestudy.yaml", &self.settings())
    }

    #[track_caller]
    pub fn run(&self) -> Outcome {
        self.tried().exits(0)
    }

    #[track_caller]
    pub fn rows(&self, step: &str) -> Vec<Value> {
        self.project.rows_of("casestudy.yaml", step, &self.settings())
    }
}

/// The score of a data point under a treatment.
fn score_of<'a>(scores: &'a [Value], point: &Value, treatment: &str) -> &'a Value {
    let of = |row: &&Value| row["snippet_id"] == *point && row["treatment"] == treatment;
    scores.iter().find(of).unwrap()
}

#[test]
fn every_data_point_is_answered_and_scored_under_three_treatments() {
    let study = Study::new();
    let outcome = study.run();
    let testbed = study.rows("testbed");
    let points = testbed.len();
    assert!((8..=12).contains(&points), "{points}");
    let scores = study.rows("scores");
    paired(&scores, points);
    assert_eq!(outcome.step("answers")["rows"], 3 * points);
    assert_eq!(study.project.read("casestudy/unanswered.jsonl"), "");
    // T2 has two turns.
    assert_eq!(study.api.count(), 4 * points);
    arms_are_right(&study, &scores);
    effects_are_right(&study.project.read("casestudy/effects.csv"), &scores, 8);
    // The tokens of the methods are counted once, those of the answers under each treatment.
    let tokens = study.rows("tokens");
    for line in table(&study.project.read("casestudy/table_tokens.csv")) {
        let category = &line["category"];
        let sum = |column: &str, treatment: &str| -> i64 {
            let of = tokens.iter().filter(|row| row["treatment"] == treatment);
            of.map(|row| row[column].as_i64().unwrap()).sum()
        };
        let wanted = sum(&format!("reference_{category}"), "control").to_string();
        assert_eq!(line["reference"], wanted, "{category}");
        for treatment in TREATMENTS {
            assert_eq!(line[treatment], sum(category, treatment).to_string(), "{category}");
        }
    }
    let spent = table(&study.project.read("casestudy/spent.csv"));
    assert_eq!((spent.len(), &spent[0]["answers"]), (1, &(4 * points).to_string()));
    let corpus = table(&study.project.read("casestudy/corpus_scores.csv"));
    assert_eq!(corpus.len(), 3 * 10);
    assert!(corpus.iter().all(|row| row["rows"] == points.to_string()), "{corpus:?}");
    // The size of the control prompt goes with all three.
    for row in &scores {
        let control = score_of(&scores, &row["snippet_id"], "control");
        assert_eq!(row["control_prompt_size"], control["prompt_size"]);
        // All scores are of the method as it was cut, with the docstring that T2 shows.
        assert!(SCORES.iter().chain(&WHOLE).all(|score| row[*score].is_number()), "{row}");
        assert_eq!(row["reference"], row["code_no_docstring"]);
        assert!(text(row, "reference").starts_with(text(row, "random_cut")), "{row}");
        // The features of an answer are those that Python counts.
        let prediction = text(row, "prediction");
        let words: Vec<&str> = prediction.split_whitespace().collect();
        let distinct: BTreeSet<&str> = words.iter().copied().collect();
        let wanted = json!([words.len(), distinct.len(), prediction.matches(' ').count()]);
        has(row, "e_n_words e_vocab_size e_n_whitespaces", wanted);
        assert!(!text(row, "docstring").trim().is_empty(), "{row}");
    }
    // A score leads back to its commit.
    let cell = |column| text(&scores[0], column);
    let told = study.call(&["trace", "casestudy.yaml", cell("id")], &[]).exits(0);
    assert_eq!(told.stdout.matches("made from row").count(), 2, "{told}");
    told.prints(&["prompt_id", "snippet_id", "path"].map(cell));
    the_prompts_are_those_of_the_paper(&study);
    the_study_ends_with_table_3_of_its_model(&study);
    // Nothing is asked again.
    study.run().all_hit();
    assert_eq!(study.api.count(), 4 * points);
}

/// The steps of galeras.yaml that ran, without their prefix.
fn embedded(outcome: &Outcome) -> BTreeSet<String> {
    let finished = outcome.finished();
    let steps = finished["steps"].as_array().unwrap().iter().map(|step| text(step, "step"));
    steps.filter_map(|step| step.strip_prefix("testbeds/")).map(str::to_owned).collect()
}

#[test]
fn only_the_steps_of_the_chosen_testbed_run() {
    let mut study = Study::new();
    let steps = embedded(&study.run());
    for name in ["collected/mined", "verified", "documented", "docstring_cuts", "with_docstring"] {
        assert!(steps.contains(name), "{name}: {steps:?}");
    }
    for step in ["random_cut", "commit_gen", "table_1", "sheet", "collected/per_repository"] {
        // The gate reads the ratings of the sheet.
        assert_eq!(steps.contains(step), step == "sheet", "{step}: {steps:?}");
    }
    // With this seed a method without a docstring is drawn.
    study.more.extend(["testbed=random_cut".into(), "seed=3".into()]);
    let other = study.run();
    let steps = embedded(&other);
    assert!(steps.contains("random_cut") && !steps.contains("documented"), "{steps:?}");
    assert_eq!(other.status("testbeds/verified"), "hit");
    let mut undocumented = 0;
    for row in study.rows("prompts") {
        let told = text(&row, "prompt").contains("The description for the function is:");
        assert_eq!(told, row["docstring"].is_string() && row["treatment"] == "T2", "{row}");
        undocumented += usize::from(row["docstring"].is_null());
    }
    assert!(undocumented > 0);
    for row in study.rows("scores") {
        assert_eq!(row["reference"], row["code_no_docstring"]);
        assert!(text(&row, "reference").starts_with(text(&row, "random_cut")), "{row}");
    }
    // Any other testbed is none of the choices.
    study.more.push("testbed=with_docstrings".into());
    study.tried().exits(2).prints(&["did you mean `with_docstring`?"]);
}

fn the_prompts_are_those_of_the_paper(study: &Study) {
    for row in study.rows("prompts") {
        let cut = text(&row, "random_cut");
        let messages = row["messages"].as_array().unwrap();
        let said: Vec<&str> = messages.iter().map(|m| text(m, "content")).collect();
        match text(&row, "treatment") {
            "control" => {
                let ask = format!("Complete the following python method: ```{cut}```");
                assert_eq!(said, ["You are a helpful assistant.", &ask]);
            }
            "T1" => {
                let ask = format!(
                    "Write a Python method that starts with ```{cut}``` , I need to complete this function. Remove comments, summary and descriptions."
                );
                assert_eq!(said, ["You are a helpful assistant.", &ask]);
            }
            _ => {
                assert_eq!(said.len(), 3, "{row}");
                let docstring = text(&row, "docstring").trim();
                assert!(!docstring.is_empty(), "{row}");
                let ask = format!(
                    "Remember you have a Python function named {}, the function starts with the following code {cut}. The description for the function is: {docstring} ",
                    text(&row, "fun_name")
                );
                let then =
                    "remove comments; remove summary; remove description; Return only the code";
                assert_eq!(said[1..], [&*ask, then]);
            }
        }
    }
    // The second turn of T2 sees the answer to the first.
    let mut second = study.api.asked();
    second.retain(|asked| asked.last().starts_with("remove"));
    assert_eq!(second.len(), study.rows("testbed").len());
    assert!(second.iter().all(|asked| asked.said().len() == 4 && asked.said()[2].contains("```")));
}

#[test]
fn a_change_asks_for_what_is_new_only() {
    let mut study = Study::new();
    study.run();
    let published = answers_are_written_in_the_published_shape(&study);
    let before = study.api.count();
    let points = study.rows("testbed").len();
    // One sample more.
    study.more.push("samples=2".into());
    study.run();
    assert_eq!(study.api.count(), 2 * before);
    assert_eq!(study.rows("scores").len(), 2 * 3 * points);
    // Of several answers to a prompt the published shape has the first.
    assert_eq!(published_rows(&study), published);
    let tokens = table(&study.project.read("casestudy/table_tokens.csv"));
    // More samples are no more methods.
    let blocks = tokens.iter().find(|line| line["category"] == "blocks").unwrap();
    let mut rows = study.rows("tokens");
    rows.retain(|row| row["treatment"] == "control" && row["sample"] == 0);
    let references: i64 = rows.iter().map(|row| row["reference_blocks"].as_i64().unwrap()).sum();
    assert_eq!(blocks["reference"], references.to_string());
    // Another way of taking code out of answers, or of scoring them, asks no one.
    study.more.push("extract=raw".into());
    study.run();
    study.more.retain(|set| !set.starts_with("samples"));
    study.run();
    assert_eq!(study.api.count(), 2 * before);
    let raw = study.rows("scores");
    assert!(raw.iter().all(|row| row["prediction"] == row["raw_response"] && row["parses"] == 0));
}

/// The server refuses the first turn of T2 of one method.
#[test]
fn prompts_without_an_answer_are_told_left_out_of_comparisons_and_asked_again() {
    let mut study = Study::new();
    study.more.push("min_answered=0.9".into());
    let mut refused: Option<String> = None;
    study.api.script(move |asked| {
        let first = asked.said().into_iter().find(|text| text.starts_with("Remember"))?;
        let this = refused.get_or_insert_with(|| first.clone());
        (*this == first).then(|| ChatFault::Error(400, "content_filter", "no".into()))
    });
    study.run();
    let unanswered = study.project.read("casestudy/unanswered.jsonl");
    assert_eq!(unanswered.lines().count(), 1);
    let row: Value = serde_json::from_str(&unanswered).unwrap();
    has(&row, "treatment rule", json!(["T2", "content_filter"]));
    // A comparison is one of the same data points.
    let mut answered = study.rows("scores");
    answered.retain(|score| score["snippet_id"] != row["snippet_id"]);
    arms_are_right(&study, &answered);
    let points = study.rows("testbed").len();
    assert_eq!(study.rows("answers").len(), 3 * points - 1);
    // The server is well again: the next run asks for the one that is missing.
    let before = study.api.count();
    study.api.heal();
    study.run();
    assert_eq!(study.api.count(), before + 2);
    paired(&study.rows("scores"), points);
    assert_eq!(study.project.read("casestudy/unanswered.jsonl"), "");
}

#[test]
fn the_study_is_stopped_before_it_costs_too_much() {
    let mut study = Study::new();
    study.more.extend(["max_usd=0.001".into(), "usd_output=100".into()]);
    let detail = study.tried().exits(1).detail("answers");
    assert_eq!(study.api.count(), 0);
    assert!(detail.contains("0.001") || detail.contains("max_usd"), "{detail}");
}

/// The table of a model instead of Table III.
fn the_study_ends_with_table_3_of_its_model(study: &Study) {
    let scores = study.rows("scores");
    let lines = table(&study.project.read("casestudy/table_3.csv"));
    let cell = |row: &str, measure: &str, arm: &str| {
        let line = lines.iter().find(|line| line["row"] == row && line["measure"] == measure);
        line.unwrap_or_else(|| panic!("{row} {measure}"))[arm].clone()
    };
    let close = |found: String, expected: f64| {
        let found: f64 = found.parse().unwrap_or_else(|_| panic!("{found}"));
        assert!((found - expected).abs() <= 5.1e-5, "{found} {expected}");
    };
    let corpus = study.rows("published_scores.corpus");
    for treatment in TREATMENTS {
        for (row, measure, score) in [
            ("BLEU", "score", "whole_bleu"),
            ("CodeBLEU", "score", "whole_codebleu"),
            ("avg. Levenshtein", "sim.", "whole_similarity"),
        ] {
            let found = cell(row, measure, treatment);
            let (value, spread) = found.split_once(" ± ").unwrap();
            let expected = mean(&scores, treatment, score);
            close(value.into(), expected);
            let of: Vec<f64> = scores
                .iter()
                .filter(|row| row["treatment"] == treatment)
                .map(|row| row[score].as_f64().unwrap())
                .collect();
            let squares: f64 = of.iter().map(|value| (value - expected).powi(2)).sum();
            close(spread.into(), (squares / (of.len() - 1) as f64).sqrt());
        }
        for (row, metric) in [("BLEU", "codebleu_ngram"), ("CodeBLEU", "codebleu")] {
            let of = |row: &&Value| row["treatment"] == treatment && row["metric"] == metric;
            let value = corpus.iter().find(of).unwrap()["value"].as_f64().unwrap();
            close(cell(row, "corpus", treatment), value);
        }
    }
    let covariates = "prompt_size n_whitespaces token_counts nloc complexity n_ast_nodes \
                      n_ast_errors ast_levels";
    for row in covariates.split(' ') {
        for (measure, arm) in [("dist.", "control"), ("sim.", "T1"), ("dist.", "T2")] {
            let found = cell(row, measure, arm);
            assert!(found == "refused" || found.parse::<f64>().unwrap().abs() <= 1.0, "{row}");
        }
    }
    for estimator in ["paired", "matching", "strata", "IPW"] {
        for what in ["ATE", "placebo", "RCC", "subset"] {
            for measure in ["dist.", "sim."] {
                assert_eq!(cell(&format!("{estimator}: {what}"), measure, "control"), "-");
            }
        }
    }
    assert_eq!(lines.len(), 6 + 8 * 2 + 4 * 4 * 2);
    // The adjustment sets of the model in the paper.
    let graph = study.rows("published_effects.graph");
    let sets = graph.iter().filter(|row| row["kind"] == "adjustment_set");
    let confounders: BTreeSet<_> = sets.flat_map(|r| text(r, "variables").split(", ")).collect();
    let four = ["control_prompt_size", "n_whitespaces", "nloc", "token_counts"];
    assert_eq!(confounders, four.into());
    let rows = study.rows("published_effects.modifiers");
    let modifiers: BTreeSet<_> = rows.iter().map(|row| text(row, "modifier")).collect();
    assert_eq!(modifiers, ["ast_levels", "complexity", "n_ast_errors", "n_ast_nodes"].into());
}

fn published_rows(study: &Study) -> Vec<Value> {
    serde_json::from_str(&study.project.read("casestudy/published.json")).unwrap()
}

fn answers_are_written_in_the_published_shape(study: &Study) -> Vec<Value> {
    let rows = published_rows(study);
    let points = study.rows("testbed");
    assert_eq!(rows.len(), points.len());
    assert_eq!(differences(&published(), &of_rows(&rows), ""), ["galeras_id: ours alone"]);
    let scores = study.rows("scores");
    for row in &rows {
        let point = points.iter().find(|point| point["id"] == row["galeras_id"]).unwrap();
        assert_eq!((&row["code"], &row["url"]), (&point["code_no_docstring"], &point["url"]));
        for treatment in TREATMENTS {
            let answer = score_of(&scores, &row["galeras_id"], treatment);
            let (prompt, predicted) = (&row[treatment]["prompt"], &row[treatment]["predicted"]);
            assert!(text(prompt, "template").contains("{{ random_cut }}"), "{row}");
            let wanted = values(answer, "prompt_size p_vocab_size p_n_whitespaces");
            assert_eq!(values(prompt, "p_n_words vocab_size n_whitespaces"), wanted);
            let wanted = values(answer, "prediction e_n_words e_vocab_size e_n_whitespaces");
            assert_eq!(values(predicted, "prediction n_words vocab_size n_whitespaces"), wanted);
        }
    }
    rows
}
