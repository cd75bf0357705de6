//! Tests of the sensitivity analyses: the reference numbers, brute force, and degenerate input.

mod referee;

use proptest::prelude::*;

use super::*;
use crate::tests::{Number, json, numbers};
use crate::{ColumnRef, Refusal};

#[track_caller]
fn close(found: f64, expected: impl Number) {
    crate::tests::close(found, expected, 1e-9);
}

#[test]
fn evalues_of_ratios_are_those_of_the_reference() {
    let reference = json("causal/closed_form.json");
    for (ratio, expected) in reference["evalue_rr"].as_object().unwrap() {
        let found = evalue_ratio(ratio.parse().unwrap(), None).unwrap();
        close(found.point, expected);
        assert_eq!(found.limit, None);
    }
    // The published example: 3.9 with 1.8 to 8.7 has 7.26 and 3.0.
    let found = evalue_ratio(3.9, Some((1.8, 8.7))).unwrap();
    close(found.limit.unwrap(), 3.0);
    assert_eq!(evalue_ratio(1.2, Some((0.9, 1.6))).unwrap().limit, Some(1.0));
    assert_eq!(evalue_ratio(0.5, Some((0.25, 0.5))).unwrap().limit, Some(2.0 + 2.0_f64.sqrt()));
    assert!(evalue_ratio(1e300, None).unwrap().point > 1.9e300);
}

#[test]
fn evalues_of_differences_are_those_of_the_reference() {
    let reference = json("causal/closed_form.json");
    let expected = &reference["evalue_smd"]["est=0.5,se=0.1,sd=1"];
    let found = evalue_difference(0.5, 0.1, 1.0).unwrap();
    let (low, high) = found.interval.unwrap();
    for (found, name) in [
        (found.ratio, "rr"),
        (low, "rr_lo"),
        (high, "rr_hi"),
        (found.point, "evalue_point"),
        (found.limit.unwrap(), "evalue_ci"),
    ] {
        close(found, &expected[name]);
    }
    // By the same formulas in numpy: a difference below zero, and one that may be zero.
    let found = evalue_difference(-2.5, 0.4, 3.1).unwrap();
    close(found.ratio, 0.48004714183716646);
    close(found.point, 3.5852261525448723);
    close(found.limit.unwrap(), 2.6975357700098397);
    let found = evalue_difference(0.1, 0.4, 3.1).unwrap();
    close(found.point, 1.2049395306206954);
    assert_eq!(found.limit, Some(1.0));
    // No effect needs no confounder; a tiny one needs one of its square root.
    assert_eq!(evalue_difference(0.0, 0.1, 1.0).unwrap().point, 1.0);
    let tiny = evalue_difference(1e-20, 0.0, 1.0).unwrap().point - 1.0;
    assert!((tiny / 0.91e-20_f64.sqrt() - 1.0).abs() < 1e-5, "{tiny}");
}

#[test]
fn impossible_evalues_are_refused() {
    for (ratio, interval) in [
        (0.0, None),
        (-1.0, None),
        (f64::NAN, None),
        (f64::INFINITY, None),
        (1.5, Some((f64::NAN, 2.0))),
        (1.5, Some((0.0, 2.0))),
        (1.5, Some((1.6, 2.0))),
        (f64::MAX, None),
        (f64::MIN_POSITIVE / 16.0, None),
    ] {
        assert!(evalue_ratio(ratio, interval).is_err(), "{ratio} {interval:?}");
    }
    for (estimate, error, deviation) in [
        (1.0, 0.1, 0.0),
        (1.0, 0.1, -1.0),
        (1.0, -0.1, 1.0),
        (f64::NAN, 0.1, 1.0),
        (1.0, f64::NAN, 1.0),
        (1.0, 0.1, f64::NAN),
        (1.0, 0.1, f64::INFINITY),
        (1000.0, 0.1, 1.0),
        (-1000.0, 0.1, 1.0),
    ] {
        assert!(evalue_difference(estimate, error, deviation).is_err(), "{estimate}");
    }
}

#[test]
fn deviations_are_pooled_evenly() {
    let found = pooled_deviation(&[1.0, 3.0], &[0.0, 0.0, 3.0, 3.0, 1.5]).unwrap();
    close(found, f64::midpoint(2.0, 2.25).sqrt());
    let few = Refusal::TooFew { what: "outcomes in an arm", found: 1, needed: 2 };
    assert_eq!(pooled_deviation(&[1.0], &[1.0, 2.0]), Err(few));
    let constant = Refusal::Constant(ColumnRef::Outcome);
    assert_eq!(pooled_deviation(&[0.1, 0.1, 0.1], &[0.3, 0.3]), Err(constant));
    assert!(pooled_deviation(&[1.0, f64::NAN], &[1.0, 2.0]).is_err());
    assert!(pooled_deviation(&[f64::MAX, f64::MIN], &[1.0, 2.0]).is_err());
}

#[test]
fn robustness_is_that_of_the_reference() {
    for name in ["nhefs", "nsw_dw", "ihdp_A_seed0", "formula_splitmix42"] {
        let reference = json(&format!("causal/{name}.json"));
        let number = |name: &str| reference["ols"][name].as_f64().unwrap();
        let statistic = number("ate") / number("se_classic");
        let columns = reference["meta"]["covariates"].as_array().unwrap().len() + 2;
        let degrees = reference["meta"]["n"].as_f64().unwrap() - columns as f64;
        let found = robustness(statistic, degrees, 1.0, 0.05).unwrap();
        for (found, name) in [
            (found.partial_r2, "partial_r2"),
            (found.partial_f2, "partial_f2"),
            (found.value, "rv_q"),
            (found.value_alpha, "rv_q_alpha"),
        ] {
            // The coefficients of both files come from different solvers.
            crate::tests::close(found, &reference["sensemakr"][name], 1e-7);
        }
    }
}

#[test]
fn robustness_has_three_regimes() {
    // By the same formulas in numpy and scipy.
    for ((statistic, degrees, reduction, alpha), [partial_r2, value, value_alpha]) in [
        ((120.0, 100.0, 1.0, 0.05), [0.993103448275862, 0.9931503635786356, 0.9928291802918173]),
        ((-3.0, 50.0, 0.5, 0.01), [0.15254237288135596, 0.19082193979991838, 0.0]),
        ((0.0, 50.0, 1.0, 0.05), [0.0; 3]),
    ] {
        let found = robustness(statistic, degrees, reduction, alpha).unwrap();
        close(found.partial_r2, partial_r2);
        close(found.value, value);
        close(found.value_alpha, value_alpha);
    }
    close(robustness(30.0, 8.0, 1.0, 0.05).unwrap().value_alpha, 0.9841517333527744);
    // If f is large, the published form has lost all digits of the distance to 1.
    let found = robustness(1e12, 100.0, 1.0, 0.05).unwrap();
    assert!(found.value <= 1.0 && found.value_alpha <= 1.0 && found.partial_r2 <= 1.0);
}

#[test]
fn robustness_needs_a_regression() {
    for degrees in [-3.0_f64, 0.0, 1.0] {
        let found = degrees.max(0.0) as usize;
        let few = Refusal::TooFew { what: "degrees of freedom", found, needed: 2 };
        assert_eq!(robustness(2.0, degrees, 1.0, 0.05), Err(few));
    }
    for (statistic, degrees, reduction, alpha) in [
        (f64::NAN, 9.0, 1.0, 0.05),
        (f64::INFINITY, 9.0, 1.0, 0.05),
        (2.0, f64::NAN, 1.0, 0.05),
        (2.0, f64::INFINITY, 1.0, 0.05),
        (2.0, 9.0, 0.0, 0.05),
        (2.0, 9.0, f64::NAN, 0.05),
        (2.0, 9.0, 1.0, 0.0),
        (2.0, 9.0, 1.0, 1.0),
        (2.0, 9.0, 1.0, f64::NAN),
    ] {
        let found = robustness(statistic, degrees, reduction, alpha);
        assert!(matches!(found, Err(Refusal::Other(_))), "{found:?}");
    }
}

#[test]
fn bounds_are_those_of_the_reference() {
    let reference = json("causal/closed_form.json");
    let tiny = &reference["rosenbaum_tiny"];
    let ranks = SignedRanks::new(&numbers(&tiny["d"])).unwrap();
    for (gamma, expected) in tiny["p"].as_object().unwrap() {
        close(ranks.p_upper(gamma.parse().unwrap()).unwrap(), expected);
    }
    close(ranks.gamma_star(0.05).unwrap(), 2.024845359381549);

    let lead = &reference["lead_33_pairs"];
    let (treated, control) = (numbers(&lead["treated"]), numbers(&lead["control"]));
    let differences: Vec<f64> =
        treated.iter().zip(&control).map(|(one, zero)| one - zero).collect();
    let ranks = SignedRanks::new(&differences).unwrap();
    for (gamma, expected) in lead["p_upper"].as_object().unwrap() {
        close(ranks.p_upper(gamma.parse().unwrap()).unwrap(), expected);
    }
    close(ranks.gamma_star(0.05).unwrap(), &lead["gamma_star"]);
}

#[test]
fn ranks_are_averaged_and_zeros_dropped() {
    // By the same formulas in numpy and scipy; with ties and a zero, and without negative values.
    let differences = [
        -1.0, 2.0, 3.0, -4.0, 0.0, -7.0, -7.0, 8.0, 9.0, -10.0, 11.0, 12.0, -13.0, 14.0, 15.0,
        -16.0, 17.0, 18.0, -19.0, 20.0,
    ];
    let ranks = SignedRanks::new(&differences).unwrap();
    close(ranks.p_upper(1.0).unwrap(), 0.15717017357882296);
    close(ranks.p_upper(1.3).unwrap(), 0.3043866175567316);
    close(ranks.p_upper(4.0).unwrap(), 0.9462847208686732);
    close(ranks.gamma_star(0.2).unwrap(), 1.0903876690590424);
    assert_eq!(ranks.gamma_star(0.05), Ok(1.0));
    let differences: Vec<f64> = (1..=20).map(f64::from).collect();
    let ranks = SignedRanks::new(&differences).unwrap();
    close(ranks.p_upper(5.0).unwrap(), 0.03979704463963811);
    close(ranks.gamma_star(0.05).unwrap(), 5.679396364999095);
    close(ranks.p_upper(f64::MAX).unwrap(), 0.5);
}

#[test]
fn bounds_are_right_far_out() {
    // A million differences above zero: the deviate is sqrt(3 n / 4), and the bound of gamma is at
    // the deviate divided by sqrt(gamma).
    let differences: Vec<f64> = (1..=1_000_000).map(f64::from).collect();
    let ranks = SignedRanks::new(&differences).unwrap();
    let deviate = 500_000_500_000.0 / 333_333_833_333_500_000.0_f64.sqrt();
    close(ranks.gamma_star(0.05).unwrap(), (deviate / 1.6448536269514722_f64).powi(2));
    // scipy.stats.norm.sf(30).
    close(ranks.p_upper((deviate / 30.0).powi(2)).unwrap(), 4.906713927148187e-198);
}

#[test]
fn bounds_without_ranks_are_refused() {
    let few = |found| Refusal::TooFew { what: "differences other than zero", found, needed: 10 };
    assert_eq!(SignedRanks::new(&[]), Err(few(0)));
    assert_eq!(SignedRanks::new(&[0.0; 100]), Err(few(0)));
    assert_eq!(SignedRanks::new(&[1.0; 9]), Err(few(9)));
    assert!(matches!(SignedRanks::new(&[f64::NAN; 20]), Err(Refusal::Other(_))));
    let ranks = SignedRanks::new(&[1.0; 10]).unwrap();
    for gamma in [0.9, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(ranks.p_upper(gamma).is_err());
    }
    for alpha in [0.0, 0.5, 1.0, -1.0, f64::NAN] {
        assert!(ranks.gamma_star(alpha).is_err());
    }
}

/// The bound as published, with ranks by counting.
fn brute(differences: &[f64], gamma: f64) -> f64 {
    let kept: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let rank = |at: f64| {
        let below = kept.iter().filter(|d| d.abs() < at.abs()).count() as f64;
        let ties = kept.iter().filter(|d| d.abs() == at.abs()).count() as f64;
        below + (ties + 1.0) / 2.0
    };
    let sum = |sign: f64| kept.iter().filter(|d| **d * sign > 0.0).map(|d| rank(*d)).sum::<f64>();
    let p = gamma / (1.0 + gamma);
    let all: f64 = kept.iter().map(|d| rank(*d)).sum();
    let squares: f64 = kept.iter().map(|d| rank(*d).powi(2)).sum();
    let deviate = (sum(1.0).max(sum(-1.0)) - p * all) / (p * (1.0 - p) * squares).sqrt();
    crate::tail::normal_upper(deviate)
}

fn differences() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec((-4_i32..12).prop_map(f64::from), 0..60).prop_map(|mut drawn| {
        drawn.extend((1..=10).map(f64::from));
        drawn
    })
}

proptest! {
    #[test]
    fn bounds_follow_the_definition(differences in differences(), gamma in 1.0..20.0) {
        let ranks = SignedRanks::new(&differences).unwrap();
        close(ranks.p_upper(gamma).unwrap(), brute(&differences, gamma));
        prop_assert!(ranks.p_upper(gamma + 0.1).unwrap() >= ranks.p_upper(gamma).unwrap());
        let star = ranks.gamma_star(0.05).unwrap();
        if star > 1.0 {
            prop_assert!(ranks.p_upper(star).unwrap() <= 0.05);
            prop_assert!(ranks.p_upper(star.next_up()).unwrap() > 0.05);
        }
    }

    #[test]
    fn bounds_ignore_order_sign_and_unit(differences in differences()) {
        let ranks = SignedRanks::new(&differences).unwrap();
        let other: Vec<f64> = differences.iter().rev().map(|d| -d * 0.37).collect();
        let other = SignedRanks::new(&other).unwrap();
        prop_assert_eq!(other.statistic, ranks.statistic);
        prop_assert_eq!(other.gamma_star(0.05).unwrap(), ranks.gamma_star(0.05).unwrap());
        prop_assert_eq!(other.smaller, ranks.smaller);
    }

    #[test]
    fn inverted_ratios_have_the_same_evalue(ratio in 0.01..100.0, wide in 1.0..3.0) {
        let found = evalue_ratio(ratio, Some((ratio / wide, ratio * wide))).unwrap();
        let inverse = 1.0 / ratio;
        let other = evalue_ratio(inverse, Some((inverse / wide, inverse * wide))).unwrap();
        prop_assert!((found.point - other.point).abs() < 1e-6 * found.point);
        prop_assert!(found.point >= 1.0 && found.limit.unwrap() <= found.point + 1e-6);
    }

    #[test]
    fn robustness_is_a_share(statistic in -50.0..50.0, degrees in 2.0..5000.0) {
        let found = robustness(statistic, degrees, 1.0, 0.05).unwrap();
        prop_assert!((0.0..=1.0).contains(&found.value));
        prop_assert!(found.value_alpha >= 0.0 && found.value_alpha <= found.value);
        prop_assert_eq!(robustness(-statistic, degrees, 1.0, 0.05).unwrap(), found);
        // The share r explains the estimate away if r^2 / (1 - r) is f squared.
        let share = found.value;
        prop_assert!((share * share - found.partial_f2 * (1.0 - share)).abs() < 1e-9);
    }

    #[test]
    fn nothing_panics(
        a in any::<f64>(), b in any::<f64>(), c in any::<f64>(), d in any::<f64>(),
        degrees in -3.0..1e6,
        list in proptest::collection::vec(any::<f64>(), 0..30),
    ) {
        let _ = evalue_ratio(a, Some((b, c)));
        let _ = evalue_difference(a, b, c);
        let _ = pooled_deviation(&list, &[a, b, c]);
        let _ = robustness(a, degrees, c, 0.05);
        let _ = robustness(a, b.abs().max(1e18), c, d);
        if let Ok(ranks) = SignedRanks::new(&list) {
            let _ = (ranks.p_upper(a), ranks.gamma_star(b));
            prop_assert!(ranks.gamma_star(0.05).is_ok());
        }
    }
}
