//! `workflows/table3.yaml` on the published data: the printed table is found again, and every
//! number of `tests/reference/table3.json` that the outputs have.
//!
//! The data have no licence and are not in the repository. They are taken from the file that
//! `GALERAS_PUBLISHED_DATA` names, else from a folder next to the repository; where there is
//! neither, the tests say so and check nothing.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, text};
use crate::regress_tables::{CLOSED, OPTIMUM, equal, find, holds, number};

const WORKFLOW: &str = include_str!("../../workflows/table3.yaml");
const CAUSAL_SE: &str = include_str!("../../workflows/causal_se.yaml");

fn published() -> Option<PathBuf> {
    let given = std::env::var_os("GALERAS_PUBLISHED_DATA").map(PathBuf::from);
    let beside = || PathBuf::from("../shared/data/galeras_treatments.parquet");
    let path = given.unwrap_or_else(beside);
    if path.is_file() {
        return Some(path.canonicalize().unwrap());
    }
    eprintln!("not checked: {} is not there (GALERAS_PUBLISHED_DATA)", path.display());
    None
}

fn reference() -> Value {
    serde_json::from_str(include_str!("../reference/table3.json")).unwrap()
}

/// A project with a workflow on the published data, which it ran.
struct Table {
    project: Project,
    set: Vec<String>,
    outcome: Outcome,
}

impl Table {
    #[track_caller]
    fn run(workflow: &str, set: &[&str]) -> Option<Self> {
        let data = published()?;
        let project = Project::new(workflow);
        let more = set.iter().map(ToString::to_string);
        let set: Vec<String> =
            std::iter::once(format!("data={}", data.display())).chain(more).collect();
        let outcome = project.run_file("w.yaml", &set).exits(0);
        Some(Self { project, set, outcome })
    }

    #[track_caller]
    fn rows(&self, step: &str) -> Vec<Value> {
        self.project.rows_of("w.yaml", step, &self.set)
    }
}

#[track_caller]
fn table() -> Option<Table> {
    Table::run(WORKFLOW, &["simulations=20"])
}

/// The contrasts by their names in the reference.
const CONTRASTS: [(&str, &str, &str); 3] =
    [("T1", "T1", "control"), ("T2", "T2", "control"), ("T2_vs_T1", "T2", "T1")];

/// The row of a contrast in which more columns have these texts.
#[track_caller]
fn of<'a>(rows: &'a [Value], at: usize, more: &[(&str, &str)]) -> &'a Value {
    let (_, treatment, control) = CONTRASTS[at];
    find(rows, &[&[("treatment", treatment), ("control", control)], more].concat())
}

/// The numbers of the reference for a contrast.
fn theirs(at: usize) -> Value {
    reference()["ate_on_y_levenshtein"][CONTRASTS[at].0].clone()
}

#[track_caller]
fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_printed_correlations_are_found_again() {
    let Some(table) = table() else { return };
    let peers = reference()["correlations_with_y_levenshtein"].clone();
    let peers = peers.as_object().unwrap();
    assert_eq!(peers.len(), 24);
    for (step, name) in
        [("correlations", "pearson"), ("spearman", "spearman"), ("kendall", "kendall_tau_b")]
    {
        let rows = table.rows(step);
        assert_eq!(rows.len(), 24);
        for (key, peer) in peers {
            let (variable, arm) = key.split_once('|').unwrap();
            let row = find(&rows, &[("variable", variable), ("t_treatment", arm)]);
            holds(row, "coefficient", float(&peer[name]), CLOSED);
            assert_eq!((&row["n"], text(row, "status")), (&json!(2923), "ok"));
        }
    }
    let rows = table.rows("table_correlations");
    for (key, peer) in peers {
        let (variable, arm) = key.split_once('|').unwrap();
        let row = find(&rows, &[("variable", variable), ("treatment", arm)]);
        assert_eq!(row["printed"], peer["paper"]);
        let misprint = (variable, arm) == ("z_n_ast_errors", "T2");
        let verdict = if misprint { "FLAG: outside of the interval" } else { "equal" };
        assert_eq!(text(row, "verdict"), verdict, "{row}");
    }
    assert_eq!(rows.iter().filter(|row| row["verdict"] == "equal").count(), 23);
    let misprint = find(&rows, &[("variable", "z_n_ast_errors"), ("treatment", "T2")]);
    equal(number(misprint, "pearson"), -0.0185, 1e-12, "the misprint");
}

/// Every printed number stands next to ours, or next to why there is none.
#[test]
fn every_row_of_the_printed_table_is_there() {
    let Some(table) = table() else { return };
    let rows = table.rows("table_3");
    // Three of scores, eight covariates and twelve effects by distance and similarity, and ours.
    assert_eq!(rows.len(), 3 + 2 * 8 + 2 * 12 + 4);
    let cell = |row: &Value, arm: &str| {
        let cell = text(row, arm).to_owned();
        let (printed, ours) = cell.split_once(" / ").unwrap_or((&cell, ""));
        (printed.to_owned(), ours.to_owned())
    };
    let peers = reference();
    for row in &rows {
        let (name, measure) = (text(row, "row"), text(row, "measure"));
        let covariate = !name.contains(':');
        if measure == "score" {
            assert!(text(row, "note").contains("published"), "{row}");
            assert!(cell(row, "T1").1 == "unpubl." && cell(row, "T2").1 == "unpubl.", "{row}");
            continue;
        }
        if measure == "sim." {
            // Printed with the digits of the saved output cut off, except for these.
            let wrong = match name {
                "n_whitespaces" => ": T2",
                "n_ast_errors" => ": T1",
                "matching: placebo" => ": T1, T2",
                _ => "",
            };
            let (note, number) = (text(row, "note"), |cell: &str| {
                let first = cell.split([' ', '%']).next().unwrap();
                first.parse::<f64>().unwrap()
            });
            assert_ne!(wrong.is_empty(), note.starts_with("FLAG"), "{row}");
            assert!(note.ends_with(wrong), "{row}");
            for arm in ["T1", "T2"].into_iter().filter(|arm| !wrong.contains(arm)) {
                let (printed, saved) = cell(row, arm);
                let left = number(&saved) - number(&printed);
                assert!(left.abs() <= 0.1 && left * number(&saved) >= 0.0, "{row}");
            }
            continue;
        }
        if covariate {
            let column = match name {
                "token_count" => "z_token_counts".into(),
                "n_ast_levels" => "z_ast_levels".into(),
                name => format!("z_{name}"),
            };
            for arm in ["control", "T1", "T2"] {
                let peer = &peers["correlations_with_y_levenshtein"][format!("{column}|{arm}")];
                let (printed, ours) = cell(row, arm);
                assert_eq!(printed.parse::<f64>().unwrap(), float(&peer["paper"]), "{row}");
                let ours: f64 = ours.parse().unwrap();
                assert!((ours - float(&peer["pearson"])).abs() < 5.1e-5, "{row}");
            }
            continue;
        }
        let (estimator, what) = name.split_once(": ").unwrap();
        for arm in ["T1", "T2"] {
            let (printed, ours) = cell(row, arm);
            let peer = &peers["paper_table3"][match estimator {
                "strata" => "stratification",
                "IPW" => "ipw",
                other => other,
            }][arm];
            if what == "ATE" && estimator != "paired" {
                assert_eq!(printed.parse::<f64>().unwrap(), float(peer), "{row}");
            }
            match (estimator, what) {
                ("matching", "ATE") => assert_eq!(ours, "refused", "{row}"),
                ("paired", "RCC") => assert_eq!(ours, "n.a.", "{row}"),
                ("paired", _) => assert!(ours.parse::<f64>().is_ok(), "{row}"),
                (_, "ATE") => {
                    let printed: f64 = printed.parse().unwrap();
                    assert!((ours.parse::<f64>().unwrap() - printed).abs() < 0.0151, "{row}");
                }
                // Every propensity is the same: nothing is there to be refuted.
                _ => assert_eq!(ours, "n.a.", "{row}"),
            }
            assert!(ours.parse::<f64>().is_ok() || !text(row, "note").is_empty(), "{row}");
        }
    }
}

#[test]
fn the_printed_effects_are_found_again_but_for_matching() {
    let Some(table) = table() else { return };
    let rows = table.rows("table_effects");
    assert_eq!(rows.len(), 16, "eight estimators for two treatments");
    for (at, treatment) in ["T1", "T2"].iter().enumerate() {
        for estimator in ["stratification", "weighting"] {
            let row = find(&rows, &[("treatment", treatment), ("estimator", estimator)]);
            assert_eq!(text(row, "verdict"), "equal", "{row}");
            let name = if estimator == "weighting" { "ipw" } else { estimator };
            assert_eq!(row["printed"], reference()["paper_table3"][name][treatment]);
            let all = table.rows("effects");
            let row = of(&all, at, &[("estimator", estimator)]);
            let peer = theirs(at);
            for name in ["ref_stratify", "ref_ipw"] {
                let key = if name == "ref_ipw" { "ate_hajek" } else { "ate" };
                holds(row, "estimate", float(&peer[name][key]), CLOSED);
            }
            // That of weighting is the jackknife's, which is near the sandwich with so many units.
            let (error, near) = match estimator {
                "weighting" => (WEIGHTED[at], 2e-3),
                _ => (float(&peer["paired_PRIMARY"]["se"]), OPTIMUM),
            };
            holds(row, "standard_error", error, near);
        }
        let row = find(&rows, &[("treatment", treatment), ("estimator", "matching")]);
        assert_eq!(text(row, "verdict"), "FLAG: refused", "{row}");
        assert_eq!(row["printed"], reference()["paper_table3"]["matching"][treatment]);
        assert!(row["effect"].is_null(), "{row}");
        let reason = "every propensity score is 0.5000: the confounders do not predict the \
                      treatment, so the score cannot tell which units are alike";
        assert_eq!(text(row, "reason"), reason);
    }
    let rows = table.rows("effects");
    assert_eq!(rows.len(), 24);
    assert_eq!(rows.iter().filter(|row| row["status"] == "refused").count(), 3);
    // Both tables warn of mismatches, and the run continues.
    let told = table.outcome.events("assertion");
    assert_eq!(told.len(), 2, "{}", table.outcome);
    assert!(told.iter().all(|event| event["severity"] == "warn"));
}

/// The standard errors of inverse propensity weighting, clustered by snippet (numpy).
const WEIGHTED: [f64; 2] = [9.018394075221508, 7.400623324806941];

/// The row holds the numbers that a peer has under these names: estimate, standard error, degrees of
/// freedom, p-value and interval.
#[track_caller]
fn check(row: &Value, peer: &Value, names: &[&str]) {
    for (column, name) in ["estimate", "standard_error", "df", "p_value"].iter().zip(names) {
        let near = if *column == "p_value" { OPTIMUM } else { CLOSED };
        holds(row, column, float(&peer[*name]), near);
    }
    if let Some(interval) = names.get(4) {
        holds(row, "ci_low", float(&peer[*interval][0]), CLOSED);
        holds(row, "ci_high", float(&peer[*interval][1]), CLOSED);
    }
}

#[test]
fn the_design_is_paired() {
    let Some(table) = table() else { return };
    let rows = table.rows("effects");
    for (at, (contrast, _, _)) in CONTRASTS.iter().enumerate() {
        let peer = theirs(at);
        let paired = &peer["paired_PRIMARY"];
        let row = of(&rows, at, &[("estimator", "paired"), ("status", "ok")]);
        assert_eq!((&row["primary"], &row["n_pairs"]), (&json!(true), &paired["n_pairs"]));
        check(row, paired, &["mean_diff", "se", "df", "p", "ci"]);
        holds(row, "statistic", float(&paired["t"]), CLOSED);
        let holm = &reference()["multiplicity_3_contrasts"]["holm"][contrast];
        holds(row, "p_adjusted", float(holm), OPTIMUM);
        assert_eq!((&row["n"], &row["n_missing"]), (&json!(5846), &json!(0)));

        let row = of(&rows, at, &[("estimator", "difference")]);
        let names = ["ate", "se_welch_WRONG_ignores_pairing", "welch_df", "welch_p", "welch_ci"];
        check(row, &peer["naive_difference_in_means"], &names);

        let row = of(&rows, at, &[("estimator", "ols"), ("se_kind", "CR2")]);
        check(row, &peer["ols_4confounders"], &["ate", "se_CR2"]);
        let four = "z_prompt_size, z_n_whitespaces, z_token_counts, z_nloc";
        assert_eq!(text(row, "adjusted_for"), four);
        let row = of(&rows, at, &[("estimator", "lin"), ("se_kind", "CR2")]);
        holds(row, "estimate", float(&peer["lin2013_interacted_8"]["ate"]), CLOSED);
        if let Some(robust) = peer.get("aipw_armwise") {
            let row = of(&rows, at, &[("estimator", "aipw"), ("se_kind", "jackknife, clustered")]);
            holds(row, "estimate", float(&robust["ate"]), CLOSED);
            holds(row, "standard_error", float(&robust["se_if_cluster"]), 5e-3);
        }
    }
    let summary = table.rows("effects.summary");
    let names: Vec<&str> = summary.iter().map(|row| text(row, "treatment")).collect();
    assert_eq!(names, ["T1", "T2", "T2 - T1"]);
    assert!(summary.iter().all(|row| row["n"] == 2923));
}

#[test]
fn every_standard_error_and_adjustment_is_that_of_the_reference() {
    let kinds = ["classic", "HC0", "HC1", "HC2", "HC3", "CR0", "CR1", "CR2", "CR3"];
    let adjusts = [
        ("bonferroni", "bonferroni"),
        ("benjamini_hochberg", "fdr_bh"),
        ("benjamini_yekutieli", "fdr_by"),
    ];
    let (head, _) = WORKFLOW.split_once("  correlations:\n").unwrap();
    let mut workflow = head.to_owned();
    let mut step = |name: &str, with: &str| {
        workflow += &format!(
            "  {name}:
    op: regress
    from: published
    with:
      treatment: t_treatment
      control: control
      contrasts: all
      outcomes: [y_levenshtein]
      unit: snippet
      refuters: []
      seed: 1
      {with}
"
        );
    };
    let four = "z_prompt_size, z_n_whitespaces, z_token_counts, z_nloc";
    let eight = format!("{four}, z_complexity, z_n_ast_nodes, z_n_ast_errors, z_ast_levels");
    for kind in kinds {
        for (estimator, confounders) in [("ols", four), ("lin", &eight)] {
            let with = format!(
                "confounders: [{confounders}]
      estimators: [{estimator}]
      standard_errors: {kind}"
            );
            step(&format!("{estimator}_{}", kind.to_lowercase()), &with);
        }
    }
    for (adjust, _) in adjusts {
        step(adjust, &format!("adjust: {adjust}"));
    }
    let Some(table) = Table::run(&workflow, &[]) else { return };
    for kind in kinds {
        for (estimator, name) in [("ols", "ols_4confounders"), ("lin", "lin2013_interacted_8")] {
            let rows = table.rows(&format!("{estimator}_{}", kind.to_lowercase()));
            for at in 0..3 {
                let row = of(&rows, at, &[("estimator", estimator), ("se_kind", kind)]);
                let error = float(&theirs(at)[name][format!("se_{kind}")]);
                holds(row, "standard_error", error, CLOSED);
            }
        }
    }
    for (adjust, name) in adjusts {
        let rows = table.rows(adjust);
        for (at, (contrast, _, _)) in CONTRASTS.iter().enumerate() {
            let peer = float(&reference()["multiplicity_3_contrasts"][name][contrast]);
            holds(of(&rows, at, &[]), "p_adjusted", peer, OPTIMUM);
        }
    }
}

#[test]
fn sensitivity_is_that_of_the_reference() {
    let Some(table) = table() else { return };
    let rows = table.rows("effects.sensitivity");
    for at in 0..3 {
        let peer = theirs(at);
        let check = |analysis: &str, measure: &str, value: &Value| {
            let is_p = measure.ends_with("_p") || measure.starts_with("p_");
            let row = of(&rows, at, &[("analysis", analysis), ("measure", measure)]);
            holds(row, "value", float(value), if is_p { OPTIMUM } else { CLOSED });
        };
        let sensemakr = "sensemakr_ols_4confounders";
        for (analysis, of, measure, name) in [
            ("location", "robust_location", "median", "median_diff"),
            ("location", "robust_location", "hodges_lehmann", "hodges_lehmann"),
            ("location", "robust_location", "trimmed_mean", "trimmed10_mean"),
            ("location", "robust_location", "wilcoxon_w", "wilcoxon_W"),
            ("location", "robust_location", "wilcoxon_z", "wilcoxon_z"),
            ("location", "robust_location", "wilcoxon_p", "wilcoxon_p"),
            ("location", "robust_location", "sign_p", "sign_test_p"),
            ("location", "robust_location", "skewness", "skew"),
            ("location", "robust_location", "excess_kurtosis", "excess_kurtosis"),
            ("location", "robust_location", "ratio_of_means", "ratio_of_means"),
            ("location", "robust_location", "log_ratio_se", "log_ratio_delta_se"),
            ("location", "robust_location", "mean_diff_log1p", "mean_diff_log1p"),
            ("evalue", "evalue_paired_se", "standardised_effect", "d"),
            ("evalue", "evalue_paired_se", "risk_ratio", "rr"),
            ("evalue", "evalue_paired_se", "risk_ratio_low", "rr_lo"),
            ("evalue", "evalue_paired_se", "risk_ratio_high", "rr_hi"),
            ("evalue", "evalue_paired_se", "evalue", "evalue_point"),
            ("evalue", "evalue_paired_se", "evalue_ci", "evalue_ci"),
            ("robustness_ols", sensemakr, "partial_r2", "partial_r2"),
            ("robustness_ols", sensemakr, "partial_f2", "partial_f2"),
            ("robustness_ols", sensemakr, "robustness_value", "rv_q"),
            ("robustness_ols", sensemakr, "robustness_value_alpha", "rv_q_alpha"),
            ("rosenbaum", "rosenbaum", "gamma_star", "gamma_star_p05_one_sided"),
            ("power", "power", "minimum_detectable_effect", "mde80_paired"),
        ] {
            check(analysis, measure, &peer[of][name]);
        }
        for (place, measure) in ["positive", "negative", "zero"].iter().enumerate() {
            check("location", measure, &peer["robust_location"]["n_pos_neg_zero"][place]);
        }
        for (gamma, p) in peer["rosenbaum"]["p_upper"].as_object().unwrap() {
            check("rosenbaum", &format!("p_upper_{gamma}"), p);
        }
    }
    for (measure, name) in [("friedman_chi2", "friedman_chi2"), ("friedman_p", "p")] {
        let row = find(&rows, &[("analysis", "omnibus"), ("measure", measure)]);
        holds(row, "value", float(&reference()["omnibus"][name]), OPTIMUM);
    }
}

#[test]
fn effects_change_with_covariates_as_in_the_reference() {
    let Some(table) = table() else { return };
    let rows = table.rows("effects.modifiers");
    for (at, (_, treatment, control)) in CONTRASTS.into_iter().enumerate() {
        for (modifier, slope) in theirs(at)["cate"].as_object().unwrap() {
            let here: Vec<Value> = rows
                .iter()
                .filter(|row| row["treatment"] == treatment && row["control"] == control)
                .filter(|row| row["modifier"] == *modifier)
                .cloned()
                .collect();
            assert!(!here.is_empty(), "{modifier}");
            let bin = |bin: usize| here.iter().find(|row| row["bin"] == bin).unwrap();
            holds(bin(0), "estimate", float(&slope["slope_per_sd"]), CLOSED);
            holds(bin(0), "standard_error", float(&slope["se_HC3"]), CLOSED);
            holds(bin(0), "p_value", float(&slope["p"]), OPTIMUM);
            holds(bin(0), "q_value", float(&slope["q_bh"]), OPTIMUM);
            let groups = slope["quintile_cate"].as_array().unwrap();
            assert_eq!(here.len(), 1 + groups.len());
            for (place, group) in groups.iter().enumerate() {
                let row = bin(place + 1);
                assert_eq!(row["n"], group[1], "{row}");
                holds(row, "estimate", float(&group[2]), CLOSED);
                holds(row, "standard_error", float(&group[3]), CLOSED);
                let (_, high) = group[0].as_str().unwrap().split_once(", ").unwrap();
                let high = high.trim_end_matches(']').parse().unwrap();
                equal(number(row, "high"), high, 1e-3, "high");
            }
        }
    }
}

#[test]
fn arms_are_balanced_by_design() {
    let Some(table) = table() else { return };
    let (balance, overlap) = (table.rows("effects.balance"), table.rows("effects.overlap"));
    assert_eq!((balance.len(), overlap.len()), (24, 3));
    for at in 0..3 {
        for (covariate, peer) in theirs(at)["balance"].as_object().unwrap() {
            let row = of(&balance, at, &[("covariate", covariate), ("status", "ok")]);
            for column in ["smd", "variance_ratio", "ks"] {
                assert_eq!(row[column], peer[column], "{row}");
            }
        }
        let row = of(&overlap, at, &[("status", "ok")]);
        assert_eq!((&row["distinct_scores"], &row["outside"]), (&json!(1), &json!(0)));
        equal(number(row, "auc"), 0.5, 1e-9, "auc");
        equal(number(row, "effective_treatment"), 2923.0, 1e-6, "effective size");
        assert!(text(row, "note").contains("Every propensity score is 0.5000"), "{row}");
    }
}

#[test]
fn refuters_do_not_shake_the_paired_effects() {
    let Some(table) = table() else { return };
    let rows = table.rows("effects.refutations");
    assert_eq!(rows.len(), 3 * 8 * 4);
    for at in 0..3 {
        let row =
            |estimator, refuter| of(&rows, at, &[("estimator", estimator), ("refuter", refuter)]);
        let placebo = row("paired", "placebo");
        assert_eq!((&placebo["as_large"], &placebo["simulations"]), (&json!(0), &json!(20)));
        assert!(number(placebo, "new_effect").abs() < 15.0, "{placebo}");
        for refuter in ["subset", "bootstrap"] {
            let row = row("paired", refuter);
            equal(number(row, "new_effect"), number(row, "estimate"), 0.1, refuter);
        }
        assert_eq!(text(row("paired", "random_common_cause"), "status"), "not_applicable");
        for estimator in ["stratification", "weighting", "aipw", "matching"] {
            for refuter in ["placebo", "random_common_cause", "subset", "bootstrap"] {
                let row = row(estimator, refuter);
                assert_eq!(text(row, "status"), "not_applicable", "{row}");
            }
        }
    }
}

#[test]
fn the_same_numbers_each_time() {
    let Some(table) = table() else { return };
    for jobs in ["1", "4"] {
        let data = &table.set[0];
        let more = ["--set", data, "--set", "simulations=20", "--jobs", jobs, "--cache", jobs];
        let again = table.project.run_ok(&more);
        assert_eq!(again.digests(), table.outcome.digests(), "{jobs} jobs");
    }
}

/// `workflows/causal_se.yaml`: matching has nothing to match by, and the instrument is none.
#[test]
fn the_later_notebooks_are_found_again_or_refused() {
    let Some(table) = Table::run(CAUSAL_SE, &["simulations=2"]) else { return };
    let rows = table.rows("table");
    assert_eq!(rows.len(), 10);
    for row in &rows {
        let (verdict, reason) = (text(row, "verdict"), row["reason"].as_str().unwrap_or_default());
        match text(row, "estimator") {
            "stratification" | "weighting" => assert_eq!(verdict, "equal", "{row}"),
            "iv" => assert!(verdict.starts_with("FLAG") && reason.contains("do not move"), "{row}"),
            _ => assert_eq!(verdict, "FLAG: refused", "{row}"),
        }
    }
    let refuted = |row: &&Value| text(row, "verdict").ends_with("its own placebo");
    let refuted: Vec<&Value> = rows.iter().filter(refuted).collect();
    assert_eq!(refuted.len(), 1, "{refuted:?}");
    assert_eq!(
        (&refuted[0]["printed"], &refuted[0]["placebo"]),
        (&json!(1071.2914), &json!(1041.1033))
    );
}
