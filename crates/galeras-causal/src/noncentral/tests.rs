//! Tests of the noncentral t distribution.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn tails_equal_those_of_scipy() {
    for case in crate::tests::json("effect_sizes.json")["tails"].as_array().unwrap() {
        let of = |name: &str| case[name].as_f64().unwrap();
        let (t, df, shift) = (of("t"), of("df"), of("shift"));
        let upper = noncentral_t_upper(t, df, shift);
        assert!((upper - of("upper")).abs() < 1e-10, "{case}: {upper}");
        let lower = noncentral_t_lower(t, df, shift);
        assert!((lower + upper - 1.0).abs() < 1e-13, "{case}: {lower}");
    }
}

#[test]
fn without_a_shift_it_is_students_t() {
    for df in [1.0, 2.0, 4.5, 30.0, 1e4, 1e8, f64::INFINITY] {
        for t in [-3.0, -0.2, 0.0, 1.0, 2.5] {
            let (found, expected) = (noncentral_t_upper(t, df, 0.0), tail::t_upper(t, df));
            // Fractions of degrees below 5 leave a root at zero, which costs digits.
            assert!((found - expected).abs() < 1e-8, "{t} {df}: {found} {expected}");
        }
    }
}

#[test]
fn the_interval_of_the_shift_leaves_half_of_alpha_on_either_side() {
    for (t, df, alpha) in
        [(0.0, 5.0, 0.05), (2.5, 9.0, 0.1), (-31.0, 800.0, 0.01), (90.0, 40.0, 0.05)]
    {
        let (low, high) = shift_interval(t, df, alpha);
        assert!(low < t && t < high || t.abs() > 50.0, "{low} {t} {high}");
        assert!((noncentral_t_upper(t, df, low) - 0.5 * alpha).abs() < 1e-12);
        assert!((noncentral_t_lower(t, df, high) - 0.5 * alpha).abs() < 1e-12);
    }
}
