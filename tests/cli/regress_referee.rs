//! A referee's findings in `regress`: E-values of outcomes of zeros and ones, robustness values of
//! estimators other than regressions, instruments that disagree, units that lack an arm, arms that
//! overlap too little. What the peers say is in
//! `tests/reference/regress_referee.json`; the script next to it makes it.

use serde_json::Value;

use crate::harness::{Project, says, text};
use crate::regress_refusals::{TWO, is_refused};
use crate::regress_tables::{
    CLOSED, OPTIMUM, alike, analysed, arm, csv, estimate, find, holds, made, noise, number,
    ran_with, reasons, turns,
};

/// A table and the numbers of the peers.
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

/// The risk ratio, its interval and its E-values are the peer's.
#[track_caller]
fn ratios(project: &Project, step: &str, peer: &Value, near: f64) {
    for name in ["risk_ratio", "risk_ratio_low", "risk_ratio_high", "evalue", "evalue_ci"] {
        alike(&measure(project, step, "evalue", name), peer, &format!("value={name}"), near);
    }
}

#[test]
fn a_rare_outcome_has_the_evalue_of_its_risk_ratio() {
    // 20 of 2,000 against 58 of 2,000: by the formula for continuous outcomes 1.52.
    let table = made("arm,y", 4000, |i| {
        let (arm, events) = if i.is_multiple_of(2) { ("t", 58) } else { ("c", 20) };
        format!("{arm},{}", i / 2 < events)
    });
    let project = analysed(&table, TWO);
    ratios(&project, "effects", &peer("rare"), CLOSED);
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
    ratios(&project, "ols", &peer["ols"], CLOSED);
    ratios(&project, "weighting", &peer["weighting"], OPTIMUM);
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
    ratios(&project, "effects", &peer["paired"], CLOSED);
    // A risk of zero has no ratio.
    let table = made("arm,y", 80, |i| format!("{},{}", turns(i), u8::from(i % 8 == 0)));
    let row = measure(&analysed(&table, TWO), "effects", "evalue", "evalue");
    reasons(&row, "refused", &["the risk under control is 0.0000"]);
}

#[test]
fn an_instrument_has_robustness_values_of_its_own() {
    let peer = peer("strong_confounder");
    let with = format!("{TWO}, confounders: [x], instruments: [z], standard_errors: classic");
    let steps = [("alone", "estimators: [iv]"), ("beside", "estimators: [iv, ols]")];
    let project = ran_with(text(&peer, "csv"), &with, &steps);
    let row = estimate(&project, "alone", "iv");
    alike(&row, &peer, "estimate", CLOSED);
    alike(&row, &peer, "p_value=p", OPTIMUM);
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
            alike(&row, &peer[stage], &format!("value={value}"), CLOSED);
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
    // Weighting is not a regression, and has no robustness values.
    let with = format!("{TWO}, confounders: [x], estimators: [weighting, ols]");
    let project = analysed(peer["csv"].as_str().unwrap(), &with);
    let value = |analysis: &str| measure(&project, "effects", analysis, "robustness_value");
    reasons(&value("robustness"), "refused", &["`weighting` is none"]);
    assert_eq!(text(&value("robustness_ols"), "status"), "ok");
}

fn instruments(name: &str) -> (Value, Project) {
    let peer = peer(name);
    let mut steps = Vec::new();
    for (prefix, instruments) in [("", "[z, w]"), ("z_", "[z]")] {
        for kind in ["classic", "HC1", "CR1, cluster: place"] {
            let step = format!("{prefix}{}", kind.to_lowercase().replace(", cluster: place", ""));
            steps.push((step, format!("instruments: {instruments}, standard_errors: {kind}")));
        }
    }
    let with = format!("{TWO}, confounders: [x], estimators: [iv]");
    let project = ran_with(text(&peer, "csv"), &with, &steps);
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
        let reason = text(&row, "reason");
        is_refused(&row, reason);
        says(reason, &["the instruments give different effects", name, "rejects at the 5 % level"]);
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
    let kinds = [("classic", "classic"), ("hc1", "HC1"), ("cr1", "CR1")];
    let both = kinds.map(|(step, kind)| (step.to_owned(), "anderson_rubin", kind));
    let alone = kinds.map(|(step, kind)| (format!("z_{step}"), "anderson_rubin_z", kind));
    for (step, of, kind) in both.iter().chain(&alone) {
        for (name, of_peer) in [("p", "p_zero"), ("low", "low"), ("high", "high")] {
            let row = measure(&project, step, "instruments", &format!("anderson_rubin_{name}"));
            holds(&row, "value", peer[*of][*kind][of_peer].as_f64().unwrap(), OPTIMUM);
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
        for (measured, number) in [(name, "value=chi2"), (&*format!("{name}_p"), "value=p")] {
            let row = measure(&project, step, "instruments", measured);
            alike(&row, &peer[test], number, OPTIMUM);
        }
    }
    // A weak instrument has an interval without an end.
    let peer = self::peer("strong_confounder");
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
    reasons(&row, "refused", &["have no upper end"]);
    let row = estimate(&project, "effects", "iv");
    assert!(text(&row, "note").contains("which holds all the same"), "{row}");
    // It excludes nothing, however narrow the interval of two stages is.
    let row = project.only("effects.equivalence");
    reasons(&row, "refused", &["no effect is excluded: Anderson and Rubin's interval"]);
    let row = project.only("effects.findings");
    assert!(row["excluded"].is_null(), "{row}");
    assert!(!text(&row, "sentence").contains("excluded"), "{row}");
}

fn value(project: &Project, step: &str, name: &str) -> f64 {
    number(&measure(project, step, "attrition", name), "value")
}

#[test]
fn units_that_lack_an_arm_are_refused_like_missing_values() {
    let peer = peer("attrition");
    let with = format!("{TWO}, unit: unit, estimators: [paired, ols, difference]");
    let steps = [("effects", ""), ("drop", "missing: drop")];
    let project = ran_with(text(&peer, "csv"), &with, &steps);
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
        alike(row, &peer["complete"], "estimate", CLOSED);
        assert!(text(row, "note").contains("10 units lack an arm and are left out."), "{row}");
    }
    let row = find(&rows, &[("estimator", "paired")]);
    alike(row, &peer["complete"], "standard_error", CLOSED);
}

#[test]
fn where_outcomes_are_absent_there_are_bounds() {
    let peer = peer("attrition");
    let with = format!("{TWO}, unit: unit");
    let steps = [
        ("known", "ranges: { y: [0, 1] }"),
        ("drop", "missing: drop, ranges: { y: [0, 1] }"),
        ("unknown", ""),
    ];
    let project = ran_with(text(&peer, "csv"), &with, &steps);
    for step in ["known", "drop"] {
        for bounds in ["manski", "manski_ci", "lee"] {
            for (at, end) in ["low", "high"].iter().enumerate() {
                let row = measure(&project, step, "attrition", &format!("{bounds}_{end}"));
                holds(&row, "value", peer[bounds][at].as_f64().unwrap(), CLOSED);
            }
        }
        assert_eq!(value(&project, step, "absent_treatment"), 10.0);
        assert_eq!(value(&project, step, "absent_control"), 0.0);
    }
    let row = measure(&project, "unknown", "attrition", "manski_low");
    assert!(text(&row, "reason").contains("ranges: { y: [LOW, HIGH] }"), "{row}");
    let complete = made("unit,arm,y", 40, |i| format!("{},{},{}", i / 2, turns(i), noise(i, 1)));
    let rows = analysed(&complete, &with).rows("effects.sensitivity");
    assert!(rows.iter().all(|row| row["analysis"] != "attrition"), "nothing is absent");
}

#[test]
fn rows_without_an_outcome_have_bounds_too() {
    // 40 rows of each arm, with outcomes of zeros and ones: under `t` 30 are there, 15 of them 1;
    // under `c` 20 are there, 5 of them 1. Manski: 15/40 - 25/40 = -.25 to 25/40 - 5/40 = .5.
    // Lee: half of the rows of `t` are kept, 20 of 30: 5/20 to 15/20, less 5/20.
    let table = made("arm,y", 80, |i| {
        let (arm, there, ones) = if i.is_multiple_of(2) { ("t", 30, 15) } else { ("c", 20, 5) };
        let y = match i / 2 {
            at if at < ones => "1",
            at if at < there => "0",
            _ => "",
        };
        format!("{arm},{y}")
    });
    let project = analysed(&table, TWO);
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
    // Lee has no bounds where units lack one arm or the other.
    let rows = (0..80).filter(|i| *i != 6 && *i != 9);
    let rows = rows.map(|i| format!("{},{},{}", i / 2, turns(i), noise(i, 1)));
    let project = analysed(&csv("unit,arm,y", rows), &format!("{TWO}, unit: unit"));
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
    let steps = [
        ("effects", estimators.to_owned()),
        ("any", format!("{estimators}, max_clipped: 1")),
        ("ato", "estimand: ato".to_owned()),
        ("att", "estimand: att, estimators: [aipw]".to_owned()),
    ];
    let project = ran_with(text(&peer, "csv"), &format!("{TWO}, confounders: [x]"), &steps);
    let clipped = number(&project.rows("effects.overlap")[0], "clipped");
    assert_eq!(clipped, peer["clipped"].as_f64().unwrap());
    for estimator in ["weighting", "matching", "stratification", "aipw"] {
        let row = estimate(&project, "effects", estimator);
        let reason = text(&row, "reason");
        is_refused(&row, reason);
        // `aipw` clips to 0.01 and 0.99.
        let rows = if estimator == "aipw" { "700 of" } else { "1,099 of" };
        says(reason, &[rows, "2,000 rows have a propensity score outside of", "1.0 % that"]);
        says(reason, &["overlap: trim", "estimand: ato"]);
    }
    // The weights of the treated are large at high scores only.
    let row = estimate(&project, "att", "aipw");
    let reason = text(&row, "reason");
    is_refused(&row, reason);
    says(reason, &["347 of 2,000 rows have a propensity score above 0.99"]);
    let row = estimate(&project, "effects", "ols");
    assert!(text(&row, "note").contains("for them the regression extrapolates."), "{row}");
    let words = "That is too little overlap: 1,099 of 2,000 rows";
    says(text(&project.rows("effects.overlap")[0], "note"), &[words]);
    // `max_clipped: 1` gives the number of the peer, far from the truth, 10.
    let row = estimate(&project, "any", "weighting");
    alike(&row, &peer, "estimate=weighting", OPTIMUM);
    says(text(&row, "note"), &["This is not the effect on all rows"]);
    // Overlap weights are never large, and therefore not clipped: with clipped scores 12.6.
    let row = estimate(&project, "ato", "weighting");
    alike(&row, &peer, "estimate=ato", OPTIMUM);
    assert!((number(&row, "ci_low")..number(&row, "ci_high")).contains(&10.0), "{row}");
    assert!(text(&project.rows("ato.findings")[0], "sentence").contains("(ato)"));
}

#[test]
fn estimates_without_scores_tell_that_the_arms_overlap_too_little() {
    let peer = peer("overlap");
    let of = |estimators: &str| format!("estimators: [{estimators}]");
    let steps = [
        ("first", of("ols, aipw")),
        ("alone", of("ols")),
        ("plain", of("difference, matching")),
        ("margin", format!("{}, equivalence: {{ margin: 99 }}", of("ols, aipw"))),
    ];
    let project = ran_with(text(&peer, "csv"), &format!("{TWO}, confounders: [x]"), &steps);
    let extrapolates = "so that this extrapolates beyond their overlap";
    for (step, words) in [
        ("first", &["; the arms overlap too little for `aipw`", extrapolates][..]),
        ("alone", &["; the arms overlap too little, ", extrapolates]),
        ("plain", &["; the arms overlap too little for `matching`."]),
        ("margin", &["; an effect beyond ±99 is not excluded; the arms overlap too little"]),
    ] {
        let finding = &project.rows(&format!("{step}.findings"))[0];
        says(text(finding, "sentence"), words);
        assert!(finding["excluded"].is_null(), "{finding}");
        assert_eq!(finding["verdict"], "different", "{finding}");
    }
}

#[test]
fn rows_without_scores_cannot_be_trimmed() {
    // Above 80 all are treated.
    let table = made("arm,y,high", 120, |i| {
        let x = noise(i, 1);
        let arm = if x > 80 || noise(i, 3) > 50 { "t" } else { "c" };
        format!("{arm},{},{}", noise(i, 0), i64::from(x > 80))
    });
    let with = format!("{TWO}, confounders: [high], overlap: trim, estimators: [ols, difference]");
    let project = analysed(&table, &with);
    let row = estimate(&project, "effects", "ols");
    says(text(&row, "reason"), &["overlap: trim has no propensity scores", "penalty: 1.0"]);
    is_refused(&row, text(&row, "reason"));
    assert_eq!(text(&estimate(&project, "effects", "difference"), "status"), "ok");
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
    alike(&row, &peer, "estimate=trimmed", OPTIMUM);
    // Arms that overlap are not trimmed.
    let table = made("arm,y,x", 400, |i| format!("{},{},{}", arm(i), noise(i, 0), noise(i, 1)));
    let with = format!("{TWO}, confounders: [x], estimators: [weighting]");
    let project = ran_with(&table, &with, &[("effects", ""), ("trim", "overlap: trim")]);
    assert_eq!(project.rows("effects"), project.rows("trim"));
}
