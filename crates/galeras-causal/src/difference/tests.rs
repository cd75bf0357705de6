//! Tests of paired differences and of Welch's difference in means.

use proptest::prelude::*;

use super::*;

/// Lead in the blood of 33 children of exposed workers and their matched controls (Rosenbaum
/// 2002, chapter 4).
const EXPOSED: [f64; 33] = [
    38.0, 23.0, 41.0, 18.0, 37.0, 36.0, 23.0, 62.0, 31.0, 34.0, 24.0, 14.0, 21.0, 17.0, 16.0, 20.0,
    15.0, 10.0, 45.0, 39.0, 22.0, 35.0, 49.0, 48.0, 44.0, 35.0, 43.0, 39.0, 34.0, 13.0, 73.0, 25.0,
    27.0,
];
const CONTROL: [f64; 33] = [
    16.0, 18.0, 18.0, 24.0, 19.0, 11.0, 10.0, 15.0, 16.0, 18.0, 18.0, 13.0, 19.0, 10.0, 16.0, 16.0,
    24.0, 13.0, 9.0, 14.0, 21.0, 19.0, 7.0, 18.0, 19.0, 12.0, 11.0, 22.0, 25.0, 16.0, 13.0, 11.0,
    13.0,
];

#[track_caller]
fn close(found: f64, expected: f64) {
    crate::tests::close(found, expected, 1e-12);
}

#[test]
fn lead_equals_scipy() {
    let found = paired(&EXPOSED, &CONTROL).unwrap();
    close(found.value, 15.969696969696969);
    close(found.standard_error, 2.761506522470216);
    close(found.statistic(), 5.782965508048771);
    close(found.p_value(), 2.036430898060543e-06);
    close(found.interval(0.05).0, 10.344692255894834);
    close(found.interval(0.05).1, 21.594701683499103);

    let outcome: Vec<f64> = EXPOSED[..20].iter().chain(&CONTROL).copied().collect();
    let treated: Vec<bool> = (0..53).map(|row| row < 20).collect();
    let found = difference_in_means(&treated, &outcome).unwrap();
    close(found.value, 28.2 - 15.878787878787879);
    close(found.standard_error, 3.0325104798740012);
    close(found.degrees, 21.800898114776874);
    close(found.p_value(), 0.0005250239977680979);
}

#[test]
fn impossible_differences_are_refused() {
    assert!(matches!(paired(&[], &[]), Err(Refusal::TooFew { what: "pairs", found: 0, .. })));
    assert!(matches!(paired(&[1.0], &[2.0]), Err(Refusal::TooFew { found: 1, needed: 2, .. })));
    assert!(paired(&[1.0, 2.0], &[1.0]).is_err());
    assert!(paired(&[1.0, f64::NAN], &[1.0, 2.0]).is_err());
    assert!(paired(&[f64::MAX, 1.0], &[f64::MIN, 2.0]).is_err());
    // Equal but for the rounding of a subtraction.
    let refusal = paired(&[0.3, 0.6, 1.7], &[0.2, 0.5, 1.6]).unwrap_err();
    assert!(refusal.to_string().contains("all 3 pairs differ by the same amount"), "{refusal}");
    // One arm is constant.
    assert!(paired(&[1.0, 1.0, 1.0], &[1.0, 2.0, 4.0]).is_ok());

    let treated = [true, true, false, false];
    assert!(difference_in_means(&treated, &[1.0, 1.0, 2.0, 2.0]).is_err());
    assert!(difference_in_means(&treated, &[1.0, 1.0, 2.0]).is_err());
    assert!(difference_in_means(&treated, &[1.0, f64::INFINITY, 2.0, 2.0]).is_err());
    assert_eq!(
        difference_in_means(&[true, false, false], &[1.0, 2.0, 3.0]).unwrap_err(),
        Refusal::TooFew { what: "treated rows", found: 1, needed: 2 }
    );
    // One constant arm is no obstacle: the other one has all the variance.
    let found = difference_in_means(&treated, &[1.0, 1.0, 2.0, 4.0]).unwrap();
    close(found.standard_error, 1.0);
    close(found.degrees, 1.0);
}

#[test]
fn offsets_do_not_matter() {
    let far: Vec<f64> = EXPOSED.iter().map(|value| value + 1e12).collect();
    let near: Vec<f64> = CONTROL.iter().map(|value| value + 1e12).collect();
    assert_eq!(
        paired(&far, &near).unwrap().standard_error,
        paired(&EXPOSED, &CONTROL).unwrap().standard_error
    );
    let large: Vec<f64> = EXPOSED.iter().map(|value| value * 1e280).collect();
    let zero = [0.0; 33];
    close(paired(&large, &zero).unwrap().statistic(), paired(&EXPOSED, &zero).unwrap().statistic());
}

proptest! {
    #[test]
    fn arms_swap_signs(values in prop::collection::vec((-9.0f64..9.0, -9.0f64..9.0), 3..20)) {
        let (left, right): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let (a, b) = (paired(&left, &right).unwrap(), paired(&right, &left).unwrap());
        prop_assert!((a.value + b.value).abs() < 1e-12);
        prop_assert!((a.standard_error - b.standard_error).abs() < 1e-12);
    }

    #[test]
    fn never_panics(
        left in prop::collection::vec(prop::num::f64::ANY, 0..6),
        right in prop::collection::vec(prop::num::f64::ANY, 0..6),
        treated in prop::collection::vec(any::<bool>(), 0..6),
    ) {
        if let Ok(found) = paired(&left, &right) {
            prop_assert!(found.standard_error > 0.0);
        }
        if let Ok(found) = difference_in_means(&treated, &left) {
            prop_assert!(found.standard_error > 0.0 && found.degrees > 0.0);
        }
    }
}
