//! Proportional odds against statsmodels' optimum and derivatives exact to rounding.

use super::*;
use crate::Covariance::{Classic, Cr0, Cr1, Hc0, Hc1};
use crate::tests::{GeneralisedModels, close};

#[test]
fn odds_equal_those_of_statsmodels() {
    let reference = GeneralisedModels::read();
    let (treated, repo) = (reference.treated(), reference.table.codes("repo"));
    for (name, column) in [("ordinal", "level"), ("ordinal_binary", "passed")] {
        let expected = &reference.json[name];
        for kind in [Classic, Hc0, Hc1, Cr0, Cr1] {
            let (outcome, covariates) = (reference.table.column(column), reference.covariates());
            let found =
                proportional_odds(&treated, outcome, &covariates, kind, Some(&repo)).unwrap();
            close(found.log_odds_ratio.value, &expected["log_odds_ratio"], 1e-8);
            close(found.log_odds_ratio.value, &expected["peer_log_odds_ratio"], 1e-5);
            close(found.log_odds_ratio.standard_error, &expected["errors"][kind.to_string()], 1e-8);
            assert_eq!(found.log_odds_ratio.degrees.is_finite(), kind.is_clustered());
        }
    }
}

#[test]
fn two_levels_are_a_logistic_regression() {
    let reference = GeneralisedModels::read();
    let (treated, passed) = (reference.treated(), reference.table.column("passed"));
    let covariates = reference.covariates();
    let kind = Covariance::Hc0;
    let one = proportional_odds(&treated, passed, &covariates, kind, None).unwrap();
    let two = crate::logistic(&treated, passed, &covariates, kind, None).unwrap();
    let (one, two) = (one.log_odds_ratio, two.log_odds_ratio);
    assert!((one.value - two.value).abs() < 1e-10);
    assert!((one.standard_error - two.standard_error).abs() < 1e-10);
}

#[test]
fn unordered_outcomes_are_refused() {
    let treated: Vec<bool> = (0..60).map(|row| row % 2 == 1).collect();
    let refused = |outcome: &[f64], covariates: &[&[f64]], kind| {
        proportional_odds(&treated, outcome, covariates, kind, None).unwrap_err().to_string()
    };
    let many: Vec<f64> = (0..60).map(f64::from).collect();
    assert!(refused(&many, &[], Covariance::Hc0).contains("60 levels"));
    assert!(refused(&[2.0; 60], &[], Covariance::Hc0).contains("one value only"));
    let scale: Vec<f64> = (0..60).map(|row| f64::from(row * 7 % 5)).collect();
    assert!(refused(&scale, &[], Covariance::Hc2).contains("HC2 is not defined"));
    assert!(refused(&scale, &[&scale], Covariance::Hc0).contains("separation"));
    // Every treated row has the highest level, every control a lower one.
    let split: Vec<f64> =
        (0..60).map(|row| if row % 2 == 1 { 4.0 } else { scale[row] % 4.0 }).collect();
    assert!(refused(&split, &[], Covariance::Hc0).contains("separation"));
}
