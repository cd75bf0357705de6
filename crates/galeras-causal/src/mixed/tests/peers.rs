//! statsmodels' MixedLM, as tests/reference/mixed.py computes it.

use super::{intercepts, mixed, published};
use crate::RandomTerm;
use crate::tests::{Table, json, near, numbers};

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
