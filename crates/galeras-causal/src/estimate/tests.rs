//! Tests of equivalence against statsmodels and by definition.

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
    assert!((estimate.p_above(of("low")) - of("p_low")).abs() < 1e-12, "{estimate:?} {peer}");
    assert!((estimate.p_below(of("high")) - of("p_high")).abs() < 1e-12, "{estimate:?} {peer}");
}

#[test]
fn two_one_sided_tests_equal_those_of_statsmodels() {
    let peer = json("effect_sizes.json");
    let (treated, outcome) = rows(&peer["between"]);
    agrees(&difference_in_means(&treated, &outcome).unwrap(), &peer["between"]["tost"]);
    let (treated, outcome) = rows(&peer["within"]);
    let arm = |wanted: bool| -> Vec<f64> {
        let rows = treated.iter().zip(&outcome).filter(|(treated, _)| **treated == wanted);
        rows.map(|(_, value)| *value).collect()
    };
    agrees(&paired(&arm(true), &arm(false)).unwrap(), &peer["within"]["tost"]);
}

proptest! {
    /// The verdict at alpha turns at the farther end of the interval of 1 - 2 alpha.
    #[test]
    fn the_interval_and_the_tests_agree(
        value in -3.0..3.0_f64, error in 0.01..2.0_f64, degrees in 2.0..200.0_f64, alpha in 0.001..0.2_f64,
    ) {
        let estimate = Estimate { value, standard_error: error, degrees };
        let (low, high) = estimate.interval(2.0 * alpha);
        let margin = low.abs().max(high.abs());
        let at = |margin: f64| -> f64 { estimate.p_above(-margin).max(estimate.p_below(margin)) };
        prop_assert!((at(margin) - alpha).abs() < 1e-7, "{} {}", at(margin), alpha);
        prop_assert!(at(margin * 1.01) < alpha && at(margin * 0.99) > alpha);
    }
}
