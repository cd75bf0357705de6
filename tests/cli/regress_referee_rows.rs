//! A referee's findings in `regress`, about rows: units that lack an arm and the bounds where
//! outcomes are absent; arms that overlap too little. The peers' numbers are those of
//! `regress_referee`.

use serde_json::Value;

use crate::harness::{Project, text};
use crate::regress_referee::{measure, peer};
use crate::regress_refusals::{TWO, is_refused};
use crate::regress_tables::{
    CLOSED, OPTIMUM, analysed, csv, estimate, holds, noise, number, ran, ran_with,
};

fn value(project: &Project, step: &str, name: &str) -> f64 {
    number(&measure(project, step, "attrition", name), "value")
}

#[test]
fn units_that_lack_an_arm_are_refused_like_missing_values() {
    let peer = peer("attrition");
    let with = format!("{TWO}, unit: unit, estimators: [paired, ols, difference]");
    let project = ran(
        peer["csv"].as_str().unwrap(),
        &[("effects", &with), ("drop", &format!("{with}, missing: drop"))],
    );
    let reason = "of 60 units 10 units have no row under `t` (missing: drop leaves such units out)";
    for row in project.rows("effects") {
        is_refused(&row, reason);
        assert_eq!((number(&row, "n"), number(&row, "n_missing")), (110.0, 10.0));
    }
    // Every estimator has the same units, and so the same estimate.
    let rows = project.rows("drop");
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert_eq!((text(row, "status"), number(row, "n")), ("ok", 100.0), "{row}");
        assert_eq!((number(row, "n_pairs"), number(row, "n_missing")), (50.0, 10.0));
        holds(row, "estimate", peer["complete"]["estimate"].as_f64().unwrap(), CLOSED);
        assert!(text(row, "note").contains("10 units lack an arm and are left out."), "{row}");
    }
    let row = estimate(&project, "drop", "paired");
    holds(&row, "standard_error", peer["complete"]["standard_error"].as_f64().unwrap(), CLOSED);
}

#[test]
fn where_outcomes_are_absent_there_are_bounds() {
    let peer = peer("attrition");
    let with = format!("{TWO}, unit: unit");
    let project = ran(
        peer["csv"].as_str().unwrap(),
        &[
            ("known", &format!("{with}, ranges: {{ y: [0, 1] }}")),
            ("drop", &format!("{with}, missing: drop, ranges: {{ y: [0, 1] }}")),
            ("unknown", &with),
        ],
    );
    for step in ["known", "drop"] {
        for (name, of, at) in [
            ("manski_low", "manski", 0),
            ("manski_high", "manski", 1),
            ("manski_ci_low", "manski_ci", 0),
            ("manski_ci_high", "manski_ci", 1),
            ("lee_low", "lee", 0),
            ("lee_high", "lee", 1),
        ] {
            let row = measure(&project, step, "attrition", name);
            holds(&row, "value", peer[of][at].as_f64().unwrap(), CLOSED);
        }
        assert_eq!(value(&project, step, "absent_treatment"), 10.0);
        assert_eq!(value(&project, step, "absent_control"), 0.0);
    }
    let row = measure(&project, "unknown", "attrition", "manski_low");
    assert!(text(&row, "reason").contains("ranges: { y: [LOW, HIGH] }"), "{row}");
    let complete = csv(
        "unit,arm,y",
        (0..40u64).map(|i| format!("{},{},{}", i / 2, ["t", "c"][i as usize % 2], noise(i, 1))),
    );
    let rows = analysed(&complete, &with).rows("effects.sensitivity");
    assert!(rows.iter().all(|row| row["analysis"] != "attrition"), "nothing is absent");
}

#[test]
fn rows_without_an_outcome_have_bounds_too() {
    // 40 rows of each arm, with outcomes of zeros and ones: under `t` 30 are there, 15 of them 1;
    // under `c` 20 are there, 5 of them 1. Manski: 15/40 - 25/40 = -.25 to 25/40 - 5/40 = .5.
    // Lee: half of the rows of `t` are kept, 20 of 30: 5/20 to 15/20, less 5/20.
    let row = |i: usize| {
        let (arm, there, ones) = if i.is_multiple_of(2) { ("t", 30, 15) } else { ("c", 20, 5) };
        let y = match i / 2 {
            at if at < ones => "1",
            at if at < there => "0",
            _ => "",
        };
        format!("{arm},{y}")
    };
    let project = analysed(&csv("arm,y", (0..80).map(row)), TWO);
    for (name, wanted) in [
        ("absent_treatment", 10.0),
        ("absent_control", 20.0),
        ("manski_low", -0.25),
        ("manski_high", 0.5),
        ("lee_low", 0.0),
        ("lee_high", 0.5),
    ] {
        assert!((value(&project, "effects", name) - wanted).abs() < 1e-12, "{name}");
    }
}

#[test]
fn units_that_lack_one_arm_or_the_other_have_no_bounds_of_lees() {
    let table = csv(
        "unit,arm,y",
        (0..80u64)
            .filter(|i| *i != 6 && *i != 9)
            .map(|i| format!("{},{},{}", i / 2, ["t", "c"][i as usize % 2], noise(i, 1))),
    );
    let project = analysed(&table, &format!("{TWO}, unit: unit"));
    let reason = "of 40 units 1 unit has no row under `t`, 1 unit has no row under `c` (missing: \
                  drop leaves such units out)";
    is_refused(&estimate(&project, "effects", "paired"), reason);
    let row = measure(&project, "effects", "attrition", "lee_low");
    assert!(text(&row, "reason").contains("neither arm only adds outcomes"), "{row}");
}

#[test]
fn arms_that_overlap_too_little_are_refused() {
    let peer = peer("overlap");
    let estimators = "estimators: [weighting, matching, stratification, aipw, ols]";
    let with = format!("{TWO}, confounders: [x], {estimators}");
    let project = ran(
        peer["csv"].as_str().unwrap(),
        &[
            ("effects", &with),
            ("any", &format!("{with}, max_clipped: 1")),
            ("ato", &format!("{TWO}, confounders: [x], estimand: ato")),
        ],
    );
    let clipped = number(&project.rows("effects.overlap")[0], "clipped");
    assert_eq!(clipped, peer["clipped"].as_f64().unwrap());
    for estimator in ["weighting", "matching", "stratification", "aipw"] {
        let row = estimate(&project, "effects", estimator);
        let reason = text(&row, "reason").to_owned();
        is_refused(&row, &reason);
        for word in
            ["no overlap: 1,099 of 2,000 rows", "the 20.00 % that `max_clipped`", "overlap: trim"]
        {
            assert!(reason.contains(word), "{word}: {reason}");
        }
    }
    let row = estimate(&project, "effects", "ols");
    assert!(text(&row, "note").contains("for them the regression extrapolates."), "{row}");
    let note = text(&project.rows("effects.overlap")[0], "note").to_owned();
    assert!(note.contains("That is too little overlap: 1,099 of 2,000 rows"), "{note}");
    // `max_clipped: 1` gives the number of the peer, far from the truth, 10.
    let row = estimate(&project, "any", "weighting");
    holds(&row, "estimate", peer["weighting"].as_f64().unwrap(), OPTIMUM);
    // Overlap weights are never large.
    assert_eq!(text(&estimate(&project, "ato", "weighting"), "status"), "ok");
}

#[test]
fn trimmed_rows_have_an_estimate_that_says_for_whom() {
    let peer = peer("overlap");
    let with = format!("{TWO}, confounders: [x], overlap: trim, estimators: [weighting, ols]");
    let project = analysed(peer["csv"].as_str().unwrap(), &with);
    for estimator in ["weighting", "ols"] {
        let row = estimate(&project, "effects", estimator);
        assert_eq!((text(&row, "status"), text(&row, "estimand")), ("ok", "ate_trimmed"));
        assert_eq!(number(&row, "n"), peer["n_trimmed"].as_f64().unwrap());
        let words = "This is the effect on the 678 of 2,000 rows whose propensity score is between \
                     0.1 and 0.9";
        assert!(text(&row, "note").contains(words), "{row}");
        assert!((number(&row, "ci_low")..number(&row, "ci_high")).contains(&10.0), "{row}");
    }
    let row = estimate(&project, "effects", "weighting");
    holds(&row, "estimate", peer["trimmed"].as_f64().unwrap(), OPTIMUM);
}

#[test]
fn arms_that_overlap_are_not_trimmed() {
    let table = csv(
        "arm,y,x",
        (0..400u64).map(|i| {
            let arm = if noise(i, 4) % 2 == 0 { "t" } else { "c" };
            format!("{arm},{},{}", noise(i, 0), noise(i, 1))
        }),
    );
    let with = format!("{TWO}, confounders: [x], estimators: [weighting]");
    let project = ran_with(&table, &with, &[("effects", ""), ("trim", "overlap: trim")]);
    let rows = |step: &str| -> Vec<Value> { project.rows(step) };
    assert_eq!(rows("effects"), rows("trim"));
}
