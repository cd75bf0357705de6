//! Tests of the overlap of propensity scores: the reference data sets and degenerate scores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::tests::{Number, Study, clipped_weights, near};

#[track_caller]
fn close(found: f64, expected: impl Number) {
    near(found, expected, 1e-9, 1e-3);
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
    assert_eq!((found.common_low, found.common_high), (0.5, 0.5));
    assert_eq!((found.effective_treated, found.effective_control), (3.0, 3.0));
    assert_eq!(found.quantiles, [0.5; 5]);
}

#[test]
fn scores_that_separate_have_no_common_support() {
    let arms = [false, false, true, true];
    let found = overlap(&[0.01, 0.2, 0.7, 0.99], &arms, None, (0.05, 0.95)).unwrap();
    assert_eq!((found.auc, found.outside), (1.0, 4));
    assert_eq!((found.common_low, found.common_high), (0.7, 0.2));
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
fn impossible_comparisons_are_refused() {
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
    fn nothing_panics(
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
