//! Tests of tails and quantiles against numbers of 40 digits (mpmath), and at values without a
//! result.

use proptest::prelude::*;

use super::*;
use crate::tests::close;

#[test]
fn normal_tails_and_quantiles_are_exact() {
    #[rustfmt::skip]
    let cases = [
        (-3.0, 0.9986501019683699), (0.0, 0.5), (1e-09, 0.49999999960105773),
        (0.5, 0.3085375387259869), (1.7, 0.04456546275854304), (1.74, 0.040929508978807365),
        (3.0, 0.0013498980316300946), (8.0, 6.220960574271784e-16), (20.0, 2.7536241186062337e-89),
        (37.0, 5.725571222524577e-300),
    ];
    for (z, upper) in cases {
        close(normal_upper(z), upper, 1e-12);
        if z > 0.0 {
            close(normal_two_sided(-z), 2.0 * upper, 1e-12);
        }
    }
    #[rustfmt::skip]
    let cases = [
        (0.500000001, 2.5066282037387115e-09), (0.6, 0.2533471031357997), (0.74, 0.643345405392917),
        (0.76, 0.7063025628400875), (0.9, 1.2815515655446006), (0.95, 1.6448536269514722),
        (0.975, 1.9599639845400538), (0.995, 2.5758293035489004), (0.999999999, 5.9978070196016375),
        (0.025, -1.9599639845400543), (1e-100, -21.273453560965326), (1e-300, -37.0470962993612),
    ];
    for (p, quantile) in cases {
        close(normal_quantile(p), quantile, 1e-13);
        close(t_quantile(p, f64::INFINITY), quantile, 1e-13);
    }
}

#[test]
fn student_tails_and_quantiles_are_exact() {
    #[rustfmt::skip]
    let cases = [
        (1e-06, 1.0, 0.49999968169011383), (1.0, 1.0, 0.25), (1.74, 1.0, 0.1660362607801335),
        (36.0, 1.0, 0.008839668173303263), (1000.0, 1.0, 0.0003183097800805589),
        (1e-06, 3.7, 0.49999962683845056), (1.0, 3.7, 0.18907069988022623),
        (1.74, 3.7, 0.08130954486462443), (36.0, 3.7, 3.7910644489429546e-06),
        (1000.0, 3.7, 1.733671316991768e-11), (1e-06, 2922.0, 0.49999960109185076),
        (1.7, 2922.0, 0.04461867447357677), (1.96, 2922.0, 0.025045349814827294),
        (8.0, 2922.0, 8.882578204522017e-16), (1e-06, 1000000.0, 0.4999996010578193),
        (1.7, 1000000.0, 0.04456561824517438), (1.96, 1000000.0, 0.024998033792634895),
        (8.0, 1000000.0, 6.22753171660126e-16), (1e-06, 10000000.0, 0.49999960105772956),
        (1.7, 10000000.0, 0.0445654783072067), (1.96, 10000000.0, 0.024997909012657096),
        (8.0, 10000000.0, 6.221617401403393e-16), (1e+150, 1.0, 3.183098861837907e-151),
    ];
    for (t, degrees, upper) in cases {
        close(t_upper(t, degrees), upper, 1e-11);
        close(t_upper(-t, degrees), 1.0 - upper, 1e-11);
    }
    // The largest statistic of the published experiment.
    close(t_two_sided(-25.473209009772102, 2922.0), 1.959129915175365e-129, 1e-11);
    #[rustfmt::skip]
    let cases = [
        (0.500000001, 1.0, 3.141592564739485e-09), (0.6, 1.0, 0.32491969623290623),
        (0.9, 1.0, 3.077683537175254), (0.975, 1.0, 12.706204736174694),
        (0.995, 1.0, 63.656741162871526), (0.999999999, 1.0, 318309895.1862093),
        (1e-12, 1.0, -318309886183.79065), (0.500000001, 3.7, 2.6798044256342295e-09),
        (0.6, 3.7, 0.2721644642920696), (0.9, 3.7, 1.5575658388615077),
        (0.975, 3.7, 2.8675207071911886), (0.995, 3.7, 4.8692522532278275),
        (0.999999999, 3.7, 334.2256731372961), (1e-12, 3.7, -2162.003550940282),
        (0.500000001, 2922.0, 2.5068426745967458e-09), (0.6, 2922.0, 0.25337017147451224),
        (0.9, 2922.0, 1.2818413602653647), (0.975, 2922.0, 1.9607761808019348),
        (0.995, 2922.0, 2.5775129354975683), (0.999999999, 2922.0, 6.016832100534412),
        (1e-12, 2922.0, -7.064980059823601), (0.500000001, 10000000.0, 2.506628266404417e-09),
        (0.6, 10000000.0, 0.25334710987600295), (0.9, 10000000.0, 1.281551650203083),
        (0.975, 10000000.0, 1.959964221767205), (0.995, 10000000.0, 2.5758297952037488),
        (0.999999999, 10000000.0, 5.997812563632333), (1e-12, 10000000.0, -7.03449270352616),
    ];
    for (p, degrees, quantile) in cases {
        close(t_quantile(p, degrees), quantile, 1e-12);
    }
}

#[test]
fn chi_squared_and_f_tails_are_exact() {
    #[rustfmt::skip]
    let cases = [
        (0.3, 0.3, 0.20883382637320688), (15.791933384829669, 0.3, 9.416300843284422e-06),
        (5.242640687119286, 1.0, 0.022039795281218248), (3.0, 2.0, 0.22313016014842982),
        (74.0, 2.0, 8.533047625744066e-17), (10.348469228349533, 3.0, 0.015824849523584428),
        (10.0, 10.0, 0.4404932850652124), (99.44271909999159, 10.0, 7.044968570782268e-17),
        (106.03562363973515, 99.0, 0.2960655683068378),
        (605.5649020609303, 99.0, 9.455488912484597e-74),
        (1044.721359549996, 1000.0, 0.15857707972830107), (1300.0, 3.0, 1.4717437106980104e-281),
    ];
    for (x, degrees, upper) in cases {
        close(chi_squared_upper(x, degrees), upper, 1e-11);
    }
    #[rustfmt::skip]
    let cases = [
        (0.01, 1.0, 1.0, 0.9365489651388929), (1000.0, 1.0, 3.0, 6.94879489165195e-05),
        (40.0, 1.0, 500.0, 5.639648057563896e-10), (5.0, 2.0, 1.0, 0.30151134457776363),
        (2.0, 2.0, 20.0, 0.16150558288984573), (1.1, 2.0, 2000.0, 0.33307238398423195),
        (1.1, 7.5, 3.0, 0.5191179463039503), (1.0, 7.5, 500.0, 0.4327885744821698),
        (1.0, 40.0, 1.0, 0.6766781882517091), (0.9, 40.0, 20.0, 0.6234068069556425),
        (0.9, 40.0, 2000.0, 0.650131055048289), (0.9, 300.0, 3.0, 0.655195287638838),
        (0.5, 300.0, 500.0, 0.999999999945938),
    ];
    for (f, numerator, denominator, upper) in cases {
        close(f_upper(f, numerator, denominator), upper, 1e-11);
    }
}

#[test]
fn limits_are_exact() {
    let inf = f64::INFINITY;
    assert_eq!(t_two_sided(inf, 3.0), 0.0);
    assert_eq!(t_upper(-inf, 3.0), 1.0);
    assert_eq!(normal_upper(inf), 0.0);
    assert_eq!(normal_upper(-inf), 1.0);
    assert_eq!(t_quantile(1.0, 3.0), inf);
    assert_eq!(t_quantile(0.0, 1e7), -inf);
    assert_eq!(t_quantile(0.5, 3.0), 0.0);
    assert_eq!(f_upper(-1.0, 2.0, 3.0), 1.0);
    assert_eq!(f_upper(inf, 2.0, 3.0), 0.0);
    assert_eq!(chi_squared_upper(0.0, 3.0), 1.0);
    close(t_two_sided(1.96, inf), normal_two_sided(1.96), 0.0);
    close(f_upper(3.0, 2.0, inf), chi_squared_upper(6.0, 2.0), 0.0);
    for degrees in [0.0, -1.0, f64::NAN] {
        assert!(t_upper(1.0, degrees).is_nan());
        assert!(t_two_sided(1.0, degrees).is_nan());
        assert!(t_quantile(0.9, degrees).is_nan());
        assert!(chi_squared_upper(1.0, degrees).is_nan());
        assert!(f_upper(1.0, degrees, 2.0).is_nan());
        assert!(f_upper(1.0, 2.0, degrees).is_nan());
    }
    for p in [-0.1, 1.1, f64::NAN] {
        assert!(normal_quantile(p).is_nan());
        assert!(t_quantile(p, 4.0).is_nan());
        assert!(t_quantile(p, 1e9).is_nan());
    }
    assert!(normal_upper(f64::NAN).is_nan());
    assert!(t_upper(f64::NAN, 3.0).is_nan());
    assert!(chi_squared_upper(f64::NAN, 3.0).is_nan());
    assert!(f_upper(f64::NAN, 3.0, 3.0).is_nan());
}

proptest! {
    #[test]
    fn quantiles_invert_tails(log_p in -200.0f64..-0.7, log_degrees in -1.0f64..18.0) {
        let (p, degrees) = (log_p.exp(), log_degrees.exp());
        let t = t_quantile(p, degrees);
        prop_assume!(t.abs() < 1e100);
        prop_assert!((t_upper(-t, degrees) / p - 1.0).abs() < 1e-9);
    }

    #[test]
    fn tails_fall(t in 0.0f64..60.0, log_degrees in -1.0f64..25.0) {
        let degrees = log_degrees.exp();
        let (near, far) = (t_two_sided(t, degrees), t_two_sided(t * 1.001 + 1e-6, degrees));
        prop_assert!(far <= near && (0.0..=1.0).contains(&near));
    }

    #[test]
    fn never_panics_nor_hangs(a in prop::num::f64::ANY, b in prop::num::f64::ANY, c in prop::num::f64::ANY) {
        let found = [t_upper(a, b), f_upper(a, b, c), chi_squared_upper(a, b), normal_upper(a)];
        for p in found {
            prop_assert!(p.is_nan() || (0.0..=1.0).contains(&p), "{a:e} {b:e} {c:e} {found:?}");
        }
        let _ = (t_quantile(a, b), normal_quantile(a), t_quantile(a.abs() % 1.0, b));
    }
}

#[test]
fn noncentral_tails_equal_those_of_scipy() {
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
            let (found, expected) = (noncentral_t_upper(t, df, 0.0), t_upper(t, df));
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
