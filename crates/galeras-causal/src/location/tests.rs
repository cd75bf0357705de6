//! Tests of the robust location: against scipy, by brute force, by invariance, refusals.

use proptest::prelude::*;

use super::*;
use crate::tests::{close, integers};

fn differences(n: usize, most: u64, shift: f64) -> Vec<f64> {
    integers(n, n as u64, most).iter().map(|value| value - shift).collect()
}

#[test]
fn location_equals_scipy() {
    // scipy 1.16.3: trim_mean, wilcoxon(correction=False, method="asymptotic"), binomtest,
    // skew, kurtosis; numpy: median, and the median of all pairwise averages.
    let found = location(&differences(200, 401, 170.0)).unwrap();
    assert_eq!(
        (found.median, found.hodges_lehmann, found.wilcoxon_statistic),
        (34.5, 35.5, 6717.5)
    );
    assert_eq!((found.positive, found.negative, found.zero), (119, 80, 1));
    close(found.trimmed_mean, 36.44375, 1e-14);
    close(found.wilcoxon_z, -3.973928671824033, 1e-12);
    close(found.wilcoxon_p, 7.069674275929298e-05, 1e-6);
    close(found.sign_p, 0.006915280823282506, 1e-11);
    close(found.skewness.unwrap(), -0.03447594190509484, 1e-11);
    close(found.excess_kurtosis.unwrap(), -1.0809837670583362, 1e-12);

    let found = location(&differences(30, 21, 9.0)).unwrap();
    assert_eq!((found.median, found.hodges_lehmann, found.wilcoxon_statistic), (1.0, 0.0, 224.5));
    close(found.trimmed_mean, 0.08333333333333333, 1e-14);
    close(found.wilcoxon_z, -0.16497475628260203, 1e-12);
    close(found.sign_p, 0.8555355519056321, 1e-12);
}

#[test]
fn small_samples_have_exact_signed_ranks() {
    // With ties and zeros, scipy's exact permutation test.
    let found = location(&differences(11, 7, 2.0)).unwrap();
    assert_eq!(
        (found.wilcoxon_statistic, found.wilcoxon_p, found.sign_p),
        (13.5, 0.3125, 0.5078125)
    );
    assert_eq!((found.positive, found.negative, found.zero), (6, 3, 2));
    close(found.wilcoxon_z, -1.0776318121606494, 1e-12);
    // Without: scipy's exact distribution.
    let plain = [1.5, -2.25, 3.125, 4.0, -0.5, 6.0, 7.75, 8.0, 9.5, -10.0, 11.0];
    let found = location(&plain).unwrap();
    assert_eq!((found.wilcoxon_statistic, found.wilcoxon_p), (14.0, 0.1015625));
    assert_eq!(found.sign_p, 0.2265625);
    // All of one sign: 2 of 2^50 choices.
    let fifty: Vec<f64> = (1..=50).map(f64::from).collect();
    assert_eq!(location(&fifty).unwrap().wilcoxon_p, 2f64.powi(-49));
}

#[test]
fn the_sign_test_is_exact_far_into_the_tail() {
    // scipy 1.16.3, binomtest.
    for (positive, negative, expected) in [
        (0, 5, 0.0625),
        (3, 9, 0.14599609375),
        (1765, 1153, 7.198892577946517e-30),
        (10000, 9000, 4.194037144140572e-13),
        (500_500, 499_500, 0.31779469136329525),
        (1500, 500, 1.4743975229770045e-115),
    ] {
        close(sign_test(positive, negative), expected, 1e-9);
        assert_eq!(sign_test(positive, negative), sign_test(negative, positive));
    }
    assert_eq!(sign_test(0, 0), 1.0);
    assert_eq!(sign_test(7, 7), 1.0);
    assert_eq!(sign_test(0, 5000), 0.0);
    assert_eq!(sign_test(0, 1000), 2f64.powi(-999));
}

#[test]
fn relative_effects_equal_numpy() {
    let add = |values: Vec<f64>| values.iter().map(|value| value + 1.0).collect::<Vec<f64>>();
    let (treated, control) = (add(integers(50, 1, 1000)), add(integers(50, 2, 900)));
    let found = relative(&treated, &control).unwrap();
    close(found.ratio_of_means, 1.2026412950866232, 1e-14);
    close(found.log_ratio_standard_error, 0.1265924861678476, 1e-12);
    close(found.mean_log1p_difference.unwrap(), 0.2023234851007505, 1e-12);
    // The other way round the ratio is the inverse; its logarithm has the same error.
    let back = relative(&control, &treated).unwrap();
    close(back.ratio_of_means, 1.0 / found.ratio_of_means, 1e-14);
    close(back.log_ratio_standard_error, found.log_ratio_standard_error, 1e-12);
    let with_minus_one = [-1.0, 5.0, 3.0];
    assert_eq!(relative(&with_minus_one, &[1.0, 2.0, 2.0]).unwrap().mean_log1p_difference, None);
}

#[test]
fn degenerate_pairs_have_an_answer_or_a_refusal() {
    assert_eq!(location(&[]), Err(Refusal::TooFew { what: "pairs", found: 0, needed: 1 }));
    assert!(location(&[1.0, f64::NAN]).is_err() && location(&[f64::INFINITY]).is_err());
    let zeros = location(&[0.0, -0.0, 0.0]).unwrap();
    assert_eq!((zeros.wilcoxon_p, zeros.sign_p, zeros.wilcoxon_z, zeros.zero), (1.0, 1.0, 0.0, 3));
    assert_eq!((zeros.skewness, zeros.excess_kurtosis), (None, None));
    assert!(zeros.hodges_lehmann.is_sign_positive());
    let one = location(&[-4.5]).unwrap();
    assert_eq!((one.median, one.hodges_lehmann, one.trimmed_mean), (-4.5, -4.5, -4.5));
    assert_eq!((one.wilcoxon_p, one.sign_p), (1.0, 1.0));
    let huge = location(&[f64::MAX, f64::MAX, -f64::MAX, f64::MAX]).unwrap();
    assert_eq!((huge.median, huge.hodges_lehmann), (f64::MAX, f64::MAX));

    assert!(relative(&[1.0], &[1.0]).is_err() && relative(&[], &[]).is_err());
    assert!(relative(&[1.0, 2.0], &[1.0]).is_err());
    assert!(relative(&[1.0, 2.0], &[0.0, 0.0]).is_err());
    assert!(relative(&[-1.0, -2.0], &[1.0, 1.0]).is_err());
    assert!(relative(&[1.0, f64::NAN], &[1.0, 1.0]).is_err());
}

#[test]
fn a_million_pairs_need_no_square_of_memory() {
    let n = 1_000_000;
    let differences: Vec<f64> = integers(n, 5, 1 << 30).iter().map(|v| v / 1024.0).collect();
    let found = location(&differences).unwrap();
    // Uniform on [0, 2^20]: all three are near the middle.
    for value in [found.median, found.hodges_lehmann, found.trimmed_mean] {
        assert!((value / 524_288.0 - 1.0).abs() < 0.01, "{found:?}");
    }
}

/// The median of all pairwise averages, one by one.
fn slowly(values: &[f64]) -> f64 {
    let mut averages: Vec<f64> = (0..values.len())
        .flat_map(|i| (0..=i).map(move |j| (i, j)))
        .map(|(i, j)| (values[i] + values[j]) / 2.0)
        .collect();
    averages.sort_unstable_by(f64::total_cmp);
    let m = averages.len();
    (averages[(m - 1) / 2] + averages[m / 2]) / 2.0
}

proptest! {
    #[test]
    fn the_pseudomedian_is_that_of_all_averages(
        values in prop::collection::vec(
            prop_oneof![-1e6f64..1e6, (-9i32..9).prop_map(f64::from), Just(-0.0)],
            1..60,
        ),
    ) {
        let mut sorted = values;
        sorted.sort_unstable_by(f64::total_cmp);
        prop_assert_eq!(pseudomedian(&sorted), slowly(&sorted));
    }

    #[test]
    fn a_change_of_sign_mirrors_everything(values in prop::collection::vec(-50i32..50, 1..90)) {
        let plain: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let mirrored: Vec<f64> = plain.iter().rev().map(|value| -value).collect();
        let (a, b) = (location(&plain).unwrap(), location(&mirrored).unwrap());
        prop_assert_eq!(a.median, -b.median);
        prop_assert_eq!(a.hodges_lehmann, -b.hodges_lehmann);
        prop_assert!((a.trimmed_mean + b.trimmed_mean).abs() < 1e-12);
        prop_assert_eq!(a.wilcoxon_statistic, b.wilcoxon_statistic);
        prop_assert_eq!((a.wilcoxon_p, a.sign_p), (b.wilcoxon_p, b.sign_p));
        prop_assert_eq!((a.positive, a.negative, a.zero), (b.negative, b.positive, b.zero));
        prop_assert!((0.0..=1.0).contains(&a.wilcoxon_p) && (0.0..=1.0).contains(&a.sign_p));
    }

    #[test]
    fn a_shift_moves_the_estimates_along(values in prop::collection::vec(-50i32..50, 1..90)) {
        let plain: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let moved: Vec<f64> = plain.iter().map(|value| value + 1024.0).collect();
        let (a, b) = (location(&plain).unwrap(), location(&moved).unwrap());
        prop_assert_eq!(a.median + 1024.0, b.median);
        prop_assert_eq!(a.hodges_lehmann + 1024.0, b.hodges_lehmann);
        prop_assert!((a.trimmed_mean + 1024.0 - b.trimmed_mean).abs() < 1e-12);
        prop_assert_eq!((a.skewness, a.excess_kurtosis), (b.skewness, b.excess_kurtosis));
    }

    #[test]
    fn any_doubles_give_numbers_or_a_refusal(values in prop::collection::vec(any::<f64>(), 0..30)) {
        if let Ok(found) = location(&values) {
            prop_assert!(found.hodges_lehmann.is_finite() && found.median.is_finite());
            prop_assert!(found.trimmed_mean.is_finite() && found.wilcoxon_p <= 1.0);
        }
        if let Ok(found) = relative(&values, &values) {
            prop_assert_eq!(found.ratio_of_means, 1.0);
        }
    }
}
