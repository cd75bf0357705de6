//! A referee's findings in `regress`: E-values of outcomes of zeros and ones, robustness values of
//! estimators other than regressions, instruments that disagree. What the peers say is in
//! `tests/reference/regress_referee.json`; the script next to it makes it.

use serde_json::Value;

use crate::harness::{Project, says, text};
use crate::regress_refusals::{TWO, is_refused};
use crate::regress_tables::{
    CLOSED, OPTIMUM, analysed, csv, estimate, find, holds, number, ran, ran_with,
};

/// A table and what the peers say of it.
pub fn peer(name: &str) -> Value {
    let all: Value =
        serde_json::from_str(include_str!("../reference/regress_referee.json")).unwrap();
    all[name].clone()
}

/// A row of the port `sensitivity`.
#[track_caller]
pub fn measure(project: &Project, step: &str, analysis: &str, measure: &str) -> Value {
    let rows = project.rows(&format!("{step}.sensitivity"));
    find(&rows, &[("analysis", analysis), ("measure", measure)]).clone()
}

const RATIO: [&str; 5] = ["risk_ratio", "risk_ratio_low", "risk_ratio_high", "evalue", "evalue_ci"];

#[test]
fn a_rare_outcome_has_the_evalue_of_its_risk_ratio() {
    // 20 of 2,000 against 58 of 2,000: by the formula for continuous outcomes 1.52.
    let table = csv(
        "arm,y",
        (0..4000).map(|i| {
            let (arm, events) = if i % 2 == 0 { ("t", 58) } else { ("c", 20) };
            format!("{arm},{}", i / 2 < events)
        }),
    );
    let project = analysed(&table, TWO);
    for name in RATIO {
        let row = measure(&project, "effects", "evalue", name);
        holds(&row, "value", peer("rare")[name].as_f64().unwrap(), CLOSED);
    }
    let row = measure(&project, "effects", "evalue", "evalue");
    assert!((number(&row, "value") - 5.25).abs() < 0.005, "{row}");
    assert_eq!(number(&measure(&project, "effects", "evalue", "risk_control"), "value"), 0.01);
    let rows = project.rows("effects.sensitivity");
    assert!(rows.iter().all(|row| row["measure"] != "standardised_effect"), "of no standard units");
}

#[test]
fn risk_ratios_are_those_of_the_estimator() {
    let peer = peer("adjusted");
    // The peer has HC2 for the regression, and the plain sandwich for weights.
    let with = format!("{TWO}, confounders: [x]");
    let steps = ["ols", "weighting", "aipw", "lin", "matching", "stratification"].map(|name| {
        let errors = if ["ols", "lin"].contains(&name) { "HC2" } else { "HC0" };
        (name, format!("{with}, estimators: [{name}], standard_errors: {errors}"))
    });
    let project = ran_with(peer["csv"].as_str().unwrap(), "", &steps);
    for (estimator, near) in [("ols", CLOSED), ("weighting", OPTIMUM)] {
        for name in RATIO {
            let row = measure(&project, estimator, "evalue", name);
            holds(&row, "value", peer[estimator][name].as_f64().unwrap(), near);
        }
    }
    // The risks of every estimator differ by its estimate, and lie near those of the others.
    for (estimator, _) in &steps {
        let risk = |arm: &str| {
            number(&measure(&project, estimator, "evalue", &format!("risk_{arm}")), "value")
        };
        let effect = number(&estimate(&project, estimator, estimator), "estimate");
        assert!((risk("treatment") - risk("control") - effect).abs() < 1e-9, "{estimator}");
        assert!((0.1..0.2).contains(&risk("control")), "{estimator}: {}", risk("control"));
        let ratio = number(&measure(&project, estimator, "evalue", "risk_ratio"), "value");
        let [low, high] = ["risk_ratio_low", "risk_ratio_high"]
            .map(|name| number(&measure(&project, estimator, "evalue", name), "value"));
        assert!(low < ratio && ratio < high && high < 8.0, "{estimator}: {low} {ratio} {high}");
    }
    let project = analysed(peer["pairs_csv"].as_str().unwrap(), &format!("{TWO}, unit: unit"));
    for name in RATIO {
        let row = measure(&project, "effects", "evalue", name);
        holds(&row, "value", peer["paired"][name].as_f64().unwrap(), CLOSED);
    }
}

#[test]
fn a_risk_of_zero_has_no_ratio() {
    let table =
        csv("arm,y", (0..80).map(|i| format!("{},{}", ["t", "c"][i % 2], u8::from(i % 8 == 0))));
    let row = measure(&analysed(&table, TWO), "effects", "evalue", "evalue");
    assert_eq!(text(&row, "status"), "refused");
    assert!(text(&row, "reason").contains("the risk under control is 0.0000"), "{row}");
}

#[test]
fn an_instrument_has_robustness_values_of_its_own() {
    let peer = peer("strong_confounder");
    let with = format!("{TWO}, confounders: [x], instruments: [z], standard_errors: classic");
    let project = ran(
        peer["csv"].as_str().unwrap(),
        &[
            ("alone", &format!("{with}, estimators: [iv]")),
            ("beside", &format!("{with}, estimators: [iv, ols]")),
        ],
    );
    let row = estimate(&project, "alone", "iv");
    holds(&row, "estimate", peer["estimate"].as_f64().unwrap(), CLOSED);
    holds(&row, "p_value", peer["p"].as_f64().unwrap(), OPTIMUM);
    assert!(number(&row, "p_value") > 0.5);
    for step in ["alone", "beside"] {
        for (name, stage, value) in [
            ("partial_r2_reduced_form", "reduced", "partial_r2"),
            ("partial_r2_first_stage", "first", "partial_r2"),
            ("robustness_value_reduced_form", "reduced", "value"),
            ("robustness_value_first_stage", "first", "value"),
            // The reduced form is the weaker of both.
            ("robustness_value", "reduced", "value"),
        ] {
            let row = measure(&project, step, "robustness", name);
            holds(&row, "value", peer[stage][value].as_f64().unwrap(), CLOSED);
        }
        let row = measure(&project, step, "robustness", "robustness_value_alpha");
        assert_eq!(number(&row, "value"), 0.0, "{row}");
        assert!(text(&row, "note").contains("insignificant at the 0.05 level without one"));
    }
    let rows = project.rows("alone.sensitivity");
    assert!(rows.iter().all(|row| row["analysis"] != "robustness_ols"), "nobody asked");
    let row = measure(&project, "beside", "robustness_ols", "robustness_value");
    holds(&row, "value", peer["ols"]["value"].as_f64().unwrap(), CLOSED);
}

#[test]
fn pairs_have_the_robustness_of_intercepts_for_units() {
    let peer = peer("adjusted");
    let project = analysed(peer["pairs_csv"].as_str().unwrap(), &format!("{TWO}, unit: unit"));
    // With an intercept for each of n units, 2 n rows have n - 1 residual degrees of freedom, and
    // the t of the treatment is that of the pairs: f = |t| / sqrt(n - 1), and
    // RV = (sqrt(f^4 + 4 f^2) - f^2) / 2 (Cinelli and Hazlett 2020, equation 19).
    let row = estimate(&project, "effects", "paired");
    assert_eq!(number(&row, "df"), 399.0);
    let f2 = number(&row, "statistic").powi(2) / 399.0;
    let value = 0.5 * ((f2 * f2 + 4.0 * f2).sqrt() - f2);
    holds(&measure(&project, "effects", "robustness", "robustness_value"), "value", value, CLOSED);
    let partial = f2 / (1.0 + f2);
    holds(&measure(&project, "effects", "robustness", "partial_r2"), "value", partial, CLOSED);
}

#[test]
fn what_is_no_regression_has_no_robustness_values() {
    let peer = peer("adjusted");
    let with = format!("{TWO}, confounders: [x], estimators: [weighting, ols]");
    let project = analysed(peer["csv"].as_str().unwrap(), &with);
    let row = measure(&project, "effects", "robustness", "robustness_value");
    assert_eq!(text(&row, "status"), "refused");
    assert!(text(&row, "reason").contains("`weighting` is none"), "{row}");
    let row = measure(&project, "effects", "robustness_ols", "robustness_value");
    assert_eq!(text(&row, "status"), "ok");
}

/// Two instruments by several variances.
fn instruments(name: &str) -> (Value, Project) {
    let peer = peer(name);
    let with = format!("{TWO}, confounders: [x], estimators: [iv]");
    let both = format!("{with}, instruments: [z, w]");
    let one = format!("{with}, instruments: [z]");
    let steps = [
        ("classic", format!("{both}, standard_errors: classic")),
        ("hc1", format!("{both}, standard_errors: HC1")),
        ("cr1", format!("{both}, standard_errors: CR1, cluster: place")),
        ("z_classic", format!("{one}, standard_errors: classic")),
        ("z_hc1", format!("{one}, standard_errors: HC1")),
        ("z_cr1", format!("{one}, standard_errors: CR1, cluster: place")),
    ];
    let project = ran_with(peer["csv"].as_str().unwrap(), "", &steps);
    (peer, project)
}

#[test]
fn instruments_that_disagree_are_refused_at_five_percent() {
    let (peer, project) = instruments("invalid");
    for (step, name, test) in [
        ("classic", "Sargan's test", "sargan"),
        ("hc1", "Hansen's J", "hansen"),
        ("cr1", "Hansen's J by clusters", "hansen_clustered"),
    ] {
        let row = estimate(&project, step, "iv");
        let reason = text(&row, "reason").to_owned();
        is_refused(&row, &reason);
        says(
            &reason,
            &["the instruments give different effects", name, "rejects at the 5 % level"],
        );
        // The numbers are there all the same.
        let measured = if test == "sargan" { "sargan" } else { "hansen_j" };
        let row = measure(&project, step, "instruments", measured);
        holds(&row, "value", peer[test]["chi2"].as_f64().unwrap(), OPTIMUM);
        let row = measure(&project, step, "instruments", "sargan_p");
        assert!(number(&row, "value") < 1e-29, "{row}");
        let row = measure(&project, step, "instruments", "anderson_rubin_low");
        assert!(text(&row, "reason").contains("every effect is rejected"), "{row}");
    }
    // One of them alone disagrees with no one.
    assert_eq!(text(&estimate(&project, "z_hc1", "iv"), "status"), "ok");
}

#[test]
fn anderson_and_rubins_intervals_are_where_the_peers_test_has_p_alpha() {
    let (peer, project) = instruments("valid");
    for (step, of, kind) in [
        ("classic", "anderson_rubin", "classic"),
        ("hc1", "anderson_rubin", "HC1"),
        ("cr1", "anderson_rubin", "CR1"),
        ("z_classic", "anderson_rubin_z", "classic"),
        ("z_hc1", "anderson_rubin_z", "HC1"),
        ("z_cr1", "anderson_rubin_z", "CR1"),
    ] {
        for (name, of_peer) in [
            ("anderson_rubin_p", "p_zero"),
            ("anderson_rubin_low", "low"),
            ("anderson_rubin_high", "high"),
        ] {
            let row = measure(&project, step, "instruments", name);
            holds(&row, "value", peer[of][kind][of_peer].as_f64().unwrap(), OPTIMUM);
        }
        let row = estimate(&project, step, "iv");
        assert!(text(&row, "note").contains("Anderson-Rubin 95 % CI: "), "{row}");
        let told = text(&row, "note").contains("The instruments agree (");
        assert_eq!(told, !step.starts_with('z'), "{row}");
    }
    for (step, name, test) in [
        ("classic", "sargan", "sargan"),
        ("hc1", "hansen_j", "hansen"),
        ("cr1", "hansen_j", "hansen_clustered"),
    ] {
        let row = measure(&project, step, "instruments", name);
        holds(&row, "value", peer[test]["chi2"].as_f64().unwrap(), OPTIMUM);
        let row = measure(&project, step, "instruments", &format!("{name}_p"));
        holds(&row, "value", peer[test]["p"].as_f64().unwrap(), OPTIMUM);
    }
}

#[test]
fn a_weak_instrument_has_an_interval_without_an_end() {
    let peer = peer("strong_confounder");
    // `late` belongs to another row.
    let lines: Vec<&str> = peer["csv"].as_str().unwrap().lines().collect();
    let rows = lines[1..].iter().enumerate().map(|(at, line)| {
        let other = lines[1 + (at + 7) % (lines.len() - 1)].split(',').nth(2).unwrap();
        format!("{line},{other}")
    });
    let table = csv("arm,y,z,x,late", rows);
    let with = format!("{TWO}, confounders: [x], instruments: [late], estimators: [iv]");
    let project = analysed(&table, &with);
    let row = measure(&project, "effects", "instruments", "anderson_rubin_high");
    assert_eq!(text(&row, "status"), "refused");
    assert!(text(&row, "reason").contains("have no upper end"), "{row}");
    let row = estimate(&project, "effects", "iv");
    assert!(text(&row, "note").contains("which holds all the same"), "{row}");
}
