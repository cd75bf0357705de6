//! Results of lme4, lmerTest and MixedModels.jl for the data sets of lme4, and those of statsmodels'
//! MixedLM, as tests/reference/mixed.py computes them.
//!
//! Sources: Bates, Mächler, Bolker and Walker (2015) and the help pages of lme4 (`?Dyestuff`,
//! `?Penicillin`, `?Pastes`, `?sleepstudy`); Bates, "lme4: Mixed-effects modeling with R" (2010),
//! chapters 1 and 2; the manual of MixedModels.jl for more digits; Kuznetsova, Brockhoff and
//! Christensen (2017) for degrees of freedom. Where versions of these programs stop at slightly
//! different optima, the digits of the optimum are used.

use super::super::{MixedFit, RandomTerm, is_nested, mixed};
use super::{fit, intercepts, published};
use crate::tests::{Table, json, near, numbers};

/// Fails unless `found` rounds to `printed` with so many decimals.
fn prints(what: &str, found: f64, printed: f64, decimals: i32) {
    let half = 0.501 * 10_f64.powi(-decimals);
    assert!((found - printed).abs() <= half, "{what}: {found}, printed {printed}");
}

/// The standard deviation of the first effect of a term.
fn deviation(fit: &MixedFit, term: usize) -> f64 {
    fit.random[term].covariance[0].sqrt()
}

fn sleepstudy(reml: bool, correlated: bool) -> MixedFit {
    let table = published("sleepstudy");
    let (subject, days) = (table.groups("subject"), table.column("days"));
    let terms = if correlated {
        vec![RandomTerm { groups: &subject, intercept: true, slopes: vec![&days] }]
    } else {
        let slopes = RandomTerm { groups: &subject, intercept: false, slopes: vec![&days] };
        vec![intercepts(&subject), slopes]
    };
    mixed(table.column("reaction"), &[days], &terms, reml).unwrap()
}

#[test]
fn dyestuff_by_reml_and_by_maximum_likelihood() {
    let table = published("dyestuff");
    let reml = fit(&table, "yield", &[], &["batch"], true);
    prints("REML criterion", reml.criterion, 319.6543, 4);
    prints("batch", deviation(&reml, 0), 42.001, 3);
    prints("residual", reml.residual_variance.sqrt(), 49.510, 3);
    prints("intercept", reml.coefficients[0].value, 1527.5, 4);
    prints("its error", reml.coefficients[0].standard_error, 19.383, 3);
    // One mean of six batches: the degrees of freedom of batches.
    prints("its degrees", reml.coefficients[0].degrees, 5.0, 4);
    let ml = fit(&table, "yield", &[], &["batch"], false);
    prints("deviance", ml.criterion, 327.3271, 4);
    prints("batch", deviation(&ml, 0), 37.2603, 4);
    prints("residual", ml.residual_variance.sqrt(), 49.51010, 5);
    prints("its error", ml.coefficients[0].standard_error, 17.6946, 4);
    prints("theta", ml.theta[0], 0.75258, 5);
    prints("AIC", ml.aic(), 333.3271, 4);
    prints("BIC", ml.bic(), 337.5307, 4);
    assert!(reml.converged && ml.converged && !reml.singular && !ml.singular);
}

#[test]
fn dyestuff2_is_singular() {
    let table = published("dyestuff2");
    for (reml, criterion, residual, error) in
        [(true, 161.8283, 3.7157, 0.6784), (false, 162.8730, 3.6532, 0.6670)]
    {
        let fit = fit(&table, "yield", &[], &["batch"], reml);
        assert!(fit.singular && fit.converged);
        assert_eq!(fit.random[0].covariance, [0.0]);
        prints("criterion", fit.criterion, criterion, 4);
        prints("residual", fit.residual_variance.sqrt(), residual, 3);
        prints("intercept", fit.coefficients[0].value, 5.6656, 4);
        prints("its error", fit.coefficients[0].standard_error, error, 4);
    }
}

#[test]
fn penicillin_has_two_crossed_factors() {
    let table = published("penicillin");
    let reml = fit(&table, "diameter", &[], &["plate", "sample"], true);
    prints("REML criterion", reml.criterion, 330.86058899, 8);
    prints("plate", reml.random[0].covariance[0], 0.716908, 6);
    prints("sample", reml.random[1].covariance[0], 3.7309, 4);
    prints("residual", reml.residual_variance, 0.30242, 5);
    prints("intercept", reml.coefficients[0].value, 22.9722, 4);
    prints("its error", reml.coefficients[0].standard_error, 0.808572, 5);
    let ml = fit(&table, "diameter", &[], &["plate", "sample"], false);
    prints("deviance", ml.criterion, 332.188349, 6);
    prints("plate", ml.random[0].covariance[0], 0.714992, 5);
    prints("sample", ml.random[1].covariance[0], 3.135188, 4);
    prints("residual", ml.residual_variance, 0.302425, 6);
    prints("its error", ml.coefficients[0].standard_error, 0.744596, 6);
    assert!(reml.converged && ml.converged && !reml.singular);
    // The order of terms changes nothing else.
    let other = fit(&table, "diameter", &[], &["sample", "plate"], true);
    prints("REML criterion", other.criterion, reml.criterion, 9);
}

#[test]
fn pastes_has_nested_factors() {
    let table = published("pastes");
    let (sample, batch) = (table.groups("sample"), table.groups("batch"));
    assert!(is_nested(&sample, &batch) && !is_nested(&batch, &sample));
    let reml = fit(&table, "strength", &[], &["sample", "batch"], true);
    prints("REML criterion", reml.criterion, 246.9907, 4);
    prints("sample", deviation(&reml, 0), 2.9041, 4);
    prints("batch", deviation(&reml, 1), 1.2874, 4);
    prints("residual", reml.residual_variance.sqrt(), 0.8234, 4);
    prints("intercept", reml.coefficients[0].value, 60.0533, 4);
    prints("its error", reml.coefficients[0].standard_error, 0.6769, 4);
    // One mean of ten batches.
    prints("its degrees", reml.coefficients[0].degrees, 9.0, 3);
    let ml = fit(&table, "strength", &[], &["sample", "batch"], false);
    prints("deviance", ml.criterion, 247.9945, 4);
    prints("batch", deviation(&ml, 1), 1.0951, 4);
    prints("its error", ml.coefficients[0].standard_error, 0.6421, 4);
    prints("AIC", ml.aic(), 255.9945, 4);
    prints("BIC", ml.bic(), 264.3719, 3);
}

#[test]
fn sleepstudy_has_slopes_that_differ_between_subjects() {
    let reml = sleepstudy(true, true);
    prints("REML criterion", reml.criterion, 1743.6283, 4);
    prints("intercepts", reml.random[0].covariance[0], 612.09, 2);
    prints("slopes", reml.random[0].covariance[3], 35.07, 2);
    prints("correlation", reml.random[0].correlation(0, 1).unwrap(), 0.066, 3);
    prints("residual", reml.residual_variance, 654.94, 2);
    let [intercept, days] = [0, 1].map(|at| reml.coefficients[at]);
    prints("intercept", intercept.value, 251.4051, 4);
    prints("its error", intercept.standard_error, 6.8246, 4);
    prints("days", days.value, 10.4673, 4);
    prints("its error", days.standard_error, 1.5458, 4);
    prints("its t", days.statistic(), 6.771, 3);
    // lmerTest: 17 degrees of freedom for both, p = 3.26e-06 for days.
    prints("degrees", intercept.degrees, 17.0, 3);
    prints("degrees", days.degrees, 17.0, 3);
    prints("p of days, millionths", days.p_value() * 1e6, 3.26, 2);
    let ml = sleepstudy(false, true);
    prints("deviance", ml.criterion, 1751.9393, 4);
    prints("intercepts", ml.random[0].covariance[0], 565.51, 1);
    prints("slopes", ml.random[0].covariance[3], 32.68, 2);
    prints("residual", ml.residual_variance, 654.941, 3);
    prints("its error", ml.coefficients[0].standard_error, 6.632, 3);
    prints("its error", ml.coefficients[1].standard_error, 1.5022, 4);
    assert!(reml.converged && ml.converged && !reml.singular);
}

#[test]
fn effects_of_one_group_need_not_be_correlated() {
    // lmer(Reaction ~ Days + (Days || Subject), sleepstudy)
    let reml = sleepstudy(true, false);
    prints("REML criterion", reml.criterion, 1743.669, 3);
    prints("intercepts", reml.random[0].covariance[0], 627.57, 2);
    prints("slopes", reml.random[1].covariance[0], 35.86, 2);
    prints("residual", reml.residual_variance, 653.58, 2);
    prints("intercept's error", reml.coefficients[0].standard_error, 6.885, 3);
    prints("days' error", reml.coefficients[1].standard_error, 1.560, 3);
}

#[test]
fn fits_are_those_of_statsmodels() {
    let json = json("mixed.json");
    let cases = json["expected"].as_array().unwrap();
    assert_eq!(cases.len(), 14);
    for case in cases {
        let name = case["data"].as_str().unwrap();
        let table = match json["data"].get(name) {
            Some(text) => Table::parse(text.as_str().unwrap()),
            None => published(name),
        };
        let names = |list: &str| -> Vec<&str> {
            case[list].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
        };
        let columns = |list: &str| -> Vec<&[f64]> {
            names(list).iter().map(|name| table.column(name)).collect()
        };
        let groups: Vec<Vec<u32>> = names("random").iter().map(|name| table.groups(name)).collect();
        let mut terms: Vec<RandomTerm<'_>> = groups.iter().map(|one| intercepts(one)).collect();
        terms[0].slopes = columns("slopes");
        let outcome = table.column(case["outcome"].as_str().unwrap());
        let reml = case["reml"].as_bool().unwrap();
        let fit = mixed(outcome, &columns("fixed"), &terms, reml).unwrap();
        println!("{name} {:?} reml {reml}", names("slopes"));
        assert!(fit.converged && !fit.singular);
        let expected = |list: &str| numbers(&case[list]);
        for (found, expected) in fit.coefficients.iter().zip(expected("coefficients")) {
            near(found.value, expected, 1e-7, 1e-3);
        }
        for (found, expected) in fit.coefficients.iter().zip(expected("standard_errors")) {
            near(found.standard_error, expected, 1e-6, 1e-3);
        }
        let found: Vec<f64> = if terms[0].slopes.is_empty() {
            fit.random.iter().map(|term| term.covariance[0]).collect()
        } else {
            let covariance = &fit.random[0].covariance;
            vec![covariance[0], covariance[2], covariance[3]]
        };
        assert_eq!(found.len(), expected("components").len());
        for (found, expected) in found.iter().zip(expected("components")) {
            near(*found, expected, 2e-6, 1e-3);
        }
        near(fit.residual_variance, &case["residual"], 1e-6, 1e-3);
        near(fit.log_likelihood(), &case["log_likelihood"], 1e-11, 1e-3);
    }
}
