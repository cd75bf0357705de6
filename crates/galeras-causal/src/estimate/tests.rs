//! Tests of equivalence against statsmodels, by definition, and refusals.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::tests::json;
use crate::{difference_in_means, paired};

fn rows(of: &Value) -> (Vec<bool>, Vec<f64>) {
    let rows = of["rows"].as_array().unwrap();
    rows.iter().map(|row| (row[0].as_bool().unwrap(), row[1].as_f64().unwrap())).unzip()
}

#[track_caller]
fn agrees(estimate: &Estimate, peer: &Value) {
    let of = |name: &str| peer[name].as_f64().unwrap();
    let found = equivalence(estimate, of("low"), of("high")).unwrap();
    assert!((found.p_low - of("p_low")).abs() < 1e-12, "{found:?} {peer}");
    assert!((found.p_high - of("p_high")).abs() < 1e-12, "{found:?} {peer}");
    assert_eq!(found.p_value(), found.p_low.max(found.p_high));
}

#[test]
fn two_one_sided_tests_equal_those_of_statsmodels() {
    let peer = json("effect_sizes.json");
    let (treated, outcome) = rows(&peer["between"]);
    agrees(&difference_in_means(&treated, &outcome).unwrap().estimate, &peer["between"]["tost"]);
    let (treated, outcome) = rows(&peer["within"]);
    let arm = |wanted: bool| -> Vec<f64> {
        let rows = treated.iter().zip(&outcome).filter(|(treated, _)| **treated == wanted);
        rows.map(|(_, value)| *value).collect()
    };
    agrees(&paired(&arm(true), &arm(false)).unwrap().estimate, &peer["within"]["tost"]);
}

#[test]
fn impossible_bounds_are_refused() {
    let estimate = Estimate { value: 0.0, standard_error: 1.0, degrees: 5.0 };
    for (low, high) in [(1.0, -1.0), (0.0, 0.0), (f64::NAN, 1.0), (-1.0, f64::INFINITY)] {
        assert!(equivalence(&estimate, low, high).is_err(), "{low} {high}");
    }
}

proptest! {
    /// Equivalence at alpha and the interval of 1 - 2 alpha agree, and the excluded effect is
    /// the margin at which the verdict turns.
    #[test]
    fn the_interval_and_the_tests_agree(
        value in -3.0..3.0, error in 0.01..2.0, degrees in 2.0..200.0, alpha in 0.001..0.2,
    ) {
        let estimate = Estimate { value, standard_error: error, degrees };
        let margin = excluded_beyond(&estimate, alpha);
        let at = |margin: f64| equivalence(&estimate, -margin, margin).unwrap().p_value();
        prop_assert!((at(margin) - alpha).abs() < 1e-7, "{} {}", at(margin), alpha);
        prop_assert!(at(margin * 1.01) < alpha && at(margin * 0.99) > alpha);
    }
}
