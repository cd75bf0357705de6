//! Tests of the minimum detectable effect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} is not {expected}");
}

#[test]
fn the_effect_is_a_multiple_of_the_standard_error() {
    // z(0.975) + z(0.8), and other pairs, of scipy.stats.norm.ppf.
    close(minimum_detectable(1.0, 0.05, 0.8).unwrap(), 2.801_585_218_112_968_3);
    close(minimum_detectable(1.0, 0.01, 0.9).unwrap(), 3.857_380_869_093_500_4);
    close(minimum_detectable(1.0, 1e-20, 0.5).unwrap(), 9.336_044_849_234_06);
}

#[test]
fn pairing_gains_what_it_saves_in_variance() {
    let found = paired_gain(9.019_937_131_794_562, 15.126_662_782_575_88, 0.05, 0.8).unwrap();
    close(found.paired, 25.270_122_536_743_93);
    close(found.unpaired, 42.378_634_851_044_17);
    close(found.variance_ratio, 2.812_413_859_869_527);
}

#[test]
fn what_is_no_test_is_refused() {
    for (error, alpha, power) in [
        (0.0, 0.05, 0.8),
        (-1.0, 0.05, 0.8),
        (f64::NAN, 0.05, 0.8),
        (f64::INFINITY, 0.05, 0.8),
        (1.0, 0.0, 0.8),
        (1.0, f64::NAN, 0.8),
        (1.0, 0.05, 1.0),
        (1.0, 0.05, 0.05),
        (1.0, 0.05, f64::NAN),
        (f64::MAX, 0.05, 0.8),
    ] {
        assert!(minimum_detectable(error, alpha, power).is_err(), "{error} {alpha} {power}");
    }
    assert!(paired_gain(1e-200, 1e200, 0.05, 0.8).is_err());
    assert!(paired_gain(0.0, 1.0, 0.05, 0.8).is_err());
}

proptest! {
    #[test]
    fn more_demands_need_larger_effects(
        error in 1e-6..1e6, alpha in 0.001..0.2, power in 0.3..0.98,
    ) {
        let found = minimum_detectable(error, alpha, power).unwrap();
        prop_assert!(found > 0.0);
        prop_assert!(minimum_detectable(error * 1.1, alpha, power).unwrap() > found);
        prop_assert!(minimum_detectable(error, alpha / 1.1, power).unwrap() > found);
        prop_assert!(minimum_detectable(error, alpha, power + 0.01).unwrap() > found);
    }

    #[test]
    fn nothing_panics(error in any::<f64>(), alpha in any::<f64>(), power in any::<f64>()) {
        let _ = paired_gain(error, power, alpha, power);
    }
}
