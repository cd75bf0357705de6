//! statsmodels' MixedLM, as tests/reference/mixed.py computes it.

use serde_json::Value;

use super::super::{RandomTerm, mixed};
use super::{Table, intercepts};

fn close(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1e-3),
        "{what}: {found}, statsmodels has {expected}"
    );
}

#[test]
fn fits_are_those_of_statsmodels() {
    let text = std::fs::read_to_string("../../tests/reference/mixed.json").unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let cases = json["expected"].as_array().unwrap();
    assert_eq!(cases.len(), 14);
    for case in cases {
        let name = case["data"].as_str().unwrap();
        let table = match json["data"].get(name) {
            Some(text) => Table::parse(text.as_str().unwrap()),
            None => Table::published(name),
        };
        let names = |list: &str| -> Vec<String> {
            let list = case[list].as_array().unwrap().iter();
            list.map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        let fixed: Vec<Vec<f64>> = names("fixed").iter().map(|name| table.numbers(name)).collect();
        let fixed: Vec<&[f64]> = fixed.iter().map(Vec::as_slice).collect();
        let groups: Vec<Vec<u32>> = names("random").iter().map(|name| table.codes(name)).collect();
        let slopes: Vec<Vec<f64>> =
            names("slopes").iter().map(|name| table.numbers(name)).collect();
        let mut terms: Vec<RandomTerm<'_>> = groups.iter().map(|one| intercepts(one)).collect();
        terms[0].slopes = slopes.iter().map(Vec::as_slice).collect();
        let outcome = table.numbers(case["outcome"].as_str().unwrap());
        let fit = mixed(&outcome, &fixed, &terms, case["reml"].as_bool().unwrap()).unwrap();
        let what = format!("{name} {:?} reml {}", names("slopes"), case["reml"]);
        assert!(fit.converged && !fit.singular, "{what}");
        let numbers = |list: &str| -> Vec<f64> {
            case[list].as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
        };
        for (at, expected) in numbers("coefficients").iter().enumerate() {
            close(&what, fit.coefficients[at].value, *expected, 1e-7);
        }
        for (at, expected) in numbers("standard_errors").iter().enumerate() {
            close(&what, fit.coefficients[at].standard_error, *expected, 1e-6);
        }
        let found: Vec<f64> = if slopes.is_empty() {
            fit.random.iter().map(|term| term.covariance[0]).collect()
        } else {
            let covariance = &fit.random[0].covariance;
            vec![covariance[0], covariance[2], covariance[3]]
        };
        let components = numbers("components");
        assert_eq!(found.len(), components.len());
        for (found, expected) in found.iter().zip(components) {
            close(&what, *found, expected, 2e-6);
        }
        close(&what, fit.residual_variance, case["residual"].as_f64().unwrap(), 1e-6);
        close(&what, fit.log_likelihood(), case["log_likelihood"].as_f64().unwrap(), 1e-11);
    }
}
