//! Generalised linear models against statsmodels, by definition where it has none, and at the edges
//! without a number.

use serde_json::Value;

use super::*;
use crate::tests::{GeneralisedModels, KINDS, Table, close};
use crate::{Covariance, Estimate, Refusal};

/// The rows of NHEFS as the reference prepares them.
fn nhefs(reference: &GeneralisedModels) -> (Vec<bool>, Vec<f64>, Vec<f64>, Vec<u32>) {
    let treated = reference.nhefs.treated("qsmk");
    let gained = reference.nhefs.column("wt82_71").iter().map(|y| f64::from(u8::from(*y > 0.0)));
    let years = reference.nhefs.column("smokeyrs").iter().map(|years| (years - 20.0).max(0.0));
    let groups = treated.len() / 5;
    let codes = (0..treated.len()).map(|row| (row % groups) as u32).collect();
    (treated, gained.collect(), years.collect(), codes)
}

/// The rows of the arrests, whose file has each kind of row once: black, the arrests, the covariates.
fn crime1() -> (Vec<bool>, Vec<f64>, Vec<Vec<f64>>, Vec<u32>) {
    let table = Table::read("causal/crime1.csv");
    let times = table.column("rows").iter().map(|times| *times as usize);
    let rows: Vec<usize> =
        times.enumerate().flat_map(|(row, times)| std::iter::repeat_n(row, times)).collect();
    let column =
        |name: &str| -> Vec<f64> { rows.iter().map(|row| table.column(name)[*row]).collect() };
    let treated = column("black").iter().map(|black| *black == 1.0).collect();
    let groups = rows.len() / 5;
    let codes = (0..rows.len()).map(|row| (row % groups) as u32).collect();
    (treated, column("narr86"), ["hispan", "born60", "qemp86"].map(column).to_vec(), codes)
}

fn study_covariates(reference: &GeneralisedModels) -> Vec<&[f64]> {
    let names = reference.json["nhefs_covariates"].as_array().unwrap().iter();
    names.map(|name| reference.nhefs.column(name.as_str().unwrap())).collect()
}

fn check_errors(expected: &Value, fit: impl Fn(Covariance) -> Estimate) {
    for kind in KINDS {
        if let Some(value) = expected.get(kind.to_string()) {
            let found = fit(kind);
            close(found.standard_error, value, 1e-8);
            match kind {
                Covariance::Cr2 => close(found.degrees, &expected["CR2_df"], 1e-6),
                _ => assert_eq!(found.degrees.is_finite(), kind.is_clustered(), "{kind}"),
            }
        }
    }
}

#[test]
fn logistic_effects_equal_those_of_statsmodels() {
    let reference = GeneralisedModels::read();
    let (study, gained, _, groups) = nhefs(&reference);
    let of_study = study_covariates(&reference);
    let (treated, repo) = (reference.treated(), reference.table.codes("repo"));
    let passed = reference.table.column("passed").to_vec();
    for (name, treated, outcome, covariates, codes) in [
        ("logistic", &treated, &passed, reference.covariates(), &repo),
        ("logistic_alone", &treated, &passed, Vec::new(), &repo),
        ("logistic_nhefs", &study, &gained, of_study, &groups),
    ] {
        let expected = &reference.json[name];
        let fit = |kind| logistic(treated, outcome, &covariates, kind, Some(codes)).unwrap();
        close(fit(Covariance::Classic).log_odds_ratio.value, &expected["log_odds_ratio"], 1e-9);
        check_errors(&expected["errors"], |kind| fit(kind).log_odds_ratio);
        for (kind, margin) in expected["margins"].as_object().unwrap() {
            let kind = KINDS.into_iter().find(|one| one.to_string() == *kind).unwrap();
            let found = fit(kind).risk_difference;
            close(found.value, &margin["estimate"], 1e-8);
            close(found.standard_error, &margin["standard_error"], 1e-8);
        }
        let found = fit(Covariance::Classic).log_risk_ratio;
        close(found.value, &expected["risks"]["log_ratio"], 1e-8);
        close(found.standard_error, &expected["risks"]["standard_error"], 1e-8);
    }
}

#[test]
fn count_ratios_equal_those_of_statsmodels() {
    let reference = GeneralisedModels::read();
    let (study, _, years, groups) = nhefs(&reference);
    let of_study = study_covariates(&reference);
    let (treated, repo) = (reference.treated(), reference.table.codes("repo"));
    let count = reference.table.column("count").to_vec();
    let halves: Vec<f64> = reference.table.column("passed").iter().map(|y| 0.5 * y).collect();
    let (black, arrests, of_arrests, arrest_groups) = crime1();
    let of_arrests = of_arrests.iter().map(Vec::as_slice).collect();
    for (name, treated, outcome, covariates, codes) in [
        ("counts", &treated, &count, reference.covariates(), &repo),
        ("counts_alone", &treated, &count, Vec::new(), &repo),
        ("counts_nhefs", &study, &years, of_study, &groups),
        ("counts_binary", &treated, &halves, reference.covariates(), &repo),
        ("counts_crime1", &black, &arrests, of_arrests, &arrest_groups),
    ] {
        let expected = &reference.json[name];
        for (family, expected) in expected.as_object().unwrap() {
            let model = if family == "poisson" { poisson } else { negative_binomial };
            let fit = |kind| model(treated, outcome, &covariates, kind, Some(codes)).unwrap();
            let found = fit(Covariance::Classic);
            close(found.log_ratio.value, &expected["log_ratio"], 1e-7);
            close(found.pearson, &expected["pearson"], 1e-6);
            if let Some(dispersion) = expected.get("dispersion") {
                close(found.dispersion, dispersion, 1e-6);
            }
            // At the peer's dispersion, which is accurate to its optimiser's tolerance.
            for (kind, value) in expected["errors"].as_object().unwrap() {
                if let Some(kind) = KINDS.into_iter().find(|one| one.to_string() == *kind) {
                    close(fit(kind).log_ratio.standard_error, value, 1e-6);
                }
            }
        }
    }
}

/// 40 rows, half of them treated, whose covariate has the values 0 to 9 in each arm twice.
fn rows() -> (Vec<bool>, Vec<f64>) {
    let treated = (0..40).map(|row| row % 2 == 1).collect();
    (treated, (0..40).map(|row| f64::from(row / 4)).collect())
}

#[track_caller]
fn refuses<T: std::fmt::Debug>(result: Result<T, Refusal>, words: &str) {
    let text = result.expect_err("there is no number here").to_string();
    assert!(text.contains(words), "{text}");
}

#[test]
fn separation_is_refused() {
    let (treated, x) = rows();
    // The covariate determines the outcome of every row.
    let complete: Vec<f64> = x.iter().map(|x| f64::from(u8::from(*x > 4.5))).collect();
    refuses(logistic(&treated, &complete, &[&x], Covariance::Hc2, None), "complete separation");
    // An indicator whose rows all have the outcome.
    let mut quasi: Vec<f64> = (0..40).map(|row| f64::from(u8::from(row % 3 == 0))).collect();
    let special: Vec<f64> = x.iter().map(|x| f64::from(u8::from(*x == 9.0))).collect();
    quasi.iter_mut().zip(&special).for_each(|(y, special)| *y = y.max(*special));
    refuses(logistic(&treated, &quasi, &[&special], Covariance::Hc0, None), "quasi-complete");
    // An arm without an event: one cell of the table is empty.
    let one_sided: Vec<f64> = treated
        .iter()
        .enumerate()
        .map(|(row, t)| f64::from(u8::from(*t && row % 3 == 0)))
        .collect();
    refuses(logistic(&treated, &one_sided, &[], Covariance::Hc0, None), "cell of the table");
    refuses(
        poisson(&treated, &one_sided, &[], Covariance::Hc0, None),
        "every count in the control",
    );
    // All counts are zero where the indicator is one.
    let counts: Vec<f64> =
        (0..40).map(|row| f64::from(row * 7 % 5) * (1.0 - special[row as usize])).collect();
    refuses(poisson(&treated, &counts, &[&special], Covariance::Hc0, None), "separation");
    refuses(negative_binomial(&treated, &counts, &[&special], Covariance::Hc0, None), "separation");
}

#[test]
fn outcomes_of_another_kind_are_refused() {
    let (treated, x) = rows();
    let halves: Vec<f64> = x.iter().map(|x| x / 2.0).collect();
    refuses(logistic(&treated, &halves, &[], Covariance::Hc0, None), "must be 0 or 1");
    refuses(negative_binomial(&treated, &halves, &[], Covariance::Hc0, None), "whole number");
    let below: Vec<f64> = x.iter().map(|x| x - 1.0).collect();
    refuses(poisson(&treated, &below, &[], Covariance::Hc0, None), "below zero");
    let gap: Vec<f64> = x.iter().map(|x| if *x == 3.0 { f64::NAN } else { *x }).collect();
    refuses(poisson(&treated, &gap, &[], Covariance::Hc0, None), "not finite");
    let yes: Vec<f64> = gap.iter().map(|y| if y.is_nan() { *y } else { y % 2.0 }).collect();
    refuses(logistic(&treated, &yes, &[], Covariance::Hc0, None), "NaN");
    let all = vec![true; 40];
    refuses(poisson(&all, &x, &[], Covariance::Hc0, None), "too few control rows");
    refuses(logistic(&treated[..10], &x, &[], Covariance::Hc0, None), "10 rows");
}

#[test]
fn counts_without_more_spread_than_poisson_have_no_dispersion() {
    let (treated, _) = rows();
    let even: Vec<f64> = (0..40).map(|row| f64::from(4 + row % 3)).collect();
    refuses(negative_binomial(&treated, &even, &[], Covariance::Hc0, None), "use `poisson`");
    assert!(poisson(&treated, &even, &[], Covariance::Hc1, None).is_ok());
}

#[test]
fn dependent_covariates_are_named() {
    let (treated, x) = rows();
    let twice: Vec<f64> = x.iter().map(|x| 2.0 * x + 1.0).collect();
    let passed: Vec<f64> = (0..40).map(|row| f64::from(u8::from(row % 3 == 0))).collect();
    for result in [
        logistic(&treated, &passed, &[&x, &twice], Covariance::Hc0, None).map(|_| ()),
        poisson(&treated, &x, &[&x, &twice], Covariance::Hc0, None).map(|_| ()),
    ] {
        assert_eq!(result, Err(Refusal::Collinear { column: crate::ColumnRef::Covariate(1) }));
    }
}

#[test]
fn the_order_of_rows_changes_nothing() {
    let reference = GeneralisedModels::read();
    let (treated, passed) = (reference.treated(), reference.table.column("passed").to_vec());
    let count = reference.table.column("count").to_vec();
    let (covariates, repo) = (reference.covariates(), reference.table.codes("repo"));
    let order: Vec<usize> = (0..600).map(|row| row * 371 % 600).collect();
    let of = |column: &[f64]| -> Vec<f64> { order.iter().map(|row| column[*row]).collect() };
    let shuffled: Vec<Vec<f64>> = covariates.iter().map(|column| of(column)).collect();
    let shuffled: Vec<&[f64]> = shuffled.iter().map(Vec::as_slice).collect();
    let arms: Vec<bool> = order.iter().map(|row| treated[*row]).collect();
    let codes: Vec<u32> = order.iter().map(|row| repo[*row]).collect();
    let kind = Covariance::Cr2;
    let equal = |a: Estimate, b: Estimate| {
        close(b.value, a.value, 1e-12);
        close(b.standard_error, a.standard_error, 1e-12);
    };
    let one = logistic(&treated, &passed, &covariates, kind, Some(&repo)).unwrap();
    let two = logistic(&arms, &of(&passed), &shuffled, kind, Some(&codes)).unwrap();
    equal(one.risk_difference, two.risk_difference);
    for model in [poisson, negative_binomial] {
        let one = model(&treated, &count, &covariates, kind, Some(&repo)).unwrap();
        let two = model(&arms, &of(&count), &shuffled, kind, Some(&codes)).unwrap();
        equal(one.log_ratio, two.log_ratio);
    }
}
