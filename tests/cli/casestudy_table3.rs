//! The end of the case study: Table III for its model; and its answers in the published shape.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::casestudy::{Study, TREATMENTS};
use crate::comparisons::mean;
use crate::harness::text;
use crate::paper::table;
use crate::published_shape::{differences, of_rows, published};

/// The table of a model instead of Table III.
#[test]
fn the_study_ends_with_table_3_of_its_model() {
    let study = Study::new();
    study.run();
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
    for treatment in TREATMENTS {
        close(cell("BLEU", "score", treatment), mean(&scores, treatment, "whole_bleu"));
        close(cell("CodeBLEU", "score", treatment), mean(&scores, treatment, "whole_codebleu"));
        let similarity = mean(&scores, treatment, "whole_similarity");
        close(cell("avg. Levenshtein", "sim.", treatment), similarity);
    }
    let covariates = [
        "prompt_size",
        "n_whitespaces",
        "token_counts",
        "nloc",
        "complexity",
        "n_ast_nodes",
        "n_ast_errors",
        "ast_levels",
    ];
    for row in covariates {
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
    assert_eq!(lines.len(), 4 + 8 * 2 + 4 * 4 * 2);
    // The model of the paper: what it says to adjust for.
    let graph = study.rows("published_effects.graph");
    let sets: Vec<&Value> = graph.iter().filter(|row| row["kind"] == "adjustment_set").collect();
    assert!(!sets.is_empty());
    let (mut confounders, mut modifiers) = (BTreeSet::new(), BTreeSet::new());
    for row in sets {
        confounders.extend(text(row, "variables").split(", ").map(str::to_owned));
    }
    let four = ["control_prompt_size", "n_whitespaces", "nloc", "token_counts"];
    assert_eq!(confounders, four.map(str::to_owned).into());
    for row in study.rows("published_effects.modifiers") {
        modifiers.insert(text(&row, "modifier").to_owned());
    }
    let paper = ["ast_levels", "complexity", "n_ast_errors", "n_ast_nodes"];
    assert_eq!(modifiers, paper.map(str::to_owned).into());
}

#[test]
fn answers_are_written_in_the_published_shape() {
    let mut study = Study::new();
    study.run();
    let rows: Vec<Value> =
        serde_json::from_str(&study.project.read("casestudy/published.json")).unwrap();
    let points = study.rows("testbed");
    assert_eq!(rows.len(), points.len());
    assert_eq!(differences(&published(), &of_rows(&rows), ""), ["galeras_id: ours alone"]);
    let scores = study.rows("scores");
    for row in &rows {
        let point = points.iter().find(|point| point["id"] == row["galeras_id"]).unwrap();
        assert_eq!((&row["code"], &row["url"]), (&point["code_no_docstring"], &point["url"]));
        for treatment in TREATMENTS {
            let answer = scores
                .iter()
                .find(|answer| {
                    answer["snippet_id"] == row["galeras_id"] && answer["treatment"] == treatment
                })
                .unwrap();
            let (prompt, predicted) = (&row[treatment]["prompt"], &row[treatment]["predicted"]);
            assert!(text(prompt, "template").contains("{{ random_cut }}"), "{row}");
            assert_eq!(prompt["p_n_words"], answer["prompt_size"]);
            assert_eq!(prompt["vocab_size"], answer["p_vocab_size"]);
            assert_eq!(prompt["n_whitespaces"], answer["p_n_whitespaces"]);
            assert_eq!(predicted["prediction"], answer["prediction"]);
            assert_eq!(predicted["n_words"], answer["e_n_words"]);
            assert_eq!(predicted["vocab_size"], answer["e_vocab_size"]);
            assert_eq!(predicted["n_whitespaces"], answer["e_n_whitespaces"]);
        }
    }
    // Of several answers to a prompt it has the first.
    study.more.push("samples=2".into());
    study.run();
    let again: Vec<Value> =
        serde_json::from_str(&study.project.read("casestudy/published.json")).unwrap();
    assert_eq!(again, rows);
}
