//! Tests of risk ratios and of robustness with an instrument, with the peers' numbers
//! (`tests/reference/regress_referee.py`) and published ones.

use super::*;
use crate::tests::{Number, Table, json};

#[track_caller]
fn close(found: f64, expected: impl Number) {
    crate::tests::close(found, expected, 1e-8);
}

#[test]
fn a_rare_outcome_has_the_evalue_of_its_risk_ratio() {
    let peer = &json("regress_referee.json")["rare"];
    let found = RiskRatio::of_counts((58, 2000), (20, 2000)).unwrap();
    close(found.ratio, &peer["risk_ratio"]);
    let (low, high) = found.interval(0.05);
    close(low, &peer["risk_ratio_low"]);
    close(high, &peer["risk_ratio_high"]);
    let evalue = evalue_ratio(found.ratio, Some((low, high))).unwrap();
    close(evalue.point, &peer["evalue"]);
    close(evalue.limit.unwrap(), &peer["evalue_ci"]);
    // The formula for continuous outcomes is far off: the standard deviation is .137.
    let sd = (0.5 * (0.029_f64 * 0.971 + 0.01 * 0.99)).sqrt();
    assert!(evalue_difference(0.019, 0.0044, sd).unwrap().point < 1.6);
}

#[test]
fn impossible_risks_have_no_ratio() {
    for counts in [((0, 50), (3, 50)), ((3, 50), (0, 50)), ((0, 0), (1, 2))] {
        assert!(RiskRatio::of_counts(counts.0, counts.1).is_err(), "{counts:?}");
    }
    for (treated, control) in [(1.1, 0.5), (-0.1, 0.5), (0.5, f64::NAN)] {
        assert!(RiskRatio::new(treated, control, 0.1, 30.0).is_err());
    }
    assert!(RiskRatio::of_counts((50, 50), (50, 50)).is_err(), "no error is left");
    let message = RiskRatio::of_counts((3, 50), (0, 50)).unwrap_err().to_string();
    assert!(message.contains("the risk under control is 0.0000"), "{message}");
}

#[test]
fn an_instrument_has_the_robustness_of_its_reduced_form_and_first_stage() {
    let peer = &json("regress_referee.json")["strong_confounder"];
    let table = Table::parse(peer["csv"].as_str().unwrap());
    let (treated, [y, z, x]) = (table.treated("arm"), table.columns(["y", "z", "x"]));
    let found = instrument_robustness(y, &treated, z, &[x], 0.05).unwrap();
    for (found, peer) in
        [(found.reduced_form, &peer["reduced"]), (found.first_stage, &peer["first"])]
    {
        close(found.partial_r2, &peer["partial_r2"]);
        close(found.value, &peer["value"]);
        close(found.value_alpha, &peer["value_alpha"]);
        close(found.extreme_alpha, &peer["extreme_alpha"]);
    }
    assert_eq!(found.value(), found.reduced_form.value);
    assert_eq!(found.value_alpha(), 0.0);
    // Least squares would give half of both, but for another estimate.
    assert!(peer["ols"]["value"].as_f64().unwrap() > 4.0 * found.value());
}

#[test]
fn the_first_stage_of_card_is_as_robust_as_published() {
    // Cinelli and Hazlett (2025) on Card's data: t = 3.64 with 2,994 degrees of freedom gives a
    // robustness value of 3.02 % and an extreme one of 0.313 %.
    // The reduced form: t = 2.327 gives 0.67 % and 0.052 %.
    for (t, value, extreme) in [(3.64, 0.0302, 0.00313), (2.327, 0.00667, 0.000523)] {
        let found = robustness(t, 2994.0, 1.0, 0.05).unwrap();
        assert!((found.value_alpha - value).abs() < 5e-5, "{found:?}");
        assert!((found.extreme_alpha - extreme).abs() < 5e-6, "{found:?}");
    }
}

#[test]
fn standardised_risks_are_those_of_the_peer() {
    let peer = &json("regress_referee.json")["adjusted"];
    let table = Table::parse(peer["csv"].as_str().unwrap());
    let (treated, [y, x]) = (table.treated("arm"), table.columns(["y", "x"]));
    let found = standardised_risks(&treated, y, &[x], crate::Covariance::Hc2, None).unwrap();
    close(found.treated, &peer["ols"]["risk_treatment"]);
    close(found.control, &peer["ols"]["risk_control"]);
    let (low, high) = found.interval(0.05);
    close(low, &peer["ols"]["risk_ratio_low"]);
    close(high, &peer["ols"]["risk_ratio_high"]);
}
