//! Tests of the overlap of propensity scores: the reference data sets and degenerate scores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The folder of the reference numbers.
fn reference_dir() -> PathBuf {
    Path::new("../../tests/reference/causal").to_owned()
}

fn close(found: f64, expected: f64) {
    let scale = expected.abs().max(1e-3);
    assert!((found - expected).abs() <= 1e-9 * scale, "{found} is not {expected}");
}

/// The treatment and the scores by the coefficients of a model of the reference.
fn scores(name: &str, numbers: &Value, model: &str) -> (Vec<bool>, Vec<f64>) {
    let mut reader = csv::Reader::from_path(reference_dir().join(format!("{name}.csv"))).unwrap();
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let at = |name: &Value| names.iter().position(|other| name == other.as_str()).unwrap();
    let treatment = at(&numbers["meta"]["treatment"]);
    let covariates: Vec<usize> =
        numbers["meta"]["covariates"].as_array().unwrap().iter().map(at).collect();
    let model = &numbers["propensity"][model];
    let coefficients: Vec<f64> =
        model["coef"].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect();
    let (mut treated, mut scores) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let row: Vec<f64> = record.unwrap().iter().map(|field| field.parse().unwrap()).collect();
        let terms = covariates.iter().zip(&coefficients).map(|(at, factor)| row[*at] * factor);
        let linear = model["intercept"].as_f64().unwrap() + terms.sum::<f64>();
        treated.push(row[treatment] == 1.0);
        scores.push(1.0 / (1.0 + (-linear).exp()));
    }
    (treated, scores)
}

#[test]
fn overlap_is_that_of_the_reference() {
    for name in ["nhefs", "nsw_dw", "ihdp_A_seed0", "formula_splitmix42"] {
        let text = std::fs::read_to_string(reference_dir().join(format!("{name}.json"))).unwrap();
        let numbers: Value = serde_json::from_str(&text).unwrap();
        for model in ["ridge_C1", "mle"] {
            let (treated, scores) = scores(name, &numbers, model);
            let weights: Vec<f64> = (scores.iter().zip(&treated))
                .map(|(score, treated)| {
                    let score = score.clamp(0.05, 0.95);
                    if *treated { 1.0 / score } else { 1.0 / (1.0 - score) }
                })
                .collect();
            let found = overlap(&scores, &treated, Some(&weights), (0.05, 0.95)).unwrap();
            let expected = &numbers["propensity"][model];
            let number = |name: &str| expected[name].as_f64().unwrap();
            close(found.auc, number("auc"));
            close(found.min_treated.min(found.min_control), number("min"));
            close(found.max_treated.max(found.max_control), number("max"));
            assert_eq!(found.distinct as f64, number("n_distinct_scores"));
            let clipped = found.below_clip + found.above_clip;
            assert_eq!(clipped as f64, number("n_outside_0.05_0.95"));
            for (at, found) in found.quantiles.iter().enumerate() {
                close(*found, expected["quantiles_1_25_50_75_99"][at].as_f64().unwrap());
            }
            let sizes = &expected["ipw_clip_05_95"]["ess_ate_t1_t0"];
            close(found.effective_treated, sizes[0].as_f64().unwrap());
            close(found.effective_control, sizes[1].as_f64().unwrap());
        }
    }
}

#[test]
fn scores_that_are_all_equal_tell_nothing() {
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
fn what_is_no_comparison_is_refused() {
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
