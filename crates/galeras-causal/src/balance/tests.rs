//! Tests of covariate balance and of the overlap of scores: the reference data sets, brute force,
//! and degenerate columns.

use proptest::prelude::*;

use super::*;
use crate::tests::{Number, Study, clipped_weights, near};

#[track_caller]
fn close(found: f64, expected: impl Number) {
    near(found, expected, 1e-9, 1e-3);
}

#[test]
fn balance_is_that_of_the_reference() {
    for name in ["nhefs", "nsw_dw", "ihdp_A_seed0", "formula_splitmix42"] {
        let study = Study::read(name);
        let treated = study.treated();
        for (covariate, expected) in study.json["balance"].as_object().unwrap() {
            let found = balance(study.table.column(covariate), &treated, None).unwrap();
            close(found.smd_before.unwrap(), &expected["smd"]);
            close(found.variance_ratio.unwrap(), &expected["variance_ratio"]);
            close(found.ks, &expected["ks"]);
            assert_eq!((found.smd_after, found.ks_after), (None, None));
        }
        for model in ["ridge_C1", "mle"] {
            let weights = clipped_weights(&study.scores(model), &treated);
            let after = &study.json["propensity"][model]["smd_after_ate_weights"];
            for (covariate, expected) in after.as_object().unwrap() {
                let found = balance(study.table.column(covariate), &treated, Some(&weights));
                close(found.unwrap().smd_after.unwrap(), expected);
            }
        }
    }
}

#[test]
fn weighted_distributions_are_compared() {
    // Computed with numpy from the definitions, at every distinct value.
    let study = Study::read("nsw_dw");
    let treated = study.treated();
    let weights = clipped_weights(&study.scores("mle"), &treated);
    let found = balance(study.table.column("age"), &treated, Some(&weights)).unwrap();
    close(found.ks_after.unwrap(), 0.04183359331344738);
    close(found.variance_ratio_after.unwrap(), 0.9784019248918732);
    let found = balance(study.table.column("re74"), &treated, Some(&weights)).unwrap();
    close(found.ks_after.unwrap(), 0.0468595495566112);
    close(found.variance_ratio_after.unwrap(), 0.7848073384624916);
}

#[test]
fn arms_that_are_alike_are_balanced_exactly() {
    let column = [0.1, 0.7, 1e9, 0.1, 0.7, 1e9];
    let found = balance(&column, &[true, true, true, false, false, false], None).unwrap();
    assert_eq!(found.smd_before, Some(0.0));
    assert_eq!(found.variance_ratio, Some(1.0));
    assert_eq!(found.ks, 0.0);
}

#[test]
fn constant_columns_have_no_spread_to_be_measured_in() {
    let treated = [true, true, true, false, false, false, false];
    let found = balance(&[0.1; 7], &treated, Some(&[0.3; 7])).unwrap();
    assert_eq!((found.mean_treated, found.mean_control), (0.1, 0.1));
    assert_eq!((found.smd_before, found.smd_after), (Some(0.0), Some(0.0)));
    assert_eq!((found.variance_ratio, found.variance_ratio_after), (None, None));
    assert_eq!((found.ks, found.ks_after), (0.0, Some(0.0)));
    // It separates the arms: the difference is infinite.
    let found = balance(&[0.1, 0.1, 0.1, 0.3, 0.3, 0.3, 0.3], &treated, None).unwrap();
    assert_eq!((found.smd_before, found.ks), (None, 1.0));
    let found = balance(&[1.0, 2.0, 3.0, 0.3, 0.3, 0.3, 0.3], &treated, None).unwrap();
    close(found.smd_before.unwrap(), 1.7 * std::f64::consts::SQRT_2);
    assert_eq!(found.variance_ratio, None);
}

#[test]
fn impossible_comparisons_are_refused() {
    let arms = [true, true, false, false];
    let column = [1.0, 2.0, 3.0, 4.0];
    for (column, weights) in [
        (&[1.0][..], None),
        (&[1.0, f64::NAN, 2.0, 3.0], None),
        (&[1.0, f64::INFINITY, 2.0, 3.0], None),
        (&column, Some(&[1.0][..])),
        (&column, Some(&[1.0, 1.0, 1.0, -1.0])),
        (&column, Some(&[1.0, 1.0, 0.0, 0.0])),
        (&[f64::MAX, f64::MIN, f64::MAX, 0.0], None),
    ] {
        let found = balance(column, &arms, weights);
        assert!(matches!(found, Err(Refusal::Other(_))), "{column:?} {weights:?}");
    }
    for (treated, what, found) in [
        (&[][..], "treated units", 0),
        (&[true, true, true], "control units", 0),
        (&[true, false, false], "treated units", 1),
    ] {
        let column = vec![1.0; treated.len()];
        let refusal = Refusal::TooFew { what, found, needed: 2 };
        assert_eq!(balance(&column, treated, None), Err(refusal));
    }
}

/// The statistic by its definition: at every value, the shares of weight at or below it.
fn brute(column: &[f64], treated: &[bool], weights: &[f64]) -> f64 {
    let share = |arm: bool, at: f64| {
        let rows = || (0..column.len()).filter(|row| treated[*row] == arm);
        let total: f64 = rows().map(|row| weights[row]).sum();
        rows().filter(|row| column[*row] <= at).map(|row| weights[row]).sum::<f64>() / total
    };
    column.iter().map(|at| (share(true, *at) - share(false, *at)).abs()).fold(0.0, f64::max)
}

/// Columns with ties, both arms with two units at least, and weights above zero.
fn units() -> impl Strategy<Value = Vec<(f64, bool, f64)>> {
    let unit = ((-6_i32..6).prop_map(|value| f64::from(value) / 4.0), any::<bool>(), 0.1..5.0);
    proptest::collection::vec(unit, 0..40).prop_map(|mut units| {
        units.extend([(0.0, true, 1.0), (1.5, true, 2.0), (0.25, false, 1.0), (9.0, false, 0.5)]);
        units
    })
}

fn of(units: &[(f64, bool, f64)], scale: f64, shift: f64) -> Balance {
    let (column, treated, weights): (Vec<f64>, Vec<bool>, Vec<f64>) =
        units.iter().map(|unit| (unit.0 * scale + shift, unit.1, unit.2)).collect();
    balance(&column, &treated, Some(&weights)).unwrap()
}

fn same(a: &Balance, b: &Balance) {
    let all = |found: &Balance| {
        let ratios = [found.variance_ratio, found.variance_ratio_after];
        [found.smd_before, found.smd_after, ratios[0], ratios[1], Some(found.ks), found.ks_after]
    };
    all(a).into_iter().zip(all(b)).for_each(|(a, b)| close(a.unwrap(), b.unwrap()));
}

proptest! {
    #[test]
    fn distances_are_those_of_the_definition(units in units()) {
        let found = of(&units, 1.0, 0.0);
        let (column, treated, weights): (Vec<f64>, Vec<bool>, Vec<f64>) =
            units.iter().copied().collect();
        close(found.ks, brute(&column, &treated, &vec![1.0; units.len()]));
        close(found.ks_after.unwrap(), brute(&column, &treated, &weights));
    }

    #[test]
    fn balance_ignores_scale_and_offset(units in units()) {
        let found = of(&units, 1.0, 0.0);
        same(&of(&units, 1.0, 1_048_576.0), &found);
        same(&of(&units, 1e-200, 0.0), &found);
        same(&of(&units, 1e200, 0.0), &found);
    }

    #[test]
    fn balance_ignores_row_order_and_weight_scale(units in units()) {
        let found = of(&units, 1.0, 0.0);
        let turned: Vec<_> = units.iter().rev().map(|unit| (unit.0, unit.1, unit.2 * 7.0)).collect();
        same(&of(&turned, 1.0, 0.0), &found);
        let equal: Vec<_> = units.iter().map(|unit| (unit.0, unit.1, 0.3)).collect();
        let equal = of(&equal, 1.0, 0.0);
        close(equal.smd_after.unwrap(), found.smd_before.unwrap());
        close(equal.variance_ratio_after.unwrap(), found.variance_ratio.unwrap());
        close(equal.ks_after.unwrap(), found.ks);
    }

    #[test]
    fn exchanged_arms_exchange_the_sign(units in units()) {
        let found = of(&units, 1.0, 0.0);
        let other: Vec<_> = units.iter().map(|unit| (unit.0, !unit.1, unit.2)).collect();
        let other = of(&other, 1.0, 0.0);
        close(other.smd_before.unwrap(), -found.smd_before.unwrap());
        close(other.variance_ratio.unwrap(), 1.0 / found.variance_ratio.unwrap());
        close(other.ks_after.unwrap(), found.ks_after.unwrap());
    }

    #[test]
    fn nothing_panics(
        column in proptest::collection::vec(any::<f64>(), 0..8),
        treated in proptest::collection::vec(any::<bool>(), 0..8),
        weights in proptest::collection::vec(any::<f64>(), 0..8),
    ) {
        let all = column.len().min(treated.len()).min(weights.len());
        for found in [
            balance(&column, &treated, Some(&weights)),
            balance(&column[..all], &treated[..all], Some(&weights[..all])),
            balance(&column[..all], &treated[..all], None),
        ].into_iter().flatten() {
            prop_assert!(found.ks.is_finite() && found.smd_before.is_none_or(f64::is_finite));
        }
    }
}

#[test]
fn overlap_is_that_of_the_reference() {
    for name in ["nhefs", "nsw_dw", "ihdp_A_seed0", "formula_splitmix42"] {
        let study = Study::read(name);
        let treated = study.treated();
        for model in ["ridge_C1", "mle"] {
            let scores = study.scores(model);
            let weights = clipped_weights(&scores, &treated);
            let found = overlap(&scores, &treated, Some(&weights), (0.05, 0.95)).unwrap();
            let expected = &study.json["propensity"][model];
            let number = |name: &str| expected[name].as_f64().unwrap();
            close(found.auc, number("auc"));
            close(found.min_treated.min(found.min_control), number("min"));
            close(found.max_treated.max(found.max_control), number("max"));
            assert_eq!(found.distinct as f64, number("n_distinct_scores"));
            let clipped = found.below_clip + found.above_clip;
            assert_eq!(clipped as f64, number("n_outside_0.05_0.95"));
            for (at, found) in found.quantiles.iter().enumerate() {
                close(*found, &expected["quantiles_1_25_50_75_99"][at]);
            }
            let sizes = &expected["ipw_clip_05_95"]["ess_ate_t1_t0"];
            close(found.effective_treated, &sizes[0]);
            close(found.effective_control, &sizes[1]);
        }
    }
}

#[test]
fn equal_scores_overlap_completely() {
    let found = overlap(&[0.5; 6], &[true, false, true, false, false, true], None, (0.05, 0.95));
    let found = found.unwrap();
    assert_eq!((found.distinct, found.auc, found.outside), (1, 0.5, 0));
    assert_eq!((found.effective_treated, found.effective_control), (3.0, 3.0));
    assert_eq!(found.quantiles, [0.5; 5]);
}

#[test]
fn scores_that_separate_have_no_common_support() {
    let arms = [false, false, true, true];
    let found = overlap(&[0.01, 0.2, 0.7, 0.99], &arms, None, (0.05, 0.95)).unwrap();
    assert_eq!((found.auc, found.outside), (1.0, 4));
    assert_eq!((found.min_treated, found.max_control), (0.7, 0.2));
    assert_eq!((found.below_clip, found.above_clip), (1, 1));
}

#[test]
fn one_unit_with_all_the_weight_is_one_unit() {
    let arms = [false, false, true, true];
    let weights = [0.0, 1e300, 1e-300, 1e-300];
    let found = overlap(&[0.1, 0.2, 0.3, 0.4], &arms, Some(&weights), (0.0, 1.0)).unwrap();
    assert_eq!((found.effective_control, found.effective_treated), (1.0, 2.0));
}

#[test]
fn impossible_overlaps_are_refused() {
    for (treated, what) in
        [(&[][..], "treated units"), (&[true], "control units"), (&[false], "treated units")]
    {
        let scores = vec![0.5; treated.len()];
        let refusal = Refusal::TooFew { what, found: 0, needed: 1 };
        assert_eq!(overlap(&scores, treated, None, (0.0, 1.0)), Err(refusal));
    }
    let arms = [true, false];
    for scores in [&[0.5, f64::NAN][..], &[0.5]] {
        assert!(matches!(overlap(scores, &arms, None, (0.0, 1.0)), Err(Refusal::Other(_))));
    }
    let weightless = overlap(&[0.5, 0.5], &arms, Some(&[1.0, 0.0]), (0.0, 1.0));
    assert!(matches!(weightless, Err(Refusal::Other(_))));
}

proptest! {
    #[test]
    fn the_area_is_a_share_of_pairs(
        units in proptest::collection::vec((0_u8..9, any::<bool>()), 0..40),
    ) {
        let mut units = units;
        units.extend([(3, true), (4, false)]);
        let scores: Vec<f64> = units.iter().map(|unit| f64::from(unit.0) / 10.0).collect();
        let treated: Vec<bool> = units.iter().map(|unit| unit.1).collect();
        let found = overlap(&scores, &treated, None, (0.15, 0.65)).unwrap();
        let (mut wins, mut pairs) = (0.0, 0.0);
        for one in units.iter().filter(|unit| unit.1) {
            for zero in units.iter().filter(|unit| !unit.1) {
                pairs += 1.0;
                wins += if one.0 > zero.0 { 1.0 } else if one.0 == zero.0 { 0.5 } else { 0.0 };
            }
        }
        close(found.auc, wins / pairs);
        let mut kinds: Vec<u8> = units.iter().map(|unit| unit.0).collect();
        kinds.sort_unstable();
        kinds.dedup();
        prop_assert_eq!(found.distinct, kinds.len());
        prop_assert_eq!(found.below_clip, units.iter().filter(|unit| unit.0 < 2).count());
        prop_assert_eq!(found.above_clip, units.iter().filter(|unit| unit.0 > 6).count());
        let swapped: Vec<bool> = treated.iter().map(|unit| !unit).collect();
        let other = overlap(&scores, &swapped, None, (0.15, 0.65)).unwrap();
        close(other.auc, 1.0 - found.auc);
        prop_assert_eq!(other.outside, found.outside);
    }

    #[test]
    fn no_scores_panic(
        scores in proptest::collection::vec(any::<f64>(), 0..8),
        treated in proptest::collection::vec(any::<bool>(), 0..8),
        clip in (any::<f64>(), any::<f64>()),
    ) {
        let all = scores.len().min(treated.len());
        let _ = overlap(&scores, &treated, Some(&scores), clip);
        let _ = overlap(&scores[..all], &treated[..all], Some(&scores[..all]), clip);
        let _ = overlap(&scores[..all], &treated[..all], None, clip);
    }
}

#[test]
fn the_ends_of_crumps_range_are_in_it() {
    let scores = [0.05, 0.1, 0.5, 0.9, 0.900001, f64::NAN];
    assert_eq!(in_overlap(&scores, CRUMP), [1, 2, 3]);
}
