//! Absorbed effects against linearmodels and least squares on indicators.

use super::*;
use crate::Covariance::{Classic, Cr0, Hc0, Hc1};
use crate::tests::{GeneralisedModels, close};
use crate::{ColumnRef, Covariance, Refusal};

#[test]
fn effects_equal_those_of_linearmodels() {
    let reference = GeneralisedModels::read();
    let (treated, author) = (reference.treated(), reference.table.codes("author"));
    for row in reference.json["absorbed"]["factors"].as_array().unwrap() {
        let names = row["factors"].as_array().unwrap();
        let codes = |name: &serde_json::Value| reference.table.codes(name.as_str().unwrap());
        let factors: Vec<Vec<u32>> = names.iter().map(codes).collect();
        let factors: Vec<&[u32]> = factors.iter().map(Vec::as_slice).collect();
        let fit = |kind, clusters| {
            let (y, covariates) = (reference.table.column("y"), reference.covariates());
            absorbed(&treated, y, &covariates, &factors, kind, clusters).unwrap()
        };
        let found = fit(Covariance::Classic, None);
        close(found.estimate.value, &row["estimate"], 1e-9);
        close(found.residual_degrees as f64, &row["df_resid"], 0.0);
        for kind in [Classic, Hc0, Hc1, Cr0] {
            let found = fit(kind, Some(&author)).estimate;
            close(found.standard_error, &row[kind.to_string()], 1e-7);
        }
        // Where the cluster is one of the factors, its effects are not counted, unlike there.
        if names.iter().all(|name| name != "author") {
            let found = fit(Covariance::Cr1, Some(&author)).estimate;
            close(found.standard_error, &row["CR1_author"], 1e-9);
        }
    }
}

#[test]
fn effects_within_clusters_are_not_counted() {
    let reference = GeneralisedModels::read();
    let (repo, expected) = (reference.table.codes("repo"), &reference.json["absorbed"]["nested"]);
    let (y, covariates) = (reference.table.column("y"), reference.covariates());
    let kind = Covariance::Cr1;
    let found =
        absorbed(&reference.treated(), y, &covariates, &[&repo], kind, Some(&repo)).unwrap();
    close(found.estimate.value, &expected["estimate"], 1e-9);
    let groups = expected["clusters"].as_f64().unwrap();
    assert!((found.estimate.degrees - (groups - 1.0)).abs() < 1e-12);
    close(found.estimate.standard_error, &expected["CR1"], 1e-8);
}

#[test]
fn loosely_connected_factors_converge() {
    // A chain of levels: each row ties one level to the next, which projections alone take
    // thousands of sweeps for.
    let rows = 3000u32;
    let first: Vec<u32> = (0..rows).map(|row| row / 2).collect();
    let second: Vec<u32> = (0..rows).map(|row| row.div_ceil(2)).collect();
    let outcome: Vec<f64> = (0..rows).map(|row| f64::from(row * row % 97)).collect();
    let treated: Vec<bool> = (0..rows).map(|row| row * row % 7 < 3).collect();
    let factors: [&[u32]; 2] = [&first, &second];
    let result = absorbed(&treated, &outcome, &[], &factors, Covariance::Classic, None);
    assert!(matches!(result, Err(Refusal::TooFew { what: "rows", .. })), "{result:?}");
    // Twice the rows leave as many degrees of freedom.
    let twice = |codes: &[u32]| [codes, codes].concat();
    let (first, second) = (twice(&first), twice(&second));
    let outcome: Vec<f64> = (0..2 * rows).map(|row| f64::from(row * row % 89)).collect();
    let treated: Vec<bool> = (0..2 * rows).map(|row| row * row % 11 < 4).collect();
    let factors: [&[u32]; 2] = [&first, &second];
    let found = absorbed(&treated, &outcome, &[], &factors, Covariance::Classic, None).unwrap();
    // The constants of a pair of equal rows drop out of their difference: half of the difference
    // of the outcomes on that of the treatments, without an intercept.
    let half = rows as usize;
    let (mut xy, mut xx) = (0.0, 0.0);
    for row in 0..half {
        let x = f64::from(u8::from(treated[row])) - f64::from(u8::from(treated[row + half]));
        xy += x * (outcome[row] - outcome[row + half]);
        xx += x * x;
    }
    assert_eq!(found.absorbed, half);
    assert!((found.estimate.value - xy / xx).abs() < 1e-6 * (xy / xx).abs(), "{found:?}");
}

#[test]
fn columns_constant_within_levels_are_named() {
    let codes: Vec<u32> = (0..60).map(|row| row / 3).collect();
    let outcome: Vec<f64> = (0..60).map(|row| f64::from(row * 7 % 11)).collect();
    let by_level: Vec<bool> = codes.iter().map(|code| code % 2 == 0).collect();
    let within: Vec<bool> = (0..60).map(|row| row * row % 5 < 2).collect();
    let level: Vec<f64> = codes.iter().map(|code| f64::from(*code) * 1e6).collect();
    let column = |treated: &[bool], covariates: &[&[f64]]| match absorbed(
        treated,
        &outcome,
        covariates,
        &[&codes],
        Covariance::Hc1,
        None,
    ) {
        Err(Refusal::UnusableColumn { column, .. }) => column,
        other => panic!("{other:?}"),
    };
    assert_eq!(column(&by_level, &[]), ColumnRef::Treatment);
    assert_eq!(column(&within, &[&level]), ColumnRef::Covariate(0));
    let refused =
        |kind| absorbed(&within, &outcome, &[], &[&codes], kind, None).unwrap_err().to_string();
    assert!(refused(Covariance::Hc2).contains("leverages"));
    assert!(refused(Covariance::Cr0).contains("needs clusters"));
    let own: Vec<u32> = (0..60).collect();
    let none = absorbed(&within, &outcome, &[], &[&own], Covariance::Hc1, None);
    assert!(matches!(none, Err(Refusal::TooFew { .. })), "{none:?}");
}

#[test]
fn far_from_zero_nothing_is_lost() {
    let reference = GeneralisedModels::read();
    let (treated, repo) = (reference.treated(), reference.table.codes("repo"));
    let y = reference.table.column("y");
    let far: Vec<f64> = y.iter().map(|y| (y + 1e6) * 1024.0).collect();
    let fit =
        |y: &[f64]| absorbed(&treated, y, &[], &[&repo], Covariance::Hc1, None).unwrap().estimate;
    let (near, far) = (fit(y), fit(&far));
    assert!((far.value / 1024.0 - near.value).abs() < 1e-7 * near.value.abs());
    assert!((far.standard_error / 1024.0 - near.standard_error).abs() < 1e-7);
}
